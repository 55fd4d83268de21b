"""Searches texts for content that was erased according to receipts. Receipts store only keyed hashes of texts and
identifiers, so every text, sentence and identifier is hashed and looked up."""

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from django.db import connection

from memory.erasure.erased_text import parts_of
from memory.erasure.receipts import identifier_hashes, passage_hash
from memory.erasure.redact_text import Eraser, Passage, Weight, passage_of, passage_weight
from memory.models import ErasureReceipt
from memory.models.identities import ids_of_others
from memory.text.keys import keys_index

_BATCH = 1_000


# Maps each type (id, text, identifier) to a dict. The dict maps an id or a hash to the number and time of the latest
# receipt that contains it.
ErasedHashes = dict[str, dict[str, tuple[int, dt.datetime]]]


@dataclass(frozen=True, slots=True)
class ErasedMatch:
    """Erased content found in a text: its type, its hash, and the passage or identifier itself."""

    type: str
    digest: str
    passage: Passage = ()
    identifier: str = ""


MatchFinder = Callable[[str, bool], tuple[ErasedMatch, ...]]


def erased_hashes(*, through: int | None = None) -> ErasedHashes:
    """Return the ids and hashes of all receipts, or of those up to number ``through``. Ids that now belong to other
    rows are left out. Two queries."""
    hashes: ErasedHashes = {"id": {}, "text": {}, "identifier": {}}
    receipts = ErasureReceipt.objects.all() if through is None else ErasureReceipt.objects.filter(number__lte=through)
    for receipt in receipts.order_by("number").iterator(chunk_size=_BATCH):
        source = (receipt.number, receipt.at)
        hashes["id"].update(dict.fromkeys(receipt.topic_ids, source))
        hashes["text"].update(dict.fromkeys(receipt.content_hashes, source))
        hashes["identifier"].update(dict.fromkeys(receipt.identifier_hashes, source))
    with connection.cursor() as cursor:
        # A row that now has this id is not a trace of the purged topic.
        for other in ids_of_others(cursor, [uuid.UUID(each) for each in hashes["id"]]):
            del hashes["id"][str(other)]
    return hashes


def match_finder(erased: ErasedHashes) -> MatchFinder:
    """Return a function that finds erased passages and identifiers in a text. If the second argument of the function is
    true, short passages count, too."""

    @lru_cache(maxsize=200_000)
    def matches(text: str, short: bool) -> tuple[ErasedMatch, ...]:
        passage = passage_of(text)
        weight = passage_weight(passage)
        passages = set()
        if weight is Weight.LONG or (short and weight is Weight.SHORT):
            passages.add(passage)
        if weight is Weight.LONG and erased["text"]:
            passages |= parts_of(text)
        found = {
            ErasedMatch("text", digest, each) for each in passages if (digest := passage_hash(each)) in erased["text"]
        }
        if erased["identifier"]:
            found |= {
                ErasedMatch("identifier", digest, identifier=key)
                for key in keys_index(text)
                for digest in identifier_hashes(key)
                if digest in erased["identifier"]
            }
        return tuple(sorted(found, key=lambda match: (match.type != "text", match.passage != passage, match.digest)))

    return matches


class ReceiptEraser(Eraser):
    """Masks content that was erased according to receipts, in the same way as the purge did. A text that was written
    after the purge is not changed."""

    def __init__(
        self, erased: ErasedHashes, *, finder: MatchFinder | None = None, written: dt.datetime | None = None
    ) -> None:
        super().__init__(ids=set(erased["id"]))
        self._erased = erased
        self._finder = finder or match_finder(erased)
        self._written = written

    def at(self, written: dt.datetime | None) -> "ReceiptEraser":
        """Return the eraser for texts written at ``written``; None counts as a time before every purge."""
        return ReceiptEraser(self._erased, finder=self._finder, written=written)

    def masked(self, text: str, *, short: bool = True) -> str:
        """Return ``text`` with erased content replaced; the same object if it has none."""
        matches = [match for match in self._finder(text, short) if text and self._was_written_before(match)]
        if not matches:
            return super().masked(text, short=short)
        passages = {match.passage for match in matches if match.passage}
        return Eraser(passages, {match.identifier for match in matches} - {""}, self.ids).masked(text, short=short)

    def _was_written_before(self, match: ErasedMatch) -> bool:
        return self._written is None or self._written <= self._erased[match.type][match.digest][1]
