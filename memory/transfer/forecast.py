"""Forecast of an import: how many of its topics would be forgotten if nothing used them."""

import dataclasses
import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from memory.core.scopes import scope_within
from memory.formulas.salience import SECONDS_PER_DAY
from memory.formulas.strategies import KIND_WEIGHT_ELSE, KIND_WEIGHTS
from memory.ingest.items import IngestItem
from memory.policy.partition import partition_is_skipped
from memory.policy.snapshot import EffectivePolicy, Policies
from memory.predicates.tree import Comparison, value_words
from memory.simulate.replay import Floats, Ruling, Topics, World, comparisons_fixed

DAYS = (7, 30)
# The largest number of scopes in a sentence.
_SCOPES = 10


class Forecast:
    """Counts the new topics of an import by scope, and those that scheduled runs under the policies in force would
    archive or release. No query. Soft limits are ignored, and conditions on texts count as not met."""

    def __init__(self, policies: Policies, now: dt.datetime) -> None:
        self._policies, self._now = policies.projected(now), now.timestamp()
        self._scopes: Counter[str] = Counter()
        self._leaving: Counter[int] = Counter()

    def add(self, items: Sequence[IngestItem]) -> None:
        """Count items, each of which creates a topic."""
        scopes: dict[str, list[IngestItem]] = defaultdict(list)
        for item in items:
            scopes[item.scope or "/"].append(item)
        for scope, here in scopes.items():
            self._scopes[scope] += len(here)
            self._leaving.update(self._leaving_of(here, self._policies.effective(scope)))

    def sentences(self) -> list[str]:
        """Return sentences about the scopes of new topics and the number of topics that would be forgotten. The list is
        empty if there are no new topics."""
        total = self._scopes.total()
        if not total:
            return []
        named = self._scopes.most_common(_SCOPES)
        found = [f"{count:,} of {total:,} new memories go into {scope}." for scope, count in named]
        if len(self._scopes) > len(named):
            rest = total - sum(count for _scope, count in named)
            found.append(f"{rest:,} go into {len(self._scopes) - len(named):,} other scopes.")
        within = " and ".join(f"{self._leaving[days]:,} within {days} days" for days in DAYS)
        found.append(f"If nothing used them, the policies in force would archive or release {within}.")
        return found

    def _leaving_of(self, items: list[IngestItem], policy: EffectivePolicy) -> dict[int, int]:
        """Return how many topics of one scope runs would archive or release within each number of days."""
        rules, kinds = policy.rules.on("cron"), [item.topic_kind or "" for item in items]
        knobs = dataclasses.replace(policy.knobs, topic_count_soft_limit=0)
        topics = Topics(
            created=self._epochs(item.created_at for item in items),
            salience=np.array([item.salience for item in items]),
            used=self._epochs(item.last_used_at for item in items),
            kind_weight=np.array([KIND_WEIGHTS.get(kind, KIND_WEIGHT_ELSE) for kind in kinds]),
            pinned=np.array([item.pinned for item in items]),
            excluded=np.full(len(items), partition_is_skipped(policy, policy.scope)),
            exempt=np.array([kind in knobs.exempt_kinds for kind in kinds]),
            partition=np.zeros(len(items), dtype=np.int64),
            fixed={
                each: np.array([_holds(each, item, policy.scope) for item in items])
                for each in comparisons_fixed(rules)
            },
        )
        world, leaving, forgotten = World(topics, [Ruling(knobs, rules, time=policy.time)]), {}, 0
        for days in DAYS:
            forgotten += len(world.run(self._now + days * SECONDS_PER_DAY, most=len(items)).forgotten)
            leaving[days] = forgotten
        return leaving

    def _epochs(self, times: Iterable[dt.datetime | None]) -> Floats:
        return np.array([self._now if at is None else at.timestamp() for at in times])


def _holds(comparison: Comparison, item: IngestItem, scope: str) -> bool:
    words = set(value_words(comparison))
    match comparison.field:
        case "scope":
            return scope_within(scope, str(comparison.value)) if comparison.op == "within" else scope in words
        case "category":
            return not words.isdisjoint(item.categories)
        case "kind":
            return ((item.topic_kind or "") in words) is (comparison.op in ("is", "in"))
        case "provenance":
            provenance = item.fields[0].provenance if item.fields else ""
            return (provenance in words) is (comparison.op in ("is", "in"))
    return False
