"""Lookup: a search over all topics, including archived ones; and the answer that an agent would get."""

import json
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django import forms
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone

from memory.access.impersonation import ImpersonatedKey, keys_to_impersonate
from memory.access.principal import Principal
from memory.console.fields import ScopeField, SuggestField, problem_shown
from memory.console.list_page import ListPage, SortColumn, sort_links
from memory.console.listing import ROWS
from memory.console.page import READER, ConsoleRequest, page, show
from memory.core.problem_codes import ProblemCode
from memory.core.replies import json_text
from memory.ingest.items import EARLIEST, LATEST
from memory.predicates.search_parts import LIVE, parts_of
from memory.predicates.search_text import MAX_LENGTH, SearchFlaw, search_narrow
from memory.predicates.tree import Comparison
from memory.recall.query import query_answer
from memory.recall.request import MAX_DEPTH, MAX_TOP_K, QueryRequest
from memory.recall.search import (
    FACET_TOPICS,
    TopicSearch,
    search_count,
    search_export,
    search_facets,
    search_read,
    search_run,
)

COLUMNS = (
    "topic_id",
    "title",
    "summary",
    "kind",
    "scope",
    "standing",
    "rung",
    "categories",
    "salience",
    "pinned",
    "retrievals",
    "last_retrieved_at",
    "created_at",
    "updated_at",
    "provenance",
)

# Examples of the query language; each is a link to its result.
CHEATS = (
    ("kitchen tap", "ranked by meaning and words, like an agent's recall; the words need not occur"),
    ('"kitchen tap"', "exactly these words in title, summary or values"),
    ("tap -garden", "without a word; a minus negates any condition"),
    ("(tea OR coffee) used:never", "OR combines alternatives; conditions side by side must all match"),
    ("id:0199", "id prefix; a full id needs no id:"),
    ("scope:/user/mara", "in this scope or below it"),
    ("kind:note", "with this kind"),
    ("category:work", "in this category"),
    ('by:"tour agent"', "written, extended or edited by this agent or person"),
    ("rung:archived", "at this stage: active, summarized, detached or archived"),
    ("field:city", "with this field"),
    ("field:city=Berlin", "this field with this value"),
    ("salience:<0.1", "salience below 0.1; also <= > >= and 0.1..0.3"),
    ("created:>=2026-05-01", "created on or after a date; also 2026-05-01..2026-05-31"),
    ("created:<7d", "created less than seven days ago"),
    ("used:>30d", "not recalled for 30 days"),
    ("retrievals:>3", "recalled more than three times"),
    ("pinned:yes", "protected from forgetting"),
    ("provenance:api", "ingested this way"),
    ("is:released", "released memories; shown only with this condition"),
)

SORT_WORDS = {
    "best": "Best match",
    "created": "Newest first",
    "oldest": "Oldest first",
    "salience": "Most salient first",
    "faintest": "Faintest first",
    "used": "Last used first",
    "idle": "Longest unused first",
}

# The columns by which a list can be sorted, each with two orders of ``SORT_WORDS``.
SORTS = {
    "created": SortColumn("created", "oldest"),
    "salience": SortColumn("salience", "faintest"),
    "used": SortColumn("used", "idle"),
}


# The search qualifier and the label of each facet, and the most values shown per facet.
FACETS = {"scope": "Scope", "kind": "Kind", "rung": "Stage", "by": "Author"}
FACET_VALUES = 8


class Facet(NamedTuple):
    """A value of a facet: the number of topics that have it, and the URL of the search narrowed to it."""

    value: str
    number: int
    address: str


class SearchField(SuggestField):
    """The search box, with completion of conditions such as ``kind:``."""

    what, defaults = "search", {"max_length": MAX_LENGTH}


class SearchForm(forms.Form):
    """The search box. ``search_read`` parses its text."""

    q = SearchField(
        required=False, label="Search", placeholder='words, "a phrase", rung:archived, by:agent, used:>30d …'
    )

    def __init__(self, typed: str, *, flaw: bool) -> None:
        super().__init__(initial={"q": typed}, auto_id="%s")
        marks = {"aria-invalid": "true", "aria-describedby": "flaw"} if flaw else {}
        focus = {} if typed else {"autofocus": True}
        fixed = {"data-search": True, "autocapitalize": "off", "spellcheck": "false"}
        self.fields["q"].widget.input_type = "search"
        self.fields["q"].widget.attrs |= fixed | focus | marks


