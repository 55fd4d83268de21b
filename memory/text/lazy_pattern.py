"""Regular expressions that are compiled at their first use. Compiling the expressions for identifiers takes a third of
a second."""

import re
from functools import cached_property
from typing import Any, cast


class _LazyPattern:
    """Behaves like a ``re.Pattern``, but compiles the expression when an attribute is first read."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Return the class that ``isinstance`` compares."""
        return re.Pattern

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._source, self._flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._compiled, name)
        # Later reads find the attribute here, so Python does not call this method again.
        self.__dict__[name] = value
        return value


def lazy_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled at its first use. An invalid ``source`` raises ``re.error`` at that time."""
    return cast("re.Pattern[str]", _LazyPattern(source, flags))
