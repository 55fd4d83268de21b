"""Release and purge in two steps: list what would be forgotten and why, then execute exactly this list. The token of a
list is its id. Only the caller who made the list can use the token, once and within ``LISTED_FOR``."""

import dataclasses
import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction

from memory.access.principal import Principal
from memory.core.errors import Conflict, NotVisible, ValueRefused
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.erasure.agent_release import agent_release_check, forget_require, topics_protected
from memory.erasure.filters import ForgetFilter, conditions_sql, scope_of
from memory.erasure.forget_list_read import spellings_of
from memory.erasure.matches import TopicMatch, matches_of
from memory.erasure.purge import topics_purge
from memory.erasure.receipts import purges_wait
from memory.erasure.remainder import remainder_items, remainders_journal, remainders_store
from memory.finding.facts import ids_read
from memory.finding.find import facts_meant
from memory.forgetting.manual_actions import MAX_AT_ONCE, topics_release
from memory.ingest.apply import ingest_prepare
from memory.models import ForgetListing
from memory.predicates.binding import Bound
from memory.recall.access_fold import fold_wait
from memory.text.keys import CODE, keys_certain
from memory.text.name_match import names_of

VERBS = ("release", "purge")
# Long enough to read the list, and short enough that its topics have hardly changed.
LISTED_FOR = dt.timedelta(hours=1)
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


def forget_list(
    verb: str,
    *,
    query: str | None = None,
    wanted: ForgetFilter | None = None,
    scope: str | None = None,
    reason: str = "",
    principal: Principal,
    now: dt.datetime,
    choose_all: bool = False,
) -> ForgetListing:
    """Find the topics that ``query`` and ``wanted`` select, and store them as a list to release or purge (``verb``).

    Topics that only perhaps have the name, in another spelling, are on the list, but a release does not choose them
    unless ``choose_all`` is true. If the query matches several things equally well, the list cannot be executed. A list
    for an agent omits topics that only operators may release. About ten statements. Raises ``NotAllowed`` and
    ``ValueRefused``.
    """
    forget_require(principal, verb)
    if verb not in VERBS:
        raise ValueRefused(f"The verb must be release or purge, not {verb[:50]!r}.", member="verb")
    query = (query or "").strip()
    if not query and (wanted is None or not wanted.as_json()):
        raise ValueRefused(
            "Give a text or a filter that says what to forget.", code=ProblemCode.MISSING_MEMBER, member="query"
        )
    if len(query) > MAX_QUERY:
        raise ValueRefused(
            f"The text can have at most {MAX_QUERY:,} characters; this one has {len(query):,}.",
            code=ProblemCode.TOO_LARGE,
            member="query",
        )
    wanted = wanted or ForgetFilter()
    place = scope_of(wanted, scope, principal)
    found, ambiguous, question = _find(verb, query, wanted, place, now=now)
    if choose_all:
        found = [dataclasses.replace(match, chosen=True) for match in found]
    if not principal.covers("operator"):
        protected = topics_protected([match.topic_id for match in found], now=now)
        if protected:
            found = [match for match in found if match.topic_id not in protected]
            omitted = f"Left out, because only an operator may release them: {len(protected):,}."
            question = f"{question} {omitted}".strip()
    if len(found) > MAX_AT_ONCE:
        raise ValueRefused(
            f"More than {MAX_AT_ONCE:,} memories match, which is the limit. Narrow the request.",
            code=ProblemCode.TOO_LARGE,
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
        count=sum(match.chosen for match in found),
    )
    states = _states([match.topic_id for match in found])
    row.entries = [
        {
            "id": str(match.topic_id),
            "why": match.why,
            "confidence": round(match.confidence, 3),
            "excerpt": match.excerpt,
            "by": match.by,
            "state": states.get(match.topic_id),
            "keeps": match.remainder or None,
            "spelling": match.spelling,
            "chosen": match.chosen,
        }
        for match in found
    ]
    row.save(force_insert=True)
    return row


def listing_narrow(
    listing: ForgetListing, ids: Sequence[uuid.UUID], *, principal: Principal, now: dt.datetime
) -> ForgetListing:
    """Return a new list of the topics ``ids``, which a user has picked from ``listing``. ``listing`` expires.

    The query of the list is repeated on these topics, so that a topic keeps the facts to which the query does not
    refer. If the query does not find all of these topics, they are all listed as whole topics. Costs at most twice as
    much as ``forget_list``, and raises the same errors.
    """
    wanted = ForgetFilter(ids=ids)
    replaced = [listing.pk]
    made = _repeat(listing, listing.query, wanted, principal=principal, now=now, choose_all=True)
    if listing.query and (made.state_at(now) != "open" or made.count != len(ids)):
        replaced.append(made.pk)
        made = _repeat(listing, "", wanted, principal=principal, now=now)
    ForgetListing.objects.filter(pk__in=replaced, executed_at=None, expires_at__gt=now).update(expires_at=now)
    return made


def listing_repeat(listing: ForgetListing, *, principal: Principal, now: dt.datetime) -> ForgetListing:
    """Return a new list for the same request. Costs as much as ``forget_list``, and raises the same errors."""
    return _repeat(listing, listing.query, ForgetFilter(**listing.filter), principal=principal, now=now)


def _repeat(
    listing: ForgetListing,
    query: str,
    wanted: ForgetFilter,
    *,
    principal: Principal,
    now: dt.datetime,
    choose_all: bool = False,
) -> ForgetListing:
    return forget_list(
        listing.verb,
        query=query,
        wanted=wanted,
        scope=listing.scope,
        reason=listing.reason,
        principal=principal,
        now=now,
        choose_all=choose_all,
    )


