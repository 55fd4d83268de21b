"""The current store, and what names of stores may be. Requests, jobs and commands choose the store here, and
``memory.stores.database`` reads it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.conf import settings

# The store that exists after the first start.
MAIN = "main"
NAME_PATTERN = re.compile(r"[a-z][a-z0-9_]{0,39}")
SCHEMA_PREFIX = "store_"

# A command uses ``main`` unless a store is named. A request or a job without a store sees no tables of stores.
_DEFAULT = MAIN if settings.MEMSTATE_PROCESS == "command" else None
_current: ContextVar[str | None] = ContextVar("store", default=_DEFAULT)


class NoStore(RuntimeError):
    """Code that needs a store ran without one. This is a bug."""


def store_schema(name: str) -> str:
    """Return the schema of a store. Raises ``ValueError`` for an invalid name."""
    if NAME_PATTERN.fullmatch(name) is None:
        raise ValueError(f"{name!r} is not the name of a store.")
    return SCHEMA_PREFIX + name


def store_or_none() -> str | None:
    """Return the name of the current store; None if none is chosen."""
    return _current.get()


def store_current() -> str:
    """Return the name of the current store. Raises ``NoStore``."""
    name = _current.get()
    if name is None:
        raise NoStore("No store is chosen.")
    return name


def store_choose(name: str | None) -> None:
    """Make ``name`` the current store until the end of the surrounding ``store_use``, such as that of the request."""
    if name is not None:
        store_schema(name)
    _current.set(name)


@contextmanager
def store_use(name: str | None) -> Iterator[None]:
    """Make ``name`` the current store within the block; None means no store. Also applies to a running transaction."""
    if name is not None:
        store_schema(name)
    token = _current.set(name)
    try:
        yield
    finally:
        _current.reset(token)
