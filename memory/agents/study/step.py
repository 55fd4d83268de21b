"""The base class for the steps of both phases of a study. A step stages its writes and stores them when it ends."""

import datetime as dt
import uuid
from abc import ABC, abstractmethod

from memory.access.principal import Principal
from memory.agents.study.ids import Phase
from memory.agents.tools.tool import Toolbox
from memory.agents.tools.write_log import writes_log
from memory.core.errors import MemoryProblem
from memory.ingest.apply import PreparedItems, ingest_apply, ingest_prepare
from memory.ingest.items import IngestItem
from memory.ingest.load import known_load
from memory.ingest.plan import ItemReply, ingest_plan
from memory.llm.dialogue import Message
from memory.models import StudyJob
from memory.policy.effective import policies_current


class StudyStep(ABC):
    """A step of a study. It covers the numbers from ``at`` up to, but not including, ``to``. These are numbers of parts
    of the text in phase A, and numbers of topics of the study in phase B. Creating a step takes four queries."""

    phase: Phase

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

    @abstractmethod
    def empty(self) -> bool:
        """Return whether there is nothing to do."""

    @abstractmethod
    def messages(self, mark: str) -> list[Message]:
        """Return the first messages of the dialogue."""

    @abstractmethod
    def toolbox(self) -> Toolbox:
        """Return the tools of this step."""

    @abstractmethod
    def lock(self) -> bool:
        """Lock everything that this step changes. Return whether the step may still be stored."""

    @abstractmethod
    def store(self, *, now: dt.datetime) -> dict[str, int]:
        """Store the writes, log them for the conversation, and return the counts."""

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
        """Write the prepared items and log them. Return how many were refused because a topic no longer exists."""
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
