"""Authentication by a key in X-API-Key or in Authorization: Bearer."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from ninja.security import APIKeyHeader, HttpBearer

from memory.access.keys import KeyRefused, key_authenticate
from memory.access.limits import request_count
from memory.access.principal import Principal
from memory.api.parsing import body_length_check
from memory.core.problem_codes import ProblemCode
from memory.embedding.allowance import allowance_identify
from memory.stores.current import store_current
from memory.stores.keys import STORE_HEADER


def _principal(request: HttpRequest, secret: str) -> Principal:
    now = timezone.now()
    principal = key_authenticate(secret, now=now, store=request.headers.get(STORE_HEADER))
    request_count(principal, now=now)
    # The length is checked here, because Ninja reads the whole body before it calls the parser.
    batch = request.resolver_match is not None and request.resolver_match.url_name == "ingest_batch"
    limit = settings.MEMSTATE_MAX_BATCH_BYTES if batch else settings.MEMSTATE_MAX_BODY_BYTES
    body_length_check(request, limit=limit)
    allowance_identify(f"{store_current()}:{principal.identity}")
    return principal


class ApiKeyAuth(APIKeyHeader):
    """Authentication by X-API-Key. Without this header, Ninja tries the bearer token."""

    param_name = "X-API-Key"
    openapi_name = "ApiKey"

    def authenticate(self, request: HttpRequest, key: str | None) -> Any:
        """Return the caller, or None if the header is missing. Raises the errors of ``request_authenticate``."""
        return None if key is None else _principal(request, key)


class BearerAuth(HttpBearer):
    """Authentication by a bearer token."""

    openapi_name = "Bearer"

    def __call__(self, request: HttpRequest) -> Any:
        """Return the caller. Raises ``KeyRefused`` if there is no token, because Ninja tries no other method after this
        one."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return self.authenticate(request, token.strip() if scheme.lower() == "bearer" else "")

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        """Return the caller whose key is ``token``."""
        return _principal(request, token)


def request_authenticate(request: HttpRequest) -> Principal:
    """Return the caller of a request to a view outside the API, and count the request. Raises the errors of
    ``key_authenticate``, ``TooManyRequests``, and ``BodyTooLarge``. The body is not read."""
    caller = ApiKeyAuth().authenticate(request, request.headers.get(ApiKeyAuth.param_name))
    principal: Principal = BearerAuth()(request) if caller is None else caller
    return principal


def principal_of(request: HttpRequest, role: str) -> Principal:
    """Return the caller of ``request``. Raises ``KeyRefused`` if the request was not authenticated, ``NotAllowed``
    unless the role of the caller covers ``role``."""
    principal: Principal | None = getattr(request, "auth", None)
    if principal is None:
        raise KeyRefused(
            "A key is required. Send it as X-API-Key or as Authorization: Bearer.", code=ProblemCode.KEY_MISSING
        )
    principal.require(role)
    return principal
