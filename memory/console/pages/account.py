"""Signing in and out, and changing the password. django-axes locks sign-ins after several failures, so that passwords
cannot be guessed."""

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

from memory.access.accounts import account_administers
from memory.access.people import password_journal
from memory.access.sign_in import SignInBusy
from memory.console.page import ANYBODY, READER, ConsoleRequest, go, page, refused, show

# An administrator can create keys, so a session that was left open or stolen ends after a working day.
ADMINISTRATOR_SECONDS = 8 * 3600


class SignInForm(AuthenticationForm):
    """Name and password."""

    error_messages = {
        "invalid_login": "Wrong name or password. Both are case-sensitive.",
        "inactive": "This account is disabled.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = "Username"
        # A person opens this page only to sign in, so the cursor is in the first field.
        self.fields["username"].widget.attrs["autofocus"] = True


class SignIn(LoginView):
    """The sign-in page. A person who is already signed in is redirected."""

    template_name = "console/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check name and password, unless too many sign-ins are being checked."""
        try:
            return super().post(request, *args, **kwargs)
        except SignInBusy as problem:
            return refused(request, problem)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Sign in. The session of an administrator is shorter."""
        reply = super().form_valid(form)
        if account_administers(form.get_user()):
            self.request.session.set_expiry(ADMINISTRATOR_SECONDS)
        return reply


class NewPasswordForm(PasswordChangeForm):
    """The old password and the new one. A wrong old password counts as a failed sign-in."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        self._request = request
        super().__init__(*args, **kwargs)

    def clean_old_password(self) -> str:
        """Return the old password. Raises ``ValidationError`` if it is wrong."""
        given: str = self.cleaned_data["old_password"]
        if authenticate(self._request, username=self.user.get_username(), password=given) is None:
            raise forms.ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return given


sign_in = require_http_methods(["GET", "HEAD", "POST"])(SignIn.as_view())
sign_in.console_roles = dict.fromkeys(("GET", "HEAD", "POST"), ANYBODY)  # type: ignore[attr-defined]


@require_http_methods(["GET", "HEAD", "POST"])
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session if the request is a POST. Redirect to the sign-in page."""
    if request.method == "POST":
        logout(request)
        messages.success(request, "You are signed out.")
    return go(request, "console:sign_in")


sign_out.console_roles = dict.fromkeys(("GET", "HEAD", "POST"), ANYBODY)  # type: ignore[attr-defined]


@page(get=READER, post=READER)
def account(request: ConsoleRequest) -> HttpResponse:
    """Show the name and role of the account. A posted form changes the password and ends the other sessions."""
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
