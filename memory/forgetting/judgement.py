"""Judgement: on which rung a topic belongs under a policy at a moment, as SQL over one row of Vitality.

The Python twin is ``memory.domain.ladder``. Everything that asks what forgetting would do is made of these pieces, so a
preview, a dry run and a run cannot disagree.
"""

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memory.domain.conditions import condition_parse
from memory.domain.knobs import NO_DECAY_SECONDS
from memory.domain.ladder import CLIMB_MARGIN
from memory.domain.rules import PIN_ACTIONS, STANDING_ACTIONS, Rule
from memory.domain.salience import FADE_FLOOR_LAG, fade_before
from memory.forgetting.conditions import condition_sql
from memory.models import Rung
from memory.models.expressions import archive_gate_sql, fade_key_sql, score_sql
from memory.policy.snapshot import EffectivePolicy

Bind = Callable[[object], str]

# What a rule makes of a topic's standing; release is beyond the last rung and leaves the rung as it is.
RELEASED = 9
RULE_RUNG = {
    "summarize": int(Rung.SUMMARIZED),
    "detach": int(Rung.DETACHED),
    "archive": int(Rung.ARCHIVED),
    "release": RELEASED,
}


class Bound:
    """The parameters of one statement, named as they are bound."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def bind(self, value: object) -> str:
        """Keep ``value`` and return its placeholder."""
        name = f"p{len(self.values)}"
        self.values[name] = value
        return f"%({name})s"


def float_sql(value: float) -> str:
    """Return a number as an SQL literal that reads back as exactly the same double."""
    return f"'{value!r}'::float8" if math.isfinite(value) else f"'{'-' if value < 0 else ''}Infinity'::float8"


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

    @property
    def _moment(self) -> str:
        return f"{self.bind(self.now)}::timestamptz"

    def score(self) -> str:
        """Return the expression of the score that the thresholds are compared with."""
        knobs = self.policy.knobs
        return score_sql(
            knobs.strategy,
            row="v",
            now=self._moment,
            half_life=knobs.half_life,
            active_half_life=knobs.active_half_life,
        )

    def bound(self, theta: float) -> float:
        """Return the fade key below which the score is below ``theta``."""
        return fade_before(theta, half_life=self.policy.knobs.half_life, now=self.now.timestamp())

    def _fade(self) -> str:
        half_life = float_sql(self.policy.knobs.half_life)
        anew = fade_key_sql("v.salience", reinforced_at="v.reinforced_at", half_life=half_life)
        return f"(CASE WHEN v.half_life = {half_life} THEN v.fade ELSE {anew} END)"

    def below(self, theta: float) -> str:
        """Return the condition that the score is below ``theta``."""
        return self._compare("<", theta)

    def above(self, theta: float) -> str:
        """Return the condition that the score is above ``theta``."""
        return self._compare(">", theta)

    def _compare(self, operator: str, theta: float) -> str:
        strategy = self.policy.knobs.strategy
        if strategy == "half_life":
            # Comparing keys instead of scores spares a power of two per row, and is what the index is made of.
            return f"{self._fade()} {operator} {float_sql(self.bound(theta))}"
        if strategy == "static":
            return f"v.salience {operator} {float_sql(theta)}"
        return f"{self.score()} {operator} {float_sql(theta)}"

    def exempt(self) -> str:
        """Return the condition that the topic's kind is never forgotten. Scopes are a matter of the ground."""
        kinds = self.policy.knobs.exempt_kinds
        return f"v.kind = ANY({self.bind(list(kinds))}::text[])" if kinds else "false"

    def ladder(self) -> str:
        """Return the rung on which the thresholds put the topic, as ``rung_target`` does."""
        knobs = self.policy.knobs
        gate = archive_gate_sql(knobs.strategy, row="v", now=self._moment, prune_after=knobs.prune_after)
        summary, detach, archive = knobs.theta_summary, knobs.theta_detach, knobs.forget_salience_threshold
        rises, attaches = self.above(summary * CLIMB_MARGIN), self.above(detach * CLIMB_MARGIN)
        return f"""
            CASE WHEN {self.below(archive)} AND {gate} THEN {Rung.ARCHIVED:d}
                 WHEN v.rung >= {Rung.DETACHED:d} THEN
                     CASE WHEN NOT {attaches} THEN {Rung.DETACHED:d}
                          WHEN {rises} THEN {Rung.ACTIVE:d} ELSE {Rung.SUMMARIZED:d} END
                 WHEN {self.below(detach)} THEN {Rung.DETACHED:d}
                 WHEN v.rung = {Rung.SUMMARIZED:d} THEN
                     CASE WHEN {rises} THEN {Rung.ACTIVE:d} ELSE {Rung.SUMMARIZED:d} END
                 WHEN {self.below(summary)} THEN {Rung.SUMMARIZED:d}
                 ELSE {Rung.ACTIVE:d} END"""

    def leaving(self) -> str:
        """Return a condition that every topic fulfils which the thresholds move off its rung, as ranges of the index.

        The index holds a lower bound of the fade key, so a few topics more fulfil it; ``ladder`` decides.
        """
        knobs = self.policy.knobs
        half_life = knobs.half_life
        # The scores of "static" are compared as they are; over this much the key and the score cannot disagree.
        slack = NO_DECAY_SECONDS * 1e-7 if knobs.strategy == "static" else 1e-6 * half_life

        def under(theta: float) -> str:
            return f"v.fade_floor < {float_sql(self.bound(theta) + slack)}"

        def over(theta: float) -> str:
            return f"v.fade_floor > {float_sql(self.bound(theta) - FADE_FLOOR_LAG * half_life - slack)}"

        ranges = {
            Rung.ACTIVE: [under(max(knobs.theta_summary, knobs.forget_salience_threshold))],
            Rung.SUMMARIZED: [
                under(max(knobs.theta_detach, knobs.forget_salience_threshold)),
                over(knobs.theta_summary * CLIMB_MARGIN),
            ],
            Rung.DETACHED: [under(knobs.forget_salience_threshold), over(knobs.theta_detach * CLIMB_MARGIN)],
        }
        parts = [
            f"v.rung = {rung:d} AND v.half_life = {float_sql(half_life)} AND {condition}"
            for rung, conditions in ranges.items()
            for condition in conditions
        ]
        return " OR ".join(f"({part})" for part in parts)

    def bin(self, edges: Sequence[float]) -> str:
        """Return which of the bins between ``edges`` the score falls into, from 0; the outer ones are open."""
        inner = edges[1:-1]
        value = self.score()
        if self.policy.knobs.strategy == "half_life":
            # The same trick as in comparing: the edges are turned into keys once, not each key into a score.
            value, inner = self._fade(), [self.bound(edge) for edge in inner]
        return f"width_bucket({value}, ARRAY[{', '.join(map(float_sql, inner))}])"

    def rules(self) -> "RulesSql":
        """Return what the rules that answer the event make of the topic."""
        return _rules_sql(self)


