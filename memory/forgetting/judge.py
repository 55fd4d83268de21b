"""The rung that a policy assigns to a topic at a given time, as SQL over one row of Vitality.

``memory.formulas.ladder`` computes the same in Python.
"""

import datetime as dt
import math
from dataclasses import dataclass, field

from memory.core.policy_values import NO_DECAY_SECONDS
from memory.core.rules import COMPACT, PIN_ACTIONS, RULE_RUNG, RUNG_ACTIONS, Rule
from memory.core.text import MAX_CATEGORIES
from memory.formulas.ladder import CLIMB_MARGIN
from memory.formulas.salience import MAX_HALVINGS, fade_before
from memory.models import Rung
from memory.models.formulas_sql import epoch_sql, fade_key_sql, number_sql, score_sql
from memory.policy.snapshot import EffectivePolicy
from memory.predicates.binding import Bind
from memory.predicates.rule_conditions import condition_parse
from memory.predicates.sql import predicate_sql
from memory.predicates.tree import needs_time


@dataclass(frozen=True, slots=True)
class Judge:
    """Makes SQL expressions for one policy at one time. They refer to the row ``v`` of Vitality and, if a rule needs
    the topic, to the row ``t`` of Topic."""

    policy: EffectivePolicy
    now: dt.datetime
    event: str
    bind: Bind
    # Whether only rules move topics, because the soft limit holds back the thresholds.
    only_rules: bool = False
    # The expression of the topic's id if all rows are states of one topic.
    topic_id: str = ""
    # The seconds of the idle days before ``now``.
    idle: float = field(init=False)

    def __post_init__(self) -> None:
        idle = 0.0 if self.wall else float(self.policy.time.idle(self.now.timestamp()))
        object.__setattr__(self, "idle", idle)

    @property
    def by_key(self) -> bool:
        """Whether the strategy depends on the fade key alone. An index then finds the due topics."""
        return self.policy.knobs.strategy in ("half_life", "static")

    def time(self) -> str:
        """Return ``now`` as an expression."""
        return f"{self.bind(self.now)}::timestamptz"

    def score(self) -> str:
        """Return the expression of the score, which is compared with the thresholds."""
        knobs = self.policy.knobs
        return score_sql(
            knobs.strategy,
            row="v",
            now=self.time(),
            half_life=knobs.half_life,
            active_half_life=knobs.active_half_life,
            skipped=self.skipped,
        )

    @property
    def skipped(self) -> str:
        """The expression of the idle seconds since the last use."""
        return "0" if self.wall else f"({number_sql(self.idle)} - v.idle_before)"

    @property
    def wall(self) -> bool:
        """Whether idle days count."""
        return self.policy.time.wall

    @property
    def counted_now(self) -> float:
        """The Unix time of ``now`` without idle days, in the units of the fade key."""
        return self.now.timestamp() - self.idle

    def key(self) -> str:
        """Return the expression that is compared with thresholds instead of the score. ``bound`` converts a threshold
        to the units of this expression. Under the strategy ``half_life``, the expression is the fade key, which is
        indexed and needs no power of two per row."""
        knobs = self.policy.knobs
        if knobs.strategy == "static":
            return "v.salience"
        if knobs.strategy != "half_life":
            return self.score()
        half_life = number_sql(knobs.half_life)
        counted = epoch_sql("v.reinforced_at") + ("" if self.wall else " - v.idle_before")
        anew = fade_key_sql("v.salience", counted=counted, half_life=half_life)
        return f"(CASE WHEN v.half_life = {half_life} AND v.wall = {self.wall} THEN v.fade ELSE {anew} END)"

    def bound(self, theta: float) -> float:
        """Return the value of ``key`` at which the score is ``theta``."""
        return self._fade_bound(theta) if self.policy.knobs.strategy == "half_life" else theta

    def score_of(self, key: float) -> float:
        """Return the score at a value of ``key``. This is the inverse of ``bound``."""
        if self.policy.knobs.strategy != "half_life":
            return key
        halvings = (self.counted_now - key) / self.policy.knobs.half_life
        # Without the limits, the power would overflow for a short half-life and a time far from the last use.
        return 0.0 if halvings > MAX_HALVINGS else 2.0 ** -max(halvings, -MAX_HALVINGS)

    def _fade_bound(self, theta: float) -> float:
        return fade_before(theta, half_life=self.policy.knobs.half_life, now=self.counted_now)

    def _below(self, theta: float) -> str:
        return f"{self.key()} < {number_sql(self.bound(theta))}"

    def _above(self, theta: float) -> str:
        return f"{self.key()} > {number_sql(self.bound(theta))}"

    def _gate(self) -> str:
        """Return the condition that the topic was unused for long enough to be archived."""
        since = self.unused_since
        return "true" if since is None else f"{self.last_use} {since}"

    @property
    def last_use(self) -> str:
        """The left side of the condition of ``_gate``, with its operator; ``unused_since`` is the right side. The
        condition is equivalent to ``archive_gate_sql``, but it compares the last use with a fixed time instead of
        computing an age per row."""
        relevance = self.policy.knobs.strategy == "relevance"
        used = "coalesce(v.last_retrieved_at, v.created_at)" if relevance else "v.reinforced_at"
        # Subtracting a double is faster than subtracting an interval.
        counted = used if self.wall else f"{epoch_sql(used)} - v.idle_before"
        return f"{counted} {'<' if relevance else '<='}"

    @property
    def unused_since(self) -> str | None:
        """The expression of the time since which a topic must have been unused to be archived. It is None if
        ``prune_after`` is 0, because then even a last use in the future must not prevent archiving. The strategy
        ``relevance`` always has a time."""
        knobs = self.policy.knobs
        if not knobs.prune_after and knobs.strategy != "relevance":
            return None
        moment = self.unused_moment
        return f"{self.bind(moment)}::timestamptz" if self.wall else f"{self.bind(moment.timestamp())}::float8"

    @property
    def unused_moment(self) -> dt.datetime:
        """The time that ``unused_since`` expresses."""
        return self.now - dt.timedelta(seconds=self.idle + self.policy.knobs.prune_after)

    def exempt(self) -> str:
        """Return the condition that the topic's kind is exempt. The partition already leaves out exempt scopes."""
        kinds = self.policy.knobs.exempt_kinds
        return f"v.kind = ANY({self.bind(list(kinds))}::text[])" if kinds else "false"

    def ladder(self) -> str:
        """Return the SQL version of ``rung_target``: the rung that the thresholds assign to the topic."""
        if self.only_rules:
            return "v.rung"
        knobs = self.policy.knobs
        summary, detach, archive = knobs.summarize_below, knobs.detach_below, knobs.forget_salience_threshold
        rises, attaches = self._above(summary * CLIMB_MARGIN), self._above(detach * CLIMB_MARGIN)
        return f"""
            CASE WHEN {self._below(archive)} AND {self._gate()} THEN {Rung.ARCHIVED:d}
                 WHEN v.rung >= {Rung.DETACHED:d} THEN
                     CASE WHEN NOT {attaches} THEN {Rung.DETACHED:d}
                          WHEN {rises} THEN {Rung.ACTIVE:d} ELSE {Rung.SUMMARIZED:d} END
                 WHEN {self._below(detach)} THEN {Rung.DETACHED:d}
                 WHEN v.rung = {Rung.SUMMARIZED:d} THEN
                     CASE WHEN {rises} THEN {Rung.ACTIVE:d} ELSE {Rung.SUMMARIZED:d} END
                 WHEN {self._below(summary)} THEN {Rung.SUMMARIZED:d}
                 ELSE {Rung.ACTIVE:d} END"""

    def leaving(self) -> list[tuple[int, bool, float, float, float]]:
        """Return ranges of the index as (rung, wall, half-life, low, high); ``high`` is exclusive. The ranges contain
        every topic whose rung the thresholds change, and some topics that stay on their rung."""
        knobs = self.policy.knobs
        # The strategy "static" compares scores, not fade keys. This margin covers the rounding between the two.
        slack = NO_DECAY_SECONDS * 1e-7 if knobs.strategy == "static" else 1e-6 * knobs.half_life
        summary, detach, archive = knobs.summarize_below, knobs.detach_below, knobs.forget_salience_threshold
        falling = {Rung.ACTIVE: max(summary, archive), Rung.SUMMARIZED: max(detach, archive), Rung.DETACHED: archive}
        rising = {Rung.SUMMARIZED: summary, Rung.DETACHED: detach}
        ranges = []
        for rung, theta in falling.items():
            high = self._fade_bound(theta) + slack
            ranges.append((int(rung), self.wall, knobs.half_life, -math.inf, high))
            if rung in rising:
                # A disabled rung has the threshold 0, so its range has no lower end. ``max`` keeps the ranges disjoint.
                low = max(high, self._fade_bound(rising[rung] * CLIMB_MARGIN) - slack)
                ranges.append((int(rung), self.wall, knobs.half_life, low, math.inf))
        return ranges

    def kept(self) -> "KeptSql":
        """Return the lowest rung that rules for other events assign to the topic; 0 if there is none. A run does not
        move the topic above this rung.

        Otherwise a run for this event would move the topic up, and a run for the other event would move it down again.
        """
        answering = self.policy.rules.on(self.event)
        parts, needs_topic = [], False
        for rule in self.policy.rules.rules:
            if rule.enabled and rule not in answering and rule.action in ("summarize", "detach"):
                compiled = predicate_sql(
                    condition_parse(rule.condition),
                    now=self.time(),
                    score_sql=self.score(),
                    skipped=self.skipped,
                    bind=self.bind,
                    topic_id=self.topic_id,
                )
                needs_topic = needs_topic or compiled.needs_topic
                parts.append(f"CASE WHEN v.rung > 0 AND {compiled.sql} THEN {RULE_RUNG[rule.action]} ELSE 0 END")
        return KeptSql(f"greatest({', '.join(parts)})" if parts else "0", needs_topic)


