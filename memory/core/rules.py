"""Rules: event -> condition -> action. A rule belongs to a scope and applies there and below."""

from dataclasses import dataclass, field
from typing import Any, NotRequired

from memory.core.replies import TypedDict
from memory.formulas.ladder import ARCHIVED, DETACHED, SUMMARIZED

# The events that start a run.
EVENTS = ("ingest_complete", "query_complete", "cron", "memory_pressure", "manual")
# These start a run only from the soft limit of active topics on; memory pressure and manual runs always do.
GATED_EVENTS = ("ingest_complete", "query_complete", "cron")

# Of the matching rules with a rung action, only the first applies to a topic; all others apply together.
RUNG_ACTIONS = ("summarize", "detach", "archive", "release")
PIN_ACTIONS = ("pin", "unpin")
# The rung to which a rung action moves a topic. A release has a number above all rungs and leaves the rung as it is.
RELEASED = 9
RULE_RUNG = {"summarize": SUMMARIZED, "detach": DETACHED, "archive": ARCHIVED, "release": RELEASED}
# Makes one topic of several near ones. It applies beside the rule that moves a topic, and alone it moves none.
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
    """One rule, as validated by ``rule_parse``. ``condition`` is the canonical JSON tree."""

    name: str
    events: tuple[str, ...]
    condition: dict[str, Any]
    action: str
    category: str = ""
    enabled: bool = True
    # The scope of its policy; the rule applies there and below.
    scope: str = "/"

    def as_json(self) -> RuleOut:
        """Return the members as they are stored and sent, without the scope, which is the policy's."""
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
    """The rules in force for a scope: those of the nearest scope first, in the order of their policy."""

    rules: tuple[Rule, ...] = field(default=())

    def on(self, event: str | None) -> tuple[Rule, ...]:
        """Return the enabled rules for ``event``; None means the scheduled event, ``cron``."""
        return tuple(rule for rule in self.rules if rule.enabled and (event or "cron") in rule.events)
