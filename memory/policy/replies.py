"""The replies about policies with their members, which are also in the OpenAPI document."""

import datetime as dt
from typing import Annotated, Any, NotRequired

from memory.core.replies import TypedDict, doc
from memory.core.rules import RuleOut

Value = float | int | bool | str | list[str]

# These two types use the call syntax, because ``from`` is a keyword of Python.
EffectiveValue = TypedDict(
    "EffectiveValue",
    {
        "value": Value,
        "from": Annotated[str, doc("A scope, default or environment.")],
        "preset": NotRequired[Annotated[str | None, doc("The preset of that scope that sets it, if any.")]],
        "raised_from": NotRequired[
            Annotated[float, doc("The lower value of a threshold that was raised to the threshold of the next stage.")]
        ],
    },
)
EffectiveValue.__doc__ = "A value in force and its source."
RuleInForce = TypedDict(
    "RuleInForce",
    {
        "name": str,
        "words": str,
        "enabled": bool,
        "from": Annotated[str, doc("The scope whose policy contains it.")],
        "preset": NotRequired[Annotated[str | None, doc("The preset that contains it, if any.")]],
    },
)
RuleInForce.__doc__ = "A rule that applies to a scope, in words."


class RekeyingOut(TypedDict):
    """A change of half-life that the worker is applying to the rows.

    Of a change above the scope of the key, the reason is empty and the numbers are null.
    """

    scope: str
    reason: str
    started_at: dt.datetime
    done: Annotated[int | None, doc("Topics processed so far.")]
    total: Annotated[int | None, doc("Topics to process; null before it has started.")]


class PolicyOut(TypedDict):
    """The policy set at a scope, and the values in force there."""

    scope: str
    version: Annotated[int, doc("0 while no policy is set here.")]
    preset: str | None
    values: Annotated[dict[str, Value], doc("What is set here; everything else is inherited.")]
    rules: Annotated[list[RuleOut], doc("The rules set here, without those of the preset.")]
    rules_in_words: Annotated[list[RuleInForce], doc("All rules that apply here, nearest scope first.")]
    effective: dict[str, EffectiveValue]
    warnings: Annotated[
        list[str], doc("Warnings about values in force here and below, which are accepted nevertheless.")
    ]
    rekeying: Annotated[list[RekeyingOut], doc("Changes of half-life that the worker has not yet applied to all rows.")]


class DiffLine(TypedDict):
    """One change of a version; null means inherited, or that the rule does not exist."""

    name: str
    before: NotRequired[Any]
    after: NotRequired[Any]
    in_words: str


class PolicyVersionOut(TypedDict):
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


class PolicyVersionPage(TypedDict):
    """Versions, newest first; ``next`` is the cursor of the next page, null on the last."""

    items: list[PolicyVersionOut]
    next: str | None
