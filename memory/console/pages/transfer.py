"""Export of the store as a file, and import of files, which are checked first."""

import datetime as dt
import functools
import re
import uuid
from pathlib import Path
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.urls import path
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from memory.console.download import download
from memory.console.fields import ScopeField, form_error
from memory.console.list_page import ListPage, NoFilter
from memory.console.page import OPERATOR, ConsoleRequest, go, page, show
from memory.console.people import may, store_enter
from memory.console.undo import skipped_say
from memory.console.upload import FolderUpload
from memory.core.errors import Conflict, MemoryProblem, RequestRefused
from memory.core.problem_codes import ProblemCode
from memory.forgetting.run_list import run_detail
from memory.health import worker_problem
from memory.jobs import tasks
from memory.models import ForgetRun, ImportJob
from memory.models.newest_first import newest_page
from memory.resumable import job_get, jobs_count, jobs_visible
from memory.transfer.export import export_note, export_size, store_export
from memory.transfer.importers import IMPORTERS, source_title
from memory.transfer.importers.guess import source_guess
from memory.transfer.importing import import_cancel, import_confirm, import_offer
from memory.transfer.lines import FORMAT
from memory.transfer.report import BROUGHT, REASONS, THERE, ImportReport, counts_sorted, noun_of
from memory.transfer.revert import import_left, import_undo_plan
from memory.transfer.uploads import import_before, upload_discard, uploads_folder
from memory.transfer.work import import_work

FILE_NAME = "memstate-export.jsonl"
# Files up to this number of bytes are checked in the request, because the worker may be busy for a minute.
CHECKED_HERE = 1024 * 1024
_UNKNOWN = "The format of this file is not known. See the accepted files. If it is one of these, choose it."
Status = ImportJob.Status
# Two sample lines for each of two kinds of file that an import accepts.
SAMPLES = {
    "Memories, as JSON Lines": """\
{"memory": "Mara drives an old blue Volvo.", "user_id": "mara", "created_at": "2026-03-01T09:00:00Z"}
{"memory": "Mara is allergic to penicillin.", "user_id": "mara", "categories": ["health"]}
""",
    "Chat transcript, as JSON Lines": """\
{"role": "user", "content": "I moved to Oslo.", "time": "2026-03-01T09:00:00Z"}
{"role": "assistant", "content": "How do you like it there?", "time": "2026-03-01T09:00:20Z"}
""",
}


def _sources() -> list[tuple[str, str]]:
    return [("", "Detect from the file"), *((name, source_title(name)) for name in (FORMAT, *IMPORTERS))]


class ExportForm(forms.Form):
    """The options of an export."""

    scope = ScopeField(required=False, help_text="Leave empty for the whole store.")
    vectors = forms.BooleanField(required=False, label="With vectors")

    def __init__(self, data: Any = None) -> None:
        # The ids of the fields differ from those of the import form on the same page, which has a scope too.
        super().__init__(data, auto_id="export_%s")


class ReadingForm(forms.Form):
    """The options of an import."""

    source = forms.ChoiceField(choices=_sources, required=False, label="Format")
    scope = ScopeField(
        required=False,
        label="Into scope",
        help_text="Memories of a user_id go below it, into /user/<user_id>. A MemState export keeps its own scopes.",
    )


class ImportForm(ReadingForm):
    """A file, and the options of its import."""

    # The last field of the form. So the other fields have arrived if the file is refused during the upload.
    file = forms.FileField(label="File", widget=forms.FileInput(attrs={"accept": ".json,.jsonl,.ndjson,.txt"}))


@page(get=OPERATOR)
def transfer(request: ConsoleRequest) -> HttpResponse:
    """Show the forms of export and import, and the latest imports. One query."""
    return _page(request, ImportForm())


@page(get=OPERATOR)
def transfer_size(request: ConsoleRequest) -> HttpResponse:
    """Show the number of lines of an export, and its approximate size. Two queries for each type of line."""
    form = ExportForm(request.GET)
    wanted: dict[str, Any] = form.cleaned_data if form.is_valid() else {}
    count, size = export_size(
        principal=request.principal, scope=wanted.get("scope") or None, vectors=bool(wanted.get("vectors"))
    )
    said = f"{count:,} lines, about {filesizeformat(size)}"
    if request.htmx:
        return HttpResponse(said, content_type="text/plain; charset=utf-8")
    return show(request, "count.html", {"said": said, "query": request.GET.urlencode()})


@page(post=OPERATOR)
def transfer_export(request: ConsoleRequest) -> HttpResponseBase:
    """Return an export of one snapshot as a file, in constant memory. Only a POST creates an export, because each one
    is journaled."""
    form = ExportForm(request.POST)
    if not form.is_valid():
        return _page(request, ImportForm(), exporting=form, status=422)
    wanted = form.cleaned_data
    asked = {"principal": request.principal, "scope": wanted["scope"] or None, "vectors": wanted["vectors"]}
    export_note(**asked, now=timezone.now())
    return download(
        request,
        store_export(**asked),
        name=_file_name(wanted["scope"], timezone.now()),
        content_type="application/jsonl; charset=utf-8",
        folder=uploads_folder(),
    )


