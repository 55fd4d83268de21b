"""How rules are read and told in words."""

from memory.domain.errors import ValueRefused
from memory.domain.rules import ACTIONS, EVENTS, Rule


def rule_read(said: object, *, scope: str) -> Rule:
    """Return one rule as sent. Raises ``ValueRefused`` with a sentence."""
    if not isinstance(said, dict) or not isinstance(said.get("name"), str) or said.get("action") not in ACTIONS:
        raise ValueRefused(f"A rule has a name and an action of {', '.join(ACTIONS)}.")
    events = said.get("events")
    if not isinstance(events, list) or not events or any(event not in EVENTS for event in events):
        raise ValueRefused(f"A rule has a list of events of {', '.join(EVENTS)}.")
    if not isinstance(said.get("condition"), dict):
        raise ValueRefused("A rule has a condition.")
    return Rule(
        name=said["name"], events=tuple(events), condition=said["condition"], action=said["action"],
        category=str(said.get("category", "")), enabled=bool(said.get("enabled", True)), scope=scope,
    )  # fmt: skip


def rule_words(rule: Rule) -> str:
    """Return the rule as a sentence."""
    return f"On {', '.join(rule.events)}: {rule.action}."
