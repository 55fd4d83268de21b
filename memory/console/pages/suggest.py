"""Suggestions for fields: at most ``MAX`` options that complete the typed text."""

import re
from collections.abc import Callable

from django.http import Http404, HttpResponse
from django.urls import path
from django.utils.html import format_html_join

from memory.console.page import READER, ConsoleRequest, page
from memory.console.people import actors_suggested
from memory.console.queries.suggestions import MAX, kinds_suggested, scopes_suggested
from memory.explain.action_words import actions_suggested
from memory.predicates.search_text import search_narrow
from memory.predicates.tree import RUNGS

MAX_LETTERS = 500


def kinds_listed(text: str, *, most: int) -> list[str]:
    """Complete the last kind in a list of kinds that are separated by commas. One query."""
    before, comma, last = text.rpartition(",")
    return [f"{before}{comma} {kind}".strip() for kind in kinds_suggested(last.strip(), most=most)]


def searches_listed(text: str, *, most: int) -> list[str]:
    """Complete a search whose last part is the beginning of a scope, a kind, a rung or an author. At most two
    queries."""
    found = _QUALIFIED.search(text)
    if found is None:
        return []
    name, typed = found[1].lower(), found[2].lstrip('"')
    begin = text[: found.start(1)]
    values = [value for value in _QUALIFIERS[name](typed, most=most) if value and '"' not in value]
    return [begin + search_narrow("", name, value) for value in values]


_QUALIFIERS: dict[str, Callable[..., list[str]]] = {
    "scope": scopes_suggested,
    "kind": kinds_suggested,
    "rung": lambda text, most: [rung for rung in RUNGS if rung.startswith(text)],
    "by": actors_suggested,
}
_QUALIFIED = re.compile(rf'(?:^|[\s(-])({"|".join(_QUALIFIERS)}):("[^"]*|[^\s"()]*)$', re.IGNORECASE)

WHAT: dict[str, Callable[..., list[str]]] = {
    "scope": scopes_suggested,
    "kind": kinds_suggested,
    "kinds": kinds_listed,
    "actor": actors_suggested,
    "action": actions_suggested,
    "search": searches_listed,
}


@page(get=READER)
def suggest(request: ConsoleRequest, what: str) -> HttpResponse:
    """Return options for a typed text. ``field`` names the URL parameter that contains the text. The options cover the
    whole store, because every account may read all of it. At most two queries."""
    if what not in WHAT:
        raise Http404
    typed = request.GET.get(request.GET.get("field", ""), "").replace("\0", "").strip()[:MAX_LETTERS]
    found = WHAT[what](typed, most=MAX)
    reply = HttpResponse(format_html_join("\n", '<option value="{}"></option>', ((each,) for each in found)))
    reply.headers["X-Console"] = "1"
    return reply


urlpatterns = [path("suggest/<slug:what>/", suggest, name="suggest")]
