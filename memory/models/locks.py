"""Advisory locks, and the database errors of locks that are not granted."""

from enum import IntEnum, unique

from django.db import connection
from psycopg.errors import DeadlockDetected, LockNotAvailable

# The key includes the schema, so that two stores in one database do not wait for each other.
_KEY = "%s, hashtext(current_schema() || ':' || %s)"


@unique
class Lock(IntEnum):
    """Work that only one transaction or session may do at a time. The numbers are arbitrary, but different."""

    POLICY_SAVE = 1  # Versions commit in the order of their ids.
    PURGE = 2  # Receipts are a chain.
    FOLD_ACCESSES = 3  # Whether an access counts depends on earlier accesses.
    COUNT_WORDS = 4
    PLAN_RUN = 5  # Whether a scope is free depends on the runs of other processes.
    ANSWER_WAKE_UPS = 6
    REKEY_HALF_LIVES = 7
    FIND_DUPLICATES = 8
    BEGIN_IMPORT = 9  # If two callers start the import of one file at once, there is only one import.
    STORE_EXTRACTION = 10  # One per scope: two requests with the same text must not both conclude that it is new.
    COUNT_STUDIES = 11
    STUDY = 12  # One per name of a study or of a turn.
    AGENT_RELEASE = 13  # What agents may release depends on what they have released.
    PEOPLE = 14  # Whether an administrator remains depends on concurrent changes.
    MOVE_STORE = 15  # Citus cannot tell the traces of a running move from those of a failed one.


def lock_wait(lock: Lock, name: str = "") -> None:
    """Take a lock until the transaction ends; wait while another transaction has it. ``name`` selects one of several
    locks of this kind. One query. Raises ``OperationalError`` after ``lock_timeout``."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_xact_lock({_KEY})", [lock.value, name])


def lock_try(lock: Lock, name: str = "") -> bool:
    """Take a lock until the transaction ends. Return False at once if another transaction has it. One query."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_xact_lock({_KEY})", [lock.value, name])
        return bool(cursor.fetchone()[0])


def session_lock_try(lock: Lock, name: str = "") -> bool:
    """Take a lock until ``session_lock_release`` or the end of the connection. Return False at once if another session
    has it. One query."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_lock({_KEY})", [lock.value, name])
        return bool(cursor.fetchone()[0])


def session_lock_release(lock: Lock, name: str = "") -> None:
    """Release a lock of this connection. One query."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_unlock({_KEY})", [lock.value, name])


def lock_missed(problem: BaseException) -> bool:
    """Return whether an SQL statement failed because of a lock time-out or a deadlock. A retry may then succeed."""
    return isinstance(problem.__cause__, LockNotAvailable | DeadlockDetected)
