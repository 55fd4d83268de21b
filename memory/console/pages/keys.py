"""Keys: who may call the API."""

import datetime as dt
import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.access.keys import (
    MAX_NAME_LENGTH,
    key_as_json,
    key_create,
    key_get,
    key_revoke_one,
    keys_count,
    keys_list,
    secret_generate,
)
from memory.console.fields import DayField, ReasonField, ScopeField, end_of
from memory.console.list_page import FilterForm, ListPage, ListRequest
from memory.console.page import ADMINISTRATOR, ConsoleRequest, go, page, show
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT

ROLES = (
    ("agent", "Agent: query, ingest, edit and pin"),
    ("reader", "Reader: query and look up"),
    ("operator", "Operator: also archive, restore, run and set policies"),
)


class KeysForm(FilterForm[dt.datetime | None]):
    """The filter of the list."""

    state = forms.ChoiceField(
        required=False,
        label="Show",
        choices=[("", "Valid keys"), ("all", "All keys, including revoked and expired")],
        widget=forms.Select(attrs={"data-submits": True}),
    )

    def to_filter(self) -> dt.datetime | None:
        """Return the time at which the listed keys are valid, None for all keys."""
        return None if self.cleaned_data.get("state") == "all" else timezone.now()


class KeyForm(forms.Form):
    """A new key. ``once`` becomes its id, so that one form makes one key."""

    once = forms.UUIDField(widget=forms.HiddenInput)
    name = forms.CharField(
        max_length=MAX_NAME_LENGTH, label="Name", help_text="Shown in the audit: name the owner and the purpose."
    )
    role = forms.ChoiceField(label="Role", choices=ROLES)
    may_forget = forms.BooleanField(
        required=False,
        label="May forget",
        help_text="For agents: the key may release topics of its scope, at most agent_forget_share of them a day. "
        "Operators can undo it.",
    )
    scope = ScopeField(
        required=False, help_text="The key can read and write only within this scope. Leave empty for the whole store."
    )
    last_day = DayField(
        required=False, label="Valid until", help_text="The end of that day (UTC). Leave empty for no expiry."
    )
    reason = ReasonField(required=False)

    def clean_last_day(self) -> dt.date | None:
        """Check that the key would be valid at all."""
        day: dt.date | None = self.cleaned_data["last_day"]
        if day is not None and day < timezone.now().date():
            raise ValidationError("Choose a date in the future.", code=ProblemCode.INVALID_PERIOD)
        return day

    def clean(self) -> dict[str, Any]:
        """Check that only an agent may forget by its key."""
        said = self.cleaned_data
        if said.get("may_forget") and said.get("role") not in (None, "agent"):
            self.add_error(
                "may_forget",
                ValidationError("Choose the role Agent for this.", code=ProblemCode.MAY_FORGET_NEEDS_AGENT),
            )
        return said


class RevokeForm(forms.Form):
    """The reason for revoking a key."""

    reason = ReasonField()


def _keys(
    asked: ListRequest[dt.datetime | None], cursor: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the keys, newest first. One query."""
    found, following = keys_list(valid_at=asked.filter, cursor=cursor, limit=limit)
    return [key_as_json(key, now=asked.now) for key in found], following


# One query for a page, one to count.
KEYS = ListPage(
    name="keys",
    address="keys/",
    form=KeysForm,
    fetch=_keys,
    count=lambda asked, most: keys_count(valid_at=asked.filter, at_most=most),
    noun="key",
)


@page(get=ADMINISTRATOR, post=ADMINISTRATOR)
def keys_create(request: ConsoleRequest) -> HttpResponse:
    """Ask what the key is for, make it, and show its secret in the reply to the form and nowhere else: no address, no
    session and no journal holds it. Sent again, the form is refused."""
    if request.method != "POST":
        initial = {"once": uuid7_at(timezone.now()), "role": "agent", "scope": request.GET.get("scope", "")}
        return show(request, "key_create.html", {"form": KeyForm(initial=initial)})
    form = KeyForm(request.POST)
    if not form.is_valid():
        return show(request, "key_create.html", {"form": form}, status=422)
    said: dict[str, Any] = form.cleaned_data
    secret = secret_generate()
    key = key_create(
        name=said["name"],
        role=said["role"],
        scope=said["scope"] or ROOT,
        expires_at=end_of(said["last_day"]),
        reason=said["reason"],
        secret=secret,
        actor=request.principal.actor,
        key_id=said["once"],
        may_forget=said["may_forget"],
    )
    context = {"key": key_as_json(key, now=timezone.now()), "secret": secret, "writes": key.role != "reader"}
    return show(request, "key_created.html", context)


@page(get=ADMINISTRATOR, post=ADMINISTRATOR)
def key_revoke(request: ConsoleRequest, key_id: uuid.UUID) -> HttpResponse:
    """Confirm and revoke a key. One query, three to revoke."""
    key = key_as_json(key_get(key_id), now=timezone.now())
    form = RevokeForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        key_revoke_one(key_id, actor=request.principal.actor, reason=form.cleaned_data["reason"], now=timezone.now())
        messages.success(request, f"The key {key['name']!r} ({key['prefix']}…) is revoked.")
        return go(request, "console:keys")
    return show(request, "key_revoke.html", {"key": key, "form": form}, status=422 if form.errors else 200)


urlpatterns = [
    *KEYS.urlpatterns,
    path("keys/new/", keys_create, name="keys_create"),
    path("keys/<uuid:key_id>/revoke/", key_revoke, name="key_revoke"),
]
