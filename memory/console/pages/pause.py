"""Pause: stop forgetting in a scope, and resume it."""

import datetime as dt

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.console.fields import ScopeField, problem_shown
from memory.console.page import OPERATOR, ConsoleRequest, page, show
from memory.console.undo import back_to, go_back
from memory.core.scopes import ROOT, scope_words
from memory.forgetting.pause import pause_lift, pause_start

_HOURS = [("", "Until it is lifted"), ("1", "1 hour"), ("24", "1 day"), ("168", "7 days"), ("720", "30 days")]


# The reason of a pause for which nobody has given one.
NO_REASON = "No reason given."


class PauseForm(forms.Form):
    """Where forgetting stops, for how long, and why."""

    scope = ScopeField(required=False, help_text="Includes everything below it. Leave empty for the whole store.")
    hours = forms.ChoiceField(choices=_HOURS, required=False, label="How long")
    reason = forms.CharField(max_length=500, required=False, widget=forms.Textarea(attrs={"rows": 2}))


@page(get=OPERATOR, post=OPERATOR)
def pause(request: ConsoleRequest) -> HttpResponse:
    """Show the form for a pause, or start or lift one. With ``at_once``, pause the whole store until it is resumed.
    Three queries."""
    now = timezone.now()
    if request.method != "POST":
        form = PauseForm(initial={"scope": request.GET.get("scope", "")})
        return show(request, "pause.html", {"form": form})
    if "lift" in request.POST:
        scope = request.POST["lift"]
        pause_lift(scope, reason=request.POST.get("reason", "")[:500], principal=request.principal, now=now)
        messages.success(request, f"Forgetting resumed in {scope_words(scope)}.")
        return go_back(request, _next(request))
    form = PauseForm({} if "at_once" in request.POST else request.POST)
    if form.is_valid():
        scope, hours = form.cleaned_data["scope"] or ROOT, form.cleaned_data["hours"]
        until = now + dt.timedelta(hours=int(hours)) if hours else None
        with problem_shown(form, "scope"):
            reason = form.cleaned_data["reason"] or NO_REASON
            pause_start(scope, reason=reason, until=until, principal=request.principal, now=now)
            # The page shows each pause, so no notice repeats it.
            return go_back(request, _next(request))
    return show(request, "pause.html", {"form": form}, status=422)


def _next(request: ConsoleRequest) -> str:
    return back_to(request, request.POST.get("here", ""), otherwise="console:runs")


urlpatterns = [path("pause/", pause, name="pause")]
