"""The diff between two versions of a policy, as lines and in words."""

from collections.abc import Mapping
from typing import Any

RULE = "rule "


def diff_lines(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one line ``{name, before, after}`` for each difference between two stored versions. None means not set.
    The line of a rule is named ``rule <name>``; a line ``rules`` means that only the order differs."""
    lines = []
    if before["preset"] != after["preset"]:
        lines.append(_line("preset", before["preset"] or None, after["preset"] or None))
    lines += _differing(before["values"], after["values"])
    old, new = ({f"{RULE}{rule['name']}": rule for rule in version["rules"]} for version in (before, after))
    rules = _differing(old, new)
    if not rules and list(old) != list(new):
        names = [[name.removeprefix(RULE) for name in named_rules] for named_rules in (old, new)]
        rules = [_line("rules", *names)]
    return lines + rules


def line_words(line: Mapping[str, Any]) -> str:
    """Return one line of a diff in words."""
    name, before, after = line["name"], line["before"], line["after"]
    if name.startswith(RULE):
        return f"{name} {'added' if before is None else 'removed' if after is None else 'changed'}"
    return f"{name} from {value_words(before)} to {value_words(after)}"


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = [*before, *(name for name in after if name not in before)]
    return [_line(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)]


def _line(name: str, before: Any, after: Any) -> dict[str, Any]:
    return {"name": name, "before": before, "after": after}


def value_words(value: Any) -> str:
    """Return a value in words; None is ``inherited``."""
    if value is None:
        return "inherited"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
