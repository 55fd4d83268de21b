"""Limits on sign-ins, in addition to those of django-axes, which locks a combination of name and address."""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Sum
from django.http import HttpRequest

from memory.access.limits import TooManyRequests
from memory.core.problem_codes import ProblemCode

# Comparing a password occupies one core for most of a second. At most this number of sign-ins compare passwords at
# once; further ones wait.
_HASHING = threading.BoundedSemaphore(2)
# The wait is limited, because a waiting sign-in occupies a thread of the server.
MAX_WAIT_SECONDS = 5.0


class SignInBusy(TooManyRequests):
    """Other sign-ins are being checked (429)."""

    code = ProblemCode.TOO_MANY_REQUESTS


@contextmanager
def hashing_turn() -> Iterator[None]:
    """Wait until fewer than two threads of this process compare passwords.

    Raises ``SignInBusy`` after ``MAX_WAIT_SECONDS``.
    """
    if not _HASHING.acquire(timeout=MAX_WAIT_SECONDS):
        raise SignInBusy("Many sign-ins are being checked. Try again in a few seconds.", math.ceil(MAX_WAIT_SECONDS))
    try:
        yield
    finally:
        _HASHING.release()


class SignInHandler(AxesDatabaseHandler):  # type: ignore[misc] # django-axes has no types
    """Also locks an address from which passwords of many names were tried."""

    def is_locked(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
        """Return whether the name or the address is locked. Two queries."""
        return _address_locked(request) or super().is_locked(request, credentials)

    def user_login_failed(
        self, sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **more: Any
    ) -> None:
        """Count a failure. While the address is locked, write no rows."""
        if request is not None and _address_locked(request):
            request.axes_locked_out = True  # type: ignore[attr-defined]
            request.axes_credentials = credentials  # type: ignore[attr-defined]
            return
        super().user_login_failed(sender, credentials, request, **more)


def _address_locked(request: HttpRequest) -> bool:
    attempts = AccessAttempt.objects.filter(
        ip_address=request.axes_ip_address,  # type: ignore[attr-defined]
        attempt_time__gt=get_cool_off_threshold(request),
    )
    failures = attempts.aggregate(failures=Sum("failures_since_start"))["failures"] or 0
    return bool(failures >= settings.MEMSTATE_SIGN_IN_ATTEMPTS_PER_ADDRESS)
