"""Keys: who may call the API."""

import datetime as dt
import uuid
from typing import Any, NamedTuple

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone

from memory.access.keys import (
    MAX_NAME_LENGTH,
    ORDERS,
    key_as_json,
    key_create,
    key_get,
    key_revoke_one,
    keys_count,
    keys_list,
    secret_generate,
)
from memory.console.fields import DayField, ReasonField, ScopeField, end_of
from memory.console.list_page import FilterForm, ListPage, ListRequest, sort_columns, sort_field
from memory.console.page import ADMINISTRATOR, ConsoleRequest, go, page, show
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT

ROLES = (
    ("agent", "Agent: recall, ingest, edit and pin"),
    ("reader", "Reader: recall and look up"),
    ("operator", "Operator: also archive, restore, run and set policies"),
)


SORTS = sort_columns(ORDERS)


class KeyFilter(NamedTuple):
    """The time at which listed keys must be valid, None for all keys; and the order of the list."""

    valid_at: dt.datetime | None
    sort: str


class KeysForm(FilterForm[KeyFilter]):
    """The filter of the list."""

    state = forms.ChoiceField(
        required=False,
        label="Show",
        choices=[("", "Valid keys"), ("all", "All keys, including revoked and expired")],
        widget=forms.Select(attrs={"data-submits": True}),
    )
    sort = sort_field(SORTS)

    def to_filter(self) -> KeyFilter:
        """Return the filter; invalid fields are ignored."""
        valid_at = None if self.cleaned_data.get("state") == "all" else timezone.now()
        return KeyFilter(valid_at, self.cleaned_data.get("sort") or "created")


class KeyForm(forms.Form):
    """A new key. ``once`` becomes its id, so that a form that is sent twice creates only one key."""

    once = forms.UUIDField(widget=forms.HiddenInput)
    name = forms.CharField(
        max_length=MAX_NAME_LENGTH, label="Name", help_text="Shown in Activity: name the owner and the purpose."
    )
    role = forms.ChoiceField(label="Role", choices=ROLES)
    scope = ScopeField(
        required=False, help_text="The key can read and write only within this scope. Leave empty for the whole store."
    )
    last_day = DayField(
        required=False, label="Valid until", help_text="The end of that day (UTC). Leave empty for no expiry."
    )
    reason = ReasonField(required=False)
    may_forget = forms.BooleanField(
        required=False,
        label="May forget",
        help_text="For agents: the key may release memories of its scope, at most the policy's share of them a day. "
        "Operators can undo it.",
    )

    def clean_last_day(self) -> dt.date | None:
        """Refuse a day in the past."""
        day: dt.date | None = self.cleaned_data["last_day"]
        if day is not None and day < timezone.now().date():
            raise ValidationError("Choose a date in the future.", code=ProblemCode.INVALID_PERIOD)
        return day

    def clean(self) -> dict[str, Any]:
        """Refuse ``may_forget`` for a role other than agent."""
        said = self.cleaned_data
        if said.get("may_forget") and said.get("role") not in (None, "agent"):
            self.add_error(
                "may_forget", ValidationError("Choose the role Agent for this.", code=ProblemCode.CONTRADICTORY_REQUEST)
            )
        return said


class RevokeForm(forms.Form):
    """The reason for revoking a key."""

    reason = ReasonField()


def _keys(asked: ListRequest[KeyFilter], cursor: str | None, limit: int) -> tuple[list[dict[str, Any]], str | None]:
    found, following = keys_list(**asked.filter._asdict(), cursor=cursor, limit=limit)
    return [key_as_json(key, now=asked.now) for key in found], following


def _form_new(request: ConsoleRequest) -> KeyForm:
    return KeyForm(initial={"once": uuid7_at(timezone.now()), "role": "agent", "scope": request.GET.get("scope", "")})


# One query for a page, one for the count.
KEYS = ListPage(
    name="keys",
    address="keys/",
    form=KeysForm,
    fetch=_keys,
    count=lambda asked, most: keys_count(valid_at=asked.filter.valid_at, at_most=most),
    noun="key",
    sorts=SORTS,
    more=lambda asked, _rows: {"new": _form_new(asked.request)},
)


@page(get=ADMINISTRATOR, post=ADMINISTRATOR)
def keys_create(request: ConsoleRequest) -> HttpResponse:
    """Ask for the properties of a key, then create it. The secret is shown only in the reply to the form: no URL,
    session or journal contains it. A form that is sent again is refused."""
    if request.method != "POST":
        return show(request, "key_create.html", {"form": _form_new(request)})
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
    return show(request, "key_created.html", {**context, "revoke": RevokeForm()})


@page(get=ADMINISTRATOR, post=ADMINISTRATOR)
def key_revoke(request: ConsoleRequest, key_id: uuid.UUID) -> HttpResponse:
    """Confirm and revoke a key. One query for the page, four to revoke the key."""
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
