"""Jobs: the schedules, the state of the worker, its queue, and failed jobs."""

from collections.abc import Callable
from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.console.fields import Attempt, ReasonField
from memory.console.page import OPERATOR, READER, ConsoleRequest, go, page, show
from memory.jobs.schedule_actions import job_retry, schedule_change, schedule_pause, schedule_resume, schedule_run
from memory.jobs.schedule_list import ScheduleSummary, failures_list, queue_status, schedule_get, schedules_upkeep


class WhyForm(forms.Form):
    """The optional reason of an operation on a schedule."""

    reason = ReasonField(required=False)


class ChangeForm(WhyForm):
    """How often a job runs."""

    minutes = forms.IntegerField(label="Interval in minutes", min_value=1)
    field_order = ["minutes", "reason"]

    def __init__(self, data: object = None, *, schedule: ScheduleSummary) -> None:
        super().__init__(data, initial={"minutes": schedule.minutes})  # type: ignore[arg-type]
        minutes = self.fields["minutes"]
        assert isinstance(minutes, forms.IntegerField)
        self.fields["minutes"] = forms.IntegerField(
            label=minutes.label,
            min_value=1,
            max_value=schedule.most_minutes,
            help_text=f"From 1 to {schedule.most_minutes:,}.",
        )


@page(get=READER)
def schedules(request: ConsoleRequest) -> HttpResponse:
    """Show the jobs, the worker, the queue and recent failures. Eight queries."""
    now = timezone.now()
    return show(
        request,
        "schedules.html",
        {"upkeep": schedules_upkeep(now=now), "queue": queue_status(now=now), "failures": failures_list(now=now)},
    )


@page(get=READER)
def schedules_pulse(request: ConsoleRequest) -> HttpResponse:
    """Return only the worker and the queue, for the page that shows them. Five queries."""
    if not request.htmx:
        return go(request, "console:schedules")
    return show(request, "parts/schedule_pulse.html", {"queue": queue_status(now=timezone.now())})


@dataclass(frozen=True)
class _ScheduleAction:
    title: str
    button: str
    lead: str
    take: Callable[..., str]
    done: str


_RUN = _ScheduleAction(
    "Run now",
    "Run now",
    "Queues the job in addition to its schedule. The worker starts it shortly.",
    schedule_run,
    "{} is queued.",
)
_PAUSE = _ScheduleAction(
    "Pause", "Pause", "The job does not run until it is resumed, even after a restart.", schedule_pause, "{} is paused."
)
_RESUME = _ScheduleAction("Resume", "Resume", "The schedule continues from now.", schedule_resume, "{} is resumed.")


def _confirm(request: ConsoleRequest, schedule_id: int, act: _ScheduleAction) -> HttpResponse:
    now = timezone.now()
    schedule = schedule_get(schedule_id, now=now)
    back = "console:runs" if schedule.scope else "console:schedules"
    form = WhyForm(request.POST if request.method == "POST" else None)
    attempt = Attempt(form)
    with attempt:
        if form.is_valid():
            said = act.take(schedule_id, principal=request.principal, reason=form.cleaned_data["reason"], now=now)
            messages.success(request, act.done.format(said))
            return go(request, back)
    context = {"schedule": schedule, "back": back, "act": act, "form": form, "refused": attempt.refused}
    context["within"] = back.removeprefix("console:")
    return show(request, "schedule_confirm.html", context, status=attempt.status)


@page(get=OPERATOR, post=OPERATOR)
def schedules_run(request: ConsoleRequest, schedule_id: int) -> HttpResponse:
    """Ask whether to run a job now. A confirmation enqueues it."""
    return _confirm(request, schedule_id, _RUN)


@page(get=OPERATOR, post=OPERATOR)
def schedules_pause(request: ConsoleRequest, schedule_id: int) -> HttpResponse:
    """Ask whether to pause a schedule. A confirmation pauses it."""
    return _confirm(request, schedule_id, _PAUSE)


@page(get=OPERATOR, post=OPERATOR)
def schedules_resume(request: ConsoleRequest, schedule_id: int) -> HttpResponse:
    """Ask whether to resume a schedule. A confirmation resumes it."""
    return _confirm(request, schedule_id, _RESUME)


@page(get=OPERATOR, post=OPERATOR)
def schedules_change(request: ConsoleRequest, schedule_id: int) -> HttpResponse:
    """Ask for the interval of a schedule. A posted form sets it."""
    now = timezone.now()
    schedule = schedule_get(schedule_id, now=now)
    act = _ScheduleAction("Change", "Change interval", "The job next runs after this interval.", schedule_change, "")
    form = ChangeForm(request.POST if request.method == "POST" else None, schedule=schedule)
    attempt = Attempt(form)
    with attempt:
        if form.is_valid():
            said = schedule_change(
                schedule_id,
                minutes=form.cleaned_data["minutes"],
                principal=request.principal,
                reason=form.cleaned_data["reason"],
                now=now,
            )
            messages.success(request, f"{said} now runs {schedule_get(schedule_id, now=now).often}.")
            return go(request, "console:schedules")
    context = {"schedule": schedule, "back": "console:schedules", "act": act, "form": form, "refused": attempt.refused}
    return show(request, "schedule_confirm.html", context, status=attempt.status)


@page(post=OPERATOR)
def schedules_retry(request: ConsoleRequest, task_id: str) -> HttpResponse:
    """Queue a failed job again."""
    said = job_retry(task_id, principal=request.principal, reason="", now=timezone.now())
    messages.success(request, f"{said} is queued again.")
    return go(request, "console:schedules")


urlpatterns = [
    path("schedules/", schedules, name="schedules"),
    path("schedules/pulse/", schedules_pulse, name="schedules_pulse"),
    path("schedules/<int:schedule_id>/run/", schedules_run, name="schedules_run"),
    path("schedules/<int:schedule_id>/pause/", schedules_pause, name="schedules_pause"),
    path("schedules/<int:schedule_id>/resume/", schedules_resume, name="schedules_resume"),
    path("schedules/<int:schedule_id>/change/", schedules_change, name="schedules_change"),
    path("schedules/failed/<str:task_id>/again/", schedules_retry, name="schedules_retry"),
]
