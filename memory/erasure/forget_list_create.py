"""Release and purge in two steps: list what would be forgotten and why, then execute exactly that list.

The list is stored. Its token is its id. The token is valid once, for ``LISTED_FOR``, and only for the caller who made
the list. If a topic changed after it was listed, nothing is done.
"""

import dataclasses
import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from memory.access.principal import Principal
from memory.core.errors import Conflict, NotVisible, ValueRefused
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.erasure.agent_release import agent_release_check, forget_require, topics_protected
from memory.erasure.filters import ForgetFilter, conditions_sql, scope_of
from memory.erasure.forget_lists import Listing, listed_topics, listing_of, listing_state
from memory.erasure.matches import TopicMatch, matches_of
from memory.erasure.purge import topics_purge
from memory.erasure.receipts import purges_wait
from memory.erasure.remainder import remainder_items, remainders_store
from memory.finding.facts import ids_read
from memory.finding.find import facts_meant
from memory.forgetting.manual_actions import MOST_AT_ONCE, topics_release
from memory.ingest.apply import ingest_prepare
from memory.models import ErasureReceipt, ForgetListing, ForgetRun
from memory.predicates.binding import Bound
from memory.recall.access_fold import fold_wait

VERBS = ("release", "purge")
# Long enough to read a list, short enough that it is still current.
LISTED_FOR = dt.timedelta(hours=1)
# The reply has at most this number of topics of a list; the others are read page by page.
MATCHES_SHOWN = 200
MAX_QUERY = 2_000

_BY_FILTER_SQL = "SELECT t.id FROM memory_topic t WHERE {conditions} ORDER BY t.created_at, t.id LIMIT {most}"

_ROOTS_SQL = """
WITH RECURSIVE path AS (
    SELECT id AS leaf, id, merged_into_id FROM memory_topic WHERE id = ANY(%s) AND merged_into_id IS NOT NULL
    UNION
    SELECT p.leaf, t.id, t.merged_into_id FROM path p JOIN memory_topic t ON t.id = p.merged_into_id
)
SELECT leaf, id FROM path WHERE merged_into_id IS NULL
"""