class AgentForm(forms.Form):
    """A request for ``POST /v1/query``, and the key whose answer is shown."""

    q = forms.CharField(label="Question", max_length=8000, widget=forms.TextInput(attrs={"data-search": ""}))
    key = forms.ChoiceField(required=False, label="As", help_text="The recall uses the role and scope of this key.")
    scope = ScopeField(required=False, help_text="Leave empty for everything the key can read.")
    top_k = forms.IntegerField(required=False, label="Memories at most", min_value=1, max_value=MAX_TOP_K, initial=8)
    token_budget = forms.IntegerField(required=False, label="Token budget", min_value=1, max_value=1_000_000)
    depth = forms.IntegerField(required=False, label="Hops", min_value=0, max_value=MAX_DEPTH, initial=1)
    as_of = forms.DateTimeField(
        required=False, label="As of (UTC)", widget=forms.DateTimeInput(attrs={"type": "datetime-local"})
    )
    include_archived = forms.BooleanField(required=False, label="Include archived")
    explain = forms.BooleanField(required=False, label="Explain")

    # Fields that a link omits have the defaults of the API.
    defaults = {"top_k": "8", "depth": "1"}

    def __init__(self, *args: Any, keys: list[ImpersonatedKey], operator: Principal, **options: Any) -> None:
        super().__init__(*args, **options)
        self._principals = {"": operator, **{str(key.key_id): key.principal for key in keys}}
        choices = [("", "You, in the whole store"), *((str(key.key_id), key.label) for key in keys)]
        self.fields["key"].choices = choices  # type: ignore[attr-defined]

    @property
    def principal(self) -> Principal:
        """The caller whose answer is shown."""
        return self._principals[self.cleaned_data["key"]]

    def clean(self) -> dict[str, Any]:
        """Check that the key may read the scope, and that ``as_of`` is between ``EARLIEST`` and ``LATEST``."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("scope") and "key" in cleaned:
            with problem_shown(self, "scope"):
                self.principal.scope_chosen(cleaned["scope"])
        if cleaned.get("as_of") is not None and not EARLIEST <= cleaned["as_of"] <= LATEST:
            sentence = f"Choose a time between {EARLIEST:%Y-%m-%d} and {LATEST:%Y-%m-%d}."
            self.add_error("as_of", forms.ValidationError(sentence, code=ProblemCode.INVALID_PERIOD))
        return cleaned

    def to_filter(self) -> QueryRequest:
        """Return the request. Empty fields have the defaults of the API."""
        cleaned = {
            name: value for name, value in self.cleaned_data.items() if name != "key" and value not in (None, "")
        }
        return QueryRequest(**cleaned)


@page(get=READER)
def lookup(request: ConsoleRequest) -> HttpResponse:
    """Show the results of a search, or mark the position of an error. At most ten queries besides those of the
    session."""
    typed, sort, part = request.GET.get("q", ""), request.GET.get("sort", ""), _part_chosen(request)
    context: dict[str, Any] = {"q": typed, "sort": sort, "orders": _orders(sort), "cheats": CHEATS, "part": part}
    context |= {"sorts": sort_links(request, SORTS), "box": SearchForm(typed, flaw=False)}
    try:
        search = _search(request)
    except SearchFlaw as flaw:
        wrong = {"before": typed[: flaw.start], "wrong": typed[flaw.start : flaw.end], "after": typed[flaw.end :]}
        return show(
            request,
            "lookup.html",
            {
                **context,
                "box": SearchForm(typed, flaw=True),
                "flaw": {**wrong, "sentence": flaw.sentence, "code": flaw.code},
            },
            status=422,
        )
    found = search_run(
        search, sort=sort, cursor=request.GET.get("cursor"), limit=ROWS if part else None, now=timezone.now()
    )
    orders = _orders(sort, ranks=bool(search.question))
    return show(request, "lookup.html", {**context, "orders": orders, "found": found})


@page(get=READER)
def lookup_facets(request: ConsoleRequest) -> HttpResponse:
    """Show the values that narrow a lookup, each with the number of topics that it would leave. One query per part of
    the page, and one more if the search contains words."""
    typed, search = request.GET.get("q", ""), _search(request)
    counts, partial = search_facets(search, now=timezone.now())
    wanted = [part for part in parts_of(search.tree) if isinstance(part, Comparison)]
    facets = []
    for name, label in FACETS.items():
        chosen = max((str(part.value) for part in wanted if part.field == name), key=len, default="")
        # A chosen scope can be narrowed further. For each other facet, one chosen value is enough.
        open_ = name == "scope" or not chosen
        found = sorted(counts[name].items(), key=lambda each: (-each[1], each[0])) if open_ else []
        values = [Facet(value, count, _narrowed(typed, name, value)) for value, count in found if '"' not in value]
        if not chosen and len(values) < 2:
            continue
        without = _narrowed(typed, name, "") if chosen else ""
        shown = {"values": values[:FACET_VALUES], "more": len(values[FACET_VALUES:])}
        facets.append({"name": name, "label": label, "chosen": chosen, "without": without, **shown})
    context = {"q": typed, "facets": facets, "partial": partial, "most": FACET_TOPICS}
    return show(request, "parts/lookup_facets.html" if request.htmx else "lookup_facets.html", context)


def _narrowed(typed: str, name: str, value: str) -> str:
    text = search_narrow(typed, name, value)
    return f"{reverse('console:lookup')}{'?' if text else ''}{urlencode({'q': text} if text else {})}"


@page(get=READER)
def lookup_agent(request: ConsoleRequest) -> HttpResponse:
    """Show what ``POST /v1/query`` would answer. Nothing is recorded."""
    now = timezone.now()
    keys = keys_to_impersonate(now)
    asked = AgentForm.defaults | request.GET.dict() if "q" in request.GET else None
    form = AgentForm(asked, keys=keys, operator=request.principal, initial={"key": request.GET.get("key", "")})
    context: dict[str, Any] = {"form": form}
    if form.is_valid():
        answer = query_answer(form.to_filter(), principal=form.principal, now=now, record=False)
        context |= {"reply": json.loads(json_text(answer.body)), "timings": answer.timings, "seen_by": form.principal}
    return show(request, "lookup_agent.html", context, status=422 if form.errors else 200)


def _orders(sort: str, *, ranks: bool = True) -> list[tuple[str, str, bool]]:
    """Return the orders to choose from, as (value, label, whether it applies). The value of the default order is empty.
    The default is the best match for searches with words, so adding words to a search changes its order."""
    default = "best" if ranks else "created"
    return [
        ("" if name == default else name, words, name == (sort or default))
        for name, words in SORT_WORDS.items()
        if ranks or name != "best"
    ]


def _part_chosen(request: ConsoleRequest) -> str:
    """Return the part of the results that the URL selects, empty for all parts. If ``part`` is missing, an empty search
    selects the live topics, and other searches select all parts."""
    return request.GET.get("part") or ("" if request.GET.get("q", "").strip() else LIVE)


def _search(request: ConsoleRequest) -> TopicSearch:
    return search_read(request.GET.get("q", ""), principal=request.principal, part=_part_chosen(request))


# The topics that match a lookup. The count runs one query per part of the page.
TOPICS = ListPage(
    name="lookup",
    address="lookup/",
    read=_search,
    fetch=lambda asked, cursor, limit: search_export(asked.filter, cursor=cursor, limit=limit, now=asked.now),
    count=lambda asked, most: search_count(asked.filter, at_most=most, now=asked.now),
    noun="memory",
    columns=COLUMNS,
    view=lookup,
)

urlpatterns = [
    *TOPICS.urlpatterns,
    path("lookup/facets/", lookup_facets, name="lookup_facets"),
    path("lookup/agent/", lookup_agent, name="lookup_agent"),
]
