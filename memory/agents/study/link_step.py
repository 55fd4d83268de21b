"""Phase B: links a few topics of the study with existing topics, or merges them into existing topics.

The model may read the whole scope. It can create links from the topics of this step, and merge these topics into live
topics of their scope. All changes are staged, then written in one transaction with the progress. Topics that became
inactive meanwhile are skipped.
"""

import datetime as dt
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import connection
from pydantic import Field

from memory.access.principal import Principal
from memory.agents.study.build_step import topic_shown
from memory.agents.study.ids import Phase, rounds_in, session_ids
from memory.agents.study.prompts import PLACE, TOPICS, TOPICS_AGAIN
from memory.agents.tools.read_tools import reading_tools
from memory.agents.tools.tool import Arguments, Tool, Toolbox, ToolReply
from memory.agents.tools.write_log import topics_lock_shared, writes_log
from memory.agents.tools.write_tools import writing_tools
from memory.core.callbacks import Clock
from memory.core.errors import Conflict, MemoryProblem, NotVisible, RequestRefused
from memory.core.problem_codes import ProblemCode
from memory.duplicates.merge_into import merge_vectors, topic_merge_into
from memory.duplicates.pair_locks import topics_lock
from memory.embedding.base import Vectors
from memory.ingest.apply import PreparedItems, ingest_apply, ingest_prepare
from memory.ingest.items import IngestItem
from memory.ingest.load import KnownTopic, known_load
from memory.ingest.plan import ItemReply, ingest_plan
from memory.llm.chat_request import framed
from memory.llm.dialogue import Message, dialogue_begin
from memory.models import ConversationWrite, StudyJob
from memory.policy.effective import policies_current

# The topics of one step. So few fit into one dialogue, and little work is lost if the dialogue fails.
STEP_TOPICS = 4
MOST_WRITES = 200
MERGED_BECAUSE = "A study found that an existing topic states the same."


class MergeArguments(Arguments):
    """A topic of this step, and the topic that says the same."""

    topic_id: uuid.UUID = Field(description="One of the topics that you were given.")
    into_topic_id: uuid.UUID = Field(description="The topic that takes it in.")


@dataclass(slots=True)
class _Staged:
    links: list[IngestItem] = field(default_factory=list)
    # Maps each merged topic to the topic into which it is merged.
    merges: dict[uuid.UUID, uuid.UUID] = field(default_factory=dict)


