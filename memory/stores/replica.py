"""Reads from a streaming replica, which ``DATABASE_REPLICA_URL`` names.

A replica lags behind the primary and refuses every write. So it answers only requests for which a slightly older state
is sufficient. If the replica is unavailable, lags too much, or refuses a statement, the primary answers.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import structlog
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction

Result = TypeVar("Result")
Part = TypeVar("Part")

REPLICA = "replica"
# The header of a reply of the replica: its lag in seconds.
LAG = "X-MemState-Replica-Lag"
# After a failure, the primary answers for this long before the replica is tried again.
AWAY_SECONDS = 5.0

# If the receiver does not run, or if some WAL is not applied yet, the lag is the age of the last applied transaction.
_LAG = """
SELECT CASE
    WHEN NOT pg_is_in_recovery() THEN 0
    WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()
         AND EXISTS (SELECT 1 FROM pg_stat_wal_receiver WHERE pid IS NOT NULL) THEN 0
    ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())
END
"""

_log = structlog.get_logger(__name__)
_thread = threading.local()
_away_until = 0.0


def replica_is_set() -> bool:
    """Return whether this installation has a replica."""
    return REPLICA in connections


def replica_lag() -> float:
    """Return the replica's lag in seconds; infinite if it has applied nothing. One statement. Raises
    ``DatabaseError``."""
    with connections[REPLICA].cursor() as cursor:
        cursor.execute(_LAG)
        lag = cursor.fetchone()[0]
    return math.inf if lag is None else float(lag)


def replica_answer(work: Callable[[], Result]) -> tuple[Result, float | None]:
    """Run ``work`` with the replica as the default database. Return its result, and the lag of the replica in seconds.

    The lag is None if the primary has answered. The primary answers if there is no replica, within a transaction, and
    for a few seconds after a failure. It also answers if the lag exceeds ``MEMSTATE_REPLICA_MAX_LAG``, or if ``work``
    fails on the replica, for example because it writes. So ``work`` may run twice, and it must write within
    ``on_primary``. Runs one statement more than ``work``.
    """
    global _away_until
    if not _is_usable():
        return work(), None
    try:
        with _replica_chosen():
            lag = replica_lag()
            if lag <= settings.MEMSTATE_REPLICA_MAX_LAG:
                return work(), lag
    except DatabaseError as problem:
        # An error of the server has a code and concerns this request alone. Without a code, the server was not reached.
        if getattr(problem.__cause__, "sqlstate", None) is None:
            _away_until = time.monotonic() + AWAY_SECONDS
        _log.warning("replica_failed", problem=str(problem))
    return work(), None


def replica_parts(parts: Iterator[Part]) -> Iterator[Part]:
    """Yield ``parts``, such as the lines of an export, which are read from the replica if it can be used. A failure
    ends the export, because its first lines have been sent."""
    if not _is_usable():
        yield from parts
        return
    with _replica_chosen():
        yield from parts


@contextmanager
def on_primary() -> Iterator[None]:
    """If the replica is the default database, run the statements of the block in a transaction of the primary.
    Otherwise the block is part of the running transaction."""
    primary = getattr(_thread, "primary", None)
    if primary is None:
        yield
        return
    connections[DEFAULT_DB_ALIAS], _thread.primary = primary, None
    try:
        with transaction.atomic():
            yield
    finally:
        connections[DEFAULT_DB_ALIAS], _thread.primary = connections[REPLICA], primary


def _is_usable() -> bool:
    return (
        replica_is_set()
        and time.monotonic() >= _away_until
        and getattr(_thread, "primary", None) is None
        # What a transaction has written is not on the replica yet.
        and not connections[DEFAULT_DB_ALIAS].in_atomic_block
    )


@contextmanager
def _replica_chosen() -> Iterator[None]:
    # Django keeps the connections of each thread by name, so all code with the default connection uses the replica.
    primary = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS], _thread.primary = connections[REPLICA], primary
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS], _thread.primary = primary, None