def forget_execute(
    token: str, *, principal: Principal, now: dt.datetime, reason: str | None = None, verb: str | None = None
) -> ForgetListing:
    """Execute a list in one transaction, and return it with its ``run`` or ``receipt``.

    If a topic states more than the forgotten fact, the rest becomes a new topic. ``reason`` replaces the reason of the
    list. Raises ``NotVisible`` for an unknown token, ``Conflict`` for a list that cannot be executed, and
    ``NotAllowed`` if an agent exceeds its limit.
    """
    forget_require(principal, verb or "release")
    row = _list_of(token, principal)
    reason = row.reason if reason is None else reason
    remainders = {uuid.UUID(entry["id"]): entry["keeps"] for entry in row.chosen if entry.get("keeps")}
    items = remainder_items(remainders, reason=reason, verb=row.verb)
    # A remainder gets the age and salience of its original topic, and only operators may set these.
    writer = dataclasses.replace(principal, role="operator")
    # Remainders are embedded before anything is locked. If a topic changes before it is locked, the list is not
    # executed.
    kept = ingest_prepare(items, principal=writer, now=now, defer=False) if items else None
    with transaction.atomic():
        row = _list_of(token, principal, lock=True)
        if verb is not None and verb != row.verb:
            raise Conflict(f"This token is for a list made for {row.verb}. It cannot be used for {verb}.")
        _state_check(row, now)
        ids = [uuid.UUID(entry["id"]) for entry in row.chosen]
        purges = row.verb == ForgetListing.Verb.PURGE
        if purges:
            # All purges take these locks in this order.
            purges_wait()
            fold_wait()
        is_agent = not principal.covers("operator")
        if is_agent:
            agent_release_check(ids, principal=principal, now=now)
        states = _states(ids, lock=True)
        changed = {
            uuid.UUID(entry["id"]) for entry in row.chosen if states.get(uuid.UUID(entry["id"])) != entry["state"]
        }
        if is_agent:
            changed |= topics_protected(ids, now=now)
        if changed:
            raise Conflict(
                f"{len(changed)} of {row.count} memories changed after they were listed, the first of them "
                f"{next(each for each in ids if each in changed)}. Nothing was done; make the list again.",
                code=ProblemCode.CHANGED_MEANWHILE,
            )
        made: list[uuid.UUID] = []
        if kept:
            # Remainders are stored before a purge, so that the purge does not erase their texts.
            made = remainders_store(kept, list(remainders), principal=writer, now=now)
        run = receipt = None
        if purges:
            request_texts = [row.query, *(str(entry["excerpt"]) for entry in row.chosen)]
            receipt = topics_purge(
                ids, principal=principal, reason=reason, now=now, request_texts=request_texts, spellings=_spellings(row)
            )
            row.refresh_from_db()
        else:
            run = topics_release(ids, principal=principal, reason=reason, now=now)
            remainders_journal(run, made, reason=reason, now=now)
        row.executed_at, row.run, row.receipt = now, run, receipt
        row.save(update_fields=["executed_at", "run", "receipt"])
    return row


def _find(
    verb: str, query: str, wanted: ForgetFilter, scope: str, *, now: dt.datetime
) -> tuple[Sequence[TopicMatch], bool, str]:
    bound = Bound()
    conditions = conditions_sql(wanted, scope, bound, now=now, inactive=verb == "purge")
    if query:
        purge = verb == "purge"
        choice = facts_meant(query, scope=scope, conditions=conditions, bound=bound, history=purge, any_script=purge)
        matches = matches_of(choice, query)
        if verb == "purge":
            matches = _survivors(matches)
        question = "" if matches else "Nothing in this scope matches."
        if choice.ambiguous:
            question = f"{len(matches):,} memories match. Which do you mean?"
            if len(matches) == 1:
                question = "One memory matches, but not all words of the request. Do you mean it? Choose it by its id."
        return matches, choice.ambiguous, question
    ids = ids_read(_BY_FILTER_SQL.format(conditions=conditions, most=MAX_AT_ONCE + 1), bound)
    why = wanted.describe()
    question = "" if ids else f"No memory in this scope is {why}." if why else "This scope is empty."
    return [TopicMatch(topic_id, f"It is {why}.", 1.0) for topic_id in ids], False, question


def _spellings(row: ForgetListing) -> set[str]:
    """Return the spellings of names and identifiers that were searched for a list: those of its request, and those in
    which its topics have the names."""
    names = {" ".join(name) for name in names_of(row.query, [])}
    return {*names, *spellings_of(row), *(key.removeprefix(CODE) for key in keys_certain(row.query))}


def _survivors(matches: Sequence[TopicMatch]) -> list[TopicMatch]:
    """Replace each merged topic by the topic into which it was merged, because a purge erases both. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_ROOTS_SQL, [[match.topic_id for match in matches]])
        roots: dict[uuid.UUID, uuid.UUID] = dict(cursor.fetchall())
    found: dict[uuid.UUID, TopicMatch] = {}
    for match in matches:
        root = roots.get(match.topic_id, match.topic_id)
        if root != match.topic_id:
            why = f"A matching memory was merged into it. {match.why}"
            found.setdefault(root, dataclasses.replace(match, topic_id=root, why=why, remainder=None))
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
        raise NotVisible("No list has this token.")
    return row


def _state_check(row: ForgetListing, now: dt.datetime) -> None:
    match row.state_at(now):
        case "executed":
            raise Conflict("This list was already executed. Make a new one.")
        case "ambiguous":
            raise Conflict(
                "This request matches several things equally well. Choose memories by their ids.",
                code=ProblemCode.AMBIGUOUS_REQUEST,
            )
        case "empty":
            raise Conflict("This list is empty: nothing matched.")
        case "expired":
            raise Conflict(
                f"This list expired at {row.expires_at.isoformat()}. Make a new one.", code=ProblemCode.EXPIRED
            )
