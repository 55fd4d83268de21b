"""What receipts tell of, looked for in texts: the same for whoever verifies, and for whoever brings in old journals.

Receipts hold no text, only keyed hashes; so every text, each sentence and each identifier in it is hashed and looked
up. What is found is known as it stands there, and can be masked as the purge itself would have.
"""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from memory.erasure.erased_text import parts_of
from memory.erasure.receipts import identifier_hasher, text_hasher
from memory.erasure.redact_text import Eraser, Passage, Weight, identifiers_strong, passage_of, passage_weight
from memory.models import ErasureReceipt

_BATCH = 1_000


@dataclass(slots=True)
class Wanted:
    """What receipts tell of, with number and moment of the latest that does."""

    ids: dict[str, tuple[int, dt.datetime]] = field(default_factory=dict)
    texts: dict[str, tuple[int, dt.datetime]] = field(default_factory=dict)
    identifiers: dict[str, tuple[int, dt.datetime]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.ids)

    def of(self, sort: str) -> dict[str, tuple[int, dt.datetime]]:
        """Return those of a sort: id, text or identifier."""
        return {"id": self.ids, "text": self.texts}.get(sort, self.identifiers)


@dataclass(frozen=True, slots=True)
class Hit:
    """Something of what was erased, in a text: its hash, and what it says there."""

    sort: str
    digest: str
    passage: Passage = ()
    identifier: str = ""


Finder = Callable[[str, bool], tuple[Hit, ...]]


def receipts_wanted() -> Wanted:
    """Return what all receipts tell of. One query."""
    wanted = Wanted()
    for receipt in ErasureReceipt.objects.order_by("number").iterator(chunk_size=_BATCH):
        told = (receipt.number, receipt.at)
        wanted.ids.update(dict.fromkeys(receipt.topic_ids, told))
        wanted.texts.update(dict.fromkeys(receipt.content_hashes, told))
        wanted.identifiers.update(dict.fromkeys(receipt.identifier_hashes, told))
    return wanted


def hits_finder(wanted: Wanted) -> Finder:
    """Return the function that finds, in a text, passages and identifiers that are ``wanted``; it is told whether short
    passages count there."""
    text, identifier = text_hasher(), identifier_hasher()

    @lru_cache(maxsize=200_000)
    def hits(said: str, short: bool) -> tuple[Hit, ...]:
        passage = passage_of(said)
        weight = passage_weight(passage)
        passages = set()
        if weight is Weight.LONG or (short and weight is Weight.SHORT):
            passages.add(passage)
        if weight is Weight.LONG and wanted.texts:
            passages |= parts_of(said)
        found = {Hit("text", digest, each) for each in passages if (digest := text(each)) in wanted.texts}
        if wanted.identifiers:
            found |= {
                Hit("identifier", digest, identifier=key)
                for each in identifiers_strong(said)
                for key in each.sought
                if (digest := identifier(key)) in wanted.identifiers
            }
        return tuple(sorted(found, key=lambda hit: (hit.sort != "text", hit.passage != passage, hit.digest)))

    return hits


class SoughtEraser(Eraser):
    """Takes out of texts what receipts tell of, as the purge would have, but for what was written after it."""

    def __init__(self, wanted: Wanted, *, finder: Finder | None = None, written: dt.datetime | None = None) -> None:
        super().__init__(ids=set(wanted.ids))
        self._wanted = wanted
        self._finder = finder or hits_finder(wanted)
        self._written = written

    def at(self, written: dt.datetime | None) -> "SoughtEraser":
        """Return the eraser for what was written at a moment; None if nobody knows when."""
        return SoughtEraser(self._wanted, finder=self._finder, written=written)

    def masked(self, text: str, *, short: bool = True) -> str:
        """Return ``text`` with what was erased replaced, and the same object if nothing was."""
        hits = [hit for hit in self._finder(text, short) if text and self._erased_since(hit)]
        if not hits:
            return super().masked(text, short=short)
        passages = {hit.passage for hit in hits if hit.passage}
        return Eraser(passages, {hit.identifier for hit in hits} - {""}, self.ids).masked(text, short=short)

    def _erased_since(self, hit: Hit) -> bool:
        return self._written is None or self._written <= self._wanted.of(hit.sort)[hit.digest][1]
