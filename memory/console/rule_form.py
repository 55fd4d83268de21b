"""One rule as a form: name, action, events, and its condition as rows that are chosen from lists.

A row is a comparison or a group. The parts of a group are the rows below it that are indented one level further. So
rows can express every condition of docs/rules.md. ``memory.policy`` parses and checks a rule, and each of its errors is
shown at the field or row that the error names.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django import forms

from memory.console.fields import SuggestInput, form_error
from memory.core.errors import MemoryProblem
from memory.core.rules import ACTIONS, EVENTS, Rule
from memory.policy.rule_parsing import DEFAULT_EVENTS, MAX_CATEGORY, MAX_NAME, rule_parse
from memory.predicates.rule_conditions import (
    FIELDS,
    LIST_OPERATORS,
    MAX_DEPTH,
    MAX_TEXT,
    NAMED_FIELD_OPERATORS,
    OPERATORS,
)

PREFIX, ROW = "rule", "row"
# The most rows. There may be more rows than comparisons in a condition, because groups are rows too.
MAX_ROWS = 100
# The most characters of a value: enough for a list of 100 texts of the greatest length.
MAX_VALUE = 100 * MAX_TEXT
GROUPS = {"all": "all of the rows below", "any": "any of the rows below"}
NAMED = "field"
_WHAT = {
    "kind": "kind",
    "age": "age",
    "idle": "time since the last use",
    "retrievals": "times recalled",
    "score": "score",
    "salience": "salience",
    "scope": "scope",
    "category": "category",
    "title": "title",
    "summary": "summary",
    "text": "any text",
    NAMED: "field named…",
    "provenance": "provenance",
}
_SIGNS = {
    "is": "is",
    "is_not": "is not",
    "in": "is one of",
    "not_in": "is none of",
    ">=": "is at least",
    ">": "is more than",
    "<=": "is at most",
    "<": "is less than",
    "within": "is within",
    "has": "has",
    "has_any": "has any of",
    "contains": "contains",
    "matches": "matches pattern",
}
_EVENT_WORDS = {
    "ingest_complete": "after an ingest",
    "query_complete": "after a recall",
    "cron": "scheduled runs",
    "memory_pressure": "memory pressure",
    "manual": "manual runs",
}
_ACTION_WORDS = {"compact": "compact similar memories", "categorize": "add a category"}
_RULE = re.compile(r"rules\[\d+\]\.")


class RowForm(forms.Form):
    """One row of a condition."""

    level = forms.CharField(
        label="Inside",
        required=False,
        widget=forms.Select(choices=[(str(at), "→" * at or "–") for at in range(MAX_DEPTH - 1)]),
    )
    negated = forms.CharField(label="Not", required=False, widget=forms.Select(choices=[("", "where"), ("not", "not")]))
    what = forms.CharField(
        label="What",
        required=False,
        widget=forms.Select(choices=[("", "choose…"), ("Memories", [*_WHAT.items()]), ("Groups", [*GROUPS.items()])]),
    )
    name = forms.CharField(label="Name of the field", required=False, max_length=MAX_TEXT)
    op = forms.CharField(label="Comparison", required=False, widget=forms.Select(choices=[*_SIGNS.items()]))
    # Without a script the field has no suggestions; static/console/rules.js asks for those that fit the row.
    value = forms.CharField(label="Value", required=False, max_length=MAX_VALUE, widget=SuggestInput("kind"))


@dataclass
class _Node:
    row: int
    said: Mapping[str, str]
    parts: list["_Node"] = field(default_factory=list)


class RuleForm(forms.Form):
    """A rule that is added or changed. ``editing`` is the name of the rule that it replaces, empty for a new rule."""

    editing = forms.CharField(required=False, widget=forms.HiddenInput)
    enabled = forms.CharField(required=False, widget=forms.HiddenInput)
    name = forms.CharField(required=False, max_length=MAX_NAME, label="Name of the rule")
    # ``memory.policy`` checks the choices, so they are plain texts here.
    action = forms.CharField(
        required=False,
        label="Action",
        widget=forms.Select(choices=[(each, _ACTION_WORDS.get(each, each)) for each in ACTIONS]),
    )
    category = forms.CharField(required=False, max_length=MAX_CATEGORY, label="Category to add")
    events = forms.MultipleChoiceField(
        required=False,
        choices=[(each, _EVENT_WORDS[each]) for each in EVENTS],
        widget=forms.CheckboxSelectMultiple,
        label="Applied on",
    )
    match = forms.CharField(
        required=False,
        label="Memories that meet",
        widget=forms.Select(choices=[("all", "all of these"), ("any", "any of these")]),
    )

    def __init__(self, data: Any, rows: Sequence[Mapping[str, str]]) -> None:
        super().__init__(data, prefix=PREFIX)
        self.rows = list(rows)
        self.wrong: dict[int, Any] = {}
        self.is_valid()

    @property
    def row_forms(self) -> Iterable[dict[str, Any]]:
        """The rows as forms, each with its index and its error."""
        for at, row in enumerate(self.rows):
            form = RowForm(initial=dict(row), prefix=ROW, auto_id=f"id_{at}_%s")
            yield {"at": at, "form": form, "error": self.wrong.get(at)}

    def with_rows(self, rows: Sequence[Mapping[str, str]]) -> "RuleForm":
        """Return the same form with other rows."""
        return RuleForm(self.data, rows)

    def rule(self, scope: str) -> dict[str, Any] | None:
        """Return the rule as its stored JSON. If it is invalid, show the error at its field or row, and return None."""
        if self.errors:
            return None
        said = self.cleaned_data
        condition, places = _condition(said["match"], self.rows)
        stored: dict[str, Any] = {
            "name": said["name"],
            "action": said["action"],
            "events": said["events"],
            "condition": condition,
            "enabled": said["enabled"] != "no",
        }
        if said["category"]:
            stored["category"] = said["category"]
        try:
            return dict(rule_parse(stored, scope=scope).as_json())
        except MemoryProblem as problem:
            self.refuse(problem, places)
            return None

    def refuse(self, problem: MemoryProblem, places: Mapping[str, int] | None = None) -> None:
        """Show a problem at its field or row. ``places`` maps the path of each part of the condition to the index of
        its row."""
        error, member = form_error(problem), _RULE.sub("", problem.member, count=1)
        named = [path for path in places or {} if member.startswith(path)]
        if named:
            assert places is not None
            self.wrong[places[max(named, key=len)]] = error
            self.add_error(None, error)
        else:
            self.add_error(member if member in self.fields else "match", error)


def rule_form_new() -> RuleForm:
    """Return the form of a new rule, with one row to begin with."""
    return _form("", {"name": "", "action": "archive", "events": DEFAULT_EVENTS, "enabled": True}, "all", [{}])


def rule_form_of(rule: Rule) -> RuleForm:
    """Return the form of an existing rule."""
    match, rows = rows_of(rule.condition)
    return _form(rule.name, rule.as_json(), match, rows)


def rule_form_sent(data: Any) -> RuleForm:
    """Return the form of a ``QueryDict`` that a browser sent."""
    rows = zip(*(data.getlist(f"{ROW}-{name}") for name in RowForm.base_fields), strict=False)
    return RuleForm(data, [dict(zip(RowForm.base_fields, row, strict=True)) for row in rows][:MAX_ROWS])


def rows_of(condition: Mapping[str, Any]) -> tuple[str, list[dict[str, str]]]:
    """Return (match, rows) of a condition. ``match`` says whether all of the outermost rows must be met (``all``) or
    one of them (``any``)."""
    match = "any" if "any" in condition else "all"
    rows: list[dict[str, str]] = []
    for part in condition.get(match, [condition]):
        _rows_add(part, 0, False, rows)
    return match, rows


def _rows_add(part: Mapping[str, Any], level: int, negated: bool, rows: list[dict[str, str]]) -> None:
    row = {"level": str(level), "negated": "not" if negated else ""}
    if "not" in part and not negated:
        return _rows_add(part["not"], level, True, rows)
    if "not" in part:
        # A row can have only one "not". The inner one is put into a group.
        rows.append({**row, "what": "all"})
        return _rows_add(part, level + 1, False, rows)
    for group in GROUPS:
        if group in part:
            rows.append({**row, "what": group})
            for each in part[group]:
                _rows_add(each, level + 1, False, rows)
            return None
    said = part[NAMED]
    if isinstance(said, Mapping):
        text = _text(said.get("value", ""))
        rows.append({**row, "what": NAMED, "name": said["name"], "op": said["op"], "value": text})
    else:
        rows.append({**row, "what": said, "name": "", "op": part["op"], "value": _text(part["value"])})
    return None


def _text(value: Any) -> str:
    """Return a value as the text of its field: lists separated by commas, JSON if this is not possible."""
    if isinstance(value, list):
        plain = all(word and word == word.strip() and word.isprintable() and "," not in word for word in value)
        return ", ".join(value) if plain and not value[0].startswith("[") else json.dumps(value)
    if isinstance(value, str):
        return value if value.isprintable() and not value.startswith('"') else json.dumps(value)
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _condition(match: str, rows: Sequence[Mapping[str, str]]) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the condition that the rows express, and a dict from each path in the condition to the index of its row.
    Problems name these paths."""
    root: list[_Node] = []
    # The lists of parts to which the next row may belong, from the outermost.
    inside = [root]
    for at, row in enumerate(rows):
        if not row.get("what"):
            continue
        level = int(row["level"]) if row.get("level", "").isdecimal() else 0
        del inside[min(level, len(inside) - 1) + 1 :]
        node = _Node(at, row)
        inside[-1].append(node)
        if row["what"] in GROUPS:
            inside.append(node.parts)
    places: dict[str, int] = {}
    match = "any" if match == "any" else "all"
    if len(root) == 1 and match == "all":
        return _node_json(root[0], "condition", places), places
    return {match: [_node_json(node, f"condition.{match}[{at}]", places) for at, node in enumerate(root)]}, places