class LinkStep:
    """One step of phase B. Four queries at the start."""

    phase = Phase.LINKING

    def __init__(self, job: StudyJob, *, principal: Principal, clock: Clock) -> None:
        self.job, self.principal, self.clock, self.now = job, principal, clock, clock()
        ids = session_ids(job)
        self.at, self.to = job.linked, min(job.linked + STEP_TOPICS, len(ids))
        self.known = known_load(changed=ids[self.at : self.to], read=[], lock=False)
        self.policies = policies_current()
        topics = self.known.topics
        self.own = [each for each in ids[self.at : self.to] if each in topics and topics[each].live]
        # Inactive topics are counted only once: if a step continues, topics that it has merged are inactive, too.
        self.again = rounds_in(job, Phase.LINKING, self.at) > 0
        self.skipped = 0 if self.again else self.to - self.at - len(self.own)
        self.staged = _Staged()
        # The topics of which the model has read anything.
        self._seen = set(self.own)
        self._erased = False
        self._prepared: PreparedItems | None = None
        self._vectors: dict[str, Vectors] = {}

    def empty(self) -> bool:
        """Return whether none of the topics is live."""
        return not self.own

    def messages(self, mark: str) -> list[Message]:
        """Return the first messages of the dialogue."""
        topics = [topic_shown(self.known.topics[each], source=self.job.source_id) for each in self.own]
        request = TOPICS_AGAIN if self.again else TOPICS
        return dialogue_begin(PLACE, [{"role": "user", "content": f"{request}\n{framed(topics, mark)}"}], mark=mark)

    def toolbox(self) -> Toolbox:
        """Return the tools of this step."""
        reading = reading_tools(self.principal, clock=self.clock)
        readers = [self._watched(tool) for tool in reading if tool.name in ("query", "topic")]
        linkers = [tool for tool in writing_tools(self._write) if tool.name == "link"]
        return Toolbox(
            [
                *readers,
                *linkers,
                Tool(
                    "merge_into",
                    "Let a topic of the store take in one of the given topics, because both are about the very same "
                    "thing and say the same.",
                    MergeArguments,
                    self._merge,
                    writes=True,
                ),
            ]
        )

    def lock(self) -> bool:
        """Lock all topics of this step before the first change, to prevent deadlocks. Also lock the topics that the
        model has read, so that no purge removes them meanwhile. Four queries."""
        targets = {edge.to_topic_id for item in self.staged.links for edge in item.edges}
        changed = {*self.own, *targets, *self.staged.merges.values()}
        self._erased = bool(topics_lock_shared(self._seen | changed) & self._seen)
        with connection.cursor() as cursor:
            topics_lock(cursor, sorted(changed))
        return True

    def prepare(self) -> None:
        """Plan the links and embed the merged texts. Must be called before any lock is taken."""
        if self.staged.links:
            self._prepared = ingest_prepare(self.staged.links, principal=self.principal, now=self.now, defer=False)
        for topic_id, into in self.staged.merges.items():
            self._vectors |= merge_vectors(topic_id, into, now=self.now)

    def store(self, *, now: dt.datetime) -> dict[str, int]:
        """Write the links, merge, log both for the conversation, and return the counts. About forty statements for each
        merge."""
        counts = {"links": 0, "merged": 0, "skipped": self.skipped, "refused": 0}
        if self._erased:
            # The model may have taken the kind of a link from a text that was erased meanwhile.
            counts["refused"] = len(self.staged.links)
        elif self._prepared is not None:
            outcomes = ingest_apply(self._prepared, principal=self.principal, now=now)
            pairs = [
                (item, outcome)
                for item, outcome in zip(self.staged.links, outcomes, strict=True)
                if not isinstance(outcome, MemoryProblem)
            ]
            writes_log(self.job.conversation_id, pairs, now=now)
            counts["links"], counts["refused"] = len(pairs), len(outcomes) - len(pairs)
        merges = []
        with connection.cursor() as cursor:
            for topic_id, into in self.staged.merges.items():
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
                    # One of the two became inactive or was moved after the model decided.
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
        """Return the tool in a form that also stores in ``_seen`` which topics it has returned."""

        def run(asked: Any) -> ToolReply:
            reply: ToolReply = tool.run(asked)
            self._seen.update(reply.topic_ids, reply.seen)
            return reply

        return replace(tool, run=run)

    def _other(self, topic_id: uuid.UUID) -> KnownTopic:
        """Return a live topic that the caller may read, or raise a problem. One query for each new topic."""
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
        """Return the id of a topic of this step that may still be changed, or raise a problem."""
        found = next((each for each in self.own if str(each) == str(topic_id)), None)
        if found is None:
            raise RequestRefused(
                f"Topic {topic_id} is not one of the given topics. Only these can be linked or merged.",
                code=ProblemCode.TOPIC_NOT_OF_STUDY,
            )
        if found in self.staged.merges:
            raise RequestRefused(
                f"Topic {found} is merged already. Create links before you merge.", code=ProblemCode.TOPIC_GONE
            )
        if len(self.staged.links) + len(self.staged.merges) >= MOST_WRITES:
            raise RequestRefused(
                f"This step has reached the limit of {MOST_WRITES} writes. Finish now.", code=ProblemCode.STEP_LIMIT
            )
        return found

    def _write(self, item: IngestItem) -> ItemReply:
        own = self._own(item.topic_id)
        for edge in item.edges:
            if edge.to_topic_id == own:
                raise RequestRefused("A topic cannot be linked to itself.", code=ProblemCode.LINK_TO_ITSELF)
            self._other(edge.to_topic_id)
        plan = ingest_plan([item], known=self.known, policies=self.policies, principal=self.principal, now=self.now)
        (outcome,) = plan.outcomes
        if isinstance(outcome, MemoryProblem):
            raise outcome
        self.staged.links.append(item)
        return outcome

    def _merge(self, asked: MergeArguments) -> ToolReply:
        own = self._own(asked.topic_id)
        if asked.into_topic_id in self.staged.merges:
            into = self.staged.merges[asked.into_topic_id]
            raise RequestRefused(
                f"Topic {asked.into_topic_id} is merged into {into}. Merge into that topic instead.",
                code=ProblemCode.TOPIC_GONE,
            )
        if own in self.staged.merges.values():
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
        self.staged.merges[own] = into_topic.id
        result: dict[str, Any] = {"topic_id": str(into_topic.id), "applied": [f"merged:{own}"]}
        return ToolReply(result, [into_topic.id, own])
