"""Parses rules from JSON, and checks each rule and their order."""

from collections.abc import Sequence

from memory.core.errors import ValueRefused, problems_within
from memory.core.problem_codes import ProblemCode
from memory.core.rules import ACTIONS, EVENTS, Rule
from memory.core.scopes import scope_normalize
from memory.predicates.rule_conditions import condition_json, condition_parse
from memory.predicates.tree import categories_of, comparisons, value_words

MAX_RULES = 50
MAX_NAME = 100
MAX_CATEGORY = 200

# The events of a rule that names none. A rule for the events of writes and queries must name them.
DEFAULT_EVENTS = ("cron", "memory_pressure", "manual")
_MEMBERS = ("name", "events", "condition", "action", "category", "enabled")


def rule_parse(data: object, *, scope: str) -> Rule:
    """Return a JSON object as a rule of the policy at ``scope``. Raises ``ValueRefused``."""
    if not isinstance(data, dict):
        raise _invalid("A rule must be an object with name, condition and action.")
    name = data.get("name")
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise _invalid(f"A rule needs a name of 1 to {MAX_NAME} printable characters.", "name")
    name = name.strip()
    try:
        return _parse(name, data, scope_normalize(scope))
    except ValueRefused as problem:
        raise ValueRefused(f"Rule {name!r}: {problem.sentence}", code=problem.code, member=problem.member) from None


def rules_parse(data: object, *, scope: str) -> tuple[Rule, ...]:
    """Return the rules of one policy, in order. Raises ``ValueRefused`` for an invalid rule, for two rules of the same
    name, and for a rule that depends on a later one."""
    if not isinstance(data, (list, tuple)):
        raise _invalid("Rules must be a list.", "rules")
    if len(data) > MAX_RULES:
        raise ValueRefused(
            f"A policy holds at most {MAX_RULES} rules; {len(data)} were given.",
            code=ProblemCode.TOO_LARGE,
            member="rules",
        )
    rules: list[Rule] = []
    for at, entry in enumerate(data):
        with problems_within(f"rules[{at}]"):
            rule = rule_parse(entry, scope=scope)
            if any(rule.name == other.name for other in rules):
                raise _invalid(f"Two rules are named {rule.name!r}; the names within a scope must be unique.", "name")
            rules.append(rule)
    _order_check(rules)
    return tuple(rules)


def _invalid(sentence: str, member: str = "") -> ValueRefused:
    return ValueRefused(sentence, code=ProblemCode.INVALID_RULE, member=member)


def _parse(name: str, data: dict[object, object], scope: str) -> Rule:
    unknown = sorted(str(member)[:50] for member in data if member not in _MEMBERS)
    if unknown:
        raise _invalid(f"the member {unknown[0]!r} does not exist; members are {', '.join(_MEMBERS)}.", unknown[0])
    action = data.get("action")
    if not isinstance(action, str) or action not in ACTIONS:
        raise _invalid(f"`action` must be one of {', '.join(ACTIONS)}.", "action")
    if "condition" not in data:
        raise _invalid("a condition is missing.", "condition")
    condition = condition_parse(data["condition"])
    for comparison, _negated in comparisons(condition):
        # Runs change rungs and pins, so the rule would match other topics in the next run.
        if comparison.field in ("rung", "pinned"):
            raise ValueRefused(
                f"a condition must not use {comparison.field}: a run changes it, so a second run right after the first "
                "would change something again. Runs never change pinned memories.",
                code=ProblemCode.INVALID_RULE,
                member="condition",
            )
    category = _category(data, action)
    if any(
        comparison.field == "category" and not negated and category in value_words(comparison)
        for comparison, negated in comparisons(condition)
        if category
    ):
        raise ValueRefused(
            f"it adds the category {category!r} to memories that already have it.",
            code=ProblemCode.INVALID_RULE,
            member="category",
        )
    enabled = data.get("enabled", True)
    if not isinstance(enabled, bool):
        raise _invalid("`enabled` must be true or false.", "enabled")
    return Rule(
        name=name,
        events=_events(data.get("events", list(DEFAULT_EVENTS))),
        condition=condition_json(condition),
        action=action,
        category=category,
        enabled=enabled,
        scope=scope,
    )


def _events(data: object) -> tuple[str, ...]:
    if not isinstance(data, (list, tuple)) or not data or any(event not in EVENTS for event in data):
        raise _invalid(f"`events` must be a list of at least one of {', '.join(EVENTS)}.", "events")
    return tuple(event for event in EVENTS if event in data)


def _category(data: dict[object, object], action: str) -> str:
    category = data.get("category", "")
    if action != "categorize":
        if category != "":
            raise _invalid(f"`category` is only for the action categorize, not for {action}.", "category")
        return ""
    if not isinstance(category, str) or not category.strip() or len(category) > MAX_CATEGORY:
        raise _invalid(f"categorize needs a category of 1 to {MAX_CATEGORY} characters.", "category")
    if not category.isprintable():
        raise _invalid("a category must consist of printable characters.", "category")
    return category.strip()


def _order_check(rules: Sequence[Rule]) -> None:
    """Raise ``ValueRefused`` for a rule that uses a category which a later rule adds, because only a second run would
    see this category. Rules that are switched off are checked too."""
    for at, rule in enumerate(rules):
        for later in rules[at + 1 :]:
            if _depends(rule, later):
                raise ValueRefused(
                    f"Rule {rule.name!r} uses the category {later.category!r}, which the later rule {later.name!r} "
                    f"adds. Put {later.name!r} first; otherwise a second run right after the first would change "
                    "something.",
                    code=ProblemCode.INVALID_RULE,
                    member=f"rules[{at}].condition",
                )


def rules_ordered(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return ``rules`` ordered so that each category is added before it is used: rules that categorize come first.
    ``rules`` may come from several scopes, nearest first. Raises ``ValueRefused`` if rules of two scopes depend on each
    other."""
    waiting = [rule for rule in rules if rule.category]
    ordered: list[Rule] = []
    while waiting:
        ready = [rule for rule in waiting if not any(_depends(rule, other) for other in waiting)]
        if not ready:
            raise ValueRefused(
                "Rules depend on each other: each tests for a category that another one adds. They are "
                + ", ".join(f"{rule.name!r} of {rule.scope} (adds {rule.category!r})" for rule in waiting)
                + ". Remove one of the conditions.",
                code=ProblemCode.INVALID_RULE,
                member="rules",
            )
        ordered += ready
        waiting = [rule for rule in waiting if rule not in ready]
    return (*ordered, *(rule for rule in rules if not rule.category))


def _depends(rule: Rule, other: Rule) -> bool:
    # If both rules add the same category, their order does not matter.
    if not other.category or other.category == rule.category:
        return False
    return other.category in categories_of(condition_parse(rule.condition))
