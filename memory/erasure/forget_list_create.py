"""Release and purge: first the list of what would go and why, then exactly that list.

A list is stored. Its token is its id, good for the caller who asked for it, for ``LISTED_FOR``, and once. What changed
in between is found when the topics are locked, and then nothing is done.
"""

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from memory.access.principal import Principal
from memory.core.errors import Conflict, NotVisible, ValueRefused
from memory.core.ids import uuid7
from memory.core.problem_codes import ProblemCode
from memory.erasure.filters import ForgetFilter, conditions_sql, scope_of
from memory.erasure.forget_lists import Listing, listing_state, listing_told, matches_told
from memory.erasure.matches import Matched, matches_of
from memory.erasure.purge import topics_purge
from memory.erasure.receipts import purges_wait
from memory.erasure.remainder import rest_items, rests_keep
from memory.finding.facts import ids_read
from memory.finding.find import facts_meant
from memory.forgetting.manual_actions import MOST_AT_ONCE, topics_release
from memory.ingest.apply import ingest_prepare
from memory.models import ErasureReceipt, ForgetListing, ForgetRun
from memory.predicates.binding import Bound
from memory.recall.access_fold import fold_wait

VERBS = ("release", "purge")
# Long enough to read a list, short enough that it is still what the store says.
LISTED_FOR = dt.timedelta(hours=1)
# So many topics of a list come with the reply; the others are read page by page.
MATCHES_SHOWN = 200
MAX_QUERY = 2_000

_BY_FILTER = "SELECT t.id FROM memory_topic t WHERE {conditions} ORDER BY t.created_at, t.id LIMIT {most}"

_ROOTS = """
WITH RECURSIVE path AS (
    SELECT id AS leaf, id, merged_into_id FROM memory_topic WHERE id = ANY(%s) AND merged_into_id IS NOT NULL
    UNION
    SELECT p.leaf, t.id, t.merged_into_id FROM path p JOIN memory_topic t ON t.id = p.merged_into_id
)
SELECT leaf, id FROM path WHERE merged_into_id IS NULL
"""

