"""Settings come from the environment only, through these helpers. An invalid value raises ``SettingError`` with a
sentence that names the variable."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from memory.core.nearest import nearest_hint
from memory.core.policy_values import FALSE_WORDS, TRUE_WORDS

PREFIX = "MEMSTATE_"
# Settings that only some processes read.
_READ_ELSEWHERE = {
    "MEMSTATE_ADMIN_KEY",
    "MEMSTATE_ADMIN_KEY_FILE",
    "MEMSTATE_ADMIN_PASSWORD",
    "MEMSTATE_ADMIN_PASSWORD_FILE",
    "MEMSTATE_API_KEY",
    "MEMSTATE_API_KEY_FILE",
    "MEMSTATE_DATABASE_POOL",
    "MEMSTATE_HOOK_SECONDS",
    "MEMSTATE_LISTEN_FD",
    "MEMSTATE_POSTGRES_ACCOUNT",
    "MEMSTATE_PROJECT_SCOPE",
    "MEMSTATE_RUN",
    "MEMSTATE_SHOW_SECRETS",
    "MEMSTATE_URL",
    "MEMSTATE_WEB_WORKERS",
}
_OF_TESTS = ("MEMSTATE_TEST_", "MEMSTATE_BENCH_", "MEMSTATE_COMMAND_TOPICS", "MEMSTATE_LOCOMO")
_known = set(_READ_ELSEWHERE)

Number = TypeVar("Number", int, float)


class SettingError(Exception):
    """A setting is invalid. The message is shown to the user."""


def envstr(name: str, default: str = "", *, choices: Collection[str] = ()) -> str:
    """Return the variable as text without surrounding blanks. An empty variable counts as not set."""
    _known.add(name)
    value = os.environ.get(name, "").strip() or default
    if choices and value not in choices:
        raise SettingError(f"{name} is {value!r}, but it must be one of: {', '.join(choices)}.")
    return value


def envbool(name: str, default: bool) -> bool:
    """Return the variable as a boolean. ``TRUE_WORDS`` and ``FALSE_WORDS`` are the valid words, in any case."""
    value = envstr(name).lower()
    if not value:
        return default
    if value in TRUE_WORDS:
        return True
    if value in FALSE_WORDS:
        return False
    raise SettingError(f"{name} is {value!r}, but it must be true or false.")


def envint(name: str, default: int, *, minimum: int | None = None, maximum: int | None = None) -> int:
    """Return the variable as a whole number within its bounds."""
    return _number(name, default, int, "a whole number", minimum, maximum)


def envfloat(name: str, default: float, *, minimum: float | None = None, maximum: float | None = None) -> float:
    """Return the variable as a number within its bounds."""
    return _number(name, default, float, "a number", minimum, maximum)


def envlist(name: str, default: Collection[str] = ()) -> list[str]:
    """Return the parts of the variable between commas. Blanks around the parts and empty parts are removed."""
    value = envstr(name)
    if not value:
        return list(default)
    return [part.strip() for part in value.split(",") if part.strip()]


def envpath(name: str, default: Path) -> Path:
    """Return the variable as an absolute path. `~` is the home folder; a relative path starts in the working folder."""
    value = envstr(name)
    return Path(os.path.abspath(Path(value).expanduser() if value else default))


def envsecret(name: str, *, minimum_length: int = 0) -> str | None:
    """Return the secret from the variable, or from the file that `<name>_FILE` names, or None if neither is set. A file
    keeps the secret out of the environment."""
    path = envstr(f"{name}_FILE")
    if path and envstr(name):
        raise SettingError(f"Both {name} and {name}_FILE are set. Set only one of them.")
    if path:
        try:
            value = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise SettingError(f"{name}_FILE names {path}, which cannot be read: {problem}.") from problem
        if not value:
            raise SettingError(f"{name}_FILE names {path}, but that file is empty.")
    else:
        value = envstr(name)
    if not value:
        return None
    if len(value) < minimum_length:
        # The message is logged, so it does not contain the secret.
        raise SettingError(f"{name} has {len(value)} characters, but it needs at least {minimum_length}.")
    return value


def variables_unknown() -> list[str]:
    """Return a sentence for each `MEMSTATE_` variable that no process reads. Call it after all settings were read."""
    return [
        f"{name} is not a setting; {nearest_hint(name, _known, noun='settings')}."
        for name in sorted(os.environ)
        if name.startswith(PREFIX) and name not in _known and not name.startswith(_OF_TESTS)
    ]


def _number(
    name: str,
    default: Number,
    convert: Callable[[str], Number],
    kind: str,
    minimum: Number | None,
    maximum: Number | None,
) -> Number:
    text = envstr(name)
    if not text:
        return default
    try:
        value = convert(text)
    except ValueError:
        raise SettingError(f"{name} is {text!r}, but it must be {kind}.") from None
    if value != value:
        raise SettingError(f"{name} is {text!r}, but it must be {kind}.")
    if minimum is not None and value < minimum:
        raise SettingError(f"{name} is {text}, but it must be at least {minimum}.")
    if maximum is not None and value > maximum:
        raise SettingError(f"{name} is {text}, but it must be at most {maximum}.")
    return value
