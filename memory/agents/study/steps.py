"""The steps of a study: each is one dialogue with the model, whose writes are staged and stored when it ends.

Phase A makes topics from one part of the text; the model sees only the topics of its own study. Phase B links a few
topics of the study with existing topics, or merges them into existing topics; the model may read the whole scope.
"""

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any

from django.db import connection
from pydantic import Field

from memory.access.principal import Principal
from memory.agents.study.progress import Phase, entries_of, session_ids, topic_id_of, total
from memory.agents.study.prompts import BUILD, PART, PART_AGAIN, PLACE, TOPICS
from memory.agents.tools.read_tools import TopicArguments, reading_tools
from memory.agents.tools.tool import Arguments, Tool, Toolbox, ToolCalled, ToolReply
from memory.agents.tools.write_log import topics_lock_shared, writes_log
from memory.agents.tools.write_tools import PROVENANCE, NewTopicArguments, item_new, writing_tools
from memory.core.callbacks import Clock
from memory.core.errors import Conflict, MemoryProblem, NotVisible, RequestRefused, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.duplicates.merge_apply import merge_vectors, topic_merge_into
from memory.duplicates.pair_locks import topics_lock
from memory.embedding.base import Vectors
from memory.extraction.store import EDGE, SOURCE_FIELD
from memory.ingest.apply import PreparedItems, ingest_apply, ingest_prepare
from memory.ingest.items import IngestEdge, IngestField, IngestItem
from memory.ingest.load import KnownTopic, known_load
from memory.ingest.plan import ItemReply, ingest_plan
from memory.llm.chat_request import framed
from memory.llm.dialogue import Message, dialogue_begin
from memory.models import ConversationWrite, StudyJob, Topic
from memory.policy.effective import policies_current

# The number of characters before a part that the model gets as context.
BEFORE_CHARS = 600
# The limits of one part. Useful notes need far fewer topics and writes.
MAX_TOPICS = 150
MAX_WRITES = 600
# The number of topics of one step of phase B. It is small, so that one dialogue suffices and a failure loses little
# work.
LINKED_TOPICS = 4
MAX_LINKS = 200
MERGED_BECAUSE = "A study found that an existing topic states the same."
_LISTED = 60
_MAX_CHARS_IN_LIST = 500
_MAX_CHARS = 8_000


class SessionTopicsArguments(Arguments):
    """Which topics of the session."""

    words: str = Field(default="", max_length=500, description="Only topics that hold one of these words, best first.")
    skip: int = Field(default=0, ge=0, le=100_000, description="Leave out so many, to read on.")


class MergeArguments(Arguments):
    """A topic of this step, and the topic that says the same."""

    topic_id: uuid.UUID = Field(description="One of the topics that you were given.")
    into_topic_id: uuid.UUID = Field(description="The topic that takes it in.")


class StudyStep:
    """What both kinds of steps share. A step covers the numbers from ``at`` up to, but not including, ``to``. These are
    numbers of parts of the text in phase A, and numbers of topics of the study in phase B. If ``empty``, the step has
    nothing to do. Creating a step takes four queries."""

    phase: Phase
    empty: bool

    def __init__(
        self,
        job: StudyJob,
        at: int,
        to: int,
        *,
        changed: list[uuid.UUID],
        read: list[uuid.UUID],
        principal: Principal,
        now: dt.datetime,
    ) -> None:
        self.job, self.at, self.to, self.principal, self.now = job, at, to, principal, now
        self.known = known_load(changed=changed, read=read, lock=False)
        self.policies = policies_current()
        self.staged: list[IngestItem] = []
        self._prepared: PreparedItems | None = None

    def prepare(self) -> None:
        """Embed the staged items. Must be called before any lock is taken."""
        if self.staged:
            self._prepared = ingest_prepare(self.staged, principal=self.principal, now=self.now, defer=False)

    def stage(self, item: IngestItem) -> ItemReply:
        """Plan an item as if the staged items were stored, and stage it. So the model gets the real result. No queries.

        Raises ``MemoryProblem`` if ingest would refuse the item.
        """
        plan = ingest_plan([item], known=self.known, policies=self.policies, principal=self.principal, now=self.now)
        (outcome,) = plan.outcomes
        if isinstance(outcome, MemoryProblem):
            raise outcome
        self.staged.append(item)
        return outcome

    def items_store(self, *, now: dt.datetime) -> int:
        """Write the prepared items and log them for the conversation. Return how many were refused because a topic no
        longer exists."""
        if self._prepared is None:
            return 0
        outcomes = ingest_apply(self._prepared, principal=self.principal, now=now)
        pairs = [
            (item, outcome)
            for item, outcome in zip(self.staged, outcomes, strict=True)
            if not isinstance(outcome, MemoryProblem)
        ]
        writes_log(self.job.conversation_id, pairs, now=now)
        return len(outcomes) - len(pairs)