@dataclass(frozen=True, slots=True)
class KeptSql:
    """The rung on which rules for other events keep a topic, and whether the expression needs the row of Topic."""

    rung: str
    needs_topic: bool


@dataclass(frozen=True, slots=True)
class RulesSql:
    """The rules of one policy as SQL expressions.

    ``rung_rule`` is the number of the first matching rule that moves the topic, ``pin_rule`` of the first that pins or
    unpins it, and ``compact_rule`` of the first that compacts it. Each is 0 if no such rule matches. ``rule_rung`` is
    the rung of the rule whose number is in the column ``rule``. ``rule_rung_direct`` computes the same rung without
    this column. ``pins`` says whether the topic is to be pinned; ``adds`` are the categories to add. Both are NULL if
    no rule matches. ``timed`` are the numbers of the rules that cannot match a new topic.
    """

    rules: tuple[Rule, ...]
    rung_rule: str
    rule_rung: str
    rule_rung_direct: str
    pins: str
    pin_rule: str
    adds: str
    compact_rule: str
    timed: tuple[int, ...]
    needs_topic: bool

    def __bool__(self) -> bool:
        return bool(self.rules)


def rules_sql(judge: Judge) -> RulesSql:
    """Return the expressions of the rules for the event."""
    rules = judge.policy.rules.on(judge.event)
    score = judge.score() if rules else "0"
    now = judge.time() if rules else ""
    added: dict[str, str] = {}
    needs_topic = False
    rung_rules, rungs, direct, pins, pin_rules, adds, compacts, timed = [], [], [], [], [], [], [], []
    for number, rule in enumerate(rules, start=1):
        condition = condition_parse(rule.condition)
        if needs_time(condition):
            timed.append(number)
        compiled = predicate_sql(
            condition,
            now=now,
            score_sql=score,
            skipped=judge.skipped,
            bind=judge.bind,
            categories_added=dict(added),
            topic_id=judge.topic_id,
        )
        needs_topic = needs_topic or compiled.needs_topic
        if rule.action in RUNG_ACTIONS:
            rung_rules.append(f"WHEN {compiled.sql} THEN {number}")
            rungs.append(f"WHEN {number} THEN {RULE_RUNG[rule.action]}")
            direct.append(f"WHEN {compiled.sql} THEN {RULE_RUNG[rule.action]}")
        elif rule.action in PIN_ACTIONS:
            pins.append(f"WHEN {compiled.sql} THEN {'true' if rule.action == 'pin' else 'false'}")
            pin_rules.append(f"WHEN {compiled.sql} THEN {number}")
        elif rule.action == COMPACT:
            compacts.append(f"WHEN {compiled.sql} THEN {number}")
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
        rule_rung_direct=f"CASE {' '.join(direct)} ELSE 0 END" if direct else "0",
        pins=f"CASE {' '.join(pins)} END" if pins else "NULL::boolean",
        pin_rule=f"CASE {' '.join(pin_rules)} ELSE 0 END" if pin_rules else "0",
        adds=_adds_sql(adds),
        compact_rule=f"CASE {' '.join(compacts)} ELSE 0 END" if compacts else "0",
        timed=tuple(timed),
        needs_topic=needs_topic,
    )


def _adds_sql(adds: list[str]) -> str:
    """Return the categories to add, without duplicates and up to the limit of a topic; NULL if there are none."""
    if not adds:
        return "NULL::varchar[]"
    chosen = f"ARRAY(SELECT DISTINCT c FROM unnest(ARRAY[{', '.join(adds)}]) AS c WHERE c IS NOT NULL ORDER BY c)"
    return f"nullif(({chosen})[1:{MAX_CATEGORIES} - cardinality(t.categories)], '{{}}')"
