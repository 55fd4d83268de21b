"""People: who may sign in, their roles, and the links with which they choose a password."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.views import INTERNAL_RESET_SESSION_TOKEN, PasswordResetConfirmView
from django.core.mail import EmailMessage
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from memory.access.accounts import ROLES
from memory.access.people import (
    ORDERS,
    Person,
    SignInLink,
    password_choose,
    people_count,
    people_list,
    person_disable,
    person_enable,
    person_get,
    person_invite,
    person_link_renew,
    person_remove,
    person_role_change,
)
from memory.console.fields import ReasonForm, problem_shown
from memory.console.list_page import FilterForm, ListPage, ListRequest, sort_columns, sort_field
from memory.console.page import ADMINISTRATOR, ANYBODY, ConsoleRequest, go, page, refused, show
from memory.console.queries.activity import AuditFilter, audit_summary
from memory.core.days import days_begin
from memory.core.errors import MemoryProblem
from memory.notifications.send import SendFailed, mail_post
from memory.stores.current import MAIN

# The list counts the changes of this number of days. Its links to Activity cover the same days.
LATELY_DAYS = 7
MAY = {
    "reader": "sees everything and changes nothing",
    "operator": "also changes policies, runs and memories",
    "administrator": "also manages keys, people and notifications",
}


SORTS = sort_columns(ORDERS)


class PeopleForm(FilterForm[str]):
    """The order of the list."""

    sort = sort_field(SORTS)

    def to_filter(self) -> str:
        """Return the order, by name if none is given."""
        return self.cleaned_data.get("sort") or "name"


class MailForm(ReasonForm):
    """A mail address and the reason. Without a configured mail server, there is no field for the address."""

    mail = forms.EmailField(
        label="Mail address (optional)", required=False, help_text="The link is also sent to this address."
    )
    field_order = ["mail", "reason"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not settings.EMAIL_HOST:
            del self.fields["mail"]


class RoleForm(ReasonForm):
    """A role and the reason."""

    role = forms.ChoiceField(
        choices=[(role, role.capitalize()) for role in ROLES],
        help_text=" ".join(f"The {role} {MAY[role]}." for role in ROLES),
    )
    field_order = ["role", "reason"]


class InviteForm(MailForm, RoleForm):
    """A new person."""

    name = forms.CharField(
        label="Name", max_length=150, help_text="For signing in, and in Activity. It cannot be changed later."
    )
    field_order = ["name", "role", "mail", "reason"]


def _with_changes(asked: ListRequest[str], rows: Sequence[Person]) -> dict[str, Any]:
    """Return (person, rights of the role, number of changes) for each row. The number covers ``LATELY_DAYS`` days. It
    is None if there are too many changes to count. One query."""
    made = audit_summary(
        AuditFilter(by="people", since=days_begin(LATELY_DAYS, now=asked.now)), principal=asked.principal
    )
    counts = dict(made.actors)
    return {
        "people": [
            (each, MAY.get(each.role or ""), None if made.partial else counts.get(each.actor, 0)) for each in rows
        ]
    }


# People, by name unless sorted otherwise. Two queries for a page, one for the count.
PEOPLE = ListPage(
    name="people",
    address="settings/people/",
    form=PeopleForm,
    fetch=lambda asked, cursor, limit: people_list(sort=asked.filter, cursor=cursor, limit=limit),
    count=lambda _asked, most: people_count(at_most=most),
    noun="account",
    more=_with_changes,
    least=ADMINISTRATOR,
    sorts=SORTS,
)


@page(get=ADMINISTRATOR, post=ADMINISTRATOR)
def people_invite(request: ConsoleRequest) -> HttpResponse:
    """Ask for a name and a role, and show the link of the new person only in the reply to the form. An administrator of
    the installation may also name a person who has an account for other stores. Such a person needs no link."""
    form = InviteForm(request.POST if request.method == "POST" else None, initial={"role": "reader"})
    if form.is_valid():
        with problem_shown(form, "name"):
            made = person_invite(**form.cleaned_data, principal=request.principal, now=timezone.now())
            return _link_show(request, made) if isinstance(made, SignInLink) else _granted(request, made)
    return show(request, "person_invite.html", {"form": form}, status=422 if form.errors else 200)


@page(get=ADMINISTRATOR, post=ADMINISTRATOR)
def person(request: ConsoleRequest, person_id: int) -> HttpResponse:
    """Show a person, or execute the posted ``act``: change the role, remove the person, create a new link, disable or
    enable. One query for the page, at most eleven for a change."""
    found = person_get(person_id)
    act, data = request.POST.get("act", ""), request.POST
    shown: dict[str, forms.Form] = {
        "role": RoleForm(data if act == "role" else None, initial={"role": found.role}, auto_id="role_%s"),
        "link": MailForm(data if act == "link" else None, initial={"mail": found.mail}, auto_id="link_%s"),
        "state": ReasonForm(data if act == "state" else None, auto_id="state_%s"),
        "remove": ReasonForm(data if act == "remove" else None, auto_id="remove_%s"),
    }
    form = shown.get(act)
    if form is not None and form.is_valid():
        return _change(request, found, act, form.cleaned_data)
    context = {
        "person": found,
        "forms": shown,
        "own": found.id == request.user.pk,
        "may": MAY.get(found.role or ""),
        "in_main": request.store == MAIN,
        # Only an administrator of the installation may change the account of a person who has other stores.
        "account_too": request.user.is_superuser or not found.elsewhere,
    }
    return show(request, "person.html", context, status=422 if request.method == "POST" else 200)


def _change(request: ConsoleRequest, found: Person, act: str, said: dict[str, Any]) -> HttpResponse:
    by: dict[str, Any] = {"principal": request.principal, "now": timezone.now()}
    if act == "link":
        return _link_show(request, person_link_renew(found.id, **said, **by))
    if act == "role":
        return _granted(request, person_role_change(found.id, **said, **by))
    if act == "remove":
        person_remove(found.id, **said, **by)
        messages.success(request, f"{found.name} has no access to this store any more.")
        return go(request, "console:people")
    if found.state == "disabled":
        return _link_show(request, person_enable(found.id, **said, **by))
    person_disable(found.id, **said, **by)
    messages.success(request, f"{found.name} is disabled and signed out.")
    return go(request, "console:person", found.id)


def _granted(request: ConsoleRequest, changed: Person) -> HttpResponse:
    messages.success(request, f"{changed.name} now has the role {changed.role}.")
    return go(request, "console:person", changed.id)


def _link_show(request: ConsoleRequest, link: SignInLink) -> HttpResponse:
    """Show a link. It is also mailed if the person has a mail address and a mail server is configured. No query."""
    address = request.build_absolute_uri(reverse("console:choose_password", args=[link.uid, link.token]))
    mailed = ""
    if link.person.mail and settings.EMAIL_HOST:
        try:
            mail_post(
                EmailMessage(
                    subject="[MemState] Your sign-in link",
                    body=f"Name: {link.person.name}\nChoose your password here: {address}\n"
                    f"The link works once, until {link.until:%Y-%m-%d %H:%M} UTC.\n",
                    to=[link.person.mail],
                )
            )
            mailed = f"It was also sent to {link.person.mail}."
        except SendFailed as problem:
            mailed = f"It was not sent to {link.person.mail}. {problem}"
    return show(request, "person_link.html", {"link": link, "address": address, "mailed": mailed})


class NewPassword(PasswordResetConfirmView):
    """The page that a sign-in link opens. A link accepts a password once. The token is first moved from the URL to the
    session."""

    template_name = "console/choose_password.html"

    def form_valid(self, form: "SetPasswordForm[User]") -> HttpResponse:
        """Set the password, and redirect to the sign-in page."""
        token = self.request.session.get(INTERNAL_RESET_SESSION_TOKEN, "")
        assert self.user is not None
        try:
            name = password_choose(self.user.pk, token, password=form.cleaned_data["new_password1"], now=timezone.now())
        except MemoryProblem as problem:
            return refused(self.request, problem)
        # This also ends the session of another person in the same browser.
        logout(self.request)
        messages.success(self.request, f"Password set. Sign in as {name}.")
        return go(self.request, "console:sign_in")

    def render_to_response(self, context: dict[str, Any], **response: Any) -> HttpResponse:
        """Show the form, or say that the link is no longer valid (410)."""
        status = 410 if not self.validlink else 422 if context["form"].errors else 200
        return super().render_to_response(context, status=status, **response)


_new_password = NewPassword.as_view()


@require_http_methods(["GET", "HEAD", "POST"])
def choose_password(request: HttpRequest, uidb64: str, token: str) -> HttpResponseBase:
    """Ask the person who opens a link for a new password."""
    return _new_password(request, uidb64=uidb64, token=token)


choose_password.console_roles = dict.fromkeys(("GET", "HEAD", "POST"), ANYBODY)  # type: ignore[attr-defined]


urlpatterns = [
    *PEOPLE.urlpatterns,
    path("settings/people/invite/", people_invite, name="people_invite"),
    path("settings/people/<int:person_id>/", person, name="person"),
    path("sign-in/<uidb64>/<token>/", choose_password, name="choose_password"),
]
