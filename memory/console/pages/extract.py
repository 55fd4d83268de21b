"""Extract: turn a text into facts. A preview shows the facts. Then they are stored, and the page shows the progress."""

import uuid
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.console.fields import KindField, ScopeField, problem_shown
from memory.console.list_page import ListPage, NoFilter
from memory.console.listing import ROWS
from memory.console.page import OPERATOR, READER, ConsoleRequest, go, page, show
from memory.extraction.dropped_text import dropped_words
from memory.extraction.lists import KNOWN, STORED, extraction_facts, extractions_list
from memory.extraction.replies import ExtractReply
from memory.extraction.request import extract
from memory.extraction.segments import note_of
from memory.extraction.store import FACT_KIND
from memory.extraction.work import extraction_start, extraction_work
from memory.health import worker_problem
from memory.jobs import tasks
from memory.llm.client import model_summary
from memory.models import ExtractionJob
from memory.resumable import job_cancel, job_get, jobs_count

# Seconds of work within a request. After that, the worker continues and the page shows the progress.
WORK_SECONDS = 2.0
# The most facts shown in a preview. Counts include all facts.
SHOWN = 200


class ExtractForm(forms.Form):
    """A text, and the scope of its facts."""

    content = forms.CharField(
        label="Text",
        strip=False,
        widget=forms.Textarea(attrs={"rows": 12}),
        help_text="Prose, a list, or a conversation with a speaker name before each line.",
    )
    scope = ScopeField(required=False, help_text="Facts are stored here and compared with existing facts here.")
    kind = KindField(required=False, placeholder=FACT_KIND, help_text="Kind of the new memories.")

    def said(self) -> dict[str, Any]:
        """Return the request for extraction."""
        data = self.cleaned_data
        # Browsers send a line break as two characters. It must count as one.
        return {
            "content": data["content"].replace("\r\n", "\n"),
            "scope": data["scope"] or None,
            "kind": data["kind"] or None,
        }


@page(get=READER, post=READER)
def extract_look(request: ConsoleRequest) -> HttpResponse:
    """Ask for a text, or preview its facts without storing them. One query, plus those of ``extract`` for a preview."""
    if request.method != "POST":
        initial = {name: request.GET.get(name, "") for name in ("scope", "kind")}
        return _form_page(request, ExtractForm(initial=initial))
    form = ExtractForm(request.POST)
    if form.is_valid():
        with problem_shown(form, "content"):
            found = extract(store=False, principal=request.principal, now=timezone.now(), **form.said())
            return _form_page(request, form, look=_look(found))
    return _form_page(request, form, status=422)


@page(post=OPERATOR)
def extract_store(request: ConsoleRequest) -> HttpResponse:
    """Store the facts of a text, and redirect to the page with its progress and result."""
    form = ExtractForm(request.POST)
    if form.is_valid():
        said = form.said()
        # The request processes short texts. The worker processes long texts, and all texts if a model is configured.
        in_request = len(said["content"]) <= settings.MEMSTATE_EXTRACT_INLINE_CHARS and not model_summary().configured
        with problem_shown(form, "content"):
            job = extraction_start(
                principal=request.principal,
                now=timezone.now(),
                enqueue=None if in_request else tasks.extraction_enqueue,
                **said,
            )
            if in_request:
                extraction_work(job.id, clock=timezone.now, seconds=WORK_SECONDS, enqueue=tasks.extraction_enqueue)
                tasks.upkeep_nudge()
            return go(request, "console:extraction", job.id)
    return _form_page(request, form, status=422)


@page(get=READER)
def extraction(request: ConsoleRequest, extraction_id: uuid.UUID) -> HttpResponse:
    """Show the progress of an extraction, and either the facts that it stored or those known before. Four queries
    at most."""
    job = job_get(ExtractionJob, extraction_id, principal=request.principal)
    which = KNOWN if request.GET.get("show") == KNOWN or not job.stored else STORED
    facts, following = extraction_facts(job, which, cursor=request.GET.get("cursor"), limit=ROWS)
    return show(
        request,
        "extraction.html",
        {
            "job": job,
            "facts": facts,
            "next": following,
            "which": which,
            "dropped": dropped_words(job.dropped),
            "note": note_of(job.methods) if job.methods else "",
            "worker": worker_problem(timezone.now(), waits=job.status in job.AT_WORK),
        },
    )


@page(get=READER)
def extraction_progress(request: ConsoleRequest, extraction_id: uuid.UUID) -> HttpResponse:
    """Return the progress of an extraction for its page, which is reloaded at the end."""
    job = job_get(ExtractionJob, extraction_id, principal=request.principal)
    if not request.htmx:
        return go(request, "console:extraction", extraction_id)
    reply = show(
        request,
        "parts/extraction_progress.html",
        {"job": job, "worker": worker_problem(timezone.now(), waits=job.status in job.AT_WORK)},
    )
    if job.status != ExtractionJob.Status.WORKING:
        reply.headers["HX-Refresh"] = "true"
    return reply


@page(post=OPERATOR)
def extraction_stop(request: ConsoleRequest, extraction_id: uuid.UUID) -> HttpResponse:
    """Stop an extraction, but keep what it has stored."""
    job = job_cancel(ExtractionJob, extraction_id, principal=request.principal, now=timezone.now())
    stored = len(job.stored)
    messages.success(
        request,
        f"Stopped. {stored:,} fact{'' if stored == 1 else 's'} stored so far {'is' if stored == 1 else 'are'} kept.",
    )
    return go(request, "console:extraction", extraction_id)


def _form_page(request: ConsoleRequest, form: ExtractForm, *, status: int = 200, **more: Any) -> HttpResponse:
    context = {
        **EXTRACTIONS.context(request),
        "form": form,
        "model": model_summary(),
        "most": settings.MEMSTATE_EXTRACT_MAX_CHARS,
        **more,
    }
    return show(request, "extract.html", context, status=status)


def _look(found: ExtractReply) -> dict[str, Any]:
    known = {each["text"]: each["topic_id"] for each in found["skipped_duplicates"]}
    facts = [{"text": text, "topic_id": known.get(text)} for text in found["extracted"]]
    return {
        "facts": facts[:SHOWN],
        "more": len(facts) - SHOWN,
        "count": len(facts),
        "new": len(facts) - len(known),
        "known": len(known),
        "note": found["note"],
        "warning": found["warning"],
        "method": found["method"],
        "dropped": dropped_words(found["dropped"]),
    }


# Extractions. One query for a page, one for the count.
EXTRACTIONS = ListPage(
    name="extract",
    address="extract/",
    form=NoFilter,
    fetch=lambda asked, cursor, limit: extractions_list(principal=asked.principal, cursor=cursor, limit=limit),
    count=lambda asked, most: jobs_count(ExtractionJob, principal=asked.principal, at_most=most),
    noun="text",
    view=extract_look,
)

urlpatterns = [
    *EXTRACTIONS.urlpatterns,
    path("extract/store/", extract_store, name="extract_store"),
    path("extract/<uuid:extraction_id>/", extraction, name="extraction"),
    path("extract/<uuid:extraction_id>/progress/", extraction_progress, name="extraction_progress"),
    path("extract/<uuid:extraction_id>/cancel/", extraction_stop, name="extraction_cancel"),
]
