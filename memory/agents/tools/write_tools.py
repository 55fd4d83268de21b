"""The tools that write: new_topic, extend_topic, version_field and link.

Each tool passes its item to a ``Writer``, which stores it at once or at the end of a step of a study.
"""

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from memory.agents.tools.tool import Arguments, Tool, ToolReply
from memory.extraction.store import SOURCE_KIND
from memory.finding.facts import title_repeats
from memory.ingest.items import (
    EARLIEST,
    LATEST,
    Category,
    IngestEdge,
    IngestField,
    IngestItem,
    LongText,
    Name,
    ShortText,
)
from memory.ingest.plan import ItemReply
from memory.models.study import STUDY_KIND
from memory.text.search_words import runs_without_spaces

PROVENANCE = "llm"
NOTE_FIELD = "note"
HAPPENED_FIELD = "happened_at"
MAX_FIELDS = 50
# A title of at least this length is taken for a sentence: words, or letters of a script without spaces.
MIN_SENTENCE_WORDS = 4
MIN_SENTENCE_LETTERS = 6
Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
Value = Annotated[str, StringConstraints(max_length=20_000)]


def time_in_utc(time: dt.datetime) -> dt.datetime:
    """Return a time with an offset. A time without one is in UTC."""
    return time if time.tzinfo else time.replace(tzinfo=dt.UTC)


# A time of which the offset may be left out.
Moment = Annotated[dt.datetime, AfterValidator(time_in_utc)]
Time = Annotated[Moment, Field(ge=EARLIEST, le=LATEST)]
_VALID_FROM = "Since when the values are true, if not from now on."

# Stores or stages one item. Raises ``MemoryProblem`` to refuse it.
Writer = Callable[[IngestItem], ItemReply]


class FieldArguments(Arguments):
    """A named value."""

    name: Name
    value: Value


class LinkArguments(Arguments):
    """A link to a topic that exists."""

    to_topic_id: uuid.UUID
    kind: Name = Field(default="related", description="Such as related, part_of, follows, supersedes.")


def _unique_names(fields: list[FieldArguments]) -> list[FieldArguments]:
    names = [each.name for each in fields]
    if len(set(names)) < len(names):
        raise ValueError("Each field may be named once.")
    return fields


# If a call named a field twice, the first value would become an old revision at once.
Fields = Annotated[list[FieldArguments], Field(max_length=MAX_FIELDS), AfterValidator(_unique_names)]


def _kind_unreserved(kind: str) -> str:
    if kind == SOURCE_KIND or kind.startswith(STUDY_KIND):
        raise ValueError("this kind is reserved for studied texts and their topics; choose another one")
    return kind


Kind = Annotated[ShortText, AfterValidator(_kind_unreserved)]


class NewTopicArguments(Arguments):
    """A topic that is not known yet."""

    title: Title = Field(description="A short name for it.")
    summary: LongText = Field(default="", description="One or two sentences that stand by themselves.")
    kind: Kind = Field(default="", description="What sort of thing it is: person, project, preference ...")
    fields: Fields = Field(default_factory=list)
    links: list[LinkArguments] = Field(default_factory=list, max_length=MAX_FIELDS)
    categories: list[Category] = Field(default_factory=list, max_length=20)
    happened_at: dt.date | None = Field(default=None, description="On which day it happened, if it is an event.")
    valid_from: Time | None = Field(default=None, description=_VALID_FROM)


def _not_linked_to_itself(topic_id: uuid.UUID, *others: uuid.UUID) -> None:
    if topic_id in others:
        raise ValueError("A topic cannot be linked to itself.")


class ExtendTopicArguments(Arguments):
    """More about a topic that is known."""

    topic_id: uuid.UUID
    fields: Fields = Field(default_factory=list)
    links: list[LinkArguments] = Field(default_factory=list, max_length=MAX_FIELDS)
    valid_from: Time | None = Field(default=None, description=_VALID_FROM)

    @model_validator(mode="after")
    def _something_is_there(self) -> "ExtendTopicArguments":
        if not self.fields and not self.links:
            raise ValueError("Give at least one field or link.")
        _not_linked_to_itself(self.topic_id, *(each.to_topic_id for each in self.links))
        return self


class VersionFieldArguments(Arguments):
    """A new value for one field; the old one stays in its history."""

    topic_id: uuid.UUID
    field: Name
    value: Value
    why_changed: LongText = Field(default="", description="What changed, in a sentence.")
    valid_from: Time | None = Field(default=None, description=_VALID_FROM)


class LinkTopicsArguments(LinkArguments):
    """A link between two topics that are known."""

    from_topic_id: uuid.UUID

    @model_validator(mode="after")
    def _different_topics(self) -> "LinkTopicsArguments":
        _not_linked_to_itself(self.from_topic_id, self.to_topic_id)
        return self


