"""The generated part of ``memory/client.py``, from the OpenAPI document: types, routes, and a method for each.

The rest of that module is written by hand and stays as it is.
"""

import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from memory.management.client_methods import NOTHING, Argument, Method, client_methods
from memory.management.client_types import Types

BEGIN = "# --- Generated from the routes by `manage.py client`; what is changed here is lost "
END = "# --- End of what is generated "
WIDTH = 120

# What a refusal is raised as; 500 and 503 can come from anywhere.
RAISED = {
    400: "Refused", 401: "NotAllowed", 403: "NotAllowed", 404: "NotFound", 409: "Conflict", 413: "Refused",
    422: "Refused", 429: "TooManyRequests",
}  # fmt: skip

# A space at which no line is broken.
TIE = "\N{NO-BREAK SPACE}"


def client_text(document: Mapping[str, Any], module: str) -> str:
    """Return ``module``, the text of the client, with its generated part made anew. Raises ``ValueError`` for what the
    client cannot say."""
    before, begin, rest = module.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("The module has lost the lines between which the generated part stands.")
    types = Types(document)
    methods = list(client_methods(document, types))
    names = [method.name for method in methods]
    if len(names) != len(set(names)):
        raise ValueError(f"Two routes have the same name: {', '.join(sorted(x for x in names if names.count(x) > 1))}.")
    blocks = [
        *types.definitions(),
        "\n".join(_route(method) for method in methods),
        _class("_Methods", "_Sender", "The methods of ``MemState``.", methods, awaited=False),
        _class("_AsyncMethods", "_AsyncSender", "The methods of ``AsyncMemState``.", methods, awaited=True),
    ]
    line = old.partition("\n")[0]
    return f"{before}{begin}{line}\n\n\n" + "\n\n\n".join(blocks) + f"\n\n\n{end}{after}"


def _literal(value: Any) -> str:
    """Return a default as it is written in Python. A list becomes a tuple, which nobody can change."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    return "..." if value is NOTHING else repr(value)


def _argument(argument: Argument) -> str:
    default = "" if argument.default is NOTHING else f" = {_literal(argument.default)}"
    written = f"{argument.name}: {argument.type}{default}"
    if len(written) + len("        ,") > WIDTH:
        # As the formatter breaks it.
        written = f"{argument.name}: {argument.type.removesuffix(' | None')}\n        | None{default}"
    return written


def _route(method: Method) -> str:
    parts = [_literal(method.verb), _literal(method.path)]
    for name, arguments in (("query", method.in_query), ("body", method.in_body)):
        if arguments:
            parts.append(f"{name}={{{_pairs((each.name, _literal(each.default)) for each in arguments)}}}")
    if method.whole:
        parts.append(f"whole={_literal(method.whole.name)}")
    parts += [f"{flag}=True" for flag in ("body_required", "repeatable", "keyed") if getattr(method, flag)]
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
    ask = f"{'await ' if awaited else ''}self.{'_ask_long' if method.streams else '_ask'}({method.route}, "
    call = f"{ask}{_passed(method)})"
    before, after = (f'return cast("{method.reply}", ', ")") if method.reply != "None" else ("", "")
    body = _together(f"        {before}{call}{after}")
    if len(body) > WIDTH:
        start = f"        {before}{ask}{{"
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
    written = ["self", *map(_argument, by_position), *star, *map(_argument, kept)]
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
    text = _escaped("\n\n".join(blocks).strip())
    return [*f'        """{text}\n        """'.split("\n")]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the inside of a dictionary. Wrapping does not part a key from its value."""
    return ", ".join(f"{_literal(name)}:{TIE}{value.replace(' ', TIE)}" for name, value in pairs)


def _together(text: str) -> str:
    return text.replace(TIE, " ")


def _wrapped(text: str, indent: str) -> str:
    # Three quotes are to fit before the first word.
    lines = textwrap.wrap(
        re.sub(r"[ \n]+", " ", text), WIDTH - 3, initial_indent=indent, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return _together("\n".join(lines))
