"""How lists name a topic: by its title, or else by the beginning of its text."""

import uuid
from collections.abc import Iterable

from memory.models.statements import rows_read

# About as much of a text as fits into a heading.
MAX_LABEL = 120


def label_sql(topic: str = "t", *, title: str | None = None, summary: str | None = None, until: str = "") -> str:
    """Return the expression for the label of ``topic``, a row of ``memory_topic``: its title, else the beginning of its
    summary, else the beginning of its first value; empty if there is none. The values of a merged topic are those of
    the topic into which it was merged.

    ``title`` and ``summary`` are expressions that replace the columns. ``until`` is an expression for the time at which
    the value was stored. The value is read by index, and only if title and summary are empty.
    """
    title, summary = title or f"{topic}.title", summary or f"{topic}.summary"
    revision = f"r.recorded_at <= {until}" if until else "r.seq = f.last_seq"
    first = f"""(
        SELECT r.value FROM memory_field f JOIN memory_revision r ON r.field_id = f.id AND {revision}
        WHERE f.topic_id = coalesce({topic}.merged_into_id, {topic}.id) AND r.value <> ''
        ORDER BY f.created_at, f.id, r.seq DESC LIMIT 1
    )"""
    text = rf"regexp_replace(coalesce(nullif({summary}, ''), {first}, ''), '\s+', ' ', 'g')"
    return f"""coalesce(nullif({title}, ''), (
        SELECT CASE WHEN length(x.text) > {MAX_LABEL} THEN rtrim(left(x.text, {MAX_LABEL - 1})) || '…' ELSE x.text END
        FROM (SELECT {text} AS text) x
    ))"""


def labels_read(ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Return the labels of the topics that exist. One query, none without topics."""
    wanted = list(ids)
    if not wanted:
        return {}
    return dict(rows_read(f"SELECT t.id, {label_sql()} FROM memory_topic t WHERE t.id = ANY(%s)", [wanted]))
