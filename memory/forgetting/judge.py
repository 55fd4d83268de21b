"""Judgement: on which rung a topic belongs under a policy at a moment, as SQL over one row of Vitality.

The Python twin is ``memory.formulas.ladder``. Everything that asks what forgetting would do is made of these pieces, so
a preview, a dry run and a run cannot disagree.
"""

import datetime as dt
import math
from dataclasses import dataclass

from memory.core.policy_values import NO_DECAY_SECONDS
from memory.core.rules import PIN_ACTIONS, RULE_RUNG, RUNG_ACTIONS, Rule
from memory.core.text import MAX_CATEGORIES
from memory.formulas.ladder import CLIMB_MARGIN
from memory.formulas.salience import MAX_HALVINGS, fade_before
from memory.models import Rung
from memory.models.expressions import fade_key_sql, number_sql, score_sql
from memory.policy.snapshot import EffectivePolicy
from memory.predicates.binding import Bind
from memory.predicates.rule_json import condition_parse
from memory.predicates.sql import predicate_sql


@dataclass(frozen=True, slots=True)
class Judge:
    """One policy at one moment, for the row ``v`` of Vitality and, where a rule asks for it, ``t`` of Topic."""

    policy: EffectivePolicy
    now: dt.datetime
    event: str
    bind: Bind

    @property
    def by_key(self) -> bool:
        """Whether the fade key decides, so that what is due can be found by index."""
        return self.policy.knobs.strategy in ("half_life", "static")

    def moment(self) -> str:
        """Return the moment of the judgement as an expression."""
        return f"{self.bind(self.now)}::timestamptz"

    def score(self) -> str:
        """Return the expression of the score that the thresholds are compared with."""
        knobs = self.policy.knobs
        return score_sql(
            knobs.strategy,
            row="v",
            now=self.moment(),
            half_life=knobs.half_life,
            active_half_life=knobs.active_half_life,
        )

    def key(self) -> str:
        """Return the expression that is compared instead of the score, in whose units ``bound`` gives thresholds.

        Under ``half_life`` this is the fade key: comparing keys spares a power of two per row, and is what the index is
        made of.
        """
        knobs = self.policy.knobs
        if knobs.strategy == "static":
            return "v.salience"
        if knobs.strategy != "half_life":
            return self.score()
        half_life = number_sql(knobs.half_life)
        anew = fade_key_sql("v.salience", reinforced_at="v.reinforced_at", half_life=half_life)
        return f"(CASE WHEN v.half_life = {half_life} THEN v.fade ELSE {anew} END)"

    def bound(self, theta: float) -> float:
        """Return the value of ``key`` at which the score is ``theta``."""
        return self._fade_bound(theta) if self.policy.knobs.strategy == "half_life" else theta

    def score_of(self, key: float) -> float:
        """Return the score at a value of ``key``: the other direction of ``bound``."""
        if self.policy.knobs.strategy != "half_life":
            return key
        halvings = (self.now.timestamp() - key) / self.policy.knobs.half_life
        # A moment long before the last use, by a short half-life, would be a number too large to be one.
        return 0.0 if halvings > MAX_HALVINGS else 2.0 ** -max(halvings, -MAX_HALVINGS)

    def _fade_bound(self, theta: float) -> float:
        return fade_before(theta, half_life=self.policy.knobs.half_life, now=self.now.timestamp())

    def below(self, theta: float) -> str:
        """Return the condition that the score is below ``theta``."""
        return self._compare("<", theta)

    def above(self, theta: float) -> str:
        """Return the condition that the score is above ``theta``."""
        return self._compare(">", theta)

    def _compare(self, operator: str, theta: float) -> str:
        return f"{self.key()} {operator} {number_sql(self.bound(theta))}"

    def gate(self) -> str:
        """Return the condition that the topic has been left alone for as long as archiving asks for."""
        since = self.unused_since
        return "true" if since is None else f"{self.last_use} {since}"

    @property
    def last_use(self) -> str:
        """The moment of the last use with the comparison that ``unused_since`` completes.

        The same as ``archive_gate_sql``, with the moment worked out once instead of an age for every row.
        """
        if self.policy.knobs.strategy == "relevance":
            return "coalesce(v.last_retrieved_at, v.created_at) <"
        return "v.reinforced_at <="

    @property
    def unused_since(self) -> str | None:
        """The moment since which a topic must not have been used; None if archiving does not ask for it.

        Without a wait, a topic that was used in the future counts as used just now.
        """
        knobs = self.policy.knobs
        if not knobs.prune_after and knobs.strategy != "relevance":
            return None
        return f"{self.bind(self.now - dt.timedelta(seconds=knobs.prune_after))}::timestamptz"

    def exempt(self) -> str:
        """Return the condition that the topic's kind is never forgotten. Scopes are a matter of the partition."""
        kinds = self.policy.knobs.exempt_kinds
        return f"v.kind = ANY({self.bind(list(kinds))}::text[])" if kinds else "false"

    def ladder(self) -> str:
        """Return the rung on which the thresholds put the topic, as ``rung_target`` does."""
        knobs = self.policy.knobs
        summary, detach, archive = knobs.summarize_below, knobs.detach_below, knobs.forget_salience_threshold
        rises, attaches = self.above(summary * CLIMB_MARGIN), self.above(detach * CLIMB_MARGIN)
        return f"""
            CASE WHEN {self.below(archive)} AND {self.gate()} THEN {Rung.ARCHIVED:d}
                 WHEN v.rung >= {Rung.DETACHED:d} THEN
                     CASE WHEN NOT {attaches} THEN {Rung.DETACHED:d}
                          WHEN {rises} THEN {Rung.ACTIVE:d} ELSE {Rung.SUMMARIZED:d} END
                 WHEN {self.below(detach)} THEN {Rung.DETACHED:d}
                 WHEN v.rung = {Rung.SUMMARIZED:d} THEN
                     CASE WHEN {rises} THEN {Rung.ACTIVE:d} ELSE {Rung.SUMMARIZED:d} END
                 WHEN {self.below(summary)} THEN {Rung.SUMMARIZED:d}
                 ELSE {Rung.ACTIVE:d} END"""

    def leaving(self) -> list[tuple[int, float, float, float]]:
        """Return ranges of the index in which every topic lies that the thresholds move off its rung.

        Each is (rung, half-life, low, high), high being outside. On the first rung the index holds a lower bound of
        the fade key, so that a few topics more are found; ``ladder`` decides.
        """
        knobs = self.policy.knobs
        # The scores of "static" are compared as they are; over this much the key and the score cannot disagree.
        slack = NO_DECAY_SECONDS * 1e-7 if knobs.strategy == "static" else 1e-6 * knobs.half_life
        summary, detach, archive = knobs.summarize_below, knobs.detach_below, knobs.forget_salience_threshold
        falling = {Rung.ACTIVE: max(summary, archive), Rung.SUMMARIZED: max(detach, archive), Rung.DETACHED: archive}
        rising = {Rung.SUMMARIZED: summary, Rung.DETACHED: detach}
        ranges = []
        for rung, theta in falling.items():
            high = self._fade_bound(theta) + slack
            ranges.append((int(rung), knobs.half_life, -math.inf, high))
            if rung in rising:
                # A rung that is switched off is left above 0, which is everywhere: no topic lies in both ranges.
                low = max(high, self._fade_bound(rising[rung] * CLIMB_MARGIN) - slack)
                ranges.append((int(rung), knobs.half_life, low, math.inf))
        return ranges

    def held(self) -> "HeldSql":
        """Return the rung down to which rules hold a topic that do not answer this event, 0 for none.

        A rule that has summarized or detached a topic still means it when something else happens; without this, each
        event that the rule does not answer would bring the topic back up, and the next schedule down again.
        """
        answering = self.policy.rules.on(self.event)
        parts, needs_topic = [], False
        for rule in self.policy.rules.rules:
            if rule.enabled and rule not in answering and rule.action in ("summarize", "detach"):
                compiled = predicate_sql(
                    condition_parse(rule.condition), now=self.moment(), score_sql=self.score(), bind=self.bind
                )
                needs_topic = needs_topic or compiled.needs_topic
                parts.append(f"CASE WHEN v.rung > 0 AND {compiled.sql} THEN {RULE_RUNG[rule.action]} ELSE 0 END")
        return HeldSql(f"greatest({', '.join(parts)})" if parts else "0", needs_topic)

    def rules(self) -> "RulesSql":
        """Return what the rules that answer the event make of the topic."""
        return _rules_sql(self)


