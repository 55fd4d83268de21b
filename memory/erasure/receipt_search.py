"""Searches texts for content that was erased according to receipts. Used by verification and by imports of journals.

Receipts have no text, only keyed hashes. Therefore every text, each of its sentences and each of its identifiers is
hashed and looked up. A match has the words of the text, so that it can be masked as by the purge.
"""

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from django.db import connection

from memory.erasure.erased_text import parts_of
from memory.erasure.receipts import identifier_hasher, text_hasher
from memory.erasure.redact_text import Eraser, Passage, Weight, identifiers_strong, passage_of, passage_weight
from memory.models import ErasureReceipt
from memory.models.identities import ids_of_others

_BATCH = 1_000


@dataclass(slots=True)
class ErasedHashes:
    """The ids and hashes in receipts, each with the number and time of the latest receipt that contains it."""

    ids: dict[str, tuple[int, dt.datetime]] = field(default_factory=dict)
    texts: dict[str, tuple[int, dt.datetime]] = field(default_factory=dict)
    identifiers: dict[str, tuple[int, dt.datetime]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.ids or self.texts or self.identifiers)

    def of_type(self, match_type: str) -> dict[str, tuple[int, dt.datetime]]:
        """Return the entries of one type: id, text or identifier."""
        return {"id": self.ids, "text": self.texts}.get(match_type, self.identifiers)


@dataclass(frozen=True, slots=True)
class ErasedMatch:
    """Erased content found in a text: its type, its hash, and its words in that text."""

    type: str
    digest: str
    passage: Passage = ()
    identifier: str = ""


MatchFinder = Callable[[str, bool], tuple[ErasedMatch, ...]]


def erased_hashes(*, through: int | None = None) -> ErasedHashes:
    """Return the ids and hashes of all receipts, or of those up to number ``through``. Ids that other rows have now are
    left out. Two queries."""
    hashes = ErasedHashes()
    receipts = ErasureReceipt.objects.all() if through is None else ErasureReceipt.objects.filter(number__lte=through)
    for receipt in receipts.order_by("number").iterator(chunk_size=_BATCH):
        source = (receipt.number, receipt.at)
        hashes.ids.update(dict.fromkeys(receipt.topic_ids, source))
        hashes.texts.update(dict.fromkeys(receipt.content_hashes, source))
        hashes.identifiers.update(dict.fromkeys(receipt.identifier_hashes, source))
    with connection.cursor() as cursor:
        for other in ids_of_others(cursor, [uuid.UUID(each) for each in hashes.ids]):
            # The purged topic once had this id too. The row that has it now is not a trace of the topic.
            del hashes.ids[str(other)]
    return hashes


def match_finder(erased: ErasedHashes) -> MatchFinder:
    """Return a function that finds erased passages and identifiers in a text. The second argument of the function is
    whether short passages count."""
    hash_text, hash_identifier = text_hasher(), identifier_hasher()

    @lru_cache(maxsize=200_000)
    def matches(text: str, short: bool) -> tuple[ErasedMatch, ...]:
        passage = passage_of(text)
        weight = passage_weight(passage)
        passages = set()
        if weight is Weight.LONG or (short and weight is Weight.SHORT):
            passages.add(passage)
        if weight is Weight.LONG and erased.texts:
            passages |= parts_of(text)
        found = {ErasedMatch("text", digest, each) for each in passages if (digest := hash_text(each)) in erased.texts}
        if erased.identifiers:
            found |= {
                ErasedMatch("identifier", digest, identifier=key)
                for each in identifiers_strong(text)
                for key in each.search_keys
                if (digest := hash_identifier(key)) in erased.identifiers
            }
        return tuple(sorted(found, key=lambda match: (match.type != "text", match.passage != passage, match.digest)))

    return matches


class ReceiptEraser(Eraser):
    """Masks content that was erased according to receipts, as the purge did. Texts written after the purge stay."""

    def __init__(
        self, erased: ErasedHashes, *, finder: MatchFinder | None = None, written: dt.datetime | None = None
    ) -> None:
        super().__init__(ids=set(erased.ids))
        self._erased = erased
        self._finder = finder or match_finder(erased)
        self._written = written

    def at(self, written: dt.datetime | None) -> "ReceiptEraser":
        """Return the eraser for a text written at ``written``; None if the time is unknown."""
        return ReceiptEraser(self._erased, finder=self._finder, written=written)

    def masked(self, text: str, *, short: bool = True) -> str:
        """Return ``text`` with erased content replaced; the same object if it has none."""
        matches = [match for match in self._finder(text, short) if text and self._is_older(match)]
        if not matches:
            return super().masked(text, short=short)
        passages = {match.passage for match in matches if match.passage}
        return Eraser(passages, {match.identifier for match in matches} - {""}, self.ids).masked(text, short=short)

    def _is_older(self, match: ErasedMatch) -> bool:
        """Return whether the text was written before the purge."""
        return self._written is None or self._written <= self._erased.of_type(match.type)[match.digest][1]
