"""Rules: event -> condition -> action. A rule belongs to a scope and holds for everything below it."""

from dataclasses import dataclass, field
from typing import Any, NotRequired

from memory.core.replies import TypedDict
from memory.formulas.ladder import ARCHIVED, DETACHED, SUMMARIZED

# What can happen to a scope. A run names the event it answers.
EVENTS = ("ingest_complete", "query_complete", "cron", "memory_pressure", "manual")
# What gives way to the soft limit; memory pressure, and an operator by hand, do not.
GATED_EVENTS = ("ingest_complete", "query_complete", "cron")

# Of the first group a topic gets the first that matches, in the order of the rules; the others add to it.
RUNG_ACTIONS = ("summarize", "detach", "archive", "release")
PIN_ACTIONS = ("pin", "unpin")
# What such a rule makes of a topic's rung; release is beyond the last one and leaves the rung as it is.
RELEASED = 9
RULE_RUNG = {"summarize": SUMMARIZED, "detach": DETACHED, "archive": ARCHIVED, "release": RELEASED}
ACTIONS = (*RUNG_ACTIONS, *PIN_ACTIONS, "categorize")


class RuleOut(TypedDict):
    """A rule as it is stored."""

    name: str
    events: list[str]
    condition: dict[str, Any]
    action: str
    category: NotRequired[str | None]
    enabled: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, as validated by ``rule_parse``. ``condition`` is the canonical JSON tree."""

    name: str
    events: tuple[str, ...]
    condition: dict[str, Any]
    action: str
    category: str = ""
    enabled: bool = True
    # The scope of the policy it was written in; it holds there and below.
    scope: str = "/"

    def as_json(self) -> RuleOut:
        """Return the members as they are stored and sent; the scope is that of the policy around it."""
        said: RuleOut = {
            "name": self.name,
            "events": list(self.events),
            "condition": self.condition,
            "action": self.action,
            "enabled": self.enabled,
        }
        if self.action == "categorize":
            said["category"] = self.category
        return said


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules in force for a scope, nearest scope first, each scope's in its own order."""

    rules: tuple[Rule, ...] = field(default=())

    def on(self, event: str | None) -> tuple[Rule, ...]:
        """Return the enabled rules that answer ``event``; None stands for the events of a schedule."""
        return tuple(rule for rule in self.rules if rule.enabled and (event or "cron") in rule.events)
