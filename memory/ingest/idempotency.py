"""Idempotency keys: a request that is sent again has no second effect and gets the same reply."""

import datetime as dt
import hashlib
import json
from typing import Any

from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable

from memory.access.principal import Principal
from memory.core.errors import Conflict, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.replies import json_text

MAX_KEY_LENGTH = 200
KEPT = dt.timedelta(days=7)
# The status of a record whose reply was removed by a purge.
PURGED = 410

_CLAIM_SQL = """
INSERT INTO memory_idempotencyrecord (actor, key, request_hash, status, created_at) VALUES (%s, %s, %s, 0, %s)
ON CONFLICT (actor, key) DO NOTHING
"""
_READ_SQL = "SELECT request_hash, status, reply FROM memory_idempotencyrecord WHERE actor = %s AND key = %s"
_FINISH_SQL = "UPDATE memory_idempotencyrecord SET status = %s, reply = %s WHERE actor = %s AND key = %s"
_IN_PROGRESS = "A request with this Idempotency-Key is still in progress. Send it again later."

Recorded = tuple[int, Any]


class StillInProgress(Conflict):
    """The first request with this Idempotency-Key is still in progress; a later retry gets its reply (409)."""

    code = ProblemCode.STILL_IN_PROGRESS


def request_hash(route: str, body: object) -> str:
    """Return a hash of route and parsed body, to recognise a repeated request."""
    return hashlib.sha256(f"{route} {json.dumps(body, sort_keys=True, default=str)}".encode()).hexdigest()


def idempotency_replay(key: str, digest: str, *, principal: Principal) -> Recorded | None:
    """Return ``(status, reply)`` of an earlier request with this key, or None. One query. Raises ``ValueRefused`` if
    the key is empty or too long, or was used with another body. Raises ``StillInProgress`` if there is no reply yet.
    Raises ``Conflict`` if the stored data has been purged, because an automatic retry must not store it again."""
    if not 1 <= len(key) <= MAX_KEY_LENGTH:
        raise ValueRefused(f"An Idempotency-Key must have 1 to {MAX_KEY_LENGTH} characters; this one has {len(key)}.")
    with connection.cursor() as cursor:
        cursor.execute(_READ_SQL, [principal.identity, key])
        row = cursor.fetchone()
    if row is None:
        return None
    hash_then, status, stored = row
    if status == PURGED:
        raise Conflict(
            "The data stored by the request with this Idempotency-Key has been purged. Nothing was stored. "
            "To store it again, send it with another key.",
            code=ProblemCode.ERASED_MEANWHILE,
        )
    if hash_then != digest:
        raise ValueRefused(
            "This Idempotency-Key has been used for a request with another body.",
            code=ProblemCode.IDEMPOTENCY_KEY_REUSED,
        )
    if status == 0:
        raise StillInProgress(_IN_PROGRESS)
    reply = json.loads(stored)
    # Replies of ingest are stored as a string (``idempotency_finish``), replies of the assistant as an object.
    return status, json.loads(reply) if isinstance(reply, str) else reply


def idempotency_claim(key: str, digest: str, *, principal: Principal, now: dt.datetime) -> Recorded | None:
    """Reserve the key in the running transaction and return None. If another request has reserved it, wait for the end
    of that request and return its reply. One or two queries. Raises ``StillInProgress`` after the lock timeout."""
    with connection.cursor() as cursor:
        try:
            cursor.execute(_CLAIM_SQL, [principal.identity, key, digest, now])
        except OperationalError as problem:
            if isinstance(problem.__cause__, LockNotAvailable):
                raise StillInProgress(_IN_PROGRESS) from None
            raise
        if cursor.rowcount == 1:
            return None
    return idempotency_replay(key, digest, principal=principal)


def idempotency_finish(key: str, status: int, reply: object, *, principal: Principal) -> None:
    """Store the reply in the transaction of the request. One query. The reply is stored as a JSON string, because jsonb
    would reorder the members of an object, and a repeated request must get the same bytes."""
    with connection.cursor() as cursor:
        cursor.execute(_FINISH_SQL, [status, json.dumps(json_text(reply)), principal.identity, key])
