"""Phase B of a study: links a few topics of the study with existing topics, or merges them into existing topics.

The model may read the whole scope. It can create links from the topics of this step, and merge these topics into other
live topics of the same scope. Topics that became inactive after phase A are skipped.
"""

import datetime as dt
import uuid
from dataclasses import replace
from typing import Any

from django.db import connection
from pydantic import Field

from memory.access.principal import Principal
from memory.agents.study.build_step import topic_shown
from memory.agents.study.ids import Phase, rounds_in, session_ids
from memory.agents.study.prompts import PLACE, TOPICS, TOPICS_AGAIN
from memory.agents.study.step import StudyStep
from memory.agents.tools.read_tools import reading_tools
from memory.agents.tools.tool import Arguments, Tool, Toolbox, ToolReply
from memory.agents.tools.write_log import topics_lock_shared
from memory.agents.tools.write_tools import writing_tools
from memory.core.callbacks import Clock
from memory.core.errors import Conflict, NotVisible, RequestRefused
from memory.core.problem_codes import ProblemCode
from memory.duplicates.merge_into import merge_vectors, topic_merge_into
from memory.duplicates.pair_locks import topics_lock
from memory.embedding.base import Vectors
from memory.ingest.items import IngestItem
from memory.ingest.load import KnownTopic, known_load
from memory.ingest.plan import ItemReply
from memory.llm.chat_request import framed
from memory.llm.dialogue import Message, dialogue_begin
from memory.models import ConversationWrite, StudyJob

# The number of topics of one step. It is small, so that one dialogue suffices and a failure loses little work.
STEP_TOPICS = 4
MAX_WRITES = 200
MERGED_BECAUSE = "A study found that an existing topic states the same."


class MergeArguments(Arguments):
    """A topic of this step, and the topic that says the same."""

    topic_id: uuid.UUID = Field(description="One of the topics that you were given.")
    into_topic_id: uuid.UUID = Field(description="The topic that takes it in.")


class LinkStep(StudyStep):
    """One step of phase B."""

    phase = Phase.LINKING

    def __init__(self, job: StudyJob, *, principal: Principal, clock: Clock) -> None:
        ids = session_ids(job)
        at, to = job.linked, min(job.linked + STEP_TOPICS, len(ids))
        super().__init__(job, at, to, changed=ids[at:to], read=[], principal=principal, now=clock())
        self.clock = clock
        topics = self.known.topics
        self.own = [each for each in ids[at:to] if each in topics and topics[each].live]
        # Inactive topics are counted only in the first dialogue of a step. In a later dialogue, they include topics
        # that the step itself has merged.
        self.again = rounds_in(job, Phase.LINKING, at) > 0
        self.skipped = 0 if self.again else to - at - len(self.own)
        # Maps each merged topic to the topic into which it is merged.
        self.merges: dict[uuid.UUID, uuid.UUID] = {}
        # The topics of which the model has read a part.
        self._seen = set(self.own)
        self._erased = False
        self._vectors: dict[str, Vectors] = {}

    def empty(self) -> bool:
        return not self.own

    def messages(self, mark: str) -> list[Message]:
        topics = [topic_shown(self.known.topics[each], source=self.job.source_id) for each in self.own]
        request = TOPICS_AGAIN if self.again else TOPICS
        return dialogue_begin(PLACE, [{"role": "user", "content": f"{request}\n{framed(topics, mark)}"}], mark=mark)

    def toolbox(self) -> Toolbox:
        reading = reading_tools(self.principal, clock=self.clock)
        readers = [self._watched(tool) for tool in reading if tool.name in ("query", "topic")]
        linkers = [tool for tool in writing_tools(self._write) if tool.name == "link"]
        merge = Tool(
            "merge_into",
            "Let a topic of the store take in one of the given topics, because both are about the very same thing and "
            "say the same.",
            MergeArguments,
            self._merge,
            writes=True,
        )
        return Toolbox([*readers, *linkers, merge])

    def lock(self) -> bool:
        # All topics are locked before the first change, to prevent deadlocks. The topics that the model has read are
        # only locked against a purge.
        targets = {edge.to_topic_id for item in self.staged for edge in item.edges}
        changed = {*self.own, *targets, *self.merges.values()}
        self._erased = bool(topics_lock_shared(self._seen | changed) & self._seen)
        with connection.cursor() as cursor:
            topics_lock(cursor, sorted(changed))
        return True

    def prepare(self) -> None:
        super().prepare()
        for topic_id, into in self.merges.items():
            self._vectors |= merge_vectors(topic_id, into, now=self.now)

    def store(self, *, now: dt.datetime) -> dict[str, int]:
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

    def _watched(self, tool: Tool[Any]) -> Tool[Any]:
        """Return a copy of the tool that adds the topics in its replies to ``_seen``."""

        def run(asked: Any) -> ToolReply:
            reply: ToolReply = tool.run(asked)
            self._seen.update(reply.topic_ids, reply.seen)
            return reply

        return replace(tool, run=run)

    def _other(self, topic_id: uuid.UUID) -> KnownTopic:
        """Return a topic. Raises an error if it is not live, or if the caller may not read it.

        One query for each topic that is not loaded yet.
        """
        if topic_id not in self.known.topics:
            self.known.topics |= known_load(changed=[], read=[topic_id], lock=False).topics
        topic = self.known.topics.get(topic_id)
        if topic is None or not self.principal.sees(topic.scope):
            raise NotVisible(f"Topic {topic_id} does not exist.", code=ProblemCode.TOPIC_NOT_FOUND)
        if not topic.live:
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
                code=ProblemCode.TOPIC_NOT_OF_STUDY,
            )
        if found in self.merges:
            raise RequestRefused(
                f"Topic {found} is merged already. Create links before you merge.", code=ProblemCode.TOPIC_GONE
            )
        if len(self.staged) + len(self.merges) >= MAX_WRITES:
            raise RequestRefused(
                f"This step has reached the limit of {MAX_WRITES} writes. Finish now.", code=ProblemCode.STEP_LIMIT
            )
        return found

    def _write(self, item: IngestItem) -> ItemReply:
        own = self._own(item.topic_id)
        for edge in item.edges:
            if edge.to_topic_id == own:
                raise RequestRefused("A topic cannot be linked to itself.", code=ProblemCode.LINK_TO_ITSELF)
            self._other(edge.to_topic_id)
        return self.stage(item)

    def _merge(self, asked: MergeArguments) -> ToolReply:
        own = self._own(asked.topic_id)
        if asked.into_topic_id in self.merges:
            into = self.merges[asked.into_topic_id]
            raise RequestRefused(
                f"Topic {asked.into_topic_id} is merged into {into}. Merge into that topic instead.",
                code=ProblemCode.TOPIC_GONE,
            )
        if own in self.merges.values():
            raise RequestRefused(
                f"Another topic is merged into topic {own}, so {own} itself cannot be merged.",
                code=ProblemCode.TOPICS_NOT_MERGEABLE,
            )
        into_topic = self._other(asked.into_topic_id)
        if into_topic.id == own:
            raise RequestRefused("A topic cannot be merged into itself.", code=ProblemCode.TOPICS_NOT_MERGEABLE)
        if into_topic.scope != self.job.scope:
            raise RequestRefused(
                f"Topic {into_topic.id} is in the scope {into_topic.scope}, but this one is in {self.job.scope}.",
                code=ProblemCode.TOPICS_NOT_MERGEABLE,
            )
        self.merges[own] = into_topic.id
        result: dict[str, Any] = {"topic_id": str(into_topic.id), "applied": [f"merged:{own}"]}
        return ToolReply(result, [into_topic.id, own])
