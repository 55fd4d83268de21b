"""Advisory locks, each with a number of its own, and the errors of the database when a lock is not granted."""

from enum import IntEnum, unique

from django.db import connection
from psycopg.errors import DeadlockDetected, LockNotAvailable

# With the schema, so that two stores in one database never wait for each other.
_KEY = "%s, hashtext(current_schema() || ':' || %s)"


@unique
class Lock(IntEnum):
    """What only one transaction or session does at a time. The numbers mean nothing; no two are the same."""

    POLICY_SAVE = 1  # Versions commit in the order of their ids.
    PURGE = 2  # Receipts are a chain.
    FOLD_ACCESSES = 3  # Whether an access counts depends on those before it.
    COUNT_WORDS = 4
    PLAN_RUN = 5  # Whether a scope is free depends on the runs of the others.
    ANSWER_WAKE_UPS = 6
    REKEY_HALF_LIVES = 7
    FIND_DUPLICATES = 8
    BEGIN_IMPORT = 9  # A file that two begin at once is one import.
    STORE_EXTRACTION = 10  # By scope: two requests with one text must not both find that nothing is known.
    COUNT_STUDIES = 11
    STUDY = 12  # By name of a study or of a turn.
    AGENT_RELEASE = 13  # What agents may release depends on what they have released.
    PEOPLE = 14  # Whether an administrator remains depends on the other changes.


def lock_wait(lock: Lock, name: str = "") -> None:
    """Take a lock, of ``name`` if it is one of several, until the transaction ends; wait while another has it. One
    query. Raises ``OperationalError`` after ``lock_timeout``."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_xact_lock({_KEY})", [lock.value, name])


def lock_try(lock: Lock, name: str = "") -> bool:
    """Take a lock until the transaction ends; return False at once if another has it. One query."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_xact_lock({_KEY})", [lock.value, name])
        return bool(cursor.fetchone()[0])


def session_lock_try(lock: Lock, name: str = "") -> bool:
    """Take a lock until ``session_lock_release`` or the end of the connection; return False at once if another has
    it. One query."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_lock({_KEY})", [lock.value, name])
        return bool(cursor.fetchone()[0])


def session_lock_release(lock: Lock, name: str = "") -> None:
    """Release a lock of this connection. One query."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_unlock({_KEY})", [lock.value, name])


def lock_missed(problem: BaseException) -> bool:
    """Return whether a statement failed because others held a lock for too long, or waited in a circle with it: a retry
    may succeed."""
    return isinstance(problem.__cause__, LockNotAvailable | DeadlockDetected)
