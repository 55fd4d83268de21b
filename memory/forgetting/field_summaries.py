"""Folding replaces the older revisions of a field by a summary. Every revision stays on disk.

Folded revisions are cold, the others warm. A new summary includes the earlier one, and its depth is one greater. A
field whose summary has depth 2 is not folded again. While a topic stays summarized or detached, a field is folded again
once it has twice as many warm revisions as a fold keeps.
"""

import datetime as dt
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from django.conf import settings
from django.db.backends.utils import CursorWrapper

from memory.core.summary import DatedValue
from memory.llm.chat_request import model_configured
from memory.llm.summaries import revisions_summarize
from memory.models import FieldSummary
from memory.models.statements import rows_read

MAX_DEPTH = 2
# The time for all questions to a model, in seconds. It is well below the time after which a job counts as dead.
MODEL_SECONDS = 120.0

_OLDER_SQL = """
SELECT f.topic_id, f.id, f.last_seq, f.cold_through, r.seq, r.value, r.valid_from, s.text, s.from_seq, s.depth
FROM memory_field f
JOIN unnest(%(ids)s::uuid[], %(keeps)s::int[], %(least)s::int[]) AS d (id, keep, least) ON f.topic_id = d.id
LEFT JOIN LATERAL (
    SELECT text, from_seq, depth FROM memory_fieldsummary
    WHERE field_id = f.id AND withdrawn_at IS NULL ORDER BY through_seq DESC LIMIT 1
) s ON true
JOIN memory_revision r ON r.field_id = f.id AND r.seq > f.cold_through AND r.seq <= f.last_seq - d.keep
WHERE f.last_seq - f.cold_through >= d.least AND coalesce(s.depth, 0) < %(most)s
ORDER BY f.topic_id, f.id, r.seq
"""

_COLD_SQL = """
UPDATE memory_field f SET cold_through = d.through
FROM unnest(%(ids)s::uuid[], %(through)s::int[]) AS d (id, through) WHERE f.id = d.id
"""


class _Older(NamedTuple):
    """A row of ``_OLDER_SQL``: a revision to fold, with its field and the summary before it, if there is one."""

    topic_id: uuid.UUID
    field_id: uuid.UUID
    last_seq: int
    cold_through: int
    seq: int
    value: str
    valid_from: dt.datetime
    earlier: str | None
    from_seq: int | None
    depth: int | None


def fold_least(keep: int) -> int:
    """Return the number of warm revisions at which a field of a summarized topic is folded again."""
    return 2 * keep


@dataclass(frozen=True, slots=True)
class Keep:
    """How many revisions a fold leaves warm, and the least number of warm revisions at which a field is folded."""

    warm: int
    least: int

    @classmethod
    def of_action(cls, changes: Mapping[str, Any], *, falls: bool) -> "Keep":
        """Return the numbers for an action of a run. ``falls`` says whether the topic moves to a lower rung."""
        warm = int(changes["fold"] if "fold" in changes else changes["keep"])
        return cls(warm, warm + 1 if falls else fold_least(warm))


@dataclass(frozen=True, slots=True)
class Fold:
    """The summary of one field's older revisions. ``last_seq`` and ``cold_through`` are the values of the field when
    the fold was prepared."""

    topic_id: uuid.UUID
    last_seq: int
    cold_through: int
    from_seq: int
    through_seq: int
    depth: int
    text: str
    method: str


@dataclass(frozen=True, slots=True)
class PreparedFolds:
    """``folds`` maps the id of a field to its fold. ``left`` are the topics for which no time was left."""

    folds: dict[uuid.UUID, Fold]
    left: frozenset[uuid.UUID] = frozenset()


