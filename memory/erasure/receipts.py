"""Receipts of purges, in a chain: each receipt has the hash of the one before, and the audit log has the hash of each.

This reveals a receipt that was changed, removed or moved, even the last one. ``content_hashes`` and
``identifier_hashes`` are keyed with the secret key of the installation. With a text and the key one can check that the
text was erased; a hash alone reveals nothing.
"""

import datetime as dt
import hashlib
import hmac
import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from memory.access.principal import Principal
from memory.core.cursors import cursor_make, cursor_number, cursor_parse
from memory.core.errors import NotVisible
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.erasure.redact_text import Passage, passage_of
from memory.models import ErasureReceipt
from memory.models.locks import Lock, lock_wait
from memory.predicates.binding import path_q

# Salts of the hash keys, so that hashes of different types never match.
_TEXT, _IDENTIFIER, _SEAL = "memory.erasure.text", "memory.erasure.identifier", "memory.erasure.seal"
_REASON = "memory.erasure.reason"
PURGED = "purged"
_ANCHOR = frozenset({"receipt", "number", "hash", "seal"})
_BATCH = 500

_ANCHORS_SQL = """
SELECT DISTINCT (after->>'number')::bigint, after->>'receipt', after->>'hash', after->>'seal'
FROM memory_auditevent WHERE action = 'purged' AND after ? 'hash' ORDER BY 1, 2, 3, 4
"""


@dataclass(frozen=True, slots=True)
class Chain:
    """The result of verifying the chain. ``broken_at`` is the number of the first receipt with a problem, ``sentence``
    describes this problem, and ``sentences`` describe all problems."""

    ok: bool
    count: int
    broken_at: int | None = None
    sentence: str = ""
    sentences: tuple[str, ...] = ()


def purges_wait() -> int:
    """Wait for a running purge, and keep further purges waiting until the transaction ends. Return the number of the
    next receipt. Two queries."""
    with connection.cursor() as cursor:
        lock_wait(Lock.PURGE)
        cursor.execute("SELECT coalesce(max(number), 0) + 1 FROM memory_erasurereceipt")
        return int(cursor.fetchone()[0])


def receipt_write(
    number: int,
    ids: Sequence[uuid.UUID],
    *,
    passages: Iterable[Passage],
    identifiers: Iterable[str],
    counts: dict[str, int],
    scope: str,
    reason: str,
    actor: str,
    now: dt.datetime,
) -> ErasureReceipt:
    """Add a receipt to the chain. Two queries. Call ``purges_wait`` first, in the same transaction."""
    text, identifier = text_hasher(), identifier_hasher()
    last = ErasureReceipt.objects.order_by("-number").values_list("hash", flat=True).first()
    receipt = ErasureReceipt(
        id=uuid7_at(now),
        number=number,
        at=now,
        actor=actor,
        reason=reason,
        scope=scope,
        topic_ids=sorted(map(str, ids)),
        content_hashes=sorted(map(text, passages)),
        identifier_hashes=sorted(map(identifier, identifiers)),
        counts=dict(sorted(counts.items())),
        previous_hash=last or "",
    )
    receipt.reason_hash = _reason_hash(receipt)
    receipt.hash = receipt_hash(receipt)
    receipt.save(force_insert=True)
    return receipt


def reasons_mask(mask: Callable[[str], str], *, within: str) -> int:
    """Mask the reasons of receipts in the scope ``within``, and return the number of changed receipts. Two queries.

    A reason may name content that is purged later. The chain stays valid, because it covers only a keyed hash of the
    original reason. A seal covers the masked reason.
    """
    changed = []
    for receipt in ErasureReceipt.objects.filter(path_q(within)).only("hash", "reason").iterator(chunk_size=_BATCH):
        masked = mask(receipt.reason)
        if masked != receipt.reason:
            receipt.reason = masked
            receipt.reason_seal = _reason_seal(receipt)
            changed.append(receipt)
    ErasureReceipt.objects.bulk_update(changed, ["reason", "reason_seal"])
    return len(changed)


