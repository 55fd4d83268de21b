"""Release and purge: first the list of what would go and why, then exactly that list.

A list is stored. Its token is its id, good for the caller who asked for it, for ``LISTED_FOR``, and once. What changed
in between is found when the topics are locked, and then nothing is done.
"""

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction

from memory.access.principal import Principal
from memory.command.answer import Matched
from memory.command.filters import ForgetFilter, conditions_sql, scope_of
from memory.command.match import matches_find
from memory.command.purge import topics_purge
from memory.command.receipts import purges_wait
from memory.command.rest import rest_items, rest_words, rests_keep
from memory.domain.cursors import cursor_make, cursor_parse, moment_read, place_read
from memory.domain.errors import Conflict, NotVisible, ValueRefused
from memory.domain.identifiers import uuid7
from memory.forgetting.ground import path_q
from memory.forgetting.judgement import Bound
from memory.forgetting.standing import MOST_AT_ONCE, topics_release
from memory.ingest.apply import ingest_prepare
from memory.models import ErasureReceipt, ForgetListing, ForgetRun, Rung
from memory.recall.fold import fold_wait

VERBS = ("release", "purge")
# Long enough to read a list, short enough that it is still what the store says.
LISTED_FOR = dt.timedelta(hours=1)
# So long after it expired a list still tells what was asked for.
KEPT_FOR = dt.timedelta(days=7)
# So many topics of a list come with the reply; the others are read page by page.
MATCHES_SHOWN = 200
MAX_QUERY = 2_000

_BY_FILTER = "SELECT t.id FROM memory_topic t WHERE {conditions} ORDER BY t.created_at, t.id LIMIT {most}"

_SHOWN = """
SELECT t.id, t.title, t.summary, s.path, t.kind, t.rung, t.released_at IS NOT NULL, v.pinned
FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id JOIN memory_vitality v ON v.topic_id = t.id
WHERE t.id = ANY(%s)
"""

_ROOTS = """
WITH RECURSIVE path AS (
    SELECT id AS leaf, id, merged_into_id FROM memory_topic WHERE id = ANY(%s) AND merged_into_id IS NOT NULL
    UNION ALL
    SELECT p.leaf, t.id, t.merged_into_id FROM path p JOIN memory_topic t ON t.id = p.merged_into_id
)
SELECT leaf, id FROM path WHERE merged_into_id IS NULL
"""

