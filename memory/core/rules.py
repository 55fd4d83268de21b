"""Rules: event, condition and action. A rule belongs to a scope and applies there and below."""

from dataclasses import dataclass, field
from typing import Any, NotRequired

from memory.core.replies import TypedDict
from memory.formulas.ladder import ARCHIVED, DETACHED, SUMMARIZED

# The events that start a run.
EVENTS = ("ingest_complete", "query_complete", "cron", "memory_pressure", "manual")
# These events start a run only if the number of topics reaches the soft limit. The other events always start a run.
GATED_EVENTS = ("ingest_complete", "query_complete", "cron")

# Of the matching rules with a rung action, only the first applies to a topic. The same holds for pin actions. All
# matching rules that categorize apply.
RUNG_ACTIONS = ("summarize", "detach", "archive", "release")
PIN_ACTIONS = ("pin", "unpin")
# The rung to which a rung action moves a topic. A release has a number above all rungs, and does not change the rung.
RELEASED = 9
RULE_RUNG = {"summarize": SUMMARIZED, "detach": DETACHED, "archive": ARCHIVED, "release": RELEASED}
# The action that combines several similar topics into one. A rule with this action applies in addition to rung actions,
# and moves only topics that are combined.
COMPACT = "compact"
ACTIONS = (*RUNG_ACTIONS, COMPACT, *PIN_ACTIONS, "categorize")


class RuleOut(TypedDict):
    """A stored rule."""

    name: str
    events: list[str]
    condition: dict[str, Any]
    action: str
    category: NotRequired[str | None]
    enabled: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule that ``rule_parse`` has checked. ``condition`` is the canonical JSON tree."""

    name: str
    events: tuple[str, ...]
    condition: dict[str, Any]
    action: str
    category: str = ""
    enabled: bool = True
    # The scope of the policy that contains the rule.
    scope: str = "/"

    def as_json(self) -> RuleOut:
        """Return the members in the form in which they are stored and sent, without the scope."""
        members: RuleOut = {
            "name": self.name,
            "events": list(self.events),
            "condition": self.condition,
            "action": self.action,
            "enabled": self.enabled,
        }
        if self.action == "categorize":
            members["category"] = self.category
        return members


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules in force for a scope. Rules of the nearest scope come first, in the order of their policy."""

    rules: tuple[Rule, ...] = field(default=())

    def on(self, event: str | None) -> tuple[Rule, ...]:
        """Return the enabled rules for ``event``; None means the scheduled event, ``cron``."""
        return tuple(rule for rule in self.rules if rule.enabled and (event or "cron") in rule.events)
