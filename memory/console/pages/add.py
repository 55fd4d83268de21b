"""Add: one memory typed by hand, a text to extract memories from, or a file to import."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.console.fields import KindField, ScopeField, problem_shown
from memory.console.page import OPERATOR, ConsoleRequest, go, page, show
from memory.console.pages.extract import ExtractForm
from memory.console.pages.topic_actions import MAX_NAME, LineField, LinesField, lines_plain
from memory.console.pages.transfer import ImportForm
from memory.core.errors import MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.ingest.batch import item_parse
from memory.ingest.metrics import items_count
from memory.ingest.plan import ItemOutcome
from memory.ingest.request import ingest_request
from memory.ingest.waiting import Waiting
from memory.jobs import tasks
from memory.llm.client import model_summary

# An accepted line of a file, shown beside the form of an import.
SAMPLE = '{"text": "Elsa plays football on Tuesdays", "user_id": "mara", "categories": ["family"]}'


class MemoryForm(forms.Form):
    """One memory, typed by hand."""

    title = LineField(max_length=1000, label="Memory", widget=forms.TextInput(attrs={"placeholder": "One statement"}))
    summary = LinesField(rows=3, label="Details (optional)")
    scope = ScopeField(required=False, help_text="Leave empty for /.")
    kind = KindField(required=False, max_length=MAX_NAME)
    values = LinesField(rows=2, label="Values (optional)", help_text="One per line, such as “city: Berlin”.")

    def clean_values(self) -> list[dict[str, str]]:
        """Return the values as fields of an ingest item. Raises ``ValidationError`` for a line without a
        colon or without a name."""
        fields = []
        for line in filter(str.strip, lines_plain(self.cleaned_data["values"]).split("\n")):
            name, colon, value = (part.strip() for part in line.partition(":"))
            if not colon or not name:
                raise forms.ValidationError(
                    f"Write “{line.strip()[:40]}” as a name and a value, such as “city: Berlin”.",
                    code=ProblemCode.INVALID_MEMBER,
                )
            fields.append({"name": name, "value": value, "provenance": "console"})
        return fields

    def item(self) -> dict[str, Any]:
        """Return the memory as an ingest item."""
        cleaned = self.cleaned_data
        return {
            "placement": "new_topic",
            "title": cleaned["title"],
            "summary": lines_plain(cleaned["summary"]),
            "scope": cleaned["scope"] or None,
            "topic_kind": cleaned["kind"] or None,
            "fields": cleaned["values"],
        }


@page(get=OPERATOR, post=OPERATOR)
def add(request: ConsoleRequest) -> HttpResponse:
    """Show the three ways to add memories, or ingest a posted memory. No query for the page. Adding a memory runs the
    queries of an ingest."""
    form = MemoryForm(request.POST if request.method == "POST" else None, initial=_initial(request))
    if form.is_valid():
        with problem_shown(form):
            topic_id = item_ingest(request, form.item())
            messages.success(request, f"Added “{form.cleaned_data['title']}”.")
            return go(request, "console:topic", topic_id)
    context = {
        "form": form,
        "text": ExtractForm(initial=_initial(request), auto_id="text_%s"),
        "file": ImportForm(initial=_initial(request), auto_id="file_%s"),
        "model": model_summary(),
        "most": settings.MEMSTATE_MAX_IMPORT_BYTES,
        "sample": SAMPLE,
    }
    return show(request, "add.html", context, status=422 if form.errors else 200)


def item_ingest(request: ConsoleRequest, raw: dict[str, Any]) -> str:
    """Ingest one item as the signed-in person and return the id of its topic. Raises ``MemoryProblem``."""
    item = item_parse(raw)
    if isinstance(item, MemoryProblem):
        raise item

    def render(outcomes: list[ItemOutcome], _waiting: Waiting | None) -> tuple[int, Any]:
        if isinstance(outcomes[0], MemoryProblem):
            raise outcomes[0]
        return 200, outcomes[0].as_json()

    _status, reply = ingest_request(
        [item],
        route="ingest",
        body=raw,
        render=render,
        idempotency_key=None,
        principal=request.principal,
        now=timezone.now(),
        defer=False,
        on_deferred=tasks.upkeep_request,
    )
    tasks.upkeep_nudge()
    items_count(accepted=1, refused=0)
    return str(reply["topic_id"])


def _initial(request: ConsoleRequest) -> dict[str, str]:
    return {name: request.GET.get(name, "") for name in ("scope", "kind")}


urlpatterns = [path("add/", add, name="add")]
