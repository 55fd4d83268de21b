"""Phase A of a study: makes topics from one part of the text. The model sees only the topics of its own study."""

import datetime as dt
import uuid
from typing import Any

from pydantic import Field

from memory.access.principal import Principal
from memory.agents.study.ids import Phase, session_ids, topic_id_of, topics_made
from memory.agents.study.prompts import BUILD, PART, PART_AGAIN
from memory.agents.study.step import StudyStep
from memory.agents.tools.read_tools import TopicArguments
from memory.agents.tools.tool import Arguments, Tool, Toolbox, ToolReply
from memory.agents.tools.write_tools import PROVENANCE, NewTopicArguments, item_new, writing_tools
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.extraction.store import EDGE, SOURCE_FIELD
from memory.ingest.items import IngestEdge, IngestField, IngestItem
from memory.ingest.load import KnownTopic
from memory.ingest.plan import ItemReply
from memory.llm.chat_request import framed
from memory.llm.dialogue import Message, dialogue_begin
from memory.models import StudyJob, Topic

# The number of characters before a part that the model gets as context.
BEFORE_CHARS = 600
# The limits of one part. Useful notes need far fewer topics and writes.
MAX_TOPICS = 150
MAX_WRITES = 600
_LISTED = 60
_MAX_CHARS_IN_LIST = 500
_MAX_CHARS = 8_000


class SessionTopicsArguments(Arguments):
    """Which topics of the session."""

    words: str = Field(default="", max_length=500, description="Only topics that hold one of these words, best first.")
    skip: int = Field(default=0, ge=0, le=100_000, description="Leave out so many, to read on.")


