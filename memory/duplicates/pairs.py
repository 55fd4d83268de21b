"""Pairs of possible duplicates: the review list, one pair in detail, and counts. Read-only."""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from django.db import connection
from django.db.models import Q, QuerySet

from memory.access.principal import Principal
from memory.core.differences import Piece, words_differ
from memory.core.errors import Conflict, NotVisible, ValueRefused
from memory.core.policy_values import knobs_warnings
from memory.core.scopes import ROOT
from memory.duplicates.merge_plan import (
    FieldRow,
    MergePlan,
    Side,
    compared_texts,
    fields_read,
    merge_plan,
    sides_read,
    survivor_first,
)
from memory.duplicates.replies import PairCompared, PairDifference, PairOut, PairTopic, PairVerb
from memory.duplicates.verdict import differences_words
from memory.models import DuplicatePair, Rung, Topic
from memory.models.labels import labels_read
from memory.models.newest_first import newest_page
from memory.policy.effective import knobs_effective
from memory.text.likeness import Difference, topics_compare

T = TypeVar("T", Side, Topic)
State = DuplicatePair.State

_WAITING_SQL = """
SELECT count(*) FROM (
    SELECT 1 FROM memory_duplicatelook l JOIN memory_scope s ON s.id = l.scope_id
    WHERE l.waiting AND (%(scope)s = '/' OR s.path = %(scope)s OR starts_with(s.path, %(below)s)) LIMIT %(most)s
) x
"""


@dataclass(frozen=True, slots=True)
class PairFilter:
    """Conditions for the listed pairs; None means no condition. ``scope`` is canonical and includes scopes below."""

    scope: str = "/"
    state: str | None = "open"
    verdict: str | None = None
    held: bool | None = None


class PairSelection(NamedTuple):
    """The pairs to merge, and the skipped pairs by reason. A pair that does not exist has only an ``id``."""

    taken: list[PairOut]
    skipped: dict[str, list[Mapping[str, Any]]]

    @property
    def skipped_count(self) -> int:
        """The number of skipped pairs."""
        return sum(map(len, self.skipped.values()))


def pairs_list(
    wanted: PairFilter, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[PairOut], str | None]:
    """Return a page of pairs, newest first, and the cursor of the next page. One query. ``newer`` is the topic that a
    merge keeps.

    Raises ``NotVisible`` for a scope outside the caller's scope, and ``ValueRefused`` for an invalid cursor or an
    unknown value.
    """
    pairs = _pairs(wanted, principal).select_related("scope", "one", "other")
    found, following = newest_page(pairs, by="found_at", cursor=cursor, limit=limit)
    return _rows(found), following


def pairs_count(wanted: PairFilter, *, principal: Principal, at_most: int) -> int:
    """Return the number of matching pairs, at most ``at_most`` + 1. One query. Raises the errors of ``pairs_list``."""
    return _pairs(wanted, principal)[: at_most + 1].count()


def pair_next(wanted: PairFilter, after: uuid.UUID | None, *, principal: Principal) -> tuple[uuid.UUID | None, int]:
    """Return (id, count). The id is that of the pair that follows ``after`` in the list. If no pair follows, or
    ``after`` is None, it is the id of the first other pair, or None if there is none. The count is the number of pairs
    other than ``after``, at most 1,000.

    At most four queries. Raises the errors of ``pairs_list``.
    """
    others = _pairs(wanted, principal).order_by("-found_at", "-id")
    others = others.exclude(pk=after) if after else others
    ids = others.values_list("id", flat=True)
    place = DuplicatePair.objects.filter(pk=after).values_list("found_at", "id").first() if after else None
    following = None
    if place is not None:
        following = ids.filter(Q(found_at__lt=place[0]) | Q(found_at=place[0], id__lt=place[1])).first()
    return following or ids.first(), others[:1000].count()


def pairs_select(ids: Sequence[uuid.UUID], *, principal: Principal) -> PairSelection:
    """Divide pairs into those that ``pairs_merge`` would merge and those that it would skip. Two queries."""
    pairs = DuplicatePair.objects.filter(pk__in=ids).select_related("scope", "one", "other")
    found = {row["id"]: row for row in _rows([pair for pair in pairs if principal.sees(pair.scope.path)])}
    selection = PairSelection([], {})
    for pair_id in ids:
        pair = found.get(pair_id)
        if pair is not None and pair["state"] == State.OPEN and not pair["held"]:
            selection.taken.append(pair)
            continue
        why = "A difference that matters was found; review this pair."
        if pair is None:
            why = "This pair does not exist."
        elif pair["state"] != State.OPEN:
            why = "This pair is already decided."
        selection.skipped.setdefault(why, []).append(pair or {"id": pair_id})
    return selection


