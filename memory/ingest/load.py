"""Loads the stored topics that a batch changes or names."""

import datetime as dt
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db import connection
from django.db.backends.utils import CursorWrapper

from memory.core.scopes import ROOT, scope_within
from memory.core.text import TopicText
from memory.models import Rung
from memory.models.identities import ids_of_others
from memory.predicates.binding import Bound, path_sql, scope_sql


@dataclass(slots=True)
class KnownField:
    """A field with its current revision."""

    id: uuid.UUID
    name: str
    last_seq: int
    cold_through: int
    value: str
    field_type: str
    ref_topic_id: uuid.UUID | None
    recorded_at: dt.datetime
    valid_from: dt.datetime
    # The place of the current revision in the plan, if the plan writes it.
    row: int | None = None
    is_new: bool = False


@dataclass(slots=True)
class KnownTopic:
    """A topic: stored, or created earlier in the same batch (``is_new``)."""

    id: uuid.UUID
    scope: str
    title: str
    summary: str
    categories: list[str]
    created_at: dt.datetime
    rung: int = Rung.ACTIVE
    released: bool = False
    merged: bool = False
    pinned: bool = False
    pinned_by_agent: bool = False
    is_new: bool = False
    fields: dict[str, KnownField] = field(default_factory=dict)
    links: set[tuple[uuid.UUID, str]] = field(default_factory=set)

    @property
    def live(self) -> bool:
        """Whether recall may return the topic."""
        return self.rung != Rung.ARCHIVED and not self.released and not self.merged

    def text(self) -> TopicText:
        """Return the text of the topic."""
        return TopicText(self.title, self.summary, [known.value for known in self.fields.values()])


@dataclass(slots=True)
class Known:
    """The existing topics by their ids, and the chosen ids that are already in use (``taken``)."""

    topics: dict[uuid.UUID, KnownTopic]
    taken: set[uuid.UUID] = field(default_factory=set)


_TOPICS_SQL = """
SELECT t.id, s.path, t.title, t.summary, t.categories, t.created_at, t.rung,
       t.released_at IS NOT NULL, t.merged_into_id IS NOT NULL, v.pinned, v.pinned_by_agent
FROM memory_topic t
JOIN memory_scope s ON s.id = t.scope_id
JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%s)
"""

_FIELDS_SQL = """
SELECT f.topic_id, f.id, f.name, f.last_seq, f.cold_through, r.value, r.field_type, r.ref_topic_id,
       r.recorded_at, r.valid_from
FROM memory_field f
JOIN memory_revision r ON r.field_id = f.id AND r.seq = f.last_seq
WHERE f.topic_id = ANY(%s)
ORDER BY f.topic_id, f.created_at, f.id
"""

_LINKS_SQL = "SELECT source_id, target_id, kind FROM memory_link WHERE source_id = ANY(%s)"


def known_load(
    *,
    changed: Iterable[uuid.UUID],
    read: Iterable[uuid.UUID],
    lock: bool,
    within: str = ROOT,
    chosen: Iterable[uuid.UUID] = (),
) -> Known:
    """Return the stored topics whose ids are in ``changed``, with their fields and links, and those whose ids are in
    ``read``, without fields and links. At most six queries. With ``lock``, the changed topics are locked in the order
    of their ids. Topics outside the scope ``within`` are not locked, and their fields are not read. ``chosen`` contains
    ids for new topics; those that are already in use are returned as ``taken``."""
    changed_ids = sorted(set(changed))
    read_ids = sorted({*changed_ids, *read})
    known = Known(topics={})
    if not read_ids:
        return known
    with connection.cursor() as cursor:
        if chosen := set(chosen):
            known.taken = _taken(cursor, chosen, within)
        if lock and changed_ids:
            bound = Bound()
            inside = scope_sql("scope_id", within, bound.bind)
            sql = f"SELECT id FROM memory_topic WHERE id = ANY({bound.bind(changed_ids)}) AND {inside} ORDER BY id"
            cursor.execute(f"{sql} FOR NO KEY UPDATE", bound.values)
        cursor.execute(_TOPICS_SQL, [read_ids])
        for topic_id, *columns in cursor.fetchall():
            known.topics[topic_id] = KnownTopic(topic_id, *columns)
        changed_ids = [
            each for each in changed_ids if each in known.topics and scope_within(known.topics[each].scope, within)
        ]
        if changed_ids:
            cursor.execute(_FIELDS_SQL, [changed_ids])
            for topic_id, field_id, name, *columns in cursor.fetchall():
                known.topics[topic_id].fields[name] = KnownField(field_id, name, *columns)
            cursor.execute(_LINKS_SQL, [changed_ids])
            for source, target, kind in cursor.fetchall():
                known.topics[source].links.add((target, kind))
    return known


def _taken(cursor: CursorWrapper, chosen: set[uuid.UUID], within: str) -> set[uuid.UUID]:
    """Return the ids in ``chosen`` that rows other than topics use, or that topics of other scopes had before a purge.
    A new topic must not take over the journal of a purged one."""
    taken = ids_of_others(cursor, chosen)
    if within != ROOT:
        bound = Bound()
        cursor.execute(
            f"SELECT DISTINCT topic_id FROM memory_auditevent WHERE topic_id = ANY({bound.bind(list(chosen))}) "
            f"AND NOT {path_sql('scope', within, bound.bind)}",
            bound.values,
        )
        taken |= {row[0] for row in cursor.fetchall()}
    return taken
