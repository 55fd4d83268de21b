"""Puts candidates that say what a better candidate says behind the others, so that an answer says each fact once."""

import json
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from memory.models.prepared import rows_prepared
from memory.recall.ranking import Ranked
from memory.text.folding import fold
from memory.text.likeness import FIRM, ComparedTexts, Difference, topics_compare
from memory.text.stems import stems

# From this cosine on, a text that replaces a word says the same: "lives in Porto", "resides in Porto". Below it, and
# from ``ranking.SAME_COSINE`` on, a text may only add words. docs/benchmarks.md has the measurement.
REPLACED_COSINE: Final = 0.98

_TEXTS_SQL = """
SELECT t.id, t.title, t.summary, (
    SELECT json_object_agg(f.name, r.value) FROM memory_field f
    JOIN memory_revision r ON r.field_id = f.id AND r.seq = f.last_seq WHERE f.topic_id = t.id
)::text
FROM memory_topic t WHERE t.id = ANY(%(ids)s::uuid[])
"""


def each_fact_once(ranked: Sequence[Ranked]) -> tuple[list[Ranked], dict[uuid.UUID, list[Ranked]]]:
    """Return (the candidates, with those that repeat a better one behind the others; the repeating candidates by the
    candidate whose fact they repeat). One query if any two candidates are similar, otherwise none."""
    similar = {topic_id for each in ranked for topic_id, _cosine in each.similar} | {
        each.topic_id for each in ranked if each.similar
    }
    if not similar:
        return list(ranked), {}
    texts = _texts(similar)
    first: list[Ranked] = []
    behind: list[Ranked] = []
    # For each candidate, the one whose fact it repeats: at first, itself.
    origin: dict[uuid.UUID, uuid.UUID] = {}
    repeating: dict[uuid.UUID, list[Ranked]] = defaultdict(list)
    for each in ranked:
        repeated = _repeated(each, origin, texts)
        origin[each.topic_id] = repeated or each.topic_id
        if repeated is None:
            first.append(each)
        else:
            behind.append(each)
            repeating[repeated].append(each)
    return first + behind, dict(repeating)


def _repeated(
    each: Ranked, origin: Mapping[uuid.UUID, uuid.UUID], texts: Mapping[uuid.UUID, ComparedTexts]
) -> uuid.UUID | None:
    """Return the candidate whose fact ``each`` repeats, directly or by another way of saying it."""
    below = texts.get(each.topic_id)
    for topic_id, cosine in each.similar:
        above, first = texts.get(topic_id), texts.get(origin[topic_id])
        # A purge at this moment may have removed a text.
        if below is not None and above is not None and first is not None and _same(above, below, cosine, first):
            return origin[topic_id]
    return None


def _texts(ids: set[uuid.UUID]) -> Mapping[uuid.UUID, ComparedTexts]:
    rows = rows_prepared(_TEXTS_SQL, {"ids": sorted(ids)})
    return {
        topic_id: ComparedTexts(title, summary, json.loads(fields or "{}")) for topic_id, title, summary, fields in rows
    }


def _same(above: ComparedTexts, below: ComparedTexts, cosine: float, first: ComparedTexts) -> bool:
    """Return whether ``below`` says nothing that ``above`` does not say, and does not differ firmly from ``first``, of
    which ``above`` is another way of saying it."""
    if not below.fields.keys() <= first.fields.keys():
        return False
    differences = topics_compare(above, below)
    if any(each.kind in FIRM for each in (*differences, *(topics_compare(first, below) if first != above else ()))):
        return False
    return cosine >= REPLACED_COSINE or not _replaced(differences)


def _replaced(differences: Sequence[Difference]) -> bool:
    """Return whether each text has a word without a counterpart in the other one, apart from inflection."""
    one = {stem for each in differences for stem in _stems(each.one)}
    other = {stem for each in differences for stem in _stems(each.other)}
    return bool(one - other) and bool(other - one)


def _stems(word: str) -> Sequence[str]:
    # A word such as "before" has no stem.
    return stems(word) or (fold(word),) if word else ()