def pair_get(pair_id: uuid.UUID, *, principal: Principal, lock: bool = False) -> DuplicatePair:
    """Return one pair with its topics, and ``lock`` the pair until the transaction ends. One query. Raises
    ``NotVisible`` outside the caller's scope."""
    pairs = DuplicatePair.objects.filter(pk=pair_id).select_related("scope", "one", "other")
    pair = (pairs.select_for_update(no_key=True, of=("self",)) if lock else pairs).first()
    if pair is None or not principal.sees(pair.scope.path):
        raise NotVisible(f"Pair {pair_id} does not exist.")
    return pair


def pair_summary(pair_id: uuid.UUID, *, principal: Principal) -> PairOut:
    """Return one pair in the form of ``pairs_list``. Two queries. Raises ``NotVisible``."""
    (row,) = _rows([pair_get(pair_id, principal=principal)])
    return row


def pair_detail(pair_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> PairCompared:
    """Return one pair with both sides, their differences and a preview of the merge. At most eight queries.

    Raises ``NotVisible`` for a pair outside the caller's scope.
    """
    pair = pair_get(pair_id, principal=principal)
    sides = sides_read([pair.one_id, pair.other_id], now=now)
    newer, older = _survivor_first(pair, list(sides.values()))
    labels = labels_read([older.id, newer.id])
    fields = fields_read([older.id, newer.id])
    before, after = fields[older.id], fields[newer.id]
    found = topics_compare(compared_texts(older, before), compared_texts(newer, after))
    inactive = ""
    for name, side in (("newer", newer), ("older", older)):
        inactive = f"The {name} memory {side.inactive_because}." if side.inactive_because else inactive
    open_now = pair.state in (State.OPEN, State.KEPT)
    refusal = ""
    merge: dict[str, Any] = {}
    if open_now and not inactive:
        try:
            merge = _merge_as_json(merge_plan(newer, older), labels)
        except Conflict as problem:
            refusal = problem.sentence
    return {
        **_row(pair, labels),
        "title": _pieces(older.title, newer.title),
        "summary": _pieces(older.summary, newer.summary),
        "fields": _fields_as_json(before, after),
        "differences": [_difference(each) for each in found],
        "merge": merge,
        "sides": {"older": _side_as_json(older), "newer": _side_as_json(newer)},
        "may": _possible_actions(pair, possible=open_now and not inactive, mergeable=bool(merge)),
        "gone": (inactive or refusal) if open_now else "",
    }


def _survivor_first(pair: DuplicatePair, sides: Sequence[T]) -> tuple[T, T]:
    """Return (the topic that a merge has kept or would keep, the other topic)."""
    newer, older = survivor_first(sides)
    return (older, newer) if pair.survivor_id == older.id and pair.state != State.OPEN else (newer, older)


def duplicate_settings(scope: str) -> dict[str, Any]:
    """Return the settings for duplicates in force at a scope: ``{mode, threshold, supersedes_threshold, warning}``. One
    query."""
    knobs = knobs_effective(scope)
    return {
        "mode": knobs.duplicates_mode,
        "threshold": knobs.duplicate_threshold,
        "supersedes_threshold": knobs.supersedes_threshold,
        "warning": " ".join(knobs_warnings(knobs)),
    }


def waiting_count(scope: str, *, at_most: int) -> int:
    """Return how many topics at or below a scope wait to be compared, at most ``at_most``. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING_SQL, {"scope": scope, "below": scope.rstrip("/") + "/", "most": at_most})
        return int(cursor.fetchone()[0])


def _pairs(wanted: PairFilter, principal: Principal) -> QuerySet[DuplicatePair]:
    scope = principal.scope_chosen(wanted.scope if wanted.scope != ROOT or principal.scope == ROOT else None)
    pairs = DuplicatePair.objects.all()
    if scope != ROOT:
        pairs = pairs.filter(Q(scope__path=scope) | Q(scope__path__startswith=f"{scope}/"))
    for name, value, values in (
        ("state", wanted.state, State.values),
        ("verdict", wanted.verdict, DuplicatePair.Verdict.values),
    ):
        if value is None:
            continue
        if value not in values:
            raise ValueRefused(
                f"{name.capitalize()} {value[:30]!r} does not exist. Use one of {', '.join(values)}.", member=name
            )
        pairs = pairs.filter(**{name: value})
    return pairs if wanted.held is None else pairs.filter(held=wanted.held)


def _rows(pairs: Sequence[DuplicatePair]) -> list[PairOut]:
    labels = labels_read({each for pair in pairs for each in (pair.one_id, pair.other_id)})
    return [_row(pair, labels) for pair in pairs]


def _row(pair: DuplicatePair, labels: dict[uuid.UUID, str]) -> PairOut:
    newer, older = _survivor_first(pair, (pair.one, pair.other))
    return {
        "id": pair.pk,
        "scope": pair.scope.path,
        "kind": pair.kind,
        "verdict": pair.verdict,
        "state": pair.state,
        "similarity": pair.similarity,
        "same_title": pair.same_title,
        "held": pair.held,
        "held_because": differences_words(pair.differences),
        "newer": _topic_as_json(newer, labels),
        "older": _topic_as_json(older, labels),
        "survivor": pair.survivor_id,
        "found_at": pair.found_at,
        "decided_at": pair.decided_at,
        "decided_by": pair.decided_by,
        "reason": pair.reason,
        "run_id": pair.run_id,
    }


def _difference(found: Difference) -> PairDifference:
    (sentence,) = differences_words([{"sort": found.kind, "one": found.one, "other": found.other}])
    return {"sort": found.kind, "older": found.one, "newer": found.other, "where": found.where, "sentence": sentence}


def _topic_as_json(topic: Topic, labels: dict[uuid.UUID, str]) -> PairTopic:
    return {"topic_id": topic.pk, "title": labels[topic.pk], "summary": topic.summary, "updated_at": topic.updated_at}


def _side_as_json(side: Side) -> dict[str, Any]:
    return {
        "topic_id": side.id,
        "title": side.title,
        "summary": side.summary,
        "kind": side.kind,
        "salience": side.salience,
        "pinned": side.pinned,
        "provenance": side.provenance,
        "created_at": side.created_at,
        "updated_at": side.updated_at,
        "rung": Rung(side.rung).label,
        "categories": side.categories,
        "links": side.links,
        "gone": side.inactive_because,
    }


def _pieces(older: str, newer: str) -> dict[str, list[Piece]]:
    found = words_differ(older, newer)
    return {
        "older": [piece for piece in found if piece.kind != "added"],
        "newer": [piece for piece in found if piece.kind != "removed"],
    }


def _fields_as_json(before: Sequence[FieldRow], after: Sequence[FieldRow]) -> list[dict[str, Any]]:
    old, new = ({each.name: each for each in side} for side in (before, after))
    rows = []
    for name in sorted(old.keys() | new.keys()):
        one, other = old.get(name), new.get(name)
        change = "only_newer" if one is None else "only_older" if other is None else "differs"
        if one is not None and other is not None and one.value == other.value:
            change = "same"
        rows.append(
            {
                "name": name,
                "older": _field_as_json(one),
                "newer": _field_as_json(other),
                "change": change,
                "pieces": _pieces(one.value if one else "", other.value if other else ""),
            }
        )
    return rows


def _field_as_json(row: FieldRow | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {"value": row.value, "field_type": row.field_type, "revisions": row.last_seq, "valid_from": row.valid_from}


def _merge_as_json(plan: MergePlan, labels: dict[uuid.UUID, str]) -> dict[str, Any]:
    added = sorted(set(plan.categories) - set(plan.survivor.categories))
    preview: dict[str, Any] = {
        "fields_moved": [each.name for each in plan.moved],
        "histories_merged": [{"name": each.of_survivor.name, "revisions": len(each.order)} for each in plan.joined],
        "links_moved": len(plan.links),
        "categories": added,
        "pinned": plan.survivor.pinned or plan.loser.pinned,
        "salience": max(plan.survivor.salience, plan.loser.salience),
    }
    kept = labels[plan.survivor.id]
    sentences = [f"“{kept}” stays, because it was changed last. The other memory is no longer listed."]
    if plan.moved:
        sentences.append(f"It gains {_many(len(plan.moved), 'field')}: {_names(preview['fields_moved'])}.")
    for each in plan.joined:
        newest = "" if each.value == each.of_survivor.value else " The newest value comes from the other memory."
        sentences.append(
            f"The joined history of {each.of_survivor.name} has {_many(len(each.order), 'revision')}.{newest}"
        )
    if plan.links:
        sentences.append(f"It takes over {_many(len(plan.links), 'link')} of the other memory.")
    if added:
        sentences.append(f"It gains the categories {_names(added)}.")
    if plan.loser.pinned and not plan.survivor.pinned:
        sentences.append("It becomes pinned, because the other memory is.")
    if plan.loser.salience > plan.survivor.salience:
        sentences.append(f"It takes the higher salience, {plan.loser.salience:.2f}.")
    return {**preview, "sentences": sentences}


def _possible_actions(pair: DuplicatePair, *, possible: bool, mergeable: bool) -> list[PairVerb]:
    if pair.state in (State.MERGED, State.SUPERSEDED):
        return ["undo"]
    verbs: list[PairVerb] = ["keep", "supersede"] if possible else []
    if possible and mergeable:
        verbs.insert(0, "merge")
    if pair.state == State.KEPT:
        return ["undo", *(verb for verb in verbs if verb != "keep")]
    return verbs


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
