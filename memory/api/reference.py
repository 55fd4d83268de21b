"""Describes the routes of the OpenAPI document in Markdown, for docs/api.md. Each tag has a section, and each route a
part of it."""

import re
import textwrap
from collections.abc import Mapping
from typing import Any

WIDTH = 120
_ROLE = re.compile(r" ?\b((?:Reader|Agent|Operator) keys(?:;[^.]*| for the whole store)?\.)")
_SENTENCE = re.compile(r"(?<=[.])\s")
# A body with fewer members than this is described in full for each route.
_SHORT = 3
# If a reply contains all members of an earlier reply, the text refers to the earlier reply and lists only the other
# members. The earlier reply must have at least this number of members.
_LEAST_SHARED = 5
_MAX_INT = 2**31 - 1
# The names that the text uses for JSON types and formats.
_TYPES = {"integer": "int", "boolean": "bool", "string": "text", "date-time": "time", "uuid": "uuid"}


def reference(document: Mapping[str, Any]) -> str:
    """Return the Markdown for an OpenAPI document. No query."""
    written = _RouteWriter(document["components"]["schemas"])
    parts = []
    for tag in document["tags"]:
        parts.append(f"## {tag['name'].capitalize()}\n\n{tag['description']}\n")
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if operation["tags"] == [tag["name"]]:
                    parts.append(written.route(f"{method.upper()} {path}", operation))
    return "\n".join(parts)


class _RouteWriter:
    """Describes routes. It remembers where each schema was described, so that no schema is described twice."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._places: dict[str, str] = {}
        self._explained: set[str] = set()

    def route(self, name: str, operation: Mapping[str, Any]) -> str:
        """Return the heading of a route, the first sentence of its description, and a list of its parameters, body and
        replies."""
        description = " ".join(operation["description"].split()).replace("``", "`")
        role = _ROLE.search(description)
        sentence = _SENTENCE.split(_ROLE.sub("", description))[0]
        parts = [f"### {name}\n", _wrapped(f"{sentence} {role[1]}" if role else sentence), ""]
        parameters = [each for each in operation.get("parameters", ()) if each["in"] != "path"]
        if parameters:
            parts.append(_item("Parameters", ", ".join(map(self._parameter, parameters))))
        body = operation.get("requestBody")
        if body:
            parts.append(_item("Body", self._body(name, next(iter(body["content"].values()))["schema"])))
        answers = operation["responses"]
        replies = {status: self._reply(name, answers[status]) for status in sorted(answers) if status < "300"}
        conflict = ", or 409" if "409" in answers else ""
        parts += [
            _item("Reply" if status == "200" else f"Reply {status}", shape + conflict)
            for status, shape in replies.items()
        ]
        return "\n".join(parts) + "\n"

    def _body(self, name: str, schema: Mapping[str, Any]) -> str:
        found = self._resolved(schema)
        if found.get("type") == "array":
            return f"a list of at most {found['maxItems']:,} items, each as for {self._places['IngestItem']}"
        short = len(found["properties"]) < _SHORT
        return (not short and self._earlier(f"`{name}`", schema)) or self._members(found, described=True)

    def _reply(self, name: str, response: Mapping[str, Any]) -> str:
        content: Mapping[str, Any] = next(iter(response.get("content", {}).values()), {})
        schema = content.get("schema", {})
        return self._earlier(f"`{name}`", schema) or self._shape(name, self._resolved(schema))

    def _earlier(self, place: str, schema: Mapping[str, Any]) -> str:
        """Return a reference to the place where a schema was described. If it was not described yet, remember ``place``
        and return an empty text."""
        key = _ref(schema)
        if key in self._places:
            return f"as for {self._places[key]}"
        if key:
            self._places[key] = place
        return ""

    def _shape(self, name: str, schema: Mapping[str, Any]) -> str:
        """Return the members of a reply, and of the objects in its lists."""
        members = dict(schema.get("properties", {}))
        found = []
        known = [
            key for key in self._places if len(self._names(key)) >= _LEAST_SHARED and self._names(key) < set(members)
        ]
        if known:
            most = max(known, key=lambda key: len(self._names(key)))
            found.append(f"as for {self._places[most]}, and")
            members = {name: member for name, member in members.items() if name not in self._names(most)}
        for key, member in members.items():
            rows = _inner(member).get("items", {})
            if "properties" not in self._resolved(rows):
                found.append(f"`{key}`")
            elif seen := self._earlier(f"the `{key}` of `{name}`", rows):
                found.append(f"`{key}` ({seen})")
            else:
                found.append(f"`{key}: [{{{', '.join(self._resolved(rows)['properties'])}}}]`")
        return ", ".join(found).replace("and,", "and") or "text"

    def _names(self, schema: str) -> set[str]:
        return set(self._schemas[schema].get("properties", ()))

    def _parameter(self, parameter: Mapping[str, Any]) -> str:
        # ``cursor`` and ``limit`` are explained once, at the beginning of docs/api.md.
        if parameter["name"] in ("cursor", "limit"):
            return f"`{parameter['name']}`"
        text = self._member(parameter, bool(parameter.get("required")))
        # A parameter means the same in all routes, so it is explained once.
        if text in self._explained:
            return text
        self._explained.add(text)
        return text + _first_sentence(parameter)

    def _members(self, schema: Mapping[str, Any], *, described: bool = False) -> str:
        required = schema.get("required", ())
        found = []
        for name, member in schema["properties"].items():
            text = self._member({"name": name, "schema": member}, name in required)
            found.append(text + _first_sentence(member) if described else text)
        return ", ".join(found)

    def _member(self, member: Mapping[str, Any], required: bool) -> str:
        schema = member["schema"]
        default = schema.get("default")
        value = ""
        if isinstance(default, bool) or (isinstance(default, str) and default):
            value = f"={str(default).lower()}"
        elif isinstance(default, (int, float)):
            value = f"={_number(default)}"
        return f"`{member['name']}{'' if required else '?'}: {self._type(schema)}{value}`"

    def _type(self, schema: Mapping[str, Any]) -> str:
        found = self._resolved(_inner(schema))
        if "enum" in found:
            return "|".join(map(str, found["enum"]))
        if found.get("type") == "array":
            return f"[{self._type(found.get('items', {}))}]"
        if "properties" in found:
            return "{" + self._members(found).replace("`", "") + "}"
        kind = _TYPES.get(found.get("format", ""), _TYPES.get(found.get("type", ""), found.get("type", "any")))
        low, high = found.get("minimum"), found.get("maximum")
        return kind if low is None or high is None or high == _MAX_INT else f"{_number(low)}–{_number(high)}"

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        key = _ref(schema)
        return self._schemas[key] if key else _inner(schema)


def _inner(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a nullable schema without null, and any other schema unchanged."""
    kinds = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return kinds[0] if kinds else schema


def _ref(schema: Mapping[str, Any]) -> str:
    """Return the name of the schema to which ``schema`` refers, or an empty text."""
    return str(_inner(schema).get("$ref", "")).rpartition("/")[2]


def _first_sentence(described: Mapping[str, Any]) -> str:
    """Return the first sentence of a description, in brackets; the others are in /v1/docs."""
    description = described.get("description") or _inner(described).get("description", "")
    text = _SENTENCE.split(" ".join(description.split()))[0].rstrip(".")
    # An acronym stays in capitals.
    start = text[:1] if text[1:2].isupper() else text[:1].lower()
    return f" ({start}{text[1:]})" if text else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _item(name: str, text: str) -> str:
    return _wrapped(f"* {name}: {text}", indent="  ")


def _wrapped(text: str, indent: str = "") -> str:
    lines = textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)