class BuildStep(StudyStep):
    """The step that makes topics from one part of a text."""

    phase = Phase.BUILDING

    def __init__(
        self, job: StudyJob, content: str, spans: list[tuple[int, int]], *, principal: Principal, now: dt.datetime
    ) -> None:
        assert job.source_id is not None
        ids, self.source = session_ids(job), job.source_id
        super().__init__(job, job.done, job.done + 1, changed=ids, read=[self.source], principal=principal, now=now)
        start, end = spans[self.at]
        self.data: dict[str, Any] = {
            "before": content[max(0, start - BEFORE_CHARS) : start],
            "part": content[start:end],
        }
        self.empty = not self.data["part"].strip()
        # How many topics earlier dialogues about this part have made.
        self.offset = self.made = total(entries_of(job, Phase.BUILDING, self.at), "made")
        # The topics of the study in the order of creation.
        self.order = [each for each in ids if each in self.known.topics]

    def messages(self, mark: str) -> list[Message]:
        """Return the first messages of the dialogue."""
        request, data = PART, self.data
        if self.offset:
            ids = [topic_id_of(self.job.id, self.at, number) for number in range(self.offset)]
            noted = [_listed(self.known.topics[each]) for each in ids if each in self.known.topics]
            request, data = PART_AGAIN, {**data, "noted": noted}
        request = request.format(number=self.at + 1, of=self.job.segments)
        return dialogue_begin(BUILD, [{"role": "user", "content": f"{request}\n{framed(data, mark)}"}], mark=mark)

    def toolbox(self) -> Toolbox:
        """Return the tools of this step."""
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

    def lock(self, _log: Sequence[ToolCalled]) -> bool:
        """Lock everything that this step changes. Return whether the text still exists."""
        rows = Topic.objects.select_for_update(no_key=True).filter(pk__in={self.source, *self._changed()})
        return self.source in set(rows.order_by("pk").values_list("pk", flat=True))

    def store(self, *, now: dt.datetime) -> dict[str, int]:
        """Store the writes, and return the counts."""
        refused = self.items_store(now=now)
        return {"made": self.made - self.offset, "changed": len(self._changed()), "refused": refused}

    def _changed(self) -> set[uuid.UUID]:
        """Return the ids of the topics to which this step has written, except those that it has created."""
        new = {each.topic_id for each in self.staged if each.placement == "new_topic"}
        return {uuid.UUID(each.topic_id) for each in self.staged if each.topic_id and each.topic_id not in new}

    def _write(self, item: IngestItem) -> ItemReply:
        if len(self.staged) >= MAX_WRITES:
            raise ValueRefused(
                f"This part has reached the limit of {MAX_WRITES} writes. Finish now.", code=ProblemCode.TOO_LARGE
            )
        return self.stage(item)

    def _new(self, asked: NewTopicArguments) -> ToolReply:
        if self.made >= MAX_TOPICS:
            raise ValueRefused(
                f"This part has reached the limit of {MAX_TOPICS} topics. Finish now.", code=ProblemCode.TOO_LARGE
            )
        topic_id = topic_id_of(self.job.id, self.at, self.made)
        item = item_new(asked, topic_id=topic_id, kind=self.job.kind)
        # A reference to the source, so that a purge of the topic finds the source.
        field = IngestField(name=SOURCE_FIELD, ref_topic_id=self.source, provenance=PROVENANCE)
        members = {
            "scope": self.job.scope,
            # The kind of the topic identifies the study, so the kind that the model has chosen becomes a category.
            "categories": list(dict.fromkeys([*item.categories, *([asked.kind] if asked.kind else [])])),
            "fields": [*(each for each in item.fields if each.name != SOURCE_FIELD), field],
            "edges": [*item.edges, IngestEdge(to_topic_id=self.source, kind=EDGE)],
        }
        reply = self._write(item.model_copy(update=members))
        self.made += 1
        self.order.append(topic_id)
        # The reference is left out of the reply, because the model does not need it.
        own = {f"edge:{self.source}", f"field:{SOURCE_FIELD}"}
        applied = [each for each in reply.applied if each not in own]
        return ToolReply({"topic_id": str(topic_id), "applied": applied}, [topic_id])

    def _list(self, asked: SessionTopicsArguments) -> ToolReply:
        topics = [topic for each in reversed(self.order) if (topic := self.known.topics[each]).live]
        if words := asked.words.casefold().split():
            scores = {topic.id: _score(topic, words) for topic in topics}
            topics = sorted((each for each in topics if scores[each.id]), key=lambda each: -scores[each.id])
        shown = topics[asked.skip : asked.skip + _LISTED]
        result = {"topics": [_listed(each) for each in shown], "of": len(topics)}
        return ToolReply(result, [each.id for each in shown])

    def _read(self, asked: TopicArguments) -> ToolReply:
        topic = self.known.topics.get(asked.topic_id)
        if topic is None or topic.id == self.source:
            raise ValueRefused(f"Topic {asked.topic_id} was not created from this text.", code=ProblemCode.NOT_ALLOWED)
        return ToolReply(_shown(topic, self.source, most=_MAX_CHARS), [topic.id])


