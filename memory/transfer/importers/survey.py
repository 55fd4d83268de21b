"""What a file of another system comes to, before anything is written, and the same in batches to be written."""

import datetime as dt
import itertools
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from memory.ingest.items import IngestItem
from memory.transfer.importers.draft import Draft, Source

# Few enough that little is lost by a kill, many enough to keep the embedder busy.
BATCH = 200
# So many bad entries are told with their place, the others by number.
BAD_TOLD = 10
# A file may have any number of members; beyond so many they are told together.
MEMBERS_TOLD = 100
_OTHERS = ("other members", "they are not known here")

Ids = set[uuid.UUID]
Progress = Callable[[int], None]


@dataclass(slots=True)
class Survey:
    """What an import would do. ``lost`` and ``told`` count entries per member and clause: what is not kept, and what
    is kept in another way. ``entries`` is what the file holds; each is brought, there, erased, bad, or of a sort that
    is lost."""

    entries: int = 0
    topics: int = 0
    fields: int = 0
    links: int = 0
    there: int = 0
    erased: int = 0
    bad: int = 0
    bad_told: list[tuple[str, str]] = field(default_factory=list)
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)
    told: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, draft: Draft) -> None:
        """Count what can be told of an entry without the store."""
        self.entries += 1
        if draft.problem:
            self.bad += 1
            if len(self.bad_told) < BAD_TOLD:
                self.bad_told.append((draft.place, draft.problem))
            return
        for counted, found in ((self.lost, draft.lost), (self.told, draft.told)):
            # An entry counts once for each clause.
            for pair in dict.fromkeys(found):
                counted[pair if pair in counted or len(counted) < MEMBERS_TOLD else _OTHERS] += 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Items to be written together, and how far the file has been read with them."""

    items: list[IngestItem]
    offset: int
    entries: int


def file_survey(
    source: Source, path: Path, *, scope: str, now: dt.datetime, known: Callable[[Ids], tuple[Ids, Ids]],
    progress: Progress | None = None,
) -> Survey:  # fmt: skip
    """Read all of a file and count. ``known(ids)`` returns those that are topics here and those that were erased, and
    is called once for each ``BATCH`` entries; ``progress`` is told the bytes read. Raises ``RequestRefused`` for a file
    that is not JSON, ``OSError``."""
    survey = Survey()
    for drafts in _chunks(source.drafts(path, scope=scope, now=now)):
        for draft in drafts:
            survey.add(draft)
        items = [draft.item for draft in drafts if draft.item is not None]
        there, erased = known({item_id(item) for item in items})
        for item in items:
            topic_id = item_id(item)
            if topic_id in erased:
                survey.erased += 1
            elif topic_id in there:
                survey.there += 1
            else:
                survey.topics += 1
                survey.fields += len(item.fields)
                survey.links += len(item.edges)
        if progress is not None:
            progress(drafts[-1].offset)
    return survey


def file_batches(source: Source, path: Path, *, scope: str, now: dt.datetime, offset: int = 0) -> Iterator[Batch]:
    """Yield what stands behind ``offset`` in batches. What stands before it is read again and not given: what a
    message follows, and when, depends on what came before, and reading takes little beside writing."""
    behind = (draft for draft in source.drafts(path, scope=scope, now=now) if draft.offset > offset)
    for drafts in _chunks(behind):
        items = [draft.item for draft in drafts if draft.item is not None]
        yield Batch(items, drafts[-1].offset, drafts[-1].number)


def item_id(item: IngestItem) -> uuid.UUID:
    """Return the id of the topic that an item of these makes."""
    return uuid.UUID(item.topic_id)


def items_new(items: Iterable[IngestItem], *, there: Ids, erased: Ids) -> list[IngestItem]:
    """Return the items whose topics are neither there nor erased, without links to what is not there.

    ``there`` and ``erased`` hold the ids of the items and of what they link to, as far as they are one or the other."""
    given: list[IngestItem] = []
    ids = set(there)
    for item in items:
        topic_id = item_id(item)
        if topic_id in ids or topic_id in erased:
            continue
        ids.add(topic_id)
        edges = [edge for edge in item.edges if edge.to_topic_id in ids]
        given.append(item if len(edges) == len(item.edges) else item.model_copy(update={"edges": edges}))
    return given


def _chunks(drafts: Iterator[Draft]) -> Iterator[list[Draft]]:
    while chunk := list(itertools.islice(drafts, BATCH)):
        yield chunk
