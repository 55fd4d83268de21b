"""Notifications: who is notified of what, and the last messages."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.console.fields import ReasonField, problem_shown
from memory.console.page import ADMINISTRATOR, ConsoleRequest, go, page, show
from memory.core.ids import uuid7_at
from memory.jobs import tasks
from memory.models import NotificationTarget
from memory.notifications.outbox import test_write
from memory.notifications.send import deliveries_last
from memory.notifications.targets import (
    EVENTS,
    delivery_retry,
    target_add,
    target_change,
    target_get,
    target_place,
    target_remove,
    target_secret_renew,
    targets_list,
)

LAST_DELIVERIES = 20
_Kind = NotificationTarget.Kind


class TargetForm(forms.Form):
    """A target. ``once`` becomes its id, so that a form that is sent twice creates only one target."""

    once = forms.UUIDField(widget=forms.HiddenInput)
    kind = forms.ChoiceField(label="Type", choices=_Kind.choices)
    name = forms.CharField(max_length=100)
    address = forms.CharField(
        max_length=1000,
        help_text="An address such as https://example.org/hook, or a mail address.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    events = forms.MultipleChoiceField(
        label="Notify when", choices=list(EVENTS.items()), widget=forms.CheckboxSelectMultiple
    )
    regret_above = forms.FloatField(
        label="Missed, in percent",
        required=False,
        min_value=0,
        max_value=100,
        help_text="Of the memories archived by runs in 30 days, the share that was needed afterwards. Only with the "
        "event above.",
    )
    enabled = forms.BooleanField(required=False, help_text="Nothing is sent to a disabled target.")
    reason = ReasonField()

    def __init__(self, data: Any = None, *, target: NotificationTarget | None = None) -> None:
        if target is None:
            super().__init__(
                data, initial={"once": uuid7_at(timezone.now()), "events": ["run_held", "job_failed", "worker_stopped"]}
            )
            del self.fields["enabled"]
            return
        share = target.regret_above
        super().__init__(
            data,
            initial={
                "name": target.name,
                "events": target.events,
                "regret_above": None if share is None else round(share * 100, 3),
                "enabled": target.enabled,
            },
        )
        del self.fields["once"], self.fields["kind"]
        address = self.fields["address"]
        address.required, address.help_text = False, f"Now {target_place(target)}. Leave empty to keep it."

    def values(self) -> dict[str, Any]:
        """Return the members of the target. An empty address is omitted, so that the stored address remains."""
        said: dict[str, Any] = self.cleaned_data
        share = said["regret_above"]
        kept: dict[str, Any] = {
            name: said[name] for name in ("kind", "name", "events", "enabled", "reason") if name in said
        }
        kept["regret_above"] = None if share is None or "regret" not in said["events"] else share / 100
        return kept | ({"address": said["address"]} if said["address"] else {})


@page(get=ADMINISTRATOR)
def notifications(request: ConsoleRequest) -> HttpResponse:
    """Show the targets and the last messages. Two queries."""
    return show(
        request,
        "notifications.html",
        {"targets": [_target(target) for target in targets_list()], "deliveries": _deliveries(), "events": EVENTS},
    )


@page(get=ADMINISTRATOR)
def notifications_sent(request: ConsoleRequest) -> HttpResponse:
    """Return the last messages, for the page that shows them. One query."""
    if not request.htmx:
        return go(request, "console:notifications")
    return show(request, "parts/notifications_sent.html", {"deliveries": _deliveries()})


@page(get=ADMINISTRATOR, post=ADMINISTRATOR)
def notifications_add(request: ConsoleRequest) -> HttpResponse:
    """Add a target, and show its secret only in the reply to the form. Two queries."""
    form = TargetForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        with problem_shown(form, "address"):
            target, secret = target_add(
                **form.values(), target_id=form.cleaned_data["once"], principal=request.principal, now=timezone.now()
            )
            return _added(request, target, secret)
    return show(request, "notifications_edit.html", {"form": form}, status=422 if form.errors else 200)


@page(get=ADMINISTRATOR, post=ADMINISTRATOR)
def notifications_edit(request: ConsoleRequest, target_id: uuid.UUID) -> HttpResponse:
    """Change or disable a target. One query for the page, four for a change."""
    target = target_get(target_id)
    form = TargetForm(request.POST if request.method == "POST" else None, target=target)
    if form.is_valid():
        with problem_shown(form, "address"):
            target_change(target_id, principal=request.principal, now=timezone.now(), **form.values())
            messages.success(request, f"Target “{target.name}” changed.")
            return go(request, "console:notifications")
    context = {"form": form, "target": _target(target)}
    return show(request, "notifications_edit.html", context, status=422 if form.errors else 200)


@page(post=ADMINISTRATOR)
def notifications_secret(request: ConsoleRequest, target_id: uuid.UUID) -> HttpResponse:
    """Make a new secret for a webhook and show it once. Four queries."""
    secret = target_secret_renew(
        target_id, reason=request.POST.get("reason", "")[:1000], principal=request.principal, now=timezone.now()
    )
    return _added(request, target_get(target_id), secret)


@page(post=ADMINISTRATOR)
def notifications_test(request: ConsoleRequest, target_id: uuid.UUID) -> HttpResponse:
    """Write a test message, which the worker sends. Three queries."""
    target = target_get(target_id)
    with transaction.atomic():
        test_write(target, now=timezone.now())
        tasks.notify_enqueue()
    messages.success(request, f"A test for “{target.name}” is queued. Its status is below.")
    return go(request, "console:notifications")


@page(post=ADMINISTRATOR)
def notifications_remove(request: ConsoleRequest, target_id: uuid.UUID) -> HttpResponse:
    """Remove a target. Three queries."""
    reason = request.POST.get("reason", "")[:1000]
    target = target_remove(target_id, reason=reason, principal=request.principal, now=timezone.now())
    messages.success(request, f"Target “{target.name}” removed. Nothing more is sent to it.")
    return go(request, "console:notifications")


@page(post=ADMINISTRATOR)
def notifications_again(request: ConsoleRequest, delivery_id: uuid.UUID) -> HttpResponse:
    """Send a message again that was given up. Three queries."""
    delivery_retry(delivery_id, principal=request.principal, now=timezone.now())
    tasks.notify_enqueue()
    return go(request, "console:notifications")


def _added(request: ConsoleRequest, target: NotificationTarget, secret: str) -> HttpResponse:
    if target.kind == _Kind.MAIL:
        messages.success(request, f"Target “{target.name}” added.")
        return go(request, "console:notifications")
    return show(request, "notifications_added.html", {"target": _target(target), "secret": secret})


def _target(target: NotificationTarget) -> dict[str, Any]:
    return {
        "id": target.pk,
        "name": target.name,
        "kind": target.kind,
        "to": target_place(target),
        "events": [EVENTS[event] for event in target.events if event != "regret"],
        "regret_above": target.regret_above,
        "enabled": target.enabled,
    }


def _deliveries() -> list[dict[str, Any]]:
    return [
        {
            "id": each.pk,
            "target": each.target.name,
            "text": each.message["text"],
            "phase": each.message["phase"],
            "page": each.message["page"],
            "status": each.status,
            "attempts": each.attempts,
            "answer": each.answer,
            "at": each.created_at,
            "due_at": each.due_at,
        }
        for each in deliveries_last(LAST_DELIVERIES)
    ]


urlpatterns = [
    path("settings/notifications/", notifications, name="notifications"),
    path("settings/notifications/sent/", notifications_sent, name="notifications_sent"),
    path("settings/notifications/new/", notifications_add, name="notifications_add"),
    path("settings/notifications/<uuid:target_id>/", notifications_edit, name="notifications_edit"),
    path("settings/notifications/<uuid:target_id>/secret/", notifications_secret, name="notifications_secret"),
    path("settings/notifications/<uuid:target_id>/test/", notifications_test, name="notifications_test"),
    path("settings/notifications/<uuid:target_id>/remove/", notifications_remove, name="notifications_remove"),
    path("settings/notifications/sent/<uuid:delivery_id>/", notifications_again, name="notifications_again"),
]
