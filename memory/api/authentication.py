"""Authentication by X-API-Key or Authorization: Bearer, with the same keys."""

from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from ninja.security import APIKeyHeader, HttpBearer

from memory.access.keys import KeyRefused, key_authenticate
from memory.access.limits import request_count
from memory.access.principal import Principal
from memory.core.problem_codes import ProblemCode


def _principal(secret: str) -> Principal:
    now = timezone.now()
    principal = key_authenticate(secret, now=now)
    request_count(principal, now=now)
    return principal


class ApiKeyAuth(APIKeyHeader):
    """The key in X-API-Key. Without that header, the bearer token is tried."""

    param_name = "X-API-Key"
    openapi_name = "ApiKey"

    def authenticate(self, _request: HttpRequest, key: str | None) -> Any:
        """Return the caller, or None if the header is missing. Raises ``KeyRefused``."""
        return None if key is None else _principal(key)


class BearerAuth(HttpBearer):
    """The key as a bearer token."""

    openapi_name = "Bearer"

    def __call__(self, request: HttpRequest) -> Any:
        """Return the caller. Raises ``KeyRefused``, also without a token, because no other method follows."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return self.authenticate(request, token.strip() if scheme.lower() == "bearer" else "")

    def authenticate(self, _request: HttpRequest, token: str) -> Any:
        """Return the caller with the key ``token``."""
        return _principal(token)


def request_authenticate(request: HttpRequest) -> Principal:
    """Return the caller of a request to a view outside the API, and count the request. Costs the queries of a route.

    Raises ``KeyRefused`` or ``TooManyRequests``.
    """
    caller = ApiKeyAuth().authenticate(request, request.headers.get(ApiKeyAuth.param_name))
    principal: Principal = BearerAuth()(request) if caller is None else caller
    return principal


def principal_of(request: HttpRequest, role: str) -> Principal:
    """Return the caller of ``request``. Raises ``NotAllowed`` unless its role covers ``role``."""
    principal: Principal | None = getattr(request, "auth", None)
    if principal is None:
        raise KeyRefused(
            "A key is required. Send it as X-API-Key or as Authorization: Bearer.", code=ProblemCode.KEY_MISSING
        )
    principal.require(role)
    return principal
