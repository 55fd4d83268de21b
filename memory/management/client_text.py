"""The generated part of ``memory/client.py``, from the OpenAPI document: types, routes, and a method for each.

The rest of that module is written by hand and stays as it is. What the document cannot say stands in the tables here:
names that read well in a program, and which routes only read although they are a POST.
"""

import keyword
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memory.management.client_types import Types

BEGIN = "# --- Generated from the routes by `manage.py client`; what is changed here is lost "
END = "# --- End of what is generated "
WIDTH = 120

# Views have to be called otherwise than the functions that they call. Methods do not, and keep their names for good.
NAMES = {
    "duplicate_list": "duplicates", "duplicate_show": "duplicate", "event_note": "event", "extract_facts": "extract",
    "extraction_read": "extraction", "extraction_stop": "extraction_cancel", "field_history_page": "field_history",
    "receipt_list": "receipts", "receipt_read": "receipt", "run_action_list": "run_actions",
    "run_done_undo": "run_undo", "run_held_approve": "run_approve", "run_list": "runs", "run_plan_apply": "run_apply",
    "run_read": "run", "scope_policy": "policy", "scope_policy_rollback": "policy_rollback",
    "scope_policy_set": "policy_set", "scope_policy_versions": "policy_versions", "supersede_fact": "supersede",
    "topic_edit_members": "topic_edit", "topic_list": "topics", "topic_lookup": "topic", "topic_why_card": "topic_why",
}  # fmt: skip
# The same address with nothing for the scope, which the other method makes of "/".
COVERED = {
    "root_policy": "scope_policy", "root_policy_rollback": "scope_policy_rollback",
    "root_policy_set": "scope_policy_set", "root_policy_versions": "scope_policy_versions",
}  # fmt: skip
# A GET reads. So do these.
READS = {"query", "policy_preview", "policy_backtest"}
# What a refusal is raised as; 500 and 503 can come from anywhere.
RAISED = {
    400: "Refused", 401: "NotAllowed", 403: "NotAllowed", 404: "NotFound", 409: "Conflict", 413: "Refused",
    422: "Refused", 429: "TooManyRequests",
}  # fmt: skip

NOTHING: Any = ...
# A space at which no line is broken.
TIE = "\N{NO-BREAK SPACE}"


@dataclass
class Argument:
    """One argument of a method, and where it goes."""

    name: str
    type: str
    default: Any = NOTHING
    told: str = ""

    @property
    def written(self) -> str:
        """The argument as it stands in a signature."""
        return f"{self.name}: {self.type}" + ("" if self.default is NOTHING else f" = {literal(self.default)}")


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
    reads: bool = False
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


