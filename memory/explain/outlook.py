"""What a run would do to one topic at a given time, and which retrieval would have kept the topic from a past run.

Computes in Python what the candidate query computes in SQL; ``tests/explain/test_why_outlook.py`` compares the two.
Times are epochs in seconds.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory.core.rules import COMPACT, PIN_ACTIONS, RULE_RUNG, RUNG_ACTIONS, Rule
from memory.core.scopes import scope_within
from memory.explain.evaluation import predicate_holds, value_compare
from memory.formulas.ladder import ARCHIVED, DETACHED, SUMMARIZED, rung_target
from memory.formulas.salience import SECONDS_PER_DAY, Reinforcement, fade_key, salience_effective, salience_reinforced
from memory.formulas.strategies import TopicUsage, archive_due, score
from memory.policy.snapshot import EffectivePolicy
from memory.predicates.rule_json import condition_parse
from memory.predicates.tree import Comparison, comparisons, needs_time, value_words

THRESHOLDS = {SUMMARIZED: "theta_summary", DETACHED: "theta_detach", ARCHIVED: "forget_salience_threshold"}
# The value for "released" where a rung is expected.
BEYOND = ARCHIVED + 1
# A change more than this many seconds ahead counts as never.
HORIZON = 200 * 365 * SECONDS_PER_DAY
# At the computed time of a change, the score equals the threshold, and a strict comparison is not true yet. So verdicts
# are also computed this many seconds later.
_AFTER = 0.001
_TEXTS = ("title", "summary", "text", "field")


@dataclass(frozen=True, slots=True)
class Subject:
    """One topic as a run sees it. ``half_life`` is the half-life of the stored row, in seconds. ``texts`` are the
    results of ``comparisons_of_texts``."""

    usage: TopicUsage
    rung: int
    pinned: bool
    half_life: float
    scope: str
    categories: frozenset[str] = frozenset()
    provenance: str = ""
    texts: Mapping[Comparison, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The rung to which a run would move a topic, and the rule that decides this. ``rule`` is None if a threshold
    decides. ``may_compact`` means that the run would compact the topic if there are enough similar topics."""

    rung: int
    released: bool
    score: float
    rule: Rule | None = None
    may_compact: bool = False

    @property
    def leaves(self) -> bool:
        """Whether queries would no longer find the topic."""
        return self.released or self.rung == ARCHIVED


@dataclass(frozen=True, slots=True)
class PredictedMove:
    """When a run would move a topic to ``rung`` if nothing uses or changes the topic. ``at`` is None for never."""

    rung: int
    at: float | None
    rule: Rule | None = None


def comparisons_of_texts(rules: Sequence[Rule]) -> Iterator[Comparison]:
    """Yield the comparisons in rules that refer to a text of a topic: its title, its summary or its fields."""
    for rule in rules:
        for comparison, _negated in comparisons(condition_parse(rule.condition)):
            if comparison.field in _TEXTS:
                yield comparison


def protections(subject: Subject, policy: EffectivePolicy) -> list[str]:
    """Return the reasons why no run changes the topic, as sentences; an empty list if runs may change it."""
    knobs, reasons = policy.knobs, []
    if subject.pinned:
        reasons.append("It is pinned.")
    if subject.usage.kind in knobs.exempt_kinds:
        reasons.append(f"Memories of kind {subject.usage.kind} are never forgotten.")
    reasons += [
        f"Nothing in {path} is ever forgotten." for path in knobs.exempt_scopes if scope_within(subject.scope, path)
    ]
    if knobs.mode == "off":
        reasons.append(f"Forgetting is switched off in {policy.at}.")
    return reasons


def score_of(subject: Subject, policy: EffectivePolicy, *, now: float) -> float:
    """Return the score at ``now``: the number that is compared with the thresholds."""
    knobs = policy.knobs
    value = score(
        subject.usage,
        strategy=knobs.strategy,
        half_life=knobs.half_life,
        active_half_life=knobs.active_half_life,
        now=now,
        skipped=policy.time.skipped(subject.usage.idle_before, now),
    )
    return float(value)


