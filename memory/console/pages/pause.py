"""Pause: stop forgetting in a scope, and resume it."""

import datetime as dt

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.console.fields import ScopeField
from memory.console.page import OPERATOR, ConsoleRequest, go, page, show
from memory.core.errors import MemoryProblem
from memory.core.scopes import ROOT
from memory.forgetting.pause import pause_lift, pause_start, pauses_active

_HOURS = [("", "Until it is lifted"), ("1", "1 hour"), ("24", "1 day"), ("168", "7 days"), ("720", "30 days")]


class PauseForm(forms.Form):
    """Where forgetting stops, for how long, and why."""

    scope = ScopeField(required=False, help_text="Includes everything below it. Leave empty for the whole store.")
    hours = forms.ChoiceField(choices=_HOURS, required=False, label="How long")
    reason = forms.CharField(max_length=500, widget=forms.Textarea(attrs={"rows": 2}))


@page(get=OPERATOR, post=OPERATOR)
def pause(request: ConsoleRequest) -> HttpResponse:
    """Show the active pauses and the form for a new one, or start or lift a pause. Three queries."""
    now = timezone.now()
    context = {"active": pauses_active(now)}
    if request.method != "POST":
        form = PauseForm(initial={"scope": request.GET.get("scope", "")})
        return show(request, "pause.html", {"form": form, **context})
    if "lift" in request.POST:
        scope = request.POST["lift"]
        pause_lift(scope, reason=request.POST.get("reason", "")[:500], principal=request.principal, now=now)
        messages.success(request, f"Forgetting is resumed in {scope}.")
        return go(request, "console:runs")
    form = PauseForm(request.POST)
    if form.is_valid():
        scope, hours = form.cleaned_data["scope"] or ROOT, form.cleaned_data["hours"]
        until = now + dt.timedelta(hours=int(hours)) if hours else None
        try:
            pause_start(scope, reason=form.cleaned_data["reason"], until=until, principal=request.principal, now=now)
        except MemoryProblem as problem:
            form.add_error("scope", forms.ValidationError(problem.sentence, code=problem.code))
        else:
            messages.success(request, f"Forgetting is paused in {scope}.")
            return go(request, "console:runs")
    return show(request, "pause.html", {"form": form, **context}, status=422)


urlpatterns = [path("pause/", pause, name="pause")]
