"""Regular expressions that are compiled at their first use.

Compiling the expressions of identifiers and aliases takes a third of a second. Commands that read no text need not wait
for it.
"""

import re
from functools import cached_property
from typing import Any, cast


class _LazyPattern:
    """Behaves like the ``re.Pattern`` of an expression and compiles it when a member is asked for."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """For ``isinstance``."""
        return re.Pattern

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._source, self._flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._compiled, name)
        # Python finds it from now on without this method.
        self.__dict__[name] = value
        return value


def lazy_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return the expression ``source``, which is compiled at its first use. ``re.error`` is raised then."""
    return cast("re.Pattern[str]", _LazyPattern(source, flags))
