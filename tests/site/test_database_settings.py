"""The database's address becomes Django's settings."""

from __future__ import annotations

from typing import Any

import pytest

from memstate_site.database import database_settings
from memstate_site.env import SettingError

LIMITS: dict[str, Any] = {
    "pool": None,
    "statement_timeout_ms": 30_000,
    "lock_timeout_ms": 10_000,
    "idle_in_transaction_timeout_ms": 60_000,
}


def test_an_address_is_taken_apart() -> None:
    settings = database_settings(
        "DATABASE_URL", "postgresql://me:p%40ss@db.example:6432/memory?sslmode=verify-full", **LIMITS
    )
    assert (settings["HOST"], settings["PORT"], settings["NAME"]) == ("db.example", "6432", "memory")
    assert (settings["USER"], settings["PASSWORD"]) == ("me", "p@ss")
    assert settings["OPTIONS"]["sslmode"] == "verify-full"


def test_a_socket_folder_may_be_the_host() -> None:
    assert database_settings("DATABASE_URL", "postgresql://me@/db?host=%2Ftmp%2Fs", **LIMITS)["HOST"] == "/tmp/s"


def test_every_connection_has_its_time_limits_and_the_address_may_change_them() -> None:
    settings = database_settings("DATABASE_URL", "postgresql://h/db?options=-c%20lock_timeout%3D1", **LIMITS)
    assert settings["OPTIONS"]["options"] == (
        "-c statement_timeout=30000 -c lock_timeout=10000 -c idle_in_transaction_session_timeout=60000"
        " -c lock_timeout=1"
    )


def test_connections_are_kept_open_only_where_there_is_no_pool() -> None:
    assert database_settings("DATABASE_URL", "postgresql://h/db", **LIMITS)["CONN_MAX_AGE"] == 60
    pooled = database_settings("DATABASE_URL", "postgresql://h/db", **{**LIMITS, "pool": {"max_size": 4}})
    assert pooled["CONN_MAX_AGE"] == 0
    assert pooled["OPTIONS"]["pool"] == {"max_size": 4}


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("mysql://me:secret@h/db", "starts with postgresql://"),
        ("postgresql://me:secret@h/", "does not name a database"),
        ("postgresql://me:secret@[::1/db", "not an address that PostgreSQL understands"),
        ("postgresql://me:secret@h:port/db", "names a port that is not a number"),
        ("postgresql://me:secret@h/db?nonsense=1", "not an address that PostgreSQL understands"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_showing_the_password(address: str, sentence: str) -> None:
    with pytest.raises(SettingError, match="DATABASE_URL") as refused:
        database_settings("DATABASE_URL", address, **LIMITS)
    assert sentence in str(refused.value)
    assert "secret" not in str(refused.value)
