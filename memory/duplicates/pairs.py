"""Pairs that may be one topic twice: the review list, one pair with both sides, and how many there are. Reads only."""

import uuid
from dataclasses import dataclass
from typing import Any

from memory.access.principal import Principal


@dataclass(frozen=True, slots=True)
class PairFilter:
    """Which pairs are shown; None stands for all. ``scope`` is canonical and takes in what is below it; ``held`` is
    whether something that matters differs. ``state`` and ``verdict`` are values of ``DuplicatePair``."""

    scope: str = "/"
    state: str | None = "open"
    verdict: str | None = None
    held: bool | None = None


def pairs_list(
    wanted: PairFilter, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Return pairs, found last first, and the cursor of the next page. One query.

    A row is ``{id, scope, kind, verdict, state, similarity, same_title, held, held_because: [sentence],
    newer: {topic_id, title, summary, updated_at}, older: {...}, survivor, found_at, decided_at, decided_by, reason,
    run_id}``; ``newer`` is the one that a merge would keep (of a decided pair: that was kept, ``survivor``).

    Raises ``NotVisible`` for a scope outside the caller's, ``ValueRefused`` for a foreign cursor or an unknown value.
    """
    raise NotImplementedError


def pairs_count(wanted: PairFilter, *, principal: Principal, at_most: int) -> int:
    """Return how many pairs there are, ``at_most`` + 1 if there are more than that. One query. Raises as above."""
    raise NotImplementedError


def pair_next(wanted: PairFilter, after: uuid.UUID | None, *, principal: Principal) -> tuple[uuid.UUID | None, int]:
    """Return the pair to look at after ``after`` in the order of the list (from the top once the end is reached, never
    ``after`` itself), and how many the filter leaves. Two queries."""
    raise NotImplementedError


def pair_detail(pair_id: uuid.UUID, *, principal: Principal) -> dict[str, Any]:
    """Return one pair with both sides and their differences marked. Seven queries at most.

    A row of ``pairs_list`` and: ``title``, ``summary``: ``{older: [Piece], newer: [Piece]}`` (each side's own text in
    pieces of ``memory.domain.differences``: same, and removed on the older or added on the newer side);
    ``fields: [{name, older: {value, field_type, revisions, valid_from} | None, newer: ... | None,
    pieces: {older: [Piece], newer: [Piece]}, change: same|differs|only_older|only_newer}]`` by name;
    ``differences: [{sort, older, newer, sentence}]`` what matters and differs;
    ``merge``: what a merge would do, or did: ``{fields_moved: [name], histories_merged: [{name, revisions}],
    links_moved: n, categories: [added], pinned: bool, salience: float, sentences: [text]}``;
    ``sides``: ``{older|newer: {..., salience, pinned, provenance, created_at, updated_at, rung, categories, links}}``;
    ``may``: the verbs that are possible now among ``merge``, ``keep``, ``supersede``, ``undo``, and
    ``gone``: why none is, or "".

    Raises ``NotVisible`` for a pair outside the caller's scope.
    """
    raise NotImplementedError


def also_from(topic_id: uuid.UUID) -> list[dict[str, Any]]:
    """Return what was merged into a topic, directly or through another, the latest first: ``{topic_id, title,
    provenance, created_at, merged_into}``. One query."""
    raise NotImplementedError


def settings_told(scope: str) -> dict[str, Any]:
    """Return what is in force at a scope, for an empty page: ``{mode, threshold, supersedes_threshold, warning}``."""
    raise NotImplementedError


def waiting_count(scope: str, *, at_most: int) -> int:
    """Return how many topics at or below a scope wait to be compared. One query."""
    raise NotImplementedError
