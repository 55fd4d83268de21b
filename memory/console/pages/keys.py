"""Keys: who may call the API, and who may sign in here."""

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
    key_create,
    key_get,
    key_id_new,
    key_revoke_one,
    key_told,
    keys_count,
    keys_list,
    secret_generate,
)
from memory.console.fields import DayField, ReasonField, ScopeField, end_of
from memory.console.listing import ROWS, count_words
from memory.console.page import ADMINISTRATOR, READER, ConsoleRequest, go, page, show
from memory.console.people import people_list
from memory.domain.problem_codes import ProblemCode
from memory.domain.scopes import ROOT

# More accounts than this are looked up in Django's admin.
MOST_PEOPLE = 100

ROLES = (
    ("agent", "Agent: asks, remembers, edits and pins"),
    ("reader", "Reader: asks and looks up"),
    ("operator", "Operator: also archives, restores, runs, and sets policies"),
)


class KeysForm(forms.Form):
    """What the list can be filtered by."""

    state = forms.ChoiceField(
        required=False,
        label="Show",
        choices=[("", "Valid keys"), ("all", "All, with those revoked or expired")],
        widget=forms.Select(attrs={"data-submits": True}),
    )

    def valid_at(self) -> dt.datetime | None:
        """Return the moment at which the keys shown are valid, None for all of them."""
        return None if self.cleaned_data.get("state") == "all" else timezone.now()


class KeyForm(forms.Form):
    """A key as it is asked for. ``once`` becomes its id, so that one form makes one key."""

    once = forms.UUIDField(widget=forms.HiddenInput)
    name = forms.CharField(
        max_length=MAX_NAME_LENGTH, label="Name", help_text="Journals show it, so say whose it is and for what."
    )
    role = forms.ChoiceField(label="Role", choices=ROLES)
    scope = ScopeField(
        required=False, help_text="The key sees and writes nothing outside it. Nothing stands for the whole store."
    )
    last_day = DayField(
        required=False, label="Valid until", help_text="The end of that day, UTC. Nothing stands for no end."
    )
    reason = ReasonField(required=False)

    def clean_last_day(self) -> dt.date | None:
        """Check that the key would be valid at all."""
        day: dt.date | None = self.cleaned_data["last_day"]
        if day is not None and day < timezone.now().date():
            raise ValidationError("This day is over.", code=ProblemCode.INVALID_PERIOD)
        return day


class RevokeForm(forms.Form):
    """Why a key is revoked."""

    reason = ReasonField()


@page(get=READER)
def keys(request: ConsoleRequest) -> HttpResponse:
    """Show the keys, the latest first, and the accounts. Two queries."""
    form = KeysForm(request.GET)
    form.is_valid()
    found, following = keys_list(valid_at=form.valid_at(), cursor=request.GET.get("cursor"), limit=ROWS)
    now = timezone.now()
    people = people_list(most=MOST_PEOPLE + 1)
    told = [key_told(key, now=now) for key in found]
    return show(
        request,
        "keys.html",
        {
            "form": form,
            "keys": told,
            "next": following,
            "people": people[:MOST_PEOPLE],
            "more_people": len(people) > MOST_PEOPLE,
        },
    )


@page(get=READER)
def keys_counted(request: ConsoleRequest) -> HttpResponse:
    """Say how many keys the filter finds. One query."""
    form = KeysForm(request.GET)
    form.is_valid()
    return count_words(request, lambda most: keys_count(valid_at=form.valid_at(), at_most=most), "key")


@page(get=ADMINISTRATOR, post=ADMINISTRATOR)
def keys_create(request: ConsoleRequest) -> HttpResponse:
    """Ask what the key is for, make it, and show its secret in the reply to the form and nowhere else: no address, no
    session and no journal holds it. Sent again, the form is refused."""
    if request.method != "POST":
        initial = {"once": key_id_new(timezone.now()), "role": "agent", "scope": request.GET.get("scope", "")}
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
    )
    return show(request, "key_created.html", {"key": key_told(key, now=timezone.now()), "secret": secret})


@page(get=ADMINISTRATOR, post=ADMINISTRATOR)
def key_revoke(request: ConsoleRequest, key_id: uuid.UUID) -> HttpResponse:
    """Ask before a key is revoked, and revoke it. One query, three to revoke."""
    key = key_told(key_get(key_id), now=timezone.now())
    form = RevokeForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        key_revoke_one(key_id, actor=request.principal.actor, reason=form.cleaned_data["reason"], now=timezone.now())
        messages.success(request, f"The key {key['name']!r} ({key['prefix']}…) opens nothing any more.")
        return go(request, "console:keys")
    return show(request, "key_revoke.html", {"key": key, "form": form}, status=422 if form.errors else 200)


urlpatterns = [
    path("keys/", keys, name="keys"),
    path("keys/count/", keys_counted, name="keys_count"),
    path("keys/new/", keys_create, name="keys_create"),
    path("keys/<uuid:key_id>/revoke/", key_revoke, name="key_revoke"),
]