def anchor_of(receipt: ErasureReceipt) -> dict[str, Any]:
    """Return the data of a receipt that the audit log stores."""
    return {"receipt": str(receipt.pk), "number": receipt.number, "hash": receipt.hash, "seal": _seal(receipt.hash)}


def is_anchor(value: Any) -> bool:
    """Return whether a state in the audit log is the anchor of a receipt: a number and hashes, and no text."""
    return isinstance(value, dict) and value.keys() == _ANCHOR


def receipt_hash(receipt: ErasureReceipt) -> str:
    """Return the SHA-256 of the other columns as canonical JSON: sorted members, no spaces, times in UTC. The reason is
    covered by its keyed hash, because the reason itself may be masked later."""
    members = {
        "id": str(receipt.pk),
        "number": receipt.number,
        "at": receipt.at.astimezone(dt.UTC).isoformat(),
        "actor": receipt.actor,
        "reason_hash": receipt.reason_hash,
        "scope": receipt.scope,
        "topic_ids": receipt.topic_ids,
        "content_hashes": receipt.content_hashes,
        "identifier_hashes": receipt.identifier_hashes,
        "counts": receipt.counts,
        "previous_hash": receipt.previous_hash,
    }
    return hashlib.sha256(json.dumps(members, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def text_hasher() -> Callable[[Passage], str]:
    """Return the function that hashes the words of a text."""
    key = _key(_TEXT)
    return lambda passage: hmac.digest(key, "\n".join(passage).encode(), "sha256").hex()


def identifier_hasher() -> Callable[[str], str]:
    """Return the function that hashes the key of an identifier, such as ``email:a@x.io``."""
    key = _key(_IDENTIFIER)
    return lambda identifier: hmac.digest(key, identifier.encode(), "sha256").hex()


def text_hash(text: str) -> str:
    """Return the keyed hash of a text, as in the receipt of a purge that erased it."""
    return text_hasher()(passage_of(text))


def receipts_list(*, principal: Principal, cursor: str | None, limit: int) -> tuple[list[ErasureReceipt], str | None]:
    """Return receipts, newest first, and the cursor of the next page. One query. Raises ``ValueRefused`` for an
    invalid cursor."""
    rows = ErasureReceipt.objects.filter(path_q(principal.scope)).order_by("-number")
    if cursor:
        (before,) = cursor_parse(cursor, cursor_number)
        rows = rows.filter(number__lt=before)
    found = list(rows[: limit + 1])
    return found[:limit], cursor_make(found[limit - 1].number) if len(found) > limit else None


def receipts_count(*, principal: Principal, at_most: int) -> int:
    """Return the number of receipts, at most ``at_most`` + 1. One query."""
    return ErasureReceipt.objects.filter(path_q(principal.scope))[: at_most + 1].count()


def receipt_get(receipt_id: uuid.UUID, *, principal: Principal) -> ErasureReceipt:
    """Return one receipt. One query. Raises ``NotVisible`` outside the caller's scope."""
    receipt = ErasureReceipt.objects.filter(pk=receipt_id).first()
    if receipt is None or not principal.sees(receipt.scope):
        raise NotVisible(f"Receipt {receipt_id} does not exist.", code=ProblemCode.RECEIPT_NOT_FOUND)
    return receipt


def receipts_verify() -> Chain:
    """Check the whole chain: gaps in the numbers, each hash and previous hash, and the anchors in the audit log.

    Two queries; receipts are read in batches. Changes nothing.
    """
    wrong: list[tuple[int, str]] = []
    reworded: list[tuple[int, str]] = []
    known: dict[int, tuple[str, str]] = {}
    previous, expected = "", 1
    for receipt in ErasureReceipt.objects.order_by("number").iterator(chunk_size=_BATCH):
        number = receipt.number
        if number != expected:
            missing = f"Receipt {expected} is" if number == expected + 1 else f"Receipts {expected} to {number - 1} are"
            wrong.append((expected, f"{missing} missing."))
        elif receipt.previous_hash != previous:
            wrong.append((number, f"Receipt {number} does not hold the hash of the one before it."))
        if receipt_hash(receipt) != receipt.hash:
            wrong.append((number, f"Receipt {number} was changed: its hash does not match."))
        if not _is_reason_unchanged(receipt):
            reworded.append((number, f"Receipt {number} was changed: its reason does not match."))
        known[number] = (str(receipt.pk), receipt.hash)
        previous, expected = receipt.hash, number + 1
    with connection.cursor() as cursor:
        cursor.execute(_ANCHORS_SQL)
        anchors: list[tuple[int, str, str, str]] = cursor.fetchall()
    reported = [number for number, *_others in wrong]
    for number, receipt_id, digest, _made in anchors:
        if number not in known:
            if number not in reported:
                wrong.append((number, f"Receipt {number} is missing, but the audit log mentions it."))
        elif known[number] != (receipt_id, digest):
            wrong.append((number, f"Receipt {number} does not match the audit log."))
    anchored = {number for number, *_others in anchors}
    wrong += [
        (number, f"Receipt {number} is missing from the audit log.") for number in known if number not in anchored
    ]
    wrong += _seals_check(anchors)
    if not anchors or any(_is_sealed(digest, made) for _number, _id, digest, made in anchors):
        # If all receipts were made with another secret key, no reason can be checked.
        wrong += reworded
    wrong.sort(key=lambda each: each[0])
    sentences = tuple(dict.fromkeys(sentence for _number, sentence in wrong))
    if not wrong:
        return Chain(True, len(known))
    return Chain(False, len(known), wrong[0][0], sentences[0], sentences)


def seals_are_ours() -> bool:
    """Return whether receipts were made with the present secret key; True if there are none."""
    with connection.cursor() as cursor:
        cursor.execute(_ANCHORS_SQL + " LIMIT 100")
        anchors = cursor.fetchall()
    return not anchors or any(_is_sealed(digest, made) for _number, _id, digest, made in anchors)


def _seals_check(anchors: Sequence[tuple[int, str, str, str]]) -> list[tuple[int, str]]:
    broken = [number for number, _id, digest, made in anchors if not _is_sealed(digest, made)]
    if broken and len(broken) == len(anchors):
        return [
            (
                broken[0],
                "Every seal was made with a secret key other than the present one. Check whether it was changed.",
            )
        ]
    return [(number, f"The entry of receipt {number} in the audit log was changed.") for number in broken]


def _is_sealed(digest: str, made: str | None) -> bool:
    return hmac.compare_digest(_seal(digest), made or "")


def _seal(digest: str) -> str:
    return hmac.digest(_key(_SEAL), digest.encode(), "sha256").hex()


def _reason_hash(receipt: ErasureReceipt) -> str:
    return hmac.digest(_key(_REASON), f"{receipt.pk}\n{receipt.reason}".encode(), "sha256").hex()


def _reason_seal(receipt: ErasureReceipt) -> str:
    return hmac.digest(_key(_SEAL), f"{receipt.hash}\n{receipt.reason}".encode(), "sha256").hex()


def _is_reason_unchanged(receipt: ErasureReceipt) -> bool:
    """Return whether the reason is the original one, or the one masked by a later purge."""
    return hmac.compare_digest(_reason_hash(receipt), receipt.reason_hash) or hmac.compare_digest(
        _reason_seal(receipt), receipt.reason_seal
    )


def _key(salt: str) -> bytes:
    # Derived as in Django's salted_hmac, but once for many texts.
    return hashlib.sha256(f"{salt}{settings.SECRET_KEY}".encode()).digest()
