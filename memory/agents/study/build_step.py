"""Phase A: makes topics of one part of the text. All writes of a part are staged and stored when the part is done.

The model sees only the topics of its own study. Each item is planned at once, as ingest does it, on top of stored and
staged items. So the model gets the real result of each call, although nothing is written yet.
"""

import datetime as dt
import uuid
from typing import Any

from pydantic import Field

from memory.access.principal import Principal
from memory.agents.study.ids import Phase, session_ids, topic_id_of, topics_made
from memory.agents.study.prompts import BUILD, PART, PART_AGAIN
from memory.agents.tools.read_tools import TopicArguments
from memory.agents.tools.tool import Arguments, Tool, Toolbox, ToolReply
from memory.agents.tools.write_log import writes_log
from memory.agents.tools.write_tools import PROVENANCE, NewTopicArguments, item_new, writing_tools
from memory.core.errors import MemoryProblem, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.extraction.store import EDGE, SOURCE_FIELD
from memory.ingest.apply import PreparedItems, ingest_apply, ingest_prepare
from memory.ingest.items import IngestEdge, IngestField, IngestItem
from memory.ingest.load import KnownTopic, known_load
from memory.ingest.plan import ItemReply, ingest_plan
from memory.llm.chat_request import framed
from memory.llm.dialogue import Message, dialogue_begin
from memory.models import StudyJob, Topic
from memory.policy.effective import policies_current

# How many characters of the text before a part the model gets, too.
BEFORE_CHARS = 600
# Limits of one part. A useful set of notes is far smaller.
MOST_TOPICS = 150
MOST_WRITES = 600
_LISTED = 60
_MAX_CHARS_IN_LIST = 500
_MAX_CHARS = 8_000


class SessionTopicsArguments(Arguments):
    """Which topics of the session."""

    words: str = Field(default="", max_length=500, description="Only topics that hold one of these words, best first.")
    skip: int = Field(default=0, ge=0, le=100_000, description="Leave out so many, to read on.")


class BuildStep:
    """The step that makes topics of one part of a text. Four queries at the start."""

    phase = Phase.BUILDING

    def __init__(
        self, job: StudyJob, content: str, spans: list[tuple[int, int]], *, principal: Principal, now: dt.datetime
    ) -> None:
        self.job, self.content, self.spans, self.principal, self.now = job, content, spans, principal, now
        self.at, self.to = job.done, job.done + 1
        self.staged: list[IngestItem] = []
        self.offset = self.made = topics_made(job, self.at)
        ids = session_ids(job)
        self.known = known_load(changed=ids, read=[job.source_id] if job.source_id else [], lock=False)
        self.policies = policies_current()
        # The topics of the study in the order of creation.
        self.order = [each for each in ids if each in self.known.topics]
        self._prepared: PreparedItems | None = None

    def empty(self) -> bool:
        """Return whether the part contains no text."""
        start, end = self.spans[self.at]
        return not self.content[start:end].strip()

    def messages(self, mark: str) -> list[Message]:
        """Return the first messages of the dialogue."""
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
        """Return the tools of this part."""
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
                    "Note something new as a topic of its own. Look first whether an earlier part has made it.",
                    NewTopicArguments,
                    self._new,
                    writes=True,
                ),
                *writers,
            ]
        )

    def lock(self) -> bool:
        """Lock the source and the stored topics that this step changes. Return whether the source still exists. One
        query."""
        ids = [each for each in (self.job.source_id, *self._changed()) if each is not None]
        rows = Topic.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk")
        return self.job.source_id in set(rows.values_list("pk", flat=True))

    def prepare(self) -> None:
        """Embed the staged items. Must be called before any lock is taken."""
        if self.staged:
            self._prepared = ingest_prepare(self.staged, principal=self.principal, now=self.now, defer=False)

    def store(self, *, now: dt.datetime) -> dict[str, int]:
        """Write the staged items, log them for the conversation, and return the counts. At most 28 statements."""
        counts = {"made": self.made - self.offset, "changed": 0, "refused": 0}
        if not self.staged or self._prepared is None:
            return counts
        outcomes = ingest_apply(self._prepared, principal=self.principal, now=now)
        pairs = [
            (item, outcome)
            for item, outcome in zip(self.staged, outcomes, strict=True)
            if not isinstance(outcome, MemoryProblem)
        ]
        writes_log(self.job.conversation_id, pairs, now=now)
        counts["changed"] = len(self._changed())
        # The topics of these items were released or erased meanwhile.
        counts["refused"] = len(outcomes) - len(pairs)
        return counts

    def _changed(self) -> set[uuid.UUID]:
        """Return the topics of earlier parts to which this part writes."""
        new = {each.topic_id for each in self.staged if each.placement == "new_topic"}
        return {uuid.UUID(each.topic_id) for each in self.staged if each.topic_id and each.topic_id not in new}

    def _write(self, item: IngestItem) -> ItemReply:
        if len(self.staged) >= MOST_WRITES:
            raise ValueRefused(
                f"This part has reached the limit of {MOST_WRITES} writes. Finish now.", code=ProblemCode.STEP_LIMIT
            )
        plan = ingest_plan([item], known=self.known, policies=self.policies, principal=self.principal, now=self.now)
        (outcome,) = plan.outcomes
        if isinstance(outcome, MemoryProblem):
            raise outcome
        self.staged.append(item)
        return outcome

    def _new(self, asked: NewTopicArguments) -> ToolReply:
        if self.made >= MOST_TOPICS:
            raise ValueRefused(
                f"This part has reached the limit of {MOST_TOPICS} topics. Finish now.", code=ProblemCode.STEP_LIMIT
            )
        topic_id = topic_id_of(self.job.id, self.at, self.made)
        item = self._sourced(item_new(asked, topic_id=topic_id, kind=self.job.kind))
        # The model's kind becomes a category, because the kind of the topic identifies the study.
        categories = list(dict.fromkeys([*item.categories, *([asked.kind] if asked.kind else [])]))
        reply = self._write(item.model_copy(update={"scope": self.job.scope, "categories": categories}))
        self.made += 1
        self.order.append(topic_id)
        # The model need not know of the reference to the source.
        own = {f"edge:{self.job.source_id}", f"field:{SOURCE_FIELD}"}
        applied = [each for each in reply.applied if each not in own]
        return ToolReply({"topic_id": str(topic_id), "applied": applied}, [topic_id])

    def _sourced(self, item: IngestItem) -> IngestItem:
        """Return the item with a reference to its source, as in extraction, so that a purge of the topic finds the
        source."""
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
    """Return a topic in the form in which the model gets it."""
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
    title, text = topic.title.casefold(), topic.text().document().casefold()
    return sum(2 * (word in title) + (word in text) for word in words)