def writing_tools(write: Writer, *, provenance: str = PROVENANCE) -> list[Tool[Any]]:
    """Return the tools that write, each by calling ``write``. Written values have this ``provenance``."""

    def new_topic(asked: NewTopicArguments) -> ToolReply:
        return _replied(write(item_new(asked, provenance=provenance)))

    def extend_topic(asked: ExtendTopicArguments) -> ToolReply:
        item = IngestItem(
            placement="extend_topic",
            topic_id=str(asked.topic_id),
            fields=_fields(asked.fields, provenance),
            edges=_edges(asked.links),
            valid_from=asked.valid_from,
        )
        return _replied(write(item))

    def version_field(asked: VersionFieldArguments) -> ToolReply:
        why = asked.why_changed or None
        field = IngestField(name=asked.field, value=asked.value, why_changed=why, provenance=provenance)
        item = IngestItem(
            placement="version_field", topic_id=str(asked.topic_id), fields=[field], valid_from=asked.valid_from
        )
        return _replied(write(item))

    def link(asked: LinkTopicsArguments) -> ToolReply:
        edges = _edges([asked])
        reply = write(IngestItem(placement="extend_topic", topic_id=str(asked.from_topic_id), edges=edges))
        return _replied(reply, asked.to_topic_id)

    return [
        Tool(
            "new_topic",
            "Remember something new as a topic of its own. Ask the store first whether it knows it already. If the "
            "reply has similar_topic_ids, read them: the new topic may repeat or correct one of them.",
            NewTopicArguments,
            new_topic,
            writes=True,
        ),
        Tool(
            "extend_topic",
            "Add fields or links to a topic that is known.",
            ExtendTopicArguments,
            extend_topic,
            writes=True,
        ),
        Tool(
            "version_field",
            "Give one field of a topic a new value, because it has changed or was wrong. The old one stays on record.",
            VersionFieldArguments,
            version_field,
            writes=True,
        ),
        Tool("link", "Link two topics that are known.", LinkTopicsArguments, link, writes=True),
    ]


def item_new(
    asked: NewTopicArguments,
    *,
    topic_id: uuid.UUID | None = None,
    kind: str | None = None,
    provenance: str = PROVENANCE,
) -> IngestItem:
    """Return a new topic as an item of ingest. ``kind`` replaces the kind that the model has chosen.

    The summary, or a title that is a sentence, becomes the field ``note``, which has a provenance and can be corrected
    by name. A title that is most of the note is left out, so that a correction leaves no copy of the old text.
    """
    given = {each.name for each in asked.fields}
    note = "" if NOTE_FIELD in given else asked.summary.strip()
    if not note and not given and _is_sentence(asked.title):
        note = asked.title
    return IngestItem(
        placement="new_topic",
        topic_id=str(topic_id) if topic_id else None,
        title="" if title_repeats(asked.title, [note]) and 2 * len(asked.title) > len(note) else asked.title,
        summary=asked.summary if NOTE_FIELD in given else "",
        topic_kind=asked.kind if kind is None else kind,
        fields=[
            # Only fields have a provenance, so a topic without fields gets an empty one.
            *([IngestField(name=NOTE_FIELD, value=note, provenance=provenance)] if note or not given else []),
            *_fields(asked.fields, provenance),
            *_happened(asked, provenance),
        ],
        valid_from=asked.valid_from,
        edges=_edges(asked.links),
        categories=list(asked.categories),
        suggest_similar=topic_id is None,
    )


def _is_sentence(title: str) -> bool:
    """Return whether a title is more than a name. It is in any language, so only its length is judged."""
    letters = sum(map(len, runs_without_spaces(title)))
    return letters >= MIN_SENTENCE_LETTERS or len(title.split()) >= MIN_SENTENCE_WORDS or title[-1] in ".!。！।"


def _fields(asked: list[FieldArguments], provenance: str) -> list[IngestField]:
    return [IngestField(name=each.name, value=each.value, provenance=provenance) for each in asked]


def _happened(asked: NewTopicArguments, provenance: str) -> list[IngestField]:
    """Return the day of an event as a field, by which questions about that day find the topic."""
    if asked.happened_at is None or any(each.name == HAPPENED_FIELD for each in asked.fields):
        return []
    day = asked.happened_at.isoformat()
    return [IngestField(name=HAPPENED_FIELD, value=day, field_type="date", provenance=provenance)]


def _edges(asked: Sequence[LinkArguments]) -> list[IngestEdge]:
    return [IngestEdge(to_topic_id=each.to_topic_id, kind=each.kind) for each in asked]


def _replied(reply: ItemReply, *also: uuid.UUID) -> ToolReply:
    similar = {"similar_topic_ids": reply.similar_topic_ids} if reply.similar_topic_ids else {}
    result = {"topic_id": str(reply.topic_id), "applied": reply.applied, **similar}
    return ToolReply(result, [reply.topic_id, *also])
