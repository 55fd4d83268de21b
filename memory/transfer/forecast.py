"""Forecast of an import: how many of its topics would be forgotten if nothing used them."""

import datetime as dt
from collections import Counter, defaultdict

from memory.explain.outlook import Subject, verdict
from memory.formulas.strategies import TopicUsage
from memory.ingest.items import IngestItem
from memory.policy.snapshot import Policies

DAYS = (7, 30)
# The largest number of scopes in a sentence.
_SCOPES = 10


class Forecast:
    """Counts the new topics of an import by scope, and those that a scheduled run under the policies in force would
    archive or release. No query. Soft limits are ignored, and conditions on texts count as not met."""

    def __init__(self, policies: Policies, now: dt.datetime) -> None:
        self._policies, self._now = policies.projected(now), now.timestamp()
        self._scopes: Counter[str] = Counter()
        self._leaving: Counter[int] = Counter()

    def add(self, item: IngestItem) -> None:
        """Count one item that creates a topic."""
        scope = item.scope or "/"
        self._scopes[scope] += 1
        policy = self._policies.effective(scope)
        used = item.last_used_at.timestamp() if item.last_used_at else self._now
        subject = Subject(
            usage=TopicUsage(
                salience=item.salience,
                reinforced_at=used,
                created_at=item.created_at.timestamp() if item.created_at else self._now,
                last_retrieved_at=used,
                retrieval_count=0,
                kind=item.topic_kind or "",
                idle_before=float(policy.time.idle(used)),
            ),
            rung=0,
            pinned=item.pinned,
            half_life=policy.knobs.half_life,
            scope=scope,
            categories=frozenset(item.categories),
            provenance=item.fields[0].provenance if item.fields else "",
            texts=defaultdict(bool),
        )
        for days in DAYS:
            self._leaving[days] += verdict(subject, policy, now=self._now + days * 86_400).leaves

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