_STATES = """
SELECT t.id, t.updated_at, t.released_at IS NOT NULL, t.merged_into_id IS NOT NULL
FROM memory_topic t WHERE t.id = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class Executed:
    """What a list did: the run to undo a release by, or the receipt of a purge."""

    listing: Listing
    count: int
    run: ForgetRun | None = None
    receipt: ErasureReceipt | None = None


def forget_list(
    verb: str,
    *,
    query: str | None = None,
    wanted: ForgetFilter | None = None,
    scope: str | None = None,
    reason: str = "",
    principal: Principal,
    now: dt.datetime,
) -> Listing:
    """Find what ``verb`` (``release`` or ``purge``) would forget, store the list, and change nothing else.

    Either ``query`` or ``wanted`` or both: then what the query finds is narrowed by the filter. A query that matches
    several things equally well gives a list that cannot be executed, with all of them. About ten statements, however
    many topics. Raises ``NotAllowed`` below operator, ``ValueRefused`` for a request that says nothing or too much.
    """
    principal.require("operator")
    if verb not in VERBS:
        raise ValueRefused(f"The verb is release or purge, not {verb[:50]!r}.", code=ProblemCode.UNKNOWN_CHOICE)
    query = (query or "").strip()
    if not query and (wanted is None or not wanted.told()):
        raise ValueRefused("Say what to forget: by a query, or by a filter.", code=ProblemCode.NOTHING_NAMED)
    if len(query) > MAX_QUERY:
        raise ValueRefused(
            f"A query has at most {MAX_QUERY:,} characters; this one has {len(query):,}.",
            code=ProblemCode.TEXT_TOO_LONG,
        )
    wanted = wanted or ForgetFilter()
    place = scope_of(wanted, scope, principal)
    found, ambiguous, question = _found(verb, query, wanted, place, now=now)
    if len(found) > MOST_AT_ONCE:
        raise ValueRefused(
            f"More than {MOST_AT_ONCE:,} topics match; that is the most at once. Narrow it.",
            code=ProblemCode.TOO_MANY_TOPICS,
        )
    row = ForgetListing(
        id=uuid7(now_ms=int(now.timestamp() * 1000)),
        verb=verb,
        scope=place,
        query=query,
        filter=wanted.told(),
        reason=reason,
        actor=principal.actor,
        identity=principal.identity,
        created_at=now,
        expires_at=now + LISTED_FOR,
        ambiguous=ambiguous,
        question=question,
        count=len(found),
    )
    states = _states([match.topic_id for match in found])
    rests = {match.topic_id: match.rest for match in found if match.rest}
    row.entries = [
        {
            "id": str(match.topic_id),
            "why": match.why,
            "confidence": round(match.confidence, 3),
            "excerpt": match.excerpt,
            "by": match.by,
            "state": states.get(match.topic_id),
            "keeps": rests.get(match.topic_id),
        }
        for match in found
    ]
    row.save(force_insert=True)
    return listing_told(row, now=now, matches=matches_told(row.entries[:MATCHES_SHOWN]))


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
    why = row.reason if reason is None else reason
    rests = {uuid.UUID(entry["id"]): entry["keeps"] for entry in row.entries if entry.get("keeps")}
    items = rest_items(rests, why=why, verb=row.verb)
    # Embedded before anything is locked. If a topic has changed since, nothing of it is used.
    kept = ingest_prepare(items, principal=principal, now=now, defer=False) if items else None
    with transaction.atomic():
        row = _list_of(token, principal, lock=True)
        if verb is not None and verb != row.verb:
            raise Conflict(f"This list is for a {row.verb}, not for a {verb}.", code=ProblemCode.LIST_FOR_ANOTHER_VERB)
        _check(row, now)
        ids = [uuid.UUID(entry["id"]) for entry in row.entries]
        purges = row.verb == ForgetListing.Verb.PURGE
        if purges:
            # In the order in which every purge waits.
            purges_wait()
            fold_wait()
        _drift_check(row, ids)
        if kept:
            # First, so that what is still said does not count as erased.
            rests_keep(kept, list(rests), principal=principal, now=now)
        run = receipt = None
        if purges:
            said = [row.query, *(str(entry["excerpt"]) for entry in row.entries)]
            receipt = topics_purge(ids, principal=principal, reason=why, now=now, said=said)
            row.refresh_from_db()
        else:
            run = topics_release(ids, principal=principal, reason=why, now=now)
        row.executed_at, row.run, row.receipt = now, run, receipt
        row.save(update_fields=["executed_at", "run", "receipt"])
    return Executed(
        listing_told(row, now=now, matches=matches_told(row.entries[:MATCHES_SHOWN])), len(ids), run, receipt
    )


def _found(
    verb: str, query: str, wanted: ForgetFilter, scope: str, *, now: dt.datetime
) -> tuple[Sequence[Matched], bool, str]:
    bound = Bound()
    conditions = conditions_sql(wanted, scope, bound, now=now, gone=verb == "purge")
    if query:
        choice = facts_meant(query, scope=scope, conditions=conditions, bound=bound, history=verb == "purge")
        matches = matches_of(choice)
        if verb == "purge":
            matches = _survivors(matches)
        question = "" if matches else "Nothing here is about that."
        if choice.ambiguous:
            question = f"{len(matches)} topics match equally well. Which is meant?"
        return matches, choice.ambiguous, question
    ids = ids_read(_BY_FILTER.format(conditions=conditions, most=MOST_AT_ONCE + 1), bound)
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
            found.setdefault(root, Matched(root, why, match.confidence, match.excerpt, by=match.by))
        else:
            found[root] = match
    return list(found.values())


def _states(ids: Sequence[uuid.UUID], *, lock: bool = False) -> dict[uuid.UUID, list[Any]]:
    with connection.cursor() as cursor:
        cursor.execute(_STATES + ("ORDER BY t.id FOR NO KEY UPDATE" if lock else ""), [list(ids)])
        return {row[0]: [row[1].isoformat(), row[2], row[3]] for row in cursor.fetchall()}


def _list_of(token: str, principal: Principal, *, lock: bool = False) -> ForgetListing:
    rows = ForgetListing.objects.select_for_update(no_key=True) if lock else ForgetListing.objects.all()
    try:
        row = rows.filter(pk=uuid.UUID(token)).first()
    except ValueError:
        row = None
    if row is None or row.identity != principal.identity:
        raise NotVisible("There is no list with this token.", code=ProblemCode.LIST_NOT_FOUND)
    return row


def _check(row: ForgetListing, now: dt.datetime) -> None:
    state = listing_state(row, now)
    if state == "executed":
        raise Conflict("This list was executed before. Make a new one.", code=ProblemCode.LIST_EXECUTED)
    if state == "ambiguous":
        raise Conflict(
            "This request matches several things equally well. Choose by ids.", code=ProblemCode.LIST_AMBIGUOUS
        )
    if state == "empty":
        raise Conflict("This list is empty: nothing matched.", code=ProblemCode.LIST_EMPTY)
    if state == "expired":
        raise Conflict(
            f"This list expired at {row.expires_at.isoformat()}. Make a new one.", code=ProblemCode.LIST_EXPIRED
        )


def _drift_check(row: ForgetListing, ids: Sequence[uuid.UUID]) -> None:
    states = _states(ids, lock=True)
    changed = [entry["id"] for entry in row.entries if states.get(uuid.UUID(entry["id"])) != entry["state"]]
    if changed:
        raise Conflict(
            f"{len(changed)} of {row.count} topics changed after they were listed, the first of them {changed[0]}. "
            "Nothing was done; make the list again.",
            code=ProblemCode.LIST_OUTDATED,
        )
