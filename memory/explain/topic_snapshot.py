"""One topic as stored: its texts, its state and its salience."""

import datetime as dt
import uuid
from dataclasses import dataclass

from memory.access.principal import Principal
from memory.core.errors import NotVisible
from memory.formulas.strategies import TopicUsage
from memory.models.labels import label_sql
from memory.models.statements import rows_read

_TOPIC_SQL = f"""
SELECT t.title, {label_sql()}, t.summary, t.kind, s.path, t.categories, t.provenance, t.created_at, t.released_at,
       t.merged_into_id, v.rung, v.pinned, v.pin_reason, v.salience, v.reinforced_at, v.idle_before, v.half_life,
       v.retrieval_count, v.last_retrieved_at
FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = %(id)s
"""


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """The stored values of one topic, from the tables of topics, scopes and vitality."""

    title: str
    label: str
    summary: str
    kind: str
    scope: str
    categories: list[str]
    provenance: str
    created_at: dt.datetime
    released_at: dt.datetime | None
    merged_into: uuid.UUID | None
    rung: int
    pinned: bool
    pin_reason: str
    salience: float
    reinforced_at: dt.datetime
    idle_before: float
    half_life: float
    retrieval_count: int
    last_retrieved_at: dt.datetime | None

    @property
    def is_gone(self) -> bool:
        """Whether the topic was released or merged. Runs ignore such topics."""
        return self.released_at is not None or self.merged_into is not None

    @property
    def usage(self) -> TopicUsage:
        """The input of the strategies."""
        last = self.last_retrieved_at
        return TopicUsage(
            salience=self.salience,
            reinforced_at=self.reinforced_at.timestamp(),
            created_at=self.created_at.timestamp(),
            last_retrieved_at=None if last is None else last.timestamp(),
            retrieval_count=self.retrieval_count,
            kind=self.kind,
            idle_before=self.idle_before,
        )


def topic_snapshot(topic_id: uuid.UUID, principal: Principal) -> TopicSnapshot:
    """Return one topic as stored. One query. Raises ``NotVisible``."""
    for row in rows_read(_TOPIC_SQL, {"id": topic_id}):
        topic = TopicSnapshot(*row)
        if principal.sees(topic.scope):
            return topic
    raise NotVisible(f"There is no memory {topic_id}.")
