"""Short words for what the tests of this folder do."""

import datetime as dt
from typing import Any

from django.db import connection
from django.utils import timezone

from memory.access.principal import SYSTEM, Principal
from memory.duplicates.detect import duplicates_find
from memory.duplicates.pairs import PairFilter, pairs_list
from memory.models import DuplicatePair
from tests.cast import Caller, worker_turn
from tests.forgetting.shop import JOURNALS, dump
from tests.waits import turns_until_done

PERSON = Principal(identity="person:1", actor="Ada", role="operator")
ALL = PairFilter(state=None)
# What only grows, what tells of decisions, and who waits for a look.
KEPT = ("memory_apikey", "memory_topicedit", "memory_duplicatepair", "memory_duplicatelook")


def look(scope: str | None = None) -> int:
    """Look for duplicates now."""
    return duplicates_find(scope, now=timezone.now())


def pairs(wanted: PairFilter = ALL) -> list[dict[str, Any]]:
    """Return the pairs that a filter finds."""
    return pairs_list(wanted, principal=SYSTEM, cursor=None, limit=1000)[0]


def only_pair() -> dict[str, Any]:
    """Return the one pair there is."""
    (pair,) = pairs()
    return pair


def settle() -> None:
    """Let the worker do all that is left to do, and look for duplicates until there are none."""
    turns_until_done(worker_turn)


def store() -> dict[str, list[str]]:
    """Return every row of the store but for journals and what only grows."""
    return dump(*JOURNALS, *KEPT)


def twins(agent: Caller, title: str = "The harbor", **members: Any) -> tuple[str, str]:
    """Ingest the same twice, the second later, and return the ids: older, newer."""
    return agent.remember(title, **members), agent.remember(title, **members)


def pair_make(one: str, other: str, **members: Any) -> DuplicatePair:
    """Write a pair by hand, for tests that are not about detection."""
    import uuid

    from memory.models import Topic, TopicVector

    first, second = sorted((uuid.UUID(one), uuid.UUID(other)))
    hashes = dict(TopicVector.objects.values_list("topic_id", "text_hash"))
    topic = Topic.objects.get(pk=first)
    return DuplicatePair.objects.create(
        id=uuid.uuid4(),
        scope_id=topic.scope_id,
        kind=topic.kind,
        one_id=first,
        other_id=second,
        one_hash=hashes[first],
        other_hash=hashes[second],
        found_at=timezone.now(),
        **{"verdict": "duplicate", "similarity": 0.99, **members},
    )


def rows(sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()


def later(clock: Any, **time: float) -> dt.datetime:
    """Let time pass on a stopped clock."""
    return clock.set(clock.now + dt.timedelta(**time))