def verdict(subject: Subject, policy: EffectivePolicy, *, now: float, event: str = "cron") -> RunVerdict:
    """Return what a run at ``now`` for ``event`` would do to the topic. The result equals that of the candidate
    query."""
    knobs = policy.knobs
    value = score_of(subject, policy, now=now)
    stays = RunVerdict(subject.rung, False, value)
    if knobs.mode == "off" or any(scope_within(subject.scope, path) for path in knobs.exempt_scopes):
        return stays
    chosen, pinned, compacts = _rules_apply(subject, policy, value, now, event)
    if pinned or subject.usage.kind in knobs.exempt_kinds:
        return stays
    if chosen is not None and chosen.action == "release":
        return RunVerdict(subject.rung, True, value, chosen)
    due = archive_due(
        subject.usage,
        strategy=knobs.strategy,
        theta=knobs.forget_salience_threshold,
        prune_after=knobs.prune_after,
        half_life=knobs.half_life,
        active_half_life=knobs.active_half_life,
        now=now,
        skipped=policy.time.skipped(subject.usage.idle_before, now),
    )
    ladder = rung_target(
        subject.rung, value, archive_due=due, theta_summary=knobs.summarize_below, theta_detach=knobs.detach_below
    )
    by_rule = RULE_RUNG[chosen.action] if chosen is not None else 0
    target = max(int(ladder), by_rule, min(subject.rung, _rung_kept(subject, policy, value, now, event)))
    # The condition of ``compacts_sql``, except that topics made by compaction are not recognized.
    not_at_once = chosen is None or by_rule < ARCHIVED or needs_time(condition_parse(chosen.condition))
    wanted = compacts or (knobs.compact and ARCHIVED in (ladder, by_rule))
    return RunVerdict(
        target,
        False,
        value,
        chosen if by_rule >= ladder and target != subject.rung else None,
        subject.rung < ARCHIVED and not_at_once and wanted,
    )


def _rules_apply(
    subject: Subject, policy: EffectivePolicy, value: float, now: float, event: str
) -> tuple[Rule | None, bool, bool]:
    """Return (rule, pinned, compacts): the first matching rule that moves topics, whether the topic is pinned after all
    rules, and whether a rule compacts the topic."""
    categories, chosen, pinned, compacts = subject.categories, None, None, False
    for rule in policy.rules.on(event):
        if not _holds(rule, subject, policy, categories, value, now):
            continue
        if rule.action in RUNG_ACTIONS:
            chosen = chosen or rule
        elif rule.category:
            categories |= {rule.category}
        elif rule.action in PIN_ACTIONS and pinned is None:
            pinned = rule.action == "pin"
        compacts = compacts or rule.action == COMPACT
    return chosen, subject.pinned if pinned is None else pinned, compacts


def _rung_kept(subject: Subject, policy: EffectivePolicy, value: float, now: float, event: str) -> int:
    """Return the rung furthest down the ladder that rules for other events assign to the topic; 0 if there is none."""
    answering = policy.rules.on(event)
    return max(
        (
            RULE_RUNG[rule.action]
            for rule in policy.rules.rules
            if rule.enabled
            and rule not in answering
            and rule.action in ("summarize", "detach")
            and _holds(rule, subject, policy, subject.categories, value, now)
        ),
        default=0,
    )


def _holds(
    rule: Rule, subject: Subject, policy: EffectivePolicy, categories: frozenset[str], value: float, now: float
) -> bool:
    usage = subject.usage

    def answer(comparison: Comparison) -> Any:
        match comparison.field:
            case "scope":
                path = str(comparison.value)
                return scope_within(subject.scope, path) if comparison.op == "within" else subject.scope == path
            case "category":
                return not categories.isdisjoint(value_words(comparison))
            case "kind" | "provenance" as name:
                word = usage.kind if name == "kind" else subject.provenance
                return (word in value_words(comparison)) is (comparison.op in ("is", "in"))
            case "title" | "summary" | "text" | "field":
                return subject.texts[comparison]
            case "age":
                found: float = _seconds(usage.created_at, now)
            case "idle":
                used = usage.created_at if usage.last_retrieved_at is None else usage.last_retrieved_at
                found = _seconds(used + float(policy.time.skipped(usage.idle_before, now)), now)
            case "retrievals":
                found = usage.retrieval_count
            case "score":
                found = value
            case "salience":
                found = salience_of(subject, policy, now=now)
            case "pinned":
                found = subject.pinned
            case _:
                found = subject.rung
        return value_compare(comparison, found)

    return bool(predicate_holds(condition_parse(rule.condition), answer))


def _seconds(since: float, now: float) -> float:
    # Rounded to microseconds, the precision of times in the database.
    return round(now - since, 6)


def salience_of(subject: Subject, policy: EffectivePolicy, *, now: float) -> float:
    """Return the effective salience of a topic at ``now`` if nothing uses the topic until then."""
    usage = subject.usage
    found = salience_effective(
        usage.salience,
        reinforced_at=usage.reinforced_at,
        half_life=subject.half_life,
        now=now,
        skipped=policy.time.skipped(usage.idle_before, now),
    )
    return float(found)