@dataclass(frozen=True, slots=True)
class RulesSql:
    """The rules of one policy as expressions; ``standing`` is 0 or the place of the first rule that matches.

    ``pins`` is NULL, or whether the topic is to be pinned; ``adds`` the categories to add, NULL for none.
    """

    rules: tuple[Rule, ...]
    standing: str
    standing_rung: str
    standing_rung_at_once: str
    pins: str
    pin_rule: str
    adds: str
    needs_topic: bool

    def __bool__(self) -> bool:
        return bool(self.rules)


def _rules_sql(judge: Judge) -> RulesSql:
    rules = judge.policy.rules.on(judge.event)
    score = judge.score() if rules else "0"
    now = f"{judge.bind(judge.now)}::timestamptz" if rules else ""
    added: dict[str, str] = {}
    needs_topic = False
    standing, rungs, at_once, pins, pin_rules, adds = [], [], [], [], [], []
    for place, rule in enumerate(rules, start=1):
        compiled = condition_sql(
            condition_parse(rule.condition), now=now, score_sql=score, bind=judge.bind, categories_added=dict(added)
        )
        needs_topic = needs_topic or compiled.needs_topic
        if rule.action in STANDING_ACTIONS:
            standing.append(f"WHEN {compiled.sql} THEN {place}")
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
        standing=f"CASE {' '.join(standing)} ELSE 0 END" if standing else "0",
        standing_rung=f"CASE rule {' '.join(rungs)} ELSE 0 END" if rungs else "0",
        standing_rung_at_once=f"CASE {' '.join(at_once)} ELSE 0 END" if at_once else "0",
        pins=f"CASE {' '.join(pins)} END" if pins else "NULL::boolean",
        pin_rule=f"CASE {' '.join(pin_rules)} ELSE 0 END" if pin_rules else "0",
        adds=f"nullif(array_remove(ARRAY[{', '.join(adds)}], NULL), '{{}}')" if adds else "NULL::varchar[]",
        needs_topic=needs_topic,
    )