_STATES = """
SELECT t.id, t.updated_at, t.released_at IS NOT NULL, t.merged_into_id IS NOT NULL
FROM memory_topic t WHERE t.id = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class Match:
    """One topic of a list: why it is on it, how sure that is (0 to 1), and the words that matched."""

    topic_id: uuid.UUID
    title: str
    summary: str
    scope: str
    kind: str
    standing: str
    pinned: bool
    why: str
    confidence: float
    excerpt: str = ""
    keeps: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """A list as it is shown. ``token`` is None where there is nothing to execute; ``question`` then says why.

    ``state`` is ``open``, ``executed``, ``expired``, ``ambiguous`` or ``empty``.
    """

    id: uuid.UUID
    verb: str
    query: str
    filter: dict[str, Any]
    scope: str
    reason: str
    actor: str
    created_at: dt.datetime
    expires_at: dt.datetime
    count: int
    ambiguous: bool
    question: str
    state: str
    executed_at: dt.datetime | None = None
    run_id: uuid.UUID | None = None
    receipt_id: uuid.UUID | None = None
    matches: list[Match] = field(default_factory=list)

    @property
    def token(self) -> str | None:
        """What executes the list."""
        return str(self.id) if self.state == "open" else None


@dataclass(frozen=True, slots=True)
class Executed:
    """What a list did: the run to undo a release by, or the receipt of a purge."""

    listing: Listing
    count: int
    run: ForgetRun | None = None
    receipt: ErasureReceipt | None = None


def forget_list(
    verb: str, *, query: str | None = None, wanted: ForgetFilter | None = None, scope: str | None = None,
    reason: str = "", principal: Principal, now: dt.datetime,
) -> Listing:  # fmt: skip
    """Find what ``verb`` (``release`` or ``purge``) would forget, store the list, and change nothing else.

    Either ``query`` or ``wanted`` or both: then what the query finds is narrowed by the filter. A query that matches
    several things equally well gives a list that cannot be executed, with all of them. About ten statements, however
    many topics. Raises ``NotAllowed`` below operator, ``ValueRefused`` for a request that says nothing or too much.
    """
    principal.require("operator")
    if verb not in VERBS:
        raise ValueRefused(f"The verb is release or purge, not {verb[:50]!r}.")
    query = (query or "").strip()
    if not query and (wanted is None or not wanted.told()):
        raise ValueRefused("Say what to forget: by a query, or by a filter.")
    if len(query) > MAX_QUERY:
        raise ValueRefused(f"A query has at most {MAX_QUERY:,} characters; this one has {len(query):,}.")
    wanted = wanted or ForgetFilter()
    place = scope_of(wanted, scope, principal)
    found, ambiguous, question = _found(verb, query, wanted, place, now=now)
    if len(found) > MOST_AT_ONCE:
        raise ValueRefused(f"More than {MOST_AT_ONCE:,} topics match; that is the most at once. Narrow it.")
    row = ForgetListing(
        id=uuid7(now_ms=int(now.timestamp() * 1000)), verb=verb, scope=place, query=query, filter=wanted.told(),
        reason=reason, actor=principal.actor, identity=principal.identity, created_at=now,
        expires_at=now + LISTED_FOR, ambiguous=ambiguous, question=question, count=len(found),
    )  # fmt: skip
    states = _states([match.topic_id for match in found])
    rests = {match.topic_id: match.rest for match in found if match.rest}
    row.entries = [
        {
            "id": str(match.topic_id), "why": match.why, "confidence": round(match.confidence, 3),
            "excerpt": match.excerpt, "state": states.get(match.topic_id),
            "keeps": rests.get(match.topic_id),
        }
        for match in found
    ]  # fmt: skip
    row.save(force_insert=True)
    return _told(row, now=now, matches=_matches(row.entries[:MATCHES_SHOWN]))


def forget_execute(
    token: str, *, principal: Principal, now: dt.datetime, reason: str | None = None, verb: str | None = None
) -> Executed:
    """Do what a list says, to exactly its topics, in one transaction.

    A release is a run of event ``by_hand`` that undo takes back; a purge leaves a receipt and cannot be taken back.
    What a topic says beside the fact that goes stays, as a topic of its own. ``reason`` replaces the one the list was
    made with; ``verb`` has to be the list's, if it is given. Raises ``NotVisible`` for a token that is unknown or
    somebody else's, ``Conflict`` for a list that is ambiguous, empty, expired, used, or no longer true; then nothing is
    changed.
    """
    principal.require("operator")
    row = _list_of(token, principal)
    rests = {uuid.UUID(entry["id"]): entry["keeps"] for entry in row.entries if entry.get("keeps")}
    items = rest_items(rests, why=row.reason if reason is None else reason, verb=row.verb)
    # Embedded before anything is locked. If a topic has changed since, nothing of it is used.
    kept = ingest_prepare(items, principal=principal, now=now, defer=False) if items else None
    with transaction.atomic():
        row = _list_of(token, principal, lock=True)
        if verb is not None and verb != row.verb:
            raise Conflict(f"This list is for a {row.verb}, not for a {verb}.")
        _check(row, now)
        ids = [uuid.UUID(entry["id"]) for entry in row.entries]
        why = row.reason if reason is None else reason
        run = receipt = None
        if row.verb == ForgetListing.Verb.RELEASE:
            _drift_check(row, ids)
            run = topics_release(ids, principal=principal, reason=why, now=now)
            if kept:
                rests_keep(kept, list(rests), principal=principal, now=now)
        else:
            # In the order in which every purge waits.
            purges_wait()
            fold_wait()
            _drift_check(row, ids)
            if kept:
                # First, so that what is still said does not count as erased.
                rests_keep(kept, list(rests), principal=principal, now=now)
            said = [row.query, *(str(entry["excerpt"]) for entry in row.entries)]
            receipt = topics_purge(ids, principal=principal, reason=why, now=now, said=said)
            row.refresh_from_db()
        row.executed_at, row.run, row.receipt = now, run, receipt
        row.save(update_fields=["executed_at", "run", "receipt"])
    return Executed(_told(row, now=now, matches=_matches(row.entries[:MATCHES_SHOWN])), len(ids), run, receipt)


def listing_get(listing_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> Listing:
    """Return a list without its topics. One query. Raises ``NotVisible`` for one outside the caller's scope."""
    row = ForgetListing.objects.filter(pk=listing_id).first()
    if row is None or not principal.sees(row.scope):
        raise NotVisible(f"There is no list {listing_id}.")
    return _told(row, now=now)


