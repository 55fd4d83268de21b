"""One topic as stored: its texts, its state and its salience."""

import dataclasses
import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.access.principal import Principal
from memory.core.errors import NotVisible
from memory.core.rules import Rule
from memory.explain.outlook import Subject, comparisons_of_texts
from memory.formulas.strategies import TopicUsage
from memory.models.labels import label_sql
from memory.models.statements import rows_read
from memory.predicates.binding import Bound
from memory.predicates.sql import predicate_sql
from memory.predicates.tree import Comparison

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

    def subject(self, texts: Mapping[Comparison, bool]) -> Subject:
        """Return the topic as input for ``outlook``. ``texts`` is the result of ``texts_match``."""
        last = self.last_retrieved_at
        return Subject(
            usage=TopicUsage(
                salience=self.salience,
                reinforced_at=self.reinforced_at.timestamp(),
                created_at=self.created_at.timestamp(),
                last_retrieved_at=None if last is None else last.timestamp(),
                retrieval_count=self.retrieval_count,
                kind=self.kind,
                idle_before=self.idle_before,
            ),
            rung=self.rung,
            pinned=self.pinned,
            half_life=self.half_life,
            scope=self.scope,
            categories=frozenset(self.categories),
            provenance=self.provenance,
            texts=texts,
        )

    def as_it_was(self, state: Mapping[str, Any]) -> "TopicSnapshot":
        """Return the topic in an earlier state. ``state`` comes from the journal of a run."""
        kept = ("rung", "pinned", "salience", "idle_before", "half_life", "retrieval_count", "kind", "categories")
        last = state["last_retrieved_at"]
        return dataclasses.replace(
            self,
            reinforced_at=dt.datetime.fromisoformat(state["reinforced_at"]),
            last_retrieved_at=last and dt.datetime.fromisoformat(last),
            **{name: state[name] for name in kept},
        )


def topic_snapshot(topic_id: uuid.UUID, principal: Principal) -> TopicSnapshot:
    """Return one topic as stored. One query. Raises ``NotVisible``."""
    for row in rows_read(_TOPIC_SQL, {"id": topic_id}):
        topic = TopicSnapshot(*row)
        if principal.sees(topic.scope):
            return topic
    raise NotVisible(f"There is no memory {topic_id}.")


def texts_match(topic_id: uuid.UUID, rules: Sequence[Rule]) -> dict[Comparison, bool]:
    """Return, for each comparison in ``rules`` that refers to a text, whether it is true for the topic. At most one
    query."""
    compared = list(dict.fromkeys(comparisons_of_texts(rules)))
    if not compared:
        return {}
    bound = Bound()
    parts = [predicate_sql(comparison, now="now()", bind=bound.bind, narrow=False).sql for comparison in compared]
    sql = f"SELECT {', '.join(parts)} FROM memory_topic t WHERE t.id = {bound.bind(topic_id)}::uuid"
    # A topic that was purged in the meantime has no texts.
    found = rows_read(sql, bound.values) or [(False,) * len(compared)]
    return dict(zip(compared, found[0], strict=True))
