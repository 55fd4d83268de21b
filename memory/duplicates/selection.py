"""Splits selected pairs into those that ``pairs_merge`` would merge and those it would skip."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory.access.principal import Principal
from memory.models import DuplicatePair


@dataclass(frozen=True, slots=True)
class PairSelection:
    """Rows ``{id, scope, newer: {topic_id, title, updated_at}, older: {...}, similarity}``; ``{id}`` for a pair that
    does not exist."""

    taken: list[dict[str, Any]]
    skipped: list[tuple[dict[str, Any], str]]

    @property
    def skipped_by_reason(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """The skipped pairs by reason."""
        groups: dict[str, list[dict[str, Any]]] = {}
        for row, why in self.skipped:
            groups.setdefault(why, []).append(row)
        return list(groups.items())


def pairs_select(ids: Sequence[uuid.UUID], *, principal: Principal) -> PairSelection:
    """Return the pairs that ``pairs_merge`` would merge, and the others with the reasons. One query."""
    found = {pair.pk: pair for pair in DuplicatePair.objects.filter(pk__in=ids).select_related("scope", "one", "other")}
    done = PairSelection([], [])
    for pair_id in ids:
        pair = found.get(pair_id)
        if pair is None or not principal.sees(pair.scope.path):
            done.skipped.append(({"id": pair_id}, "This pair does not exist."))
            continue
        older, newer = sorted((pair.one, pair.other), key=lambda topic: (topic.updated_at, topic.pk))
        row = {
            "id": pair_id,
            "scope": pair.scope.path,
            "similarity": pair.similarity,
            **{
                side: {"topic_id": topic.pk, "title": topic.title, "updated_at": topic.updated_at}
                for side, topic in (("older", older), ("newer", newer))
            },
        }
        if why := _why_skipped(pair):
            done.skipped.append((row, why))
        else:
            done.taken.append(row)
    return done


def _why_skipped(pair: DuplicatePair) -> str:
    if pair.state != DuplicatePair.State.OPEN:
        return "This pair is already decided."
    if pair.held:
        return "A difference that matters was found; review this pair."
    return ""