class LinkStep(StudyStep):
    """The step that links a few topics of the study. It can create links from these topics, and merge them into other
    live topics of the same scope. Topics that became inactive after phase A are skipped."""

    phase = Phase.LINKING

    def __init__(self, job: StudyJob, *, principal: Principal, clock: Clock) -> None:
        ids = session_ids(job)
        at, to = job.linked, min(job.linked + LINKED_TOPICS, len(ids))
        super().__init__(job, at, to, changed=ids[at:to], read=[], principal=principal, now=clock())
        self.clock = clock
        topics = self.known.topics
        self.own = [each for each in ids[at:to] if each in topics and topics[each].live]
        self.empty = not self.own
        # Inactive topics are counted only in the first dialogue of a step. In a later dialogue, they include topics
        # that the step itself has merged.
        again = total(entries_of(job, Phase.LINKING, at), "rounds")
        self.skipped = 0 if again else to - at - len(self.own)
        # Maps each merged topic to the topic into which it is merged.
        self.merges: dict[uuid.UUID, uuid.UUID] = {}
        self._erased = False
        self._vectors: dict[str, Vectors] = {}

    def messages(self, mark: str) -> list[Message]:
        """Return the first messages of the dialogue."""
        topics = [_shown(self.known.topics[each], self.job.source_id) for each in self.own]
        return dialogue_begin(PLACE, [{"role": "user", "content": f"{TOPICS}\n{framed(topics, mark)}"}], mark=mark)

    def toolbox(self) -> Toolbox:
        """Return the tools of this step."""
        tools = [*reading_tools(self.principal, clock=self.clock), *writing_tools(self._write)]
        merge = Tool(
            "merge_into",
            "Let a topic of the store take in one of the given topics, because both are about the very same thing and "
            "say the same.",
            MergeArguments,
            self._merge,
            writes=True,
        )
        return Toolbox([*(tool for tool in tools if tool.name in ("query", "topic", "link")), merge])

    def lock(self, log: Sequence[ToolCalled]) -> bool:
        """Lock all topics before the first change, to prevent deadlocks. The topics that the model has read, by the
        ``log`` of the dialogue, are only locked against a purge."""
        read = {each for called in log if called.tool in ("query", "topic") for each in called.topic_ids + called.seen}
        targets = {edge.to_topic_id for item in self.staged for edge in item.edges}
        seen, changed = read | set(self.own), {*self.own, *targets, *self.merges.values()}
        self._erased = bool(topics_lock_shared(seen | changed) & seen)
        with connection.cursor() as cursor:
            topics_lock(cursor, sorted(changed))
        return True

    def prepare(self) -> None:
        """Embed the staged items and the values that merges move."""
        super().prepare()
        for topic_id, into in self.merges.items():
            self._vectors |= merge_vectors(topic_id, into, now=self.now)

    def store(self, *, now: dt.datetime) -> dict[str, int]:
        """Store the writes, and return the counts."""
        # The model may have copied the kind of a link from a text that was erased during the step.
        refused = len(self.staged) if self._erased else self.items_store(now=now)
        counts = {"links": len(self.staged) - refused, "merged": 0, "skipped": self.skipped, "refused": refused}
        merges = list[ConversationWrite]()
        with connection.cursor() as cursor:
            for topic_id, into in self.merges.items():
                try:
                    run = topic_merge_into(
                        cursor,
                        topic_id,
                        into,
                        principal=self.principal,
                        reason=MERGED_BECAUSE,
                        now=now,
                        vectors=self._vectors,
                    )
                except Conflict:
                    # One of the two topics became inactive or was moved after the model decided.
                    counts["refused"] += 1
                    continue
                merges.append(
                    ConversationWrite(
                        conversation_id=self.job.conversation_id,
                        topic_id=topic_id,
                        at=now,
                        run_id=run.pk,
                        what=ConversationWrite.What.MERGED,
                    )
                )
        ConversationWrite.objects.bulk_create(merges)
        counts["merged"] = len(merges)
        return counts

    def _other(self, topic_id: uuid.UUID) -> KnownTopic:
        """Return a topic. Raises an error if it is not live, merged by this step, or if the caller may not read it.

        One query for each topic that is not loaded yet.
        """
        if topic_id not in self.known.topics:
            self.known.topics |= known_load(changed=[], read=[topic_id], lock=False).topics
        topic = self.known.topics.get(topic_id)
        if topic is None or not self.principal.sees(topic.scope):
            raise NotVisible(f"Topic {topic_id} does not exist.")
        if not topic.live or topic.id in self.merges:
            raise RequestRefused(
                f"Topic {topic_id} is archived, released or merged. Do not change it.", code=ProblemCode.TOPIC_GONE
            )
        return topic

    def _own(self, topic_id: uuid.UUID | str | None) -> uuid.UUID:
        """Return the id of a topic of this step. Raises an error if the topic may not be changed any more."""
        found = next((each for each in self.own if str(each) == str(topic_id)), None)
        if found is None:
            raise RequestRefused(
                f"Topic {topic_id} is not one of the given topics. Only these can be linked or merged.",
                code=ProblemCode.NOT_ALLOWED,
            )
        if found in self.merges:
            raise RequestRefused(
                f"Topic {found} is merged already. Create links before you merge.", code=ProblemCode.TOPIC_GONE
            )
        if len(self.staged) + len(self.merges) >= MAX_LINKS:
            raise RequestRefused(
                f"This step has reached the limit of {MAX_LINKS} writes. Finish now.", code=ProblemCode.TOO_LARGE
            )
        return found

    def _write(self, item: IngestItem) -> ItemReply:
        self._own(item.topic_id)
        for edge in item.edges:
            self._other(edge.to_topic_id)
        return self.stage(item)

    def _merge(self, asked: MergeArguments) -> ToolReply:
        own, into = self._own(asked.topic_id), self._other(asked.into_topic_id)
        if own in self.merges.values() or into.id == own or into.scope != self.job.scope:
            raise RequestRefused(
                f"Topic {own} cannot be merged into topic {into.id}. Both must be different topics of the scope "
                f"{self.job.scope}, and no topic may have been merged into {own}.",
                code=ProblemCode.CONFLICT,
            )
        self.merges[own] = into.id
        return ToolReply({"topic_id": str(into.id), "applied": [f"merged:{own}"]}, [into.id, own])


def _shown(topic: KnownTopic, source: uuid.UUID | None, *, most: int = _MAX_CHARS_IN_LIST) -> dict[str, Any]:
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