def folds_prepare(
    keep: dict[uuid.UUID, Keep], cursor: CursorWrapper | None = None, *, until: float | None = None
) -> PreparedFolds:
    """Return a fold for each field that has as many warm revisions as ``keep`` requires for its topic. One query.

    A language model is used until ``until`` (monotonic clock), by default for ``MODEL_SECONDS``. The topics that remain
    then are returned in ``left``. With a ``cursor``, no model is used, because its transaction has locked rows, and
    ``left`` is empty.
    """
    if not keep:
        return PreparedFolds({})
    until = time.monotonic() + MODEL_SECONDS if until is None else until
    parameters: dict[str, Any] = {
        "ids": list(keep),
        "keeps": [each.warm for each in keep.values()],
        "least": [each.least for each in keep.values()],
        "most": MAX_DEPTH,
    }
    if cursor is not None:
        cursor.execute(_OLDER_SQL, parameters)
        rows = cursor.fetchall()
    else:
        rows = rows_read(_OLDER_SQL, parameters)
    asking = cursor is None and model_configured()
    older = map(_Older._make, rows)
    by_topic = {topic_id: list(of_topic) for topic_id, of_topic in groupby(older, key=lambda row: row.topic_id)}
    folds: dict[uuid.UUID, Fold] = {}
    # Topics are prepared in the order of the actions, so that the first actions are ready when the time is up.
    for number, topic_id in enumerate(topic_id for topic_id in keep if topic_id in by_topic):
        # The first topic is always folded. Otherwise a short time limit would prevent all progress.
        if asking and number and time.monotonic() >= until:
            waiting = list(keep)
            return PreparedFolds(folds, frozenset(waiting[waiting.index(topic_id) :]))
        for field_id, of_field in groupby(by_topic[topic_id], key=lambda row: row.field_id):
            folds[field_id] = _fold(list(of_field), until=until if asking else None)
    return PreparedFolds(folds)


def question_seconds(left: float) -> float:
    """Return the time limit in seconds for one question to a model if ``left`` seconds remain for all questions. At
    least ``MEMSTATE_LLM_TIMEOUT_SECONDS`` are allowed, because an incomplete answer is useless."""
    return min(MODEL_SECONDS, max(left, settings.MEMSTATE_LLM_TIMEOUT_SECONDS))


def _fold(older: list[_Older], *, until: float | None) -> Fold:
    """Return the fold of one field's older revisions. A model is used if ``until`` is given and not yet past."""
    first = older[0]
    left = 0.0 if until is None else until - time.monotonic()
    summary = revisions_summarize(
        [DatedValue(at=row.valid_from, text=row.value) for row in older],
        earlier=first.earlier,
        ask_model=left > 0,
        within=question_seconds(left),
    )
    return Fold(
        topic_id=first.topic_id,
        last_seq=first.last_seq,
        cold_through=first.cold_through,
        from_seq=first.seq if first.from_seq is None else first.from_seq,
        through_seq=older[-1].seq,
        depth=(first.depth or 0) + 1,
        text=summary.text,
        method=summary.method,
    )


def folds_write(
    cursor: CursorWrapper, keep: dict[uuid.UUID, Keep], prepared: dict[uuid.UUID, Fold], *, now: dt.datetime
) -> dict[uuid.UUID, list[int]]:
    """Write the folds of the locked topics in ``keep``. Return the ids of the summaries, keyed by topic id. Three SQL
    statements. If a field was written to after its fold was prepared, one more statement prepares the fold again."""
    if not keep:
        return {}
    cursor.execute(
        "SELECT id, topic_id, last_seq, cold_through FROM memory_field WHERE topic_id = ANY(%s)", [list(keep)]
    )
    # Topics with a field whose fold is missing or outdated.
    stale = {
        topic_id
        for field_id, topic_id, last_seq, cold_through in cursor.fetchall()
        if last_seq - cold_through >= keep[topic_id].least
        and ((fold := prepared.get(field_id)) is None or (fold.last_seq, fold.cold_through) != (last_seq, cold_through))
    }
    folds = {
        field_id: fold for field_id, fold in prepared.items() if fold.topic_id in keep and fold.topic_id not in stale
    }
    unprepared = {topic_id: keep[topic_id] for topic_id in keep if topic_id in stale}
    folds |= folds_prepare(unprepared, cursor).folds
    if not folds:
        return {}
    summaries = FieldSummary.objects.bulk_create(
        FieldSummary(
            field_id=field_id,
            from_seq=fold.from_seq,
            through_seq=fold.through_seq,
            text=fold.text,
            method=fold.method,
            depth=fold.depth,
            created_at=now,
        )
        for field_id, fold in folds.items()
    )
    cursor.execute(_COLD_SQL, {"ids": list(folds), "through": [fold.through_seq for fold in folds.values()]})
    written: dict[uuid.UUID, list[int]] = {}
    for summary, fold in zip(summaries, folds.values(), strict=True):
        written.setdefault(fold.topic_id, []).append(summary.pk)
    return written