def _node_json(node: _Node, path: str, places: dict[str, int]) -> dict[str, Any]:
    places[path] = node.row
    if node.said.get("negated"):
        path += ".not"
    what, op = node.said["what"], node.said.get("op", "")
    value = _value(what, op, node.said.get("value", ""))
    said: dict[str, Any]
    if what in GROUPS:
        said = {what: [_node_json(part, f"{path}.{what}[{at}]", places) for at, part in enumerate(node.parts)]}
    elif what == NAMED:
        named = {"name": node.said.get("name", ""), "op": op}
        said = {NAMED: named if op == "has" else {**named, "value": value}}
    else:
        said = {"field": what, "op": op, "value": value}
    return {"not": said} if node.said.get("negated") else said


def _value(what: str, op: str, text: str) -> Any:
    """Return the text of a field as the value of a condition. A text that cannot be parsed is returned unchanged, so
    that the check of the rule refuses it."""
    if op in LIST_OPERATORS:
        try:
            return json.loads(text) if text.startswith("[") else [*filter(None, map(str.strip, text.split(",")))]
        except ValueError:
            return text
    if text.startswith('"'):
        with contextlib.suppress(ValueError):
            return json.loads(text)
    if FIELDS.get(what) in ("count", "number", "duration"):
        try:
            return int(text) if FIELDS[what] == "count" else float(text)
        except ValueError:
            return text
    return text


def signs_of_fields() -> dict[str, list[str]]:
    """Return the comparisons that each field allows."""
    return {what: list(NAMED_FIELD_OPERATORS if what == NAMED else OPERATORS[FIELDS[what]]) for what in _WHAT}


def _form(editing: str, rule: Mapping[str, Any], match: str, rows: Sequence[Mapping[str, str]]) -> RuleForm:
    said = {
        "editing": editing,
        "enabled": "yes" if rule["enabled"] else "no",
        "name": rule["name"],
        "action": rule["action"],
        "category": rule.get("category", ""),
        "events": list(rule["events"]),
        "match": match,
    }
    return RuleForm({f"{PREFIX}-{name}": value for name, value in said.items()}, rows)