@dataclass(frozen=True, slots=True)
class HeldSql:
    """The rung down to which other rules hold a topic, and whether that reads the topic's own row."""

    rung: str
    needs_topic: bool


@dataclass(frozen=True, slots=True)
class RulesSql:
    """The rules of one policy as expressions; ``rung_rule`` is 0 or the number of the first rule that moves the topic.

    ``pins`` is NULL, or whether the topic is to be pinned; ``adds`` the categories to add, NULL for none.
    """

    rules: tuple[Rule, ...]
    rung_rule: str
    rule_rung: str
    rule_rung_direct: str
    pins: str
    pin_rule: str
    adds: str
    needs_topic: bool

    def __bool__(self) -> bool:
        return bool(self.rules)


def _rules_sql(judge: Judge) -> RulesSql:
    rules = judge.policy.rules.on(judge.event)
    score = judge.score() if rules else "0"
    now = judge.moment() if rules else ""
    added: dict[str, str] = {}
    needs_topic = False
    rung_rules, rungs, at_once, pins, pin_rules, adds = [], [], [], [], [], []
    for place, rule in enumerate(rules, start=1):
        compiled = predicate_sql(
            condition_parse(rule.condition), now=now, score_sql=score, bind=judge.bind, categories_added=dict(added)
        )
        needs_topic = needs_topic or compiled.needs_topic
        if rule.action in RUNG_ACTIONS:
            rung_rules.append(f"WHEN {compiled.sql} THEN {place}")
            rungs.append(f"WHEN {place} THEN {RULE_RUNG[rule.action]}")
            at_once.append(f"WHEN {compiled.sql} THEN {RULE_RUNG[rule.action]}")
        elif rule.action in PIN_ACTIONS:
            pins.append(f"WHEN {compiled.sql} THEN {'true' if rule.action == 'pin' else 'false'}")
            pin_rules.append(f"WHEN {compiled.sql} THEN {place}")
        else:
            needs_topic = True
            category = judge.bind(rule.category) + "::varchar"
            adds.append(f"CASE WHEN {compiled.sql} AND NOT {category} = ANY(t.categories) THEN {category} END")
            before = added.get(rule.category)
            added[rule.category] = f"({before} OR {compiled.sql})" if before else compiled.sql
    return RulesSql(
        rules=rules,
        rung_rule=f"CASE {' '.join(rung_rules)} ELSE 0 END" if rung_rules else "0",
        rule_rung=f"CASE rule {' '.join(rungs)} ELSE 0 END" if rungs else "0",
        rule_rung_direct=f"CASE {' '.join(at_once)} ELSE 0 END" if at_once else "0",
        pins=f"CASE {' '.join(pins)} END" if pins else "NULL::boolean",
        pin_rule=f"CASE {' '.join(pin_rules)} ELSE 0 END" if pin_rules else "0",
        adds=_adds_sql(adds),
        needs_topic=needs_topic,
    )


def _adds_sql(adds: list[str]) -> str:
    """Return the categories to add, each once and no more than a topic may have; NULL for none."""
    if not adds:
        return "NULL::varchar[]"
    chosen = f"ARRAY(SELECT DISTINCT c FROM unnest(ARRAY[{', '.join(adds)}]) AS c WHERE c IS NOT NULL ORDER BY c)"
    return f"nullif(({chosen})[1:{MAX_CATEGORIES} - cardinality(t.categories)], '{{}}')"
