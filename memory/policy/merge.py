"""Three-way merge for two operators who changed the same version of a policy. Pure functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory.policy.diff import RULE


@dataclass(slots=True)
class MergedDraft:
    """A draft that is based on the newer version. ``clashes`` names the values and rules that both operators changed,
    but differently. For these, the merged draft has the changes of ``mine`` (see ``policy_merge``)."""

    preset: str
    values: dict[str, Any]
    rules: list[Any]
    clashes: list[str] = field(default_factory=list)


def policy_merge(base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> MergedDraft:
    """Merge the draft ``mine`` and the saved version ``theirs``, which both change ``base``. The result has the changes
    of ``mine``, and takes everything else from ``theirs``. Malformed parts of ``mine`` stay as they are."""
    merged = MergedDraft("", {}, [])
    merged.preset = _pick(merged, "preset", base["preset"], mine["preset"], theirs["preset"])
    names = dict.fromkeys((*theirs["values"], *mine["values"], *base["values"]))
    for name in names:
        value = _pick(merged, name, *(version["values"].get(name) for version in (base, mine, theirs)))
        if value is not None:
            merged.values[name] = value
    merged.rules = _rules(merged, base["rules"], mine["rules"], theirs["rules"])
    return merged


def _rules(merged: MergedDraft, base: Sequence[Any], mine: Sequence[Any], theirs: Sequence[Any]) -> list[Any]:
    if list(mine) == list(base):
        return list(theirs)
    if list(theirs) == list(base):
        return list(mine)
    old, own, new = ({_name(rule): rule for rule in rules} for rules in (base, mine, theirs))
    # Rules apply in order. The rules of ``theirs`` come first, then those that only ``mine`` has.
    picked = [
        _pick(merged, f"{RULE}{name}", old.get(name), own.get(name), new.get(name))
        for name in dict.fromkeys((*new, *own))
    ]
    return [rule for rule in picked if rule is not None]


def _pick(merged: MergedDraft, name: str, base: Any, mine: Any, theirs: Any) -> Any:
    if mine == base:
        return theirs
    if theirs not in (base, mine):
        merged.clashes.append(name)
    return mine


def _name(rule: Any) -> str:
    return str(rule.get("name", "")) if isinstance(rule, Mapping) else str(rule)
