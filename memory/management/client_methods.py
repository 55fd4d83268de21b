"""Which methods the client has, read from the OpenAPI document.

What the document cannot say stands in the tables here: names that read well in a program, and which routes only read
although they are a POST.
"""

import keyword
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memory.management.client_types import Types

# Views have to be called otherwise than the functions that they call. Methods do not, and keep their names for good.
NAMES = {
    "conversation_list": "conversations",
    "conversation_read": "conversation",
    "conversation_take_back": "conversation_undo",
    "duplicate_list": "duplicates",
    "duplicate_show": "duplicate",
    "event_note": "event",
    "extract_facts": "extract",
    "extraction_read": "extraction",
    "extraction_stop": "extraction_cancel",
    "field_history_page": "field_history",
    "receipt_list": "receipts",
    "receipt_read": "receipt",
    "run_action_list": "run_actions",
    "run_done_undo": "run_undo",
    "run_held_approve": "run_approve",
    "run_list": "runs",
    "run_plan_apply": "run_apply",
    "run_read": "run",
    "scope_policy": "policy",
    "scope_policy_rollback": "policy_rollback",
    "scope_policy_set": "policy_set",
    "scope_policy_versions": "policy_versions",
    "study_again": "study_resume",
    "study_read": "study",
    "study_stop": "study_cancel",
    "supersede_fact": "supersede",
    "topic_edit_members": "topic_edit",
    "topic_list": "topics",
    "topic_lookup": "topic",
    "topic_why_card": "topic_why",
}
# The same address with nothing for the scope, which the other method makes of "/".
COVERED = {
    "root_policy": "scope_policy",
    "root_policy_rollback": "scope_policy_rollback",
    "root_policy_set": "scope_policy_set",
    "root_policy_versions": "scope_policy_versions",
}
# Of these verbs HTTP says that twice is as good as once. These routes are a POST, but only read.
REPEATABLE_VERBS = {"get", "put", "delete"}
READS = {"query", "policy_preview", "policy_backtest"}
NOTHING: Any = ...


@dataclass
class Argument:
    """One argument of a method, and where it goes."""

    name: str
    type: str
    default: Any = NOTHING
    told: str = ""


@dataclass
class Method:
    """One method of the client."""

    name: str
    verb: str
    path: str
    reply: str
    document: Mapping[str, Any]
    in_path: list[Argument] = field(default_factory=list)
    in_query: list[Argument] = field(default_factory=list)
    in_body: list[Argument] = field(default_factory=list)
    whole: Argument | None = None
    body_required: bool = False
    repeatable: bool = False
    keyed: bool = False
    streams: bool = False
    # What the items of a page are, if the reply is one.
    items: str = ""
    # Arguments that are not chosen but fixed, as they stand in the call.
    fixed: dict[str, str] = field(default_factory=dict)

    @property
    def route(self) -> str:
        """The name of its route in the module."""
        return f"_{self.name.upper()}"

    @property
    def arguments(self) -> tuple[list[Argument], list[Argument]]:
        """The arguments that may be given by position, and those by name only."""
        by_position = [*self.in_path, *([self.whole] if self.whole else [])]
        others = [each for each in [*self.in_body, *self.in_query] if each.name not in self.fixed]
        required = [each for each in others if each.default is NOTHING]
        if not by_position:
            by_position, required = required[:1], required[1:]
        optional = [each for each in others if each.default is not NOTHING]
        if self.keyed:
            told = "Made up for each call unless given."
            optional.append(Argument("idempotency_key", "str | None", None, told))
        return by_position, [*required, *optional]


def client_methods(document: Mapping[str, Any], types: Types) -> Iterator[Method]:
    """Yield the methods, in the order of the document. Raises ``ValueError`` for what no client can send."""
    for path, operations in document["paths"].items():
        for verb, operation in operations.items():
            name = operation["operationId"]
            if name in COVERED:
                continue
            method = Method(NAMES.get(name, name), verb.upper(), path, "", operation)
            method.repeatable = verb in REPEATABLE_VERBS or name in READS
            _addresses(method, types)
            _body(method, types)
            yield from _replies(method, types)


def _addresses(method: Method, types: Types) -> None:
    """Fill in what stands in the address and in headers."""
    for parameter in method.document.get("parameters", ()):
        name, schema = parameter["name"], parameter["schema"]
        if parameter["in"] == "header" and name == "Idempotency-Key":
            method.keyed = True
        elif parameter["in"] == "path":
            method.in_path.append(Argument(python_name(name), types.sent(schema), told=_told(parameter)))
        elif parameter["in"] == "query":
            required = bool(parameter.get("required"))
            method.in_query.append(_argument(name, schema, types, required=required, told=_told(parameter)))
        else:
            raise ValueError(f"{method.name}: the client cannot send {name} in {parameter['in']}.")
    # Behind a scope that is sent stands a slash already.
    method.path = method.path.replace("{scope}/", "{scope}")


def _body(method: Method, types: Types) -> None:
    """Fill in what stands in the body: its members as arguments, or the whole of it if it is a list."""
    told = method.document.get("requestBody")
    if told is None:
        return
    schema = told["content"]["application/json"]["schema"]
    method.body_required = bool(told.get("required"))
    schema = types.resolved(next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema))
    if schema["type"] == "array":
        items = types.sent(schema["items"].get("anyOf", [schema["items"]])[0])
        method.whole = Argument("items", f"Sequence[{items}]", told=_told(schema["items"]))
        return
    required = schema.get("required", ())
    members = schema["properties"]
    for name in [*required, *(each for each in members if each not in required)]:
        argument = _argument(name, members[name], types, required=name in required, told=_told(members[name]))
        method.in_body.append(argument)
    # What may stand in both is sent in the body, which no access log keeps.
    method.in_query = [each for each in method.in_query if each.name not in members]


def _argument(name: str, schema: Mapping[str, Any], types: Types, *, required: bool, told: str) -> Argument:
    kind = types.sent(schema)
    if required:
        return Argument(python_name(name), kind, told=told)
    default = schema.get("default")
    if default is None and "None" not in kind.split(" | "):
        kind = f"{kind} | None"
    # None would be left out, and so mean the default.
    elif default is not None:
        kind = " | ".join(each for each in kind.split(" | ") if each != "None")
    return Argument(python_name(name), kind, default, told)


def _replies(method: Method, types: Types) -> Iterator[Method]:
    """Fill in the reply, and yield a method for each way to be answered."""
    replies: dict[str, str] = {}
    for status, response in method.document["responses"].items():
        if str(status).startswith("2"):
            content = response.get("content", {})
            method.streams = method.streams or "text/event-stream" in content
            if "application/json" in content:
                replies[str(status)] = types.received(content["application/json"]["schema"])
    if {each.name for each in method.in_query} >= {"background"} and {"200", "202"} == set(replies):
        now = Method(**{**vars(method), "reply": replies["200"], "fixed": {"background": "False"}})
        later = {"name": f"{method.name}_background", "reply": replies["202"], "fixed": {"background": "True"}}
        yield now
        yield Method(**{**vars(method), **later})
        return
    method.reply = " | ".join(dict.fromkeys(replies.values())) or "None"
    if any(each.name == "cursor" for each in method.in_query):
        method.items = types.items_of(method.reply)
    yield method


def python_name(name: str) -> str:
    """Return the name of an argument; Python's own words get an underscore."""
    return f"{name}_" if keyword.iskeyword(name) else name


def _told(schema: Mapping[str, Any]) -> str:
    return str(schema.get("description") or "")
