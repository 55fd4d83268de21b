"""The command palette: links to what a typed text may mean."""

from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import path, reverse

from memory.console.navigation import Link, actions_found, places_found
from memory.console.page import READER, ConsoleRequest, go, page, show
from memory.console.people import actors_suggested
from memory.console.queries.suggestions import runs_suggested, scopes_suggested, topics_suggested
from memory.console.titles import titled
from memory.forgetting.run_text import event_words
from memory.models import ForgetRun

# The most characters of the text that are read, and the most entries of each kind.
MAX_LETTERS = 200
MAX = 5


@page(get=READER)
def palette(request: ConsoleRequest) -> HttpResponse:
    """Return what the text ``q`` finds: places, actions, scopes, topics, runs, callers. At most six queries; none for
    an empty text."""
    text = " ".join(request.GET.get("q", "").replace("\0", "").split())[:MAX_LETTERS]
    if not request.htmx:
        return go(request, f"{reverse('console:lookup')}?{urlencode({'q': text})}")
    groups = [("Go to", _rows(places_found(request.role, text))), ("Do", _rows(actions_found(request.role, text)))]
    if text:
        scopes = [each for each in scopes_suggested(text, most=MAX) if request.principal.sees(each)]
        topics = topics_suggested(text, principal=request.principal, most=MAX)
        runs = runs_suggested(text, principal=request.principal, most=MAX)
        callers = [name for name in actors_suggested(text, most=MAX) if name != "system"]
        groups += [
            ("Scopes", [(each, "", _about("scope", scope=each), "") for each in scopes]),
            (
                "Memories",
                [
                    (titled(label), scope, reverse("console:topic", args=[key]), said)
                    for key, label, scope, said in topics
                ],
            ),
            ("Runs", [(_run_words(run), run.scope, reverse("console:run", args=[run.pk]), "") for run in runs]),
            ("Agents and people", [(name, "", _about("caller", name=_identity(name)), "") for name in callers]),
            ("Search", [(f"Search memories for “{text}”", "", _about("lookup", q=text), "")]),
        ]
    return show(request, "parts/palette.html", {"groups": [(name, found) for name, found in groups if found]})


def _rows(links: list[Link]) -> list[tuple[str, str, str, str]]:
    return [(link.label, f"g {link.key}" if link.key else "", link.address, "") for link in links]


def _about(page_name: str, /, **members: str) -> str:
    return f"{reverse(f'console:{page_name}')}?{urlencode(members)}"


def _identity(name: str) -> str:
    return name if name.startswith("key:") else f"user:{name}"


def _run_words(run: ForgetRun) -> str:
    return f"{event_words(run.event)}, {run.created_at:%-d %b %Y %H:%M}"


urlpatterns = [path("palette/", palette, name="palette")]