class BuildStep(StudyStep):
    """The step that makes topics from one part of a text."""

    phase = Phase.BUILDING

    def __init__(
        self, job: StudyJob, content: str, spans: list[tuple[int, int]], *, principal: Principal, now: dt.datetime
    ) -> None:
        ids = session_ids(job)
        source = [job.source_id] if job.source_id else []
        super().__init__(job, job.done, job.done + 1, changed=ids, read=source, principal=principal, now=now)
        self.content, self.spans = content, spans
        self.offset = self.made = topics_made(job, self.at)
        # The topics of the study in the order of creation.
        self.order = [each for each in ids if each in self.known.topics]

    def empty(self) -> bool:
        start, end = self.spans[self.at]
        return not self.content[start:end].strip()

    def messages(self, mark: str) -> list[Message]:
        start, end = self.spans[self.at]
        data: dict[str, Any] = {
            "before": self.content[max(0, start - BEFORE_CHARS) : start],
            "part": self.content[start:end],
        }
        request = PART
        if self.offset:
            request = PART_AGAIN
            ids = [topic_id_of(self.job.id, self.at, number) for number in range(self.offset)]
            data["noted"] = [_listed(self.known.topics[each]) for each in ids if each in self.known.topics]
        request = request.format(number=self.at + 1, of=len(self.spans))
        return dialogue_begin(BUILD, [{"role": "user", "content": f"{request}\n{framed(data, mark)}"}], mark=mark)

    def toolbox(self) -> Toolbox:
        writers = [tool for tool in writing_tools(self._write) if tool.name != "new_topic"]
        return Toolbox(
            [
                Tool(
                    "session_topics",
                    "List the topics that were made from this text so far: id, title, names of their fields.",
                    SessionTopicsArguments,
                    self._list,
                ),
                Tool("topic", "Read one of these topics whole.", TopicArguments, self._read),
                Tool(
                    "new_topic",
                    "Note something new as a topic of its own. First check whether an earlier part already made it.",
                    NewTopicArguments,
                    self._new,
                    writes=True,
                ),
                *writers,
            ]
        )

    def lock(self) -> bool:
        ids = [each for each in (self.job.source_id, *self._changed()) if each is not None]
        rows = Topic.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk")
        return self.job.source_id in set(rows.values_list("pk", flat=True))

    def store(self, *, now: dt.datetime) -> dict[str, int]:
        refused = self.items_store(now=now)
        return {"made": self.made - self.offset, "changed": len(self._changed()), "refused": refused}

    def _changed(self) -> set[uuid.UUID]:
        """Return the ids of the topics to which this step has written, except those that it has created."""
        new = {each.topic_id for each in self.staged if each.placement == "new_topic"}
        return {uuid.UUID(each.topic_id) for each in self.staged if each.topic_id and each.topic_id not in new}

    def _write(self, item: IngestItem) -> ItemReply:
        if len(self.staged) >= MAX_WRITES:
            raise ValueRefused(
                f"This part has reached the limit of {MAX_WRITES} writes. Finish now.", code=ProblemCode.STEP_LIMIT
            )
        return self.stage(item)

    def _new(self, asked: NewTopicArguments) -> ToolReply:
        if self.made >= MAX_TOPICS:
            raise ValueRefused(
                f"This part has reached the limit of {MAX_TOPICS} topics. Finish now.", code=ProblemCode.STEP_LIMIT
            )
        topic_id = topic_id_of(self.job.id, self.at, self.made)
        item = self._sourced(item_new(asked, topic_id=topic_id, kind=self.job.kind))
        # The kind of the topic identifies the study, so the kind that the model has chosen becomes a category.
        categories = list(dict.fromkeys([*item.categories, *([asked.kind] if asked.kind else [])]))
        reply = self._write(item.model_copy(update={"scope": self.job.scope, "categories": categories}))
        self.made += 1
        self.order.append(topic_id)
        # The reference to the source is left out of the reply, because the model does not need it.
        own = {f"edge:{self.job.source_id}", f"field:{SOURCE_FIELD}"}
        applied = [each for each in reply.applied if each not in own]
        return ToolReply({"topic_id": str(topic_id), "applied": applied}, [topic_id])

    def _sourced(self, item: IngestItem) -> IngestItem:
        """Return the item with a reference to its source, so that a purge of the topic finds the source."""
        source = self.job.source_id
        if source is None:
            return item
        fields = [*item.fields]
        if not any(each.name == SOURCE_FIELD for each in fields):
            fields.append(IngestField(name=SOURCE_FIELD, ref_topic_id=source, provenance=PROVENANCE))
        return item.model_copy(
            update={"fields": fields, "edges": [*item.edges, IngestEdge(to_topic_id=source, kind=EDGE)]}
        )

    def _list(self, asked: SessionTopicsArguments) -> ToolReply:
        topics = [topic for each in self.order if (topic := self.known.topics[each]).live]
        words = asked.words.casefold().split()
        if words:
            scores = {topic.id: _score(topic, words) for topic in topics}
            topics = sorted((each for each in topics if scores[each.id]), key=lambda each: -scores[each.id])
        else:
            topics.reverse()
        shown = topics[asked.skip : asked.skip + _LISTED]
        result = {"topics": [_listed(each) for each in shown], "of": len(topics)}
        return ToolReply(result, [each.id for each in shown])

    def _read(self, asked: TopicArguments) -> ToolReply:
        topic = self.known.topics.get(asked.topic_id)
        if topic is None or topic.id == self.job.source_id:
            raise ValueRefused(
                f"Topic {asked.topic_id} was not created from this text.", code=ProblemCode.TOPIC_NOT_OF_STUDY
            )
        return ToolReply(topic_shown(topic, most=_MAX_CHARS, source=self.job.source_id), [topic.id])


def topic_shown(
    topic: KnownTopic, *, most: int = _MAX_CHARS_IN_LIST, source: uuid.UUID | None = None
) -> dict[str, Any]:
    """Return a topic in the form that the model gets."""
    return {
        "topic_id": str(topic.id),
        "title": topic.title,
        "summary": topic.summary[:most],
        "fields": {each.name: each.value[:most] for each in topic.fields.values() if each.value},
        "linked": [{"topic_id": str(target), "kind": kind} for target, kind in sorted(topic.links) if target != source],
    }


def _listed(topic: KnownTopic) -> dict[str, Any]:
    names = [each.name for each in topic.fields.values() if each.value]
    return {"topic_id": str(topic.id), "title": topic.title, "fields": names}


def _score(topic: KnownTopic, words: list[str]) -> int:
    title, text = topic.title.casefold(), topic.text().whole().casefold()
    return sum(2 * (word in title) + (word in text) for word in words)