def steps_ahead(subject: Subject, policy: EffectivePolicy, *, now: float) -> list[PredictedMove]:
    """Return when scheduled runs would move the topic to each lower rung if nothing uses it and no day is idle. Rungs
    that the topic would skip are left out."""
    policy = policy.projected(dt.datetime.fromtimestamp(now, dt.UTC))
    moments = sorted({moment for moment in _change_times(subject, policy, now) if now <= moment < now + HORIZON})
    found, reached = [], subject.rung
    for moment in moments:
        for late in (0.0, _AFTER):
            result = verdict(subject, policy, now=moment + late)
            rung = BEYOND if result.released else result.rung
            if rung > reached:
                found.append(PredictedMove(rung, moment, result.rule))
                reached = rung
    return found + [PredictedMove(rung, None) for rung in range(reached + 1, ARCHIVED + 1)]


def _change_times(subject: Subject, policy: EffectivePolicy, now: float) -> Iterable[float]:
    knobs, usage = policy.knobs, subject.usage
    used = usage.created_at if usage.last_retrieved_at is None else usage.last_retrieved_at
    yield now
    skipped = float(policy.time.skipped(usage.idle_before, now))
    yield (used if knobs.strategy == "relevance" else usage.reinforced_at) + skipped + knobs.prune_after
    for name in THRESHOLDS.values():
        yield from _falls_below(subject, policy, getattr(knobs, name), now)
    for rule in policy.rules.on("cron"):
        for comparison, _negated in comparisons(condition_parse(rule.condition)):
            value: Any = comparison.value
            match comparison.field:
                case "age":
                    yield usage.created_at + value
                case "idle":
                    yield used + skipped + value
                case "score":
                    yield from _falls_below(subject, policy, value, now)
                case "salience":
                    yield from _crosses(value, now, lambda at: salience_of(subject, policy, now=at))


def _falls_below(subject: Subject, policy: EffectivePolicy, theta: float, now: float) -> Iterable[float]:
    knobs, usage = policy.knobs, subject.usage
    if knobs.strategy == "half_life" and theta > 0 and usage.salience > 0:
        # The salience s falls to theta at fade - H * log2(theta). This is the fade key of a salience of s / theta.
        since = usage.reinforced_at + float(policy.time.skipped(usage.idle_before, now))
        yield fade_key(usage.salience / theta, reinforced_at=since, half_life=knobs.half_life)
    elif knobs.strategy != "half_life":
        yield from _crosses(theta, now, lambda at: score_of(subject, policy, now=at))


def _crosses(theta: float, now: float, value: Callable[[float], float]) -> Iterable[float]:
    """Yield the time at which ``value``, which must not rise, falls below ``theta``; nothing if it never does."""
    if value(now) < theta or value(now + HORIZON) >= theta:
        return
    low, high = now, now + HORIZON
    while high - low > _AFTER / 2:
        middle = (low + high) / 2
        low, high = (low, middle) if value(middle) < theta else (middle, high)
    yield high


def retrieved(subject: Subject, policy: EffectivePolicy, *, at: float, cap: float) -> Subject:
    """Return the topic as it would be after one more retrieval at ``at``."""
    usage, time = subject.usage, policy.time
    salience, _since = salience_reinforced(
        usage.salience,
        reinforced_at=float(time.counted(usage.reinforced_at, usage.idle_before)),
        half_life=subject.half_life,
        cap=cap,
        reinforcements=[Reinforcement(float(time.counted(at)), policy.knobs.query_salience_bump)],
    )
    last = at if usage.last_retrieved_at is None else max(at, usage.last_retrieved_at)
    changed = dataclasses.replace(
        usage,
        salience=salience,
        reinforced_at=max(at, usage.reinforced_at),
        idle_before=time.idle(at) if at > usage.reinforced_at else usage.idle_before,
        last_retrieved_at=last,
        retrieval_count=usage.retrieval_count + 1,
    )
    return dataclasses.replace(subject, usage=changed)


def rescue_since(subject: Subject, policy: EffectivePolicy, *, run_at: float, event: str, cap: float) -> float | None:
    """Return the earliest time at which one more retrieval would have saved the topic from the run at ``run_at``. Times
    before the last use are not considered. Return None if no retrieval would have saved the topic.

    A later retrieval leaves a higher score and a shorter idle time, so it would also have saved the topic.
    """
    usage = subject.usage

    def kept(at: float) -> bool:
        used = retrieved(subject, policy, at=at, cap=cap)
        return not verdict(used, policy, now=run_at, event=event).leaves

    earliest = float(max(usage.created_at, usage.reinforced_at, usage.last_retrieved_at or 0.0))
    if earliest > run_at or not kept(run_at):
        return None
    if kept(earliest):
        return earliest
    low, high = round(earliest * 1e6), round(run_at * 1e6)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if kept(middle / 1e6) else (middle, high)
    return high / 1e6