_STATES_SQL = """
SELECT t.id, t.updated_at, t.released_at IS NOT NULL, t.merged_into_id IS NOT NULL
FROM memory_topic t WHERE t.id = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class Executed:
    """The result of executing a list: the run that undoes a release, or the receipt of a purge."""

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

    Give ``query``, ``wanted`` or both; the filter narrows the result of the query. If a query matches several things
    equally well, the list has all of them and cannot be executed. The list of an agent omits topics that only operators
    may release. About ten statements for any number of topics. Raises ``NotAllowed`` for callers who may not forget,
    and ``ValueRefused`` for a request that is empty or too large.
    """
    forget_require(principal, verb)
    if verb not in VERBS:
        raise ValueRefused(f"The verb must be release or purge, not {verb[:50]!r}.", code=ProblemCode.UNKNOWN_CHOICE)
    query = (query or "").strip()
    if not query and (wanted is None or not wanted.as_json()):
        raise ValueRefused("Give a query or a filter that says what to forget.", code=ProblemCode.NOTHING_NAMED)
    if len(query) > MAX_QUERY:
        raise ValueRefused(
            f"A query can have at most {MAX_QUERY:,} characters; this one has {len(query):,}.",
            code=ProblemCode.TEXT_TOO_LONG,
        )
    wanted = wanted or ForgetFilter()
    place = scope_of(wanted, scope, principal)
    found, ambiguous, question = _find(verb, query, wanted, place, now=now)
    if not principal.covers("operator"):
        protected = topics_protected([match.topic_id for match in found], now=now)
        if protected:
            found = [match for match in found if match.topic_id not in protected]
            omitted = f"Left out, because only an operator may release them: {len(protected):,}."
            question = f"{question} {omitted}".strip()
    if len(found) > MOST_AT_ONCE:
        raise ValueRefused(
            f"More than {MOST_AT_ONCE:,} topics match, which is the limit. Narrow the request.",
            code=ProblemCode.TOO_MANY_TOPICS,
        )
    row = ForgetListing(
        id=uuid7_at(now),
        verb=verb,
        scope=place,
        query=query,
        filter=wanted.as_json(),
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
    remainders = {match.topic_id: match.remainder for match in found if match.remainder}
    row.entries = [
        {
            "id": str(match.topic_id),
            "why": match.why,
            "confidence": round(match.confidence, 3),
            "excerpt": match.excerpt,
            "by": match.by,
            "state": states.get(match.topic_id),
            "keeps": remainders.get(match.topic_id),
        }
        for match in found
    ]
    row.save(force_insert=True)
    return listing_of(row, now=now, matches=listed_topics(row.entries[:MATCHES_SHOWN]))


def forget_execute(
    token: str, *, principal: Principal, now: dt.datetime, reason: str | None = None, verb: str | None = None
) -> Executed:
    """Execute a list on exactly its topics, in one transaction.

    A release is a run of event ``by_hand``, which can be undone. A purge leaves a receipt and cannot be undone. If a
    topic states more than the forgotten fact, the rest is kept as a new topic. ``reason`` replaces the reason of the
    list; ``verb``, if given, must be the verb of the list.

    If an error is raised, nothing is changed: ``NotVisible`` for a token that is unknown or belongs to another caller,
    ``Conflict`` for a list that is ambiguous, empty, expired, used or outdated, and ``NotAllowed`` for more topics than
    an agent may release in a day.
    """
    forget_require(principal, verb or "release")
    row = _list_of(token, principal)
    reason = row.reason if reason is None else reason
    remainders = {uuid.UUID(entry["id"]): entry["keeps"] for entry in row.entries if entry.get("keeps")}
    items = remainder_items(remainders, reason=reason, verb=row.verb)
    # Remainders keep their age and salience, which only operators may set.
    writer = dataclasses.replace(principal, role="operator")
    # Remainders are embedded before anything is locked. They are discarded if a topic has changed.
    kept = ingest_prepare(items, principal=writer, now=now, defer=False) if items else None
    with transaction.atomic():
        row = _list_of(token, principal, lock=True)
        if verb is not None and verb != row.verb:
            raise Conflict(
                f"This token is for a list made for {row.verb}. It cannot be used for {verb}.",
                code=ProblemCode.LIST_FOR_ANOTHER_VERB,
            )
        _state_check(row, now)
        ids = [uuid.UUID(entry["id"]) for entry in row.entries]
        purges = row.verb == ForgetListing.Verb.PURGE
        if purges:
            # All purges take these locks in this order.
            purges_wait()
            fold_wait()
        if not principal.covers("operator"):
            agent_release_check(ids, principal=principal, now=now)
        _drift_check(row, ids)
        if not principal.covers("operator") and (pinned := topics_protected(ids, now=now)):
            raise _outdated(row, [str(topic_id) for topic_id in ids if topic_id in pinned])
        if kept:
            # Remainders are stored first, so that they do not count as erased.
            remainders_store(kept, list(remainders), principal=writer, now=now)
        run = receipt = None
        if purges:
            request_texts = [row.query, *(str(entry["excerpt"]) for entry in row.entries)]
            receipt = topics_purge(ids, principal=principal, reason=reason, now=now, request_texts=request_texts)
            row.refresh_from_db()
        else:
            run = topics_release(ids, principal=principal, reason=reason, now=now)
        row.executed_at, row.run, row.receipt = now, run, receipt
        row.save(update_fields=["executed_at", "run", "receipt"])
    return Executed(
        listing_of(row, now=now, matches=listed_topics(row.entries[:MATCHES_SHOWN])), len(ids), run, receipt
    )


def _find(
    verb: str, query: str, wanted: ForgetFilter, scope: str, *, now: dt.datetime
) -> tuple[Sequence[TopicMatch], bool, str]:
    bound = Bound()
    conditions = conditions_sql(wanted, scope, bound, now=now, inactive=verb == "purge")
    if query:
        choice = facts_meant(query, scope=scope, conditions=conditions, bound=bound, history=verb == "purge")
        matches = matches_of(choice)
        if verb == "purge":
            matches = _survivors(matches)
        question = "" if matches else "Nothing in this scope matches."
        if choice.ambiguous:
            question = f"{len(matches):,} memories match. Which do you mean?"
        return matches, choice.ambiguous, question
    ids = ids_read(_BY_FILTER_SQL.format(conditions=conditions, most=MOST_AT_ONCE + 1), bound)
    why = wanted.describe()
    question = "" if ids else f"No topic in this scope is {why}." if why else "This scope is empty."
    return [TopicMatch(topic_id, f"It is {why}.", 1.0) for topic_id in ids], False, question


def _survivors(matches: Sequence[TopicMatch]) -> list[TopicMatch]:
    """Replace merged topics by the topics into which they were merged, because a purge erases both. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_ROOTS_SQL, [[match.topic_id for match in matches]])
        roots: dict[uuid.UUID, uuid.UUID] = dict(cursor.fetchall())
    found: dict[uuid.UUID, TopicMatch] = {}
    for match in matches:
        root = roots.get(match.topic_id, match.topic_id)
        if root != match.topic_id:
            why = f"A matching topic was merged into it. {match.why}"
            found.setdefault(root, TopicMatch(root, why, match.confidence, match.excerpt, by=match.by))
        else:
            found[root] = match
    return list(found.values())


def _states(ids: Sequence[uuid.UUID], *, lock: bool = False) -> dict[uuid.UUID, list[Any]]:
    with connection.cursor() as cursor:
        cursor.execute(_STATES_SQL + ("ORDER BY t.id FOR NO KEY UPDATE" if lock else ""), [list(ids)])
        return {row[0]: [row[1].isoformat(), row[2], row[3]] for row in cursor.fetchall()}


def _list_of(token: str, principal: Principal, *, lock: bool = False) -> ForgetListing:
    rows = ForgetListing.objects.select_for_update(no_key=True) if lock else ForgetListing.objects.all()
    try:
        row = rows.filter(pk=uuid.UUID(token)).first()
    except ValueError:
        row = None
    if row is None or row.identity != principal.identity:
        raise NotVisible("No list has this token.", code=ProblemCode.LIST_NOT_FOUND)
    return row


def _state_check(row: ForgetListing, now: dt.datetime) -> None:
    state = listing_state(row, now)
    if state == "executed":
        raise Conflict("This list was already executed. Make a new one.", code=ProblemCode.LIST_EXECUTED)
    if state == "ambiguous":
        raise Conflict(
            "This request matches several things equally well. Choose topics by their ids.",
            code=ProblemCode.LIST_AMBIGUOUS,
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
        raise _outdated(row, changed)


def _outdated(row: ForgetListing, changed: Sequence[str]) -> Conflict:
    return Conflict(
        f"{len(changed)} of {row.count} topics changed after they were listed, the first of them {changed[0]}. "
        "Nothing was done; make the list again.",
        code=ProblemCode.LIST_OUTDATED,
    )