def listing_matches(
    listing_id: uuid.UUID, *, principal: Principal, cursor: str | None, limit: int
) -> tuple[list[Match], str | None]:
    """Return a page of the topics of a list, and the cursor of the next. Two queries. What was purged since is told by
    its id alone. Raises ``NotVisible`` and ``ValueRefused``."""
    row = ForgetListing.objects.filter(pk=listing_id).first()
    if row is None or not principal.sees(row.scope):
        raise NotVisible(f"There is no list {listing_id}.")
    at = place_read(cursor) if cursor else 0
    page = row.entries[at : at + limit]
    return _matches(page), str(at + limit) if at + limit < len(row.entries) else None


def listings_list(
    *, principal: Principal, cursor: str | None, limit: int, now: dt.datetime
) -> tuple[list[Listing], str | None]:
    """Return lists, newest first, and the cursor of the next page. One query. Raises ``ValueRefused``."""
    rows = ForgetListing.objects.filter(path_q(principal.scope)).order_by("-created_at", "-id")
    if cursor:
        at, last = cursor_parse(cursor, moment_read, uuid.UUID)
        rows = rows.extra(where=["(created_at, id) < (%s, %s)"], params=[at, last])
    found = list(rows.defer("entries")[: limit + 1])
    following = cursor_make(found[limit - 1].created_at, found[limit - 1].id) if len(found) > limit else None
    return [_told(row, now=now) for row in found[:limit]], following


def listings_count(*, principal: Principal, at_most: int) -> int:
    """Return how many lists there are; counting stops one after ``at_most``. One query."""
    return ForgetListing.objects.filter(path_q(principal.scope))[: at_most + 1].count()


def listings_tidy(*, now: dt.datetime) -> int:
    """Empty what lists that expired ``KEPT_FOR`` ago say of what was asked for; return how many. One query.

    Who asked to forget something does not want it kept in a list of requests. That there was a list stays on record.
    """
    return (
        ForgetListing.objects.filter(expires_at__lt=now - KEPT_FOR)
        .exclude(query="", filter={}, entries=[], reason="", question="")
        .update(query="", filter={}, entries=[], reason="", question="")
    )


def _found(
    verb: str, query: str, wanted: ForgetFilter, scope: str, *, now: dt.datetime
) -> tuple[Sequence[Matched], bool, str]:
    bound = Bound()
    conditions = conditions_sql(wanted, scope, bound, now=now, gone=verb == "purge")
    if query:
        answer = matches_find(query, scope=scope, conditions=conditions, bound=bound, history=verb == "purge")
        matches = _survivors(answer.matches) if verb == "purge" else answer.matches
        return matches, answer.ambiguous, answer.question
    with connection.cursor() as cursor:
        cursor.execute(_BY_FILTER.format(conditions=conditions, most=MOST_AT_ONCE + 1), bound.values)
        ids = [row[0] for row in cursor.fetchall()]
    why = wanted.words()
    question = "" if ids else "Nothing in this scope is " + (why or "there") + "."
    return [Matched(topic_id, f"It is {why}.", 1.0) for topic_id in ids], False, question


