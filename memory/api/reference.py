"""The routes as Markdown for docs/api.md, from the OpenAPI document: a section for each tag, a paragraph per route."""

import re
import textwrap
from collections.abc import Mapping
from typing import Any

WIDTH = 120
# Any route with a key may answer these, one with a body also 400 and 413; 403 follows from the role.
_USUAL = {"401", "403", "422", "429", "500", "503"}
_ROLE = re.compile(r"\s*\b((?:Reader|Agent|Operator) keys(?:;[^.]*| for the whole store)?\.)")
_SENTENCE = re.compile(r"(?<=[.])\s")
_MOST_INT = 2**31 - 1
# Formats in place of the types of JSON.
_TYPES = {"integer": "int", "boolean": "bool", "string": "text", "date-time": "time", "uuid": "uuid"}


def reference(document: Mapping[str, Any]) -> str:
    """Return the Markdown for an OpenAPI document. No query."""
    written = _Written(document["components"]["schemas"])
    parts = []
    for tag in document["tags"]:
        parts.append(f"## {tag['name'].capitalize()}\n\n{tag['description']}\n")
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if operation["tags"] == [tag["name"]]:
                    parts.append(written.route(f"{method.upper()} {path}", operation))
    return "\n".join(parts)


class _Written:
    """Which replies have been described, so that each is described once."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._at: dict[str, str] = {}

    def route(self, name: str, operation: Mapping[str, Any]) -> str:
        """Return the heading, the sentence and the list of one route."""
        description = " ".join(operation["description"].split()).replace("``", "`")
        role = _ROLE.search(description)
        sentence = _SENTENCE.split(_ROLE.sub("", description))[0]
        parts = [f"### {name}\n", _wrapped(f"{sentence} {role[1]}" if role else sentence), ""]
        asked = [each for each in operation.get("parameters", ()) if each["in"] != "path"]
        if asked:
            parts.append(
                _item("Parameters", ", ".join(self._member(each, bool(each.get("required"))) for each in asked))
            )
        body = operation.get("requestBody")
        if body:
            parts.append(_item("Body", self._body(name, next(iter(body["content"].values()))["schema"])))
        answers = operation["responses"]
        for status in sorted(status for status in answers if status < "300"):
            parts.append(_item("Reply" if status == "200" else f"Reply {status}", self._reply(name, answers[status])))
        rare = sorted(set(answers) - _USUAL - {"200", "202", "304"} - ({"400", "413"} if body else set()))
        if rare:
            parts.append(_item("Problems", ", ".join(rare)))
        return "\n".join(parts) + "\n"

    def _body(self, name: str, schema: Mapping[str, Any]) -> str:
        said = self._seen(name, schema)
        if said:
            return said
        found = self._resolved(schema)
        if found.get("type") == "array":
            return f"a list of at most {found['maxItems']:,} items; each as for {self._at['IngestItem']}"
        return self._members(found, described=True)

    def _reply(self, name: str, response: Mapping[str, Any]) -> str:
        schema = next(iter(response.get("content", {}).values()), {}).get("schema", {})
        return self._seen(name, schema) or self._shape(self._resolved(schema))

    def _seen(self, name: str, schema: Mapping[str, Any]) -> str:
        """Return where a schema was described before, or note that it is described here."""
        key = _inner(schema).get("$ref", "").rpartition("/")[2]
        if key in self._at:
            return f"as for {self._at[key]}"
        if key:
            self._at[key] = f"`{name}`"
        return ""

    def _shape(self, schema: Mapping[str, Any]) -> str:
        """Return the members of a reply, and of the objects in its lists."""
        if "properties" not in schema:
            return "text"
        found = []
        for name, member in schema["properties"].items():
            rows = self._resolved(_inner(member).get("items", {}))
            inner = f": [{{{', '.join(rows['properties'])}}}]" if "properties" in rows else ""
            found.append(f"`{name}{inner}`")
        return ", ".join(found)

    def _members(self, schema: Mapping[str, Any], *, described: bool = False) -> str:
        required = schema.get("required", ())
        found = []
        for name, member in schema["properties"].items():
            said = self._member({"name": name, "schema": member}, name in required)
            hint = member.get("description", "").rstrip(".") if described else ""
            found.append(f"{said} ({hint[0].lower()}{hint[1:]})" if hint else said)
        return ", ".join(found)

    def _member(self, member: Mapping[str, Any], required: bool) -> str:
        schema = member["schema"]
        default = schema.get("default")
        value = f"={str(default).lower()}" if isinstance(default, (bool, int, float)) or default else ""
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
        return kind if low is None or high is None or high == _MOST_INT else f"{_number(low)}–{_number(high)}"

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        inner = _inner(schema)
        key = inner.get("$ref", "").rpartition("/")[2]
        return self._schemas[key] if key else inner


def _inner(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema without the null that it also allows."""
    kinds = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return kinds[0] if kinds else schema


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _item(name: str, text: str) -> str:
    return _wrapped(f"* {name}: {text}", indent="  ")


def _wrapped(text: str, indent: str = "") -> str:
    lines = textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)