def literal(value: Any) -> str:
    """Return a default as it is written in Python. A list becomes a tuple, which nobody can change."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    return "..." if value is NOTHING else repr(value)


def client_text(document: Mapping[str, Any], module: str) -> str:
    """Return ``module``, the text of the client, with its generated part made anew. Raises ``ValueError`` for what the
    client cannot say."""
    before, begin, rest = module.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("The module has lost the lines between which the generated part stands.")
    types = Types(document)
    methods = list(_methods(document, types))
    blocks = [
        *types.definitions(),
        "\n".join(_route(method) for method in methods),
        _class("_Methods", "_Sender", "The methods of ``MemState``.", methods, awaited=False),
        _class("_AsyncMethods", "_AsyncSender", "The methods of ``AsyncMemState``.", methods, awaited=True),
    ]
    line = old.partition("\n")[0]
    return f"{before}{begin}{line}\n\n\n" + "\n\n\n".join(blocks) + f"\n\n\n{end}{after}"


def _methods(document: Mapping[str, Any], types: Types) -> Iterator[Method]:
    for path, operations in document["paths"].items():
        for verb, operation in operations.items():
            name = operation["operationId"]
            if name in COVERED:
                continue
            method = Method(NAMES.get(name, name), verb.upper(), path, "", operation)
            method.reads = verb == "get" or name in READS
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


def _route(method: Method) -> str:
    parts = [literal(method.verb), literal(method.path)]
    for name, arguments in (("query", method.in_query), ("body", method.in_body)):
        if arguments:
            parts.append(f"{name}={{{_pairs((each.name, literal(each.default)) for each in arguments)}}}")
    if method.whole:
        parts.append(f"whole={literal(method.whole.name)}")
    parts += [f"{flag}=True" for flag in ("body_required", "reads", "keyed") if getattr(method, flag)]
    line = f"{method.route} = _Route({', '.join(parts)})"
    if len(line) <= WIDTH:
        return _together(line)
    return f"{method.route} = _Route(\n{_wrapped(', '.join(parts), '    ')},\n)  # fmt: skip"


def _class(name: str, base: str, told: str, methods: list[Method], *, awaited: bool) -> str:
    blocks = [f'    """{told}"""']
    for method in methods:
        blocks.append(_method(method, awaited=awaited))
        if method.items:
            blocks.append(_iterator(method, awaited=awaited))
        if method.streams:
            blocks.append(_stream(method, awaited=awaited))
    return f"class {name}({base}):\n" + "\n\n".join(blocks)


def _method(method: Method, *, awaited: bool) -> str:
    head = "async def" if awaited else "def"
    call = f"{'await ' if awaited else ''}self._ask({method.route}, {_passed(method)})"
    before, after = (f'return cast("{method.reply}", ', ")") if method.reply != "None" else ("", "")
    body = _together(f"        {before}{call}{after}")
    if len(body) > WIDTH:
        start = f"        {before}{'await ' if awaited else ''}self._ask({method.route}, {{"
        body = f"{start}\n{_wrapped(_passed(method)[1:-1], '            ')},\n        }}){after}  # fmt: skip"
    return "\n".join([
        *_signature(head, method.name, method, method.reply), *_documentation(method, awaited=awaited), body
    ])  # fmt: skip


def _iterator(method: Method, *, awaited: bool) -> str:
    """Return the method that yields the rows of all pages."""
    by_position, by_name = method.arguments
    by_name = [each for each in by_name if each.name != "cursor"]
    passed = [f"self.{method.name}", *(each.name for each in by_position), *(f"{x.name}={x.name}" for x in by_name)]
    kind = "AsyncIterator" if awaited else "Iterator"
    head = "async def" if awaited else "def"
    signature = _signature(head, f"{method.name}_iter", method, f"{kind}[{method.items}]", without=("cursor",))
    loop = f"        {'async ' if awaited else ''}for page in self.pages("
    line = f"{loop}{', '.join(passed)}):"
    if len(line) > WIDTH:
        line = f"{loop}\n{_wrapped(', '.join(passed), '            ')}\n        ):  # fmt: skip"
    rows = ["            for row in page[\"items\"]:", "                yield row"] if awaited else [
        '            yield from page["items"]'
    ]  # fmt: skip
    told = f'        """Yield the rows of ``{method.name}``, page after page of ``limit`` rows."""'
    return "\n".join([*signature, told, line, *rows])


def _stream(method: Method, *, awaited: bool) -> str:
    """Return the method that yields the reply as it grows."""
    kind = "AsyncIterator" if awaited else "Iterator"
    told = f'        """Yield what ``{method.name}`` answers as it grows, event by event. Raises as that does."""'
    # Not a coroutine: what it returns is iterated over as it is.
    body = _together(f"        return self._events({method.route}, {_passed(method)})")
    if len(body) > WIDTH:
        wrapped = _wrapped(_passed(method)[1:-1], "            ")
        body = f"        return self._events({method.route}, {{\n{wrapped},\n        }})  # fmt: skip"
    return "\n".join([*_signature("def", f"{method.name}_stream", method, f"{kind}[Event]"), told, body])


def _passed(method: Method) -> str:
    by_position, by_name = method.arguments
    given = [(each.name, each.name) for each in [*by_position, *by_name]]
    return f"{{{_pairs([*given, *method.fixed.items()])}}}"


def _signature(head: str, name: str, method: Method, returned: str, *, without: tuple[str, ...] = ()) -> list[str]:
    by_position, by_name = method.arguments
    star = ["*"] if (kept := [each for each in by_name if each.name not in without]) else []
    written = ["self", *(each.written for each in by_position), *star, *(each.written for each in kept)]
    line = f"    {head} {name}({', '.join(written)}) -> {returned}:"
    if len(line) <= WIDTH:
        return [line]
    return [f"    {head} {name}(", *(f"        {each}," for each in written), f"    ) -> {returned}:"]


def _documentation(method: Method, *, awaited: bool) -> list[str]:
    told = f"{method.document['summary'].rstrip('.')}."
    if awaited:
        return [f'        """{told} As ``MemState.{method.name}``."""']
    paragraphs = (method.document.get("description") or told).split("\n\n")
    paragraphs += [each.told for each in method.in_query if method.fixed.get(each.name) == "True"]
    by_position, by_name = method.arguments
    paragraphs += [f"``{each.name}``: {each.told}" for each in [*by_position, *by_name] if each.told]
    statuses = sorted(int(status) for status in method.document["responses"])
    raised = dict.fromkeys(RAISED[status] for status in statuses if status in RAISED)
    if raised:
        *most, last = (f"``{each}``" for each in raised)
        paragraphs.append(f"Raises {', '.join(most)} and {last}." if most else f"Raises {last}.")
    blocks = [_wrapped(each, "        ") for each in paragraphs if each.strip()]
    text = escaped("\n\n".join(blocks).strip())
    return [*f'        """{text}\n        """'.split("\n")]


def escaped(text: str) -> str:
    """Return a text as it may stand between three quotes."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the inside of a dictionary. Wrapping does not part a key from its value."""
    return ", ".join(f"{literal(name)}:{TIE}{value.replace(' ', TIE)}" for name, value in pairs)


def _together(text: str) -> str:
    return text.replace(TIE, " ")


def _wrapped(text: str, indent: str) -> str:
    # Three quotes are to fit before the first word.
    lines = textwrap.wrap(
        re.sub(r"[ \n]+", " ", text), WIDTH - 3, initial_indent=indent, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return _together("\n".join(lines))