@csrf_protect
@page(post=OPERATOR)
def _upload(request: ConsoleRequest) -> HttpResponse:
    upload = request.upload_handlers[0]
    assert isinstance(upload, FolderUpload)
    form = ImportForm(request.POST, request.FILES)
    form.is_valid()
    if upload.refused:
        form.errors["file"] = form.error_class([forms.ValidationError(upload.refused, code=ProblemCode.INVALID_FILE)])
    if form.errors or upload.path is None:
        return _page(request, form, status=422)
    source = form.cleaned_data["source"]
    try:
        source = source or source_guess(upload.path)
        if not source:
            raise RequestRefused(_UNKNOWN, code=ProblemCode.INVALID_FILE)
        job = _offer(request, upload.path, source=source, form=form)
    except MemoryProblem as problem:
        form.add_error(None if source else "file", form_error(problem))
        return _page(request, form, status=422)
    upload.take()
    return go(request, "console:transfer_import", job.pk)


@csrf_exempt
@functools.wraps(_upload)
def transfer_upload(request: HttpRequest) -> HttpResponseBase:
    """Write the file of a form to disk as it arrives. The upload handler must be set before anything reads the form,
    even its CSRF token. So ``_upload`` checks the token afterwards."""
    welcome = may(store_enter(request), OPERATOR)
    limit = settings.MEMSTATE_MAX_IMPORT_BYTES if welcome else 0
    upload = FolderUpload(request, folder=uploads_folder(), limit=limit)
    request.upload_handlers = [upload]
    try:
        return _upload(request)
    finally:
        upload.discard()


@page(post=OPERATOR)
def transfer_recheck(request: ConsoleRequest, import_id: uuid.UUID) -> HttpResponse:
    """Check the file of an import again, in another format or for another scope."""
    job = job_get(ImportJob, import_id, principal=request.principal)
    form = ReadingForm(request.POST)
    if not _checkable_again(job):
        raise Conflict(
            "The file cannot be checked again: it is being imported, or it was removed.", code=ProblemCode.NOT_FOUND
        )
    if not form.is_valid():
        return _import_page(request, job, form=form, status=422)
    try:
        made = _offer(request, Path(job.file), source=form.cleaned_data["source"] or job.source, form=form)
    except MemoryProblem as problem:
        form.add_error(None, form_error(problem))
        return _import_page(request, job, form=form, status=422)
    if job.status == Status.WAITING:
        import_cancel(import_id, principal=request.principal, now=timezone.now())
    return go(request, "console:transfer_import", made.pk)


@page(get=OPERATOR)
def transfer_import(request: ConsoleRequest, import_id: uuid.UUID) -> HttpResponse:
    """Show an import at its present step: the progress of its check, its preview, its progress, or its result."""
    return _import_page(request, job_get(ImportJob, import_id, principal=request.principal))


@page(get=OPERATOR)
def transfer_progress(request: ConsoleRequest, import_id: uuid.UUID) -> HttpResponse:
    """Return the progress of an import for its page, which is reloaded at the end of a step."""
    job = job_get(ImportJob, import_id, principal=request.principal)
    if not request.htmx:
        return go(request, "console:transfer_import", import_id)
    reply = show(
        request,
        "parts/transfer_progress.html",
        {"job": job, "worker": worker_problem(timezone.now(), waits=job.status in job.AT_WORK)},
    )
    if job.status not in job.AT_WORK or job.status != request.GET.get("was", job.status):
        reply.headers["HX-Refresh"] = "true"
    return reply


@page(post=OPERATOR)
def transfer_bring(request: ConsoleRequest, import_id: uuid.UUID) -> HttpResponse:
    """Start an import after its check."""
    import_confirm(import_id, principal=request.principal, now=timezone.now(), enqueue=tasks.import_enqueue)
    return go(request, "console:transfer_import", import_id)


@page(post=OPERATOR)
def transfer_cancel(request: ConsoleRequest, import_id: uuid.UUID) -> HttpResponse:
    """Cancel an import; topics imported so far are kept."""
    job = import_cancel(import_id, principal=request.principal, now=timezone.now())
    upload_discard(job.file)
    brought = job.counts.get("topic", {}).get(BROUGHT, 0)
    kept = "1 imported memory is" if brought == 1 else f"{brought:,} imported memories are"
    stays = f" {kept} kept." if brought else ""
    messages.success(request, f"Stopped.{stays}" if job.done else "The import was cancelled; nothing was imported.")
    return go(request, "console:transfer")


@page(post=OPERATOR)
def transfer_release(request: ConsoleRequest, import_id: uuid.UUID) -> HttpResponse:
    """Plan the undo of an import, and redirect to the plan."""
    run, left = import_undo_plan(import_id, principal=request.principal, now=timezone.now())
    if run is not None:
        return go(request, "console:run", run.pk)
    skipped_say(request, left)
    return go(request, "console:transfer_import", import_id)


