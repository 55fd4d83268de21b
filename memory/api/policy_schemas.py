"""Request and reply schemas of the routes of policies."""

import datetime as dt
from typing import Any, Self

from ninja import Schema
from pydantic import BaseModel, Field, model_validator

Value = float | int | bool | str | list[str]


class EffectiveValue(Schema):
    """A value in force and its source."""

    value: Value
    source: str = Field(alias="from", description="A scope, default or environment.")
    preset: str | None = Field(default=None, description="The preset of that scope that sets it, if any.")


class RuleOut(Schema):
    """A stored rule."""

    name: str
    events: list[str]
    condition: dict[str, Any]
    action: str
    category: str | None = None
    enabled: bool


class RuleInForce(Schema):
    """A rule that applies to a scope, in words."""

    name: str
    words: str
    enabled: bool
    source: str = Field(alias="from", description="The scope whose policy contains it.")
    preset: str | None = Field(default=None, description="The preset that contains it, if any.")


class RekeyingOut(Schema):
    """A change of half-life that the worker is applying to the rows."""

    scope: str
    reason: str
    started_at: dt.datetime
    done: int = Field(description="Topics processed so far.")
    total: int | None = Field(description="Topics to process; null before it has started.")


class PolicyOut(Schema):
    """The policy set at a scope, and the values in force there."""

    scope: str
    version: int = Field(description="0 while no policy is set here.")
    preset: str | None
    values: dict[str, Value] = Field(description="What is set here; everything else is inherited.")
    rules: list[RuleOut] = Field(description="The rules set here, without those of the preset.")
    rules_in_words: list[RuleInForce] = Field(description="All rules that apply here, nearest scope first.")
    effective: dict[str, EffectiveValue]
    warnings: list[str] = Field(description="Warnings about values in force, which are accepted nevertheless.")
    rekeying: list[RekeyingOut] = Field(
        description="Changes of half-life that the worker has not yet applied to all rows."
    )


class DiffLine(Schema):
    """One change of a version; null means inherited, or that the rule does not exist."""

    name: str
    before: Any = None
    after: Any = None
    in_words: str


class PolicyVersionOut(Schema):
    """One version of the policy of a scope."""

    scope: str
    version: int
    author: str
    reason: str
    created_at: dt.datetime
    preset: str | None
    values: dict[str, Value]
    rules: list[RuleOut]
    rules_in_words: list[str]
    rolled_back_to: int | None
    diff: list[DiffLine]


class PolicyVersionPage(Schema):
    """Versions, newest first; ``next`` is the cursor of the next page, null on the last."""

    items: list[PolicyVersionOut]
    next: str | None


# Requests are plain models: Ninja's schemas read attributes of the input, and a dict has an attribute ``values``.


class PolicyDraft(BaseModel, extra="forbid"):
    """The whole policy of a scope. Omitted values are inherited."""

    preset: str | None = Field(default=None, description="balanced, memstate, importance-decay, ...; null for none.")
    values: dict[str, Any] | None = Field(default=None, description="The whole set, by name; null inherits.")
    rules: list[Any] | None = Field(
        default=None, description="Rules of this scope, or names of included rule sets; if omitted, the rules stay."
    )
    reason: str = Field(default="", description="Why; must not be empty.", json_schema_extra={"minLength": 1})
    base_version: int | None = Field(
        default=None, description="The version that the draft is based on; 409 if there is a newer one."
    )

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        # An empty request would reset everything to inherited values, which is hardly intended.
        if self.values is None and self.preset is None and self.rules is None:
            raise ValueError("must contain values, a preset or rules; `values: {}` inherits all values")
        return self


class PolicyRollback(BaseModel, extra="forbid"):
    """The version to roll back to, and the reason."""

    to: int = Field(ge=0, le=2_147_483_647, description="The number of a version of this scope; 0 removes the policy.")
    reason: str = Field(default="", description="Why; must not be empty.", json_schema_extra={"minLength": 1})
