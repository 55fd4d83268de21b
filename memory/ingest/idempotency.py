"""Idempotency keys: a request that is sent again has its effect once and gets the same reply."""

import datetime as dt
import hashlib
import json
from typing import Any

from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable

from memory.access.principal import Principal
from memory.core.errors import Conflict, ValueRefused
from memory.core.problem_codes import ProblemCode

MAX_KEY_LENGTH = 200
KEPT = dt.timedelta(days=7)
# In place of the status of a reply that a purge has taken away.
PURGED = 410

_CLAIM = """
INSERT INTO memory_idempotencyrecord (actor, key, request_hash, status, created_at) VALUES (%s, %s, %s, 0, %s)
ON CONFLICT (actor, key) DO NOTHING
"""
_READ = "SELECT request_hash, status, reply FROM memory_idempotencyrecord WHERE actor = %s AND key = %s"
_FINISH = "UPDATE memory_idempotencyrecord SET status = %s, reply = %s WHERE actor = %s AND key = %s"
_AT_WORK = "A request with this Idempotency-Key is still in progress; send it again later."

Recorded = tuple[int, Any]


class StillInProgress(Conflict):
    """The first request with this Idempotency-Key is at work; sent again later, this one gets its reply (409)."""

    code = ProblemCode.STILL_IN_PROGRESS


def request_hash(route: str, body: object) -> str:
    """Return what tells two requests apart: the hash of the route and the parsed body."""
    return hashlib.sha256(f"{route} {json.dumps(body, sort_keys=True, default=str)}".encode()).hexdigest()


def idempotency_replay(key: str, digest: str, *, principal: Principal) -> Recorded | None:
    """Return ``(status, reply)`` of an earlier request with this key, or nothing. One query.

    Raises ``ValueRefused`` if the earlier request was another one, or if the key itself is too long, ``Conflict`` if
    what it had to do with was purged: sent again by habit, it would bring that back; and ``StillInProgress`` for a
    message to the assistant that has no reply yet.
    """
    if not 1 <= len(key) <= MAX_KEY_LENGTH:
        raise ValueRefused(
            f"An Idempotency-Key has 1 to {MAX_KEY_LENGTH} characters; this one has {len(key)}.",
            code=ProblemCode.INVALID_IDEMPOTENCY_KEY,
        )
    with connection.cursor() as cursor:
        cursor.execute(_READ, [principal.identity, key])
        row = cursor.fetchone()
    if row is None:
        return None
    if row[1] == PURGED:
        raise Conflict(
            "What the request with this Idempotency-Key stored has been purged since. Nothing was stored; to store it "
            "again, send it with another key.",
            code=ProblemCode.ERASED_MEANWHILE,
        )
    if row[0] != digest:
        raise ValueRefused(
            "This Idempotency-Key has been used for a request with another body.",
            code=ProblemCode.IDEMPOTENCY_KEY_REUSED,
        )
    if row[1] == 0:
        raise StillInProgress(_AT_WORK)
    told = json.loads(row[2])
    return row[1], json.loads(told) if isinstance(told, str) else told


def idempotency_claim(key: str, digest: str, *, principal: Principal, now: dt.datetime) -> Recorded | None:
    """Reserve the key within the running transaction, or return the reply of the request that has it. 1 or 2 queries.

    A request that is still running holds the key: this waits for it, and then replays its reply, or goes on in its
    place if it failed. Raises ``StillInProgress`` when it takes longer than the lock time-out.
    """
    with connection.cursor() as cursor:
        try:
            cursor.execute(_CLAIM, [principal.identity, key, digest, now])
        except OperationalError as problem:
            if isinstance(problem.__cause__, LockNotAvailable):
                raise StillInProgress(_AT_WORK) from None
            raise
        if cursor.rowcount == 1:
            return None
    return idempotency_replay(key, digest, principal=principal)


def idempotency_finish(key: str, status: int, reply: object, *, principal: Principal) -> None:
    """Store the reply with the effect; they are committed together. One query.

    It is stored as a text within the JSON column: jsonb would bring its members into another order, and a replay is to
    be the same reply to the last byte.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FINISH, [status, json.dumps(json.dumps(reply)), principal.identity, key])
