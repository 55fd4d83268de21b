"""Signing in and out, and one's own password. Guessing is stopped by django-axes, which locks out for a while."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth import authenticate, logout, update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.views import LoginView
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from memory.access.accounts import account_role
from memory.access.people import password_journal
from memory.access.sign_in import SignInBusy
from memory.console.page import ADMINISTRATOR, ANYBODY, READER, ConsoleRequest, go, page, refused, show

# An administrator makes keys, so a session that was left open or stolen ends with the working day.
ADMINISTRATOR_SECONDS = 8 * 3600


class SignInForm(AuthenticationForm):
    """Name and password."""

    error_messages = {
        "invalid_login": "Wrong name or password. Both are case-sensitive.",
        "inactive": "This account is disabled.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = "Name"
        # Where somebody is who came to sign in needs no search.
        self.fields["username"].widget.attrs["autofocus"] = True


class SignIn(LoginView):
    """The sign-in page; whoever is signed in already goes on to where they wanted."""

    template_name = "console/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check name and password, unless too many others are being checked."""
        try:
            return super().post(request, *args, **kwargs)
        except SignInBusy as problem:
            return refused(request, problem)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Sign in; the session of an administrator is a short one."""
        reply = super().form_valid(form)
        if account_role(form.get_user()) == ADMINISTRATOR:
            self.request.session.set_expiry(ADMINISTRATOR_SECONDS)
        return reply


class NewPasswordForm(PasswordChangeForm):
    """The old password and the new one. Guesses at the old one count as attempts to sign in."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        self._request = request
        super().__init__(*args, **kwargs)

    def clean_old_password(self) -> str:
        """Return the old password if it is right."""
        given: str = self.cleaned_data["old_password"]
        if authenticate(self._request, username=self.user.get_username(), password=given) is None:
            raise forms.ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return given


sign_in = require_http_methods(["GET", "HEAD", "POST"])(SignIn.as_view())
sign_in.console_roles = dict.fromkeys(("GET", "HEAD", "POST"), ANYBODY)  # type: ignore[attr-defined]


@require_http_methods(["GET", "HEAD", "POST"])
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session, and say so on the sign-in page."""
    if request.method == "POST":
        logout(request)
        messages.success(request, "You are signed out.")
    return go(request, "console:sign_in")


sign_out.console_roles = dict.fromkeys(("GET", "HEAD", "POST"), ANYBODY)  # type: ignore[attr-defined]


@page(get=READER, post=READER)
def account(request: ConsoleRequest) -> HttpResponse:
    """Show who is signed in and with which role, and change one's own password. The other sessions end."""
    form = NewPasswordForm(request, request.user, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        with transaction.atomic():
            form.save()
            password_journal(request.user, now=timezone.now())
        update_session_auth_hash(request, form.user)
        messages.success(request, "Password changed. Your other sessions have been signed out.")
        return go(request, "console:account")
    return show(request, "account.html", {"form": form}, status=422 if form.errors else 200)


urlpatterns = [
    path("sign-in/", sign_in, name="sign_in"),
    path("sign-out/", sign_out, name="sign_out"),
    path("account/", account, name="account"),
]