def _file_name(scope: str, now: dt.datetime) -> str:
    """Return ``memstate-user-mara-2026-03-01.jsonl`` for the scope ``/user/mara``."""
    place = "-".join(re.findall(r"[\w.]+", scope))[:80]
    return "-".join(filter(None, ("memstate", place, f"{now:%Y-%m-%d}"))) + ".jsonl"


def _offer(request: ConsoleRequest, file: Path, *, source: str, form: forms.Form) -> ImportJob:
    """Check a file: a small one in the request, a large one in the worker."""
    here = file.stat().st_size <= CHECKED_HERE
    job = import_offer(
        file,
        source=source,
        scope=form.cleaned_data["scope"] or None,
        principal=request.principal,
        now=timezone.now(),
        enqueue=None if here else tasks.import_enqueue,
    )
    return import_work(job.pk, clock=timezone.now, seconds=0) if here else job


def _page(request: ConsoleRequest, form: forms.Form, *, status: int = 200, **more: Any) -> HttpResponse:
    context = {
        **IMPORTS.context(request),
        "form": form,
        "exporting": ExportForm(),
        "most": settings.MEMSTATE_MAX_IMPORT_BYTES,
        "samples": SAMPLES,
        **more,
    }
    return show(request, "transfer.html", context, status=status)


def _import_page(
    request: ConsoleRequest, job: ImportJob, *, form: forms.Form | None = None, status: int = 200
) -> HttpResponse:
    report = ImportReport(**job.report) if job.report else None
    rows = [] if report and report.problems else _rows(job.counts or (report.sorts if report else {}))
    undo = run_detail(job.run) if job.run and job.run.status == ForgetRun.Status.DONE else None
    context = {
        "job": job,
        "undo": undo,
        "may_undo": job.finished_at and job.counts.get("topic", {}).get(BROUGHT) and import_left(job),
        "report": report,
        "worker": worker_problem(timezone.now(), waits=job.status in job.AT_WORK),
        "at_work": job.status in job.AT_WORK,
        "rows": rows,
        "left": any(row["left"] for row in rows),
        "brings": _would_import(report),
        "before": import_before(job),
        "again": _checkable_again(job),
        "known": report is not None and report.total(THERE) > 0,
        "form": form or ReadingForm(initial={"source": job.source, "scope": job.scope}),
    }
    return show(request, "transfer_import.html", context, status=status)


def _checkable_again(job: ImportJob) -> bool:
    """Return whether the file can be checked again in another format."""
    return job.status in (Status.WAITING, Status.FAILED) and not job.done and Path(job.file).is_file()


def _rows(sorts: dict[str, dict[str, int]]) -> list[dict[str, Any]]:
    """Return a row for each type of line: the numbers of imported, existing and skipped lines, and why lines were
    skipped."""
    rows = []
    for sort, counts in counts_sorted(sorts):
        left = {why: times for why, times in counts.items() if why not in (BROUGHT, THERE)}
        rows.append(
            {
                "noun": noun_of(sort, 2),
                "brought": counts.get(BROUGHT, 0),
                "there": counts.get(THERE, 0),
                "left": sum(left.values()),
                "why": [REASONS.get(why, why).removeprefix("left out, ") for why in left],
            }
        )
    return rows


def _would_import(report: ImportReport | None) -> dict[str, Any] | None:
    """Return how many topics the checked file would import or, if it has no topics, how many lines of another type.
    Return None if it would import nothing."""
    sorts = report.sorts if report else {}
    for sort in ("topic", *sorts):
        if count := sorts.get(sort, {}).get(BROUGHT):
            return {"count": count, "noun": noun_of(sort, count)}
    return None


# Imports. One query for a page, one for the count.
IMPORTS = ListPage(
    name="transfer",
    address="transfer/",
    form=NoFilter,
    fetch=lambda asked, cursor, limit: newest_page(
        jobs_visible(ImportJob, asked.principal).select_related("run"), cursor=cursor, limit=limit
    ),
    count=lambda asked, most: jobs_count(ImportJob, principal=asked.principal, at_most=most),
    noun="import",
    view=transfer,
    least=OPERATOR,
)

urlpatterns = [
    *IMPORTS.urlpatterns,
    path("transfer/size/", transfer_size, name="transfer_size"),
    path(f"transfer/{FILE_NAME}", transfer_export, name="transfer_export"),
    path("transfer/upload/", transfer_upload, name="transfer_upload"),
    path("transfer/<uuid:import_id>/", transfer_import, name="transfer_import"),
    path("transfer/<uuid:import_id>/progress/", transfer_progress, name="transfer_progress"),
    path("transfer/<uuid:import_id>/check/", transfer_recheck, name="transfer_recheck"),
    path("transfer/<uuid:import_id>/bring/", transfer_bring, name="transfer_bring"),
    path("transfer/<uuid:import_id>/release/", transfer_release, name="transfer_release"),
    path("transfer/<uuid:import_id>/cancel/", transfer_cancel, name="transfer_cancel"),
]
