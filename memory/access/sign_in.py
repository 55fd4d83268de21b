"""Limits of signing in, beside the lock of a name at an address that django-axes keeps."""

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

# A password costs most of a second of one core. More sign-ins than this wait for each other.
_HASHING = threading.BoundedSemaphore(2)
# A sign-in that waits holds a thread of the server.
MOST_WAIT_SECONDS = 5.0


class SignInBusy(TooManyRequests):
    """Other sign-ins are being checked (429)."""

    code = ProblemCode.SIGN_IN_BUSY


@contextmanager
def hashing_turn() -> Iterator[None]:
    """Wait until fewer than two threads of this process compare a password.

    Raises ``SignInBusy`` after ``MOST_WAIT_SECONDS``.
    """
    if not _HASHING.acquire(timeout=MOST_WAIT_SECONDS):
        raise SignInBusy("Many sign-ins are being checked. Try again in a few seconds.", math.ceil(MOST_WAIT_SECONDS))
    try:
        yield
    finally:
        _HASHING.release()


class SignInHandler(AxesDatabaseHandler):  # type: ignore[misc] # django-axes has no types
    """Also locks an address from which the passwords of many names were guessed."""

    def is_locked(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
        """Return whether the name or the address is locked. Two queries."""
        return _address_locked(request) or super().is_locked(request, credentials)

    def user_login_failed(
        self, sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **more: Any
    ) -> None:
        """Count a failure. At a locked address no further name leaves a row."""
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
