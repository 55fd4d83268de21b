"""Undo of manual changes: the notice with the button Undo, and the URL to which the button posts.

The notice contains only the id of the run, in the tags of Django's message. Its form is rendered with the page, so it
has the CSRF token of the page and works without JavaScript.
"""

import uuid
from collections import Counter

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.urls import path
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from memory.console.page import OPERATOR, ConsoleRequest, go, page
from memory.core.errors import Conflict
from memory.forgetting.manual_actions import Skipped
from memory.forgetting.manual_runs import BY_HAND
from memory.forgetting.run_text import undo_sentence
from memory.forgetting.runs import run_get, run_undo
from memory.models import ForgetRun

UNDO_TAG = "undo:"
PAIR_TAG = "pair:"
RUN_TAG = "run:"


class UndoForm(forms.Form):
    """The page to show after the undo."""

    next = forms.CharField(required=False, max_length=2000)


def undo_offer(request: ConsoleRequest, sentence: str, run: ForgetRun) -> None:
    """Show a notice about a manual change, with a button that undoes ``run``."""
    messages.success(request, sentence, extra_tags=f"{UNDO_TAG}{run.pk}")


def run_named(request: ConsoleRequest, sentence: str, run: ForgetRun) -> None:
    """Show a notice with a link to ``run``. There is no Undo button, because an undo reverts only a part of the
    change."""
    messages.success(request, sentence, extra_tags=f"{RUN_TAG}{run.pk}")


def pair_undo_offer(request: ConsoleRequest, sentence: str, pair_id: uuid.UUID) -> None:
    """Show a notice about a decision on a pair, with a button that undoes it."""
    messages.success(request, sentence, extra_tags=f"{PAIR_TAG}{pair_id}")


def skipped_say(request: ConsoleRequest, left: Skipped) -> None:
    """Say how many topics a change skipped, and why."""
    if left:
        why = " ".join(f"{why[:-1]}: {times:,}." for why, times in Counter(why for _topic, why in left).items())
        messages.warning(request, f"{topics_words(len(left))} skipped. {why}")


def topics_words(count: int) -> str:
    """Return `1 memory is` or `37 memories are`."""
    return "1 memory is" if count == 1 else f"{count:,} memories are"


def back_to(request: ConsoleRequest, wanted: str, *, otherwise: str = "console:archived") -> str:
    """Return ``wanted`` if it is a URL of this site, else the URL of the page ``otherwise``."""
    safe = wanted.startswith("/") and url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if safe else resolve_url(otherwise)


def go_back(request: ConsoleRequest, address: str) -> HttpResponse:
    """Redirect to ``address`` after a change. A list that changes in place (lists.js) follows the redirect itself."""
    in_place = request.htmx and request.htmx.target == "content"
    return HttpResponseRedirect(address) if in_place else go(request, address)


@page(post=OPERATOR)
def hand_undo(request: ConsoleRequest, run_id: uuid.UUID) -> HttpResponse:
    """Undo a manual change, or a run that the same person has applied or approved, and report conflicts. Sixteen
    queries per 500 topics."""
    form = UndoForm(request.POST)
    form.is_valid()
    run = run_get(run_id, principal=request.principal)
    if run.event != BY_HAND and run.approved_by != request.principal.actor:
        raise Conflict("Somebody else applied this run. Undo it on its own page, which shows the effect.")
    undone = run_undo(run_id, principal=request.principal, reason="undone right away", now=timezone.now())
    (messages.warning if undone.conflict_count else messages.success)(request, undo_sentence(undone))
    return go_back(request, back_to(request, form.cleaned_data.get("next", "")))


urlpatterns = [path("undo/<uuid:run_id>/", hand_undo, name="hand_undo")]
