"""Splits selected pairs into those that ``pairs_merge`` would merge and those it would skip."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memory.access.principal import Principal
from memory.duplicates.pairs import pairs_read
from memory.models import DuplicatePair


class PairSelection(NamedTuple):
    """The pairs to merge, and the skipped pairs by reason. A pair that does not exist has only an ``id``."""

    taken: list[Mapping[str, Any]]
    skipped: dict[str, list[Mapping[str, Any]]]

    @property
    def skipped_count(self) -> int:
        """The number of skipped pairs."""
        return sum(map(len, self.skipped.values()))


def pairs_select(ids: Sequence[uuid.UUID], *, principal: Principal) -> PairSelection:
    """Divide pairs into those that ``pairs_merge`` would merge and those that it would skip. One query."""
    found: dict[uuid.UUID, Mapping[str, Any]] = {pair["id"]: pair for pair in pairs_read(ids, principal=principal)}
    selection = PairSelection([], {})
    for pair_id in ids:
        pair = found.get(pair_id, {"id": pair_id})
        if pair_id not in found:
            why = "This pair does not exist."
        elif pair["state"] != DuplicatePair.State.OPEN:
            why = "This pair is already decided."
        elif pair["held"]:
            why = "A difference that matters was found; review this pair."
        else:
            selection.taken.append(pair)
            continue
        selection.skipped.setdefault(why, []).append(pair)
    return selection