def _survivors(matches: Sequence[Matched]) -> list[Matched]:
    """Put in place of topics that were merged those that took them in: a purge of these takes both. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_ROOTS, [[match.topic_id for match in matches]])
        roots: dict[uuid.UUID, uuid.UUID] = dict(cursor.fetchall())
    found: dict[uuid.UUID, Matched] = {}
    for match in matches:
        root = roots.get(match.topic_id, match.topic_id)
        if root != match.topic_id:
            why = f"It took in a topic by merging. {match.why}"
            found.setdefault(root, Matched(root, why, match.confidence, match.excerpt))
        else:
            found[root] = match
    return list(found.values())


def _states(ids: Sequence[uuid.UUID], *, lock: bool = False) -> dict[uuid.UUID, list[Any]]:
    with connection.cursor() as cursor:
        cursor.execute(_STATES + ("ORDER BY t.id FOR NO KEY UPDATE" if lock else ""), [list(ids)])
        return {row[0]: [row[1].isoformat(), row[2], row[3]] for row in cursor.fetchall()}


def _matches(entries: Sequence[dict[str, Any]]) -> list[Match]:
    with connection.cursor() as cursor:
        cursor.execute(_SHOWN, [[entry["id"] for entry in entries]])
        known = {row[0]: row for row in cursor.fetchall()}
    found = []
    for entry in entries:
        topic_id = uuid.UUID(entry["id"])
        _id, title, summary, path, kind, rung, released, pinned = known.get(topic_id) or (
            topic_id, "", "", "", "", 0, False, False,
        )  # fmt: skip
        standing = "purged" if topic_id not in known else "released" if released else Rung(rung).label
        found.append(
            Match(
                topic_id, title, summary, path, kind, standing, pinned, entry["why"], entry["confidence"],
                entry.get("excerpt", ""), rest_words(entry["keeps"]) if entry.get("keeps") else "",
            )
        )  # fmt: skip
    return found


def _list_of(token: str, principal: Principal, *, lock: bool = False) -> ForgetListing:
    rows = ForgetListing.objects.select_for_update(no_key=True) if lock else ForgetListing.objects.all()
    try:
        row = rows.filter(pk=uuid.UUID(token)).first()
    except ValueError:
        row = None
    if row is None or row.identity != principal.identity:
        raise NotVisible("There is no list with this token.")
    return row


def _state(row: ForgetListing, now: dt.datetime) -> str:
    if row.executed_at is not None:
        return "executed"
    if row.ambiguous:
        return "ambiguous"
    if not row.count:
        return "empty"
    return "expired" if row.expires_at <= now else "open"


def _check(row: ForgetListing, now: dt.datetime) -> None:
    state = _state(row, now)
    if state == "executed":
        raise Conflict("This list was executed before. Make a new one.")
    if state == "ambiguous":
        raise Conflict("This request matches several things equally well. Choose by ids.")
    if state == "empty":
        raise Conflict("This list is empty: nothing matched.")
    if state == "expired":
        raise Conflict(f"This list expired at {row.expires_at.isoformat()}. Make a new one.")


def _drift_check(row: ForgetListing, ids: Sequence[uuid.UUID]) -> None:
    states = _states(ids, lock=True)
    changed = [entry["id"] for entry in row.entries if states.get(uuid.UUID(entry["id"])) != entry["state"]]
    if changed:
        raise Conflict(
            f"{len(changed)} of {row.count} topics changed after they were listed, the first of them {changed[0]}. "
            "Nothing was done; make the list again."
        )


def _told(row: ForgetListing, *, now: dt.datetime, matches: list[Match] | None = None) -> Listing:
    return Listing(
        id=row.id, verb=row.verb, query=row.query, filter=row.filter, scope=row.scope, reason=row.reason,
        actor=row.actor, created_at=row.created_at, expires_at=row.expires_at, count=row.count,
        ambiguous=row.ambiguous, question=row.question, state=_state(row, now), executed_at=row.executed_at,
        run_id=row.run_id, receipt_id=row.receipt_id, matches=matches or [],
    )  # fmt: skip
