"""The schemas of the OpenAPI document as types of Python, for the generated client."""

import keyword
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

WIDTH = 120
# What the module uses otherwise.
TAKEN = {
    "Any", "AsyncIterator", "AsyncMemState", "Awaitable", "Callable", "Conflict", "ConnectionBroken", "Event", "Item",
    "Iterable", "Iterator", "Literal", "Mapping", "MemState", "MemStateError", "NotAllowed", "NotFound", "NotRequired",
    "P", "Page", "Refused", "Self", "Sequence", "ServerFault", "TimedOut", "TooManyRequests", "TypedDict",
    "Unavailable", "When",
}  # fmt: skip
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


class Types:
    """The types of one document. Those that a caller makes are wider than those that a reply brings."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._schemas: Mapping[str, Any] = document["components"]["schemas"]
        # In the order in which they can be defined: what a type consists of comes before it.
        self._used: dict[str, bool] = {}

    def sent(self, schema: Mapping[str, Any]) -> str:
        """Return the type of what a caller gives."""
        return self._type(schema, sent=True)

    def received(self, schema: Mapping[str, Any]) -> str:
        """Return the type of what a reply brings."""
        return self._type(schema, sent=False)

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the schema that a reference refers to, or the schema itself."""
        if "$ref" not in schema:
            return schema
        referred: Mapping[str, Any] = self._schemas[_name_of(schema["$ref"])]
        return referred

    def items_of(self, reply: str) -> str:
        """Return what the items of a page are, or nothing if ``reply`` is none."""
        members = self._schemas.get(reply, {}).get("properties", {})
        return self.received(members["items"]["items"]) if members.keys() >= {"items", "next"} else ""

    def definitions(self) -> Iterator[str]:
        """Yield the types that were asked for, each after those that it consists of."""
        for name, sent in self._used.items():
            yield self._definition(name, self._schemas[name], sent=sent)

    def _type(self, schema: Mapping[str, Any], *, sent: bool) -> str:
        if "$ref" in schema:
            return self._named(_name_of(schema["$ref"]), sent=sent)
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return _either(self._type(each, sent=sent) for each in schema[several])
        if "allOf" in schema and len(schema["allOf"]) == 1:
            return self._type(schema["allOf"][0], sent=sent)
        if "const" in schema:
            return f"Literal[{_literal(schema['const'])}]"
        if "enum" in schema:
            return f"Literal[{', '.join(map(_literal, schema['enum']))}]"
        kind = schema.get("type")
        if kind == "string" and sent and schema.get("format") == "date-time":
            return "When"
        if kind == "array":
            inner = self._type(schema.get("items", {}), sent=sent)
            return f"Sequence[{inner}]" if sent else f"list[{inner}]"
        if kind == "object":
            more = schema.get("additionalProperties", True)
            inner = "Any" if more is True else self._type(more, sent=sent)
            return f"Mapping[str, {inner}]" if sent else f"dict[str, {inner}]"
        return PLAIN[kind] if kind else "Any"

    def _named(self, name: str, *, sent: bool) -> str:
        schema = self._schemas[name]
        if schema.get("type") != "object" or not schema.get("properties"):
            return self._type(schema, sent=sent)
        if name in self._used:
            # What is received and then sent again holds what was received.
            self._used[name] = self._used[name] and sent
        else:
            for member in schema["properties"].values():
                self._type(member, sent=sent)
            self._used[name] = sent
        return f"{name}Members" if name in TAKEN else name

    def _definition(self, name: str, schema: Mapping[str, Any], *, sent: bool) -> str:
        members = {
            member: _member(self._type(told, sent=sent), member in schema.get("required", ()))
            for member, told in schema["properties"].items()
        }
        written = f"{name}Members" if name in TAKEN else name
        told = textwrap.wrap(" ".join(schema.get("description", "").split()), WIDTH - 10)
        if any(keyword.iskeyword(member) or not member.isidentifier() for member in members):
            # Python's own words can be no attributes of a class, but keys of a dictionary they can be.
            head = [f"# {line}" for line in told]
            rows = [row for member, kind in members.items() for row in _row(schema, member, f'"{member}": {kind},')]
            return "\n".join([*head, f'{written} = TypedDict("{written}", {{', *rows, "})  # fmt: skip"])
        head = [f"class {written}(TypedDict):"]
        if told:
            head += [f'    """{told[0]}', *(f"    {line}" for line in told[1:])]
            head[-1] += '"""'
            head.append("")
        rows = [row for member, kind in members.items() for row in _row(schema, member, f"{member}: {kind}")]
        return "\n".join([*head, *rows])


def _row(schema: Mapping[str, Any], member: str, written: str) -> list[str]:
    """Return the line of a member, below what is told of it."""
    told = " ".join((schema["properties"][member].get("description") or "").split())
    return [*textwrap.wrap(told, WIDTH - 6, initial_indent="    # ", subsequent_indent="    # "), f"    {written}"]


def _either(kinds: Iterable[str]) -> str:
    """Return the union of types; words of which one is meant become one list of words."""
    words: list[str] = []
    others: list[str] = []
    for kind in dict.fromkeys(kinds):
        if kind.startswith("Literal["):
            words.append(kind[len("Literal[") : -1])
        else:
            others.append(kind)
    return " | ".join([*([f"Literal[{', '.join(words)}]"] if words else []), *others])


def _member(kind: str, required: bool) -> str:
    return kind if required else f"NotRequired[{kind}]"


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _name_of(reference: str) -> str:
    return reference.rpartition("/")[2]
