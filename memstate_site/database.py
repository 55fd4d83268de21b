"""The DATABASES entry of Django for a connection address."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from memstate_site.env import SettingError

# Parts of the address for which Django has separate settings.
DJANGO_NAMES = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}


def database_settings(
    variable: str,
    address: str,
    *,
    pool: dict[str, Any] | None,
    statement_timeout_ms: int,
    lock_timeout_ms: int,
    idle_in_transaction_timeout_ms: int,
    connect_timeout: int = 10,
) -> dict[str, Any]:
    """Return the entry of DATABASES for a `postgresql://` address with any parts that libpq supports. With `pool`, the
    threads of the process share connections; a process that forks cannot use a pool. Raises ``SettingError`` if the
    address is invalid."""
    if not address.startswith(("postgresql://", "postgres://")):
        raise SettingError(f"{variable} must be an address that starts with postgresql://.")
    try:
        parts: dict[str, Any] = dict(conninfo_to_dict(address))
    except psycopg.ProgrammingError as problem:
        # Only the first part of the driver's message is shown, because the rest contains the address with the password.
        raise SettingError(f"{variable} is not an address that PostgreSQL understands ({_cause(problem)}).") from None
    if not all(port.isdigit() for port in str(parts.get("port", "5432")).split(",")):
        raise SettingError(f"{variable} names a port that is not a number.")
    if not parts.get("dbname"):
        raise SettingError(
            f"{variable} does not name a database; write it after the host, as in postgresql://host/name."
        )

    settings: dict[str, Any] = {django: str(parts.pop(libpq, "")) for libpq, django in DJANGO_NAMES.items()}
    # The limits come first, so that options in the address can change them.
    limits = {
        "statement_timeout": statement_timeout_ms,
        "lock_timeout": lock_timeout_ms,
        "idle_in_transaction_session_timeout": idle_in_transaction_timeout_ms,
    }
    given = parts.pop("options", "")
    parts["options"] = " ".join([*(f"-c {name}={value}" for name, value in limits.items()), given]).strip()
    parts.setdefault("connect_timeout", connect_timeout)
    parts.setdefault("application_name", "memstate")
    if pool is not None:
        parts["pool"] = pool
    return {
        "ENGINE": "memory.stores.database",
        **settings,
        "OPTIONS": parts,
        "CONN_MAX_AGE": 0 if pool is not None else 60,
        # Connections that a restart of the server has closed are replaced, so that no request fails.
        "CONN_HEALTH_CHECKS": True,
    }


def _cause(problem: Exception) -> str:
    return str(problem).split('"')[0].strip(" :") or "malformed"
