"""/v1/policies: the policies of scopes. ``/v1/policies/`` is the policy of the root. The path of another scope is
appended to this URL. A URL that ends in ``versions`` or ``rollback`` belongs to another route; a URL that ends in a
slash always names a scope."""

from typing import Annotated, Any, Self

from django.http import HttpRequest, HttpResponse
from django.urls import register_converter
from django.urls.converters import StringConverter
from django.utils import timezone
from ninja import Path, Query, Router
from pydantic import Field, model_validator

from memory.api.authentication import principal_of
from memory.api.consistency import consistency
from memory.api.paging import Limit, limit_checked
from memory.api.parsing import AddressText
from memory.api.replies import json_reply
from memory.api.responses import CHANGE, READ
from memory.core.requests import RequestModel
from memory.core.scopes import ROOT
from memory.policy.read import policy_show, policy_versions
from memory.policy.replies import PolicyOut, PolicyVersionPage
from memory.policy.save import policy_rollback, policy_save

router = Router(tags=["policies"])


class ScopePathConverter(StringConverter):
    """A scope in the middle of a URL, before another segment. Any text matches."""

    regex = r"[\s\S]+"


class PolicyPathConverter(StringConverter):
    """A scope at the end of a URL. Any text matches except the names of other routes."""

    regex = r"(?!(?:[\s\S]*/)?(?:versions|rollback)\Z)(?!(?:preview|backtest)\Z)[\s\S]+"


register_converter(ScopePathConverter, "scopepath")
register_converter(PolicyPathConverter, "policypath")

ScopePath = Annotated[AddressText, Path(description="The path of the scope without its first slash.")]
Cursor = Annotated[int | None, Query(ge=1, le=2_147_483_647, description="`next` of the previous page.")]


# The following schemas are plain pydantic models, because Ninja's schemas read members as attributes, and a dict has an
# attribute ``values``.


class PolicyDraft(RequestModel):
    """The whole policy of a scope. Omitted values are inherited."""

    preset: str | None = Field(default=None, description="balanced, memstate, importance-decay, ...; null for none.")
    values: dict[str, Any] | None = Field(default=None, description="The whole set, by name; null inherits.")
    rules: list[Any] | None = Field(
        default=None, description="Rules of this scope, or names of included rule sets; if omitted, the rules stay."
    )
    reason: str = Field(default="", description="Why; must not be empty.", json_schema_extra={"minLength": 1})
    base_version: int | None = Field(
        default=None, description="The version that the draft is based on; 409 if there is a newer one."
    )

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        # An empty request is a mistake. Without this check, it would remove all values.
        if self.values is None and self.preset is None and self.rules is None:
            raise ValueError("must have `values`, `preset` or `rules`; `values` {} removes all values")
        return self


class PolicyRollback(RequestModel):
    """The version to roll back to, and the reason."""

    to: int = Field(ge=0, le=2_147_483_647, description="The number of a version of this scope; 0 removes the policy.")
    reason: str = Field(default="", description="Why; must not be empty.", json_schema_extra={"minLength": 1})


@router.get("/policies/", summary="Read the policy of the root", response={200: PolicyOut, **READ})
def root_policy(request: HttpRequest) -> HttpResponse:
    """Return the policy of the whole store, which applies unless a policy below overrides it."""
    return scope_policy(request, ROOT)


@router.put("/policies/", summary="Set the policy of the root", response={200: PolicyOut, **CHANGE})
def root_policy_set(request: HttpRequest, payload: PolicyDraft) -> HttpResponse:
    """Make a new version. Operator keys for the whole store."""
    return scope_policy_set(request, ROOT, payload)


@router.get(
    "/policies/versions", summary="Read the history of the root's policy", response={200: PolicyVersionPage, **READ}
)
def root_policy_versions(request: HttpRequest, cursor: Cursor = None, limit: Limit = 50) -> HttpResponse:
    """Return all versions, newest first, each with its changes, author and reason."""
    return scope_policy_versions(request, ROOT, cursor, limit)


@router.post("/policies/rollback", summary="Roll back the root's policy", response={200: PolicyOut, **CHANGE})
def root_policy_rollback(request: HttpRequest, payload: PolicyRollback) -> HttpResponse:
    """Make a new version with the content of an older one. Operator keys."""
    return scope_policy_rollback(request, ROOT, payload)


@router.get(
    "/policies/{scopepath:scope}/versions",
    summary="Read the history of a policy",
    response={200: PolicyVersionPage, **READ},
)
@consistency("eventual")
def scope_policy_versions(
    request: HttpRequest, scope: ScopePath, cursor: Cursor = None, limit: Limit = 50
) -> HttpResponse:
    """Return all versions, newest first, each with its changes, author and reason."""
    chosen = principal_of(request, "reader").scope_chosen(scope)
    versions, following = policy_versions(chosen, before=cursor, limit=limit_checked(limit))
    return json_reply(PolicyVersionPage(items=versions, next=None if following is None else str(following)))


@router.post("/policies/{scopepath:scope}/rollback", summary="Roll back a policy", response={200: PolicyOut, **CHANGE})
def scope_policy_rollback(request: HttpRequest, scope: ScopePath, payload: PolicyRollback) -> HttpResponse:
    """Make a new version with the content of an older one. Operator keys."""
    principal = principal_of(request, "operator")
    policy_rollback(
        principal.scope_chosen(scope), to=payload.to, author=principal.actor, reason=payload.reason, now=timezone.now()
    )
    return scope_policy(request, scope)


@router.get("/policies/{policypath:scope}", summary="Read the policy of a scope", response={200: PolicyOut, **READ})
def scope_policy(request: HttpRequest, scope: ScopePath) -> HttpResponse:
    """Return the policy of a scope, and every value in force there with its source."""
    principal = principal_of(request, "reader")
    return json_reply(policy_show(principal.scope_chosen(scope), caller=principal.scope))


@router.put("/policies/{policypath:scope}", summary="Set the policy of a scope", response={200: PolicyOut, **CHANGE})
def scope_policy_set(request: HttpRequest, scope: ScopePath, payload: PolicyDraft) -> HttpResponse:
    """Make a new version, in force at once. ``values`` is the whole set; omitted values are inherited. Operator
    keys."""
    principal = principal_of(request, "operator")
    policy_save(
        principal.scope_chosen(scope),
        preset=payload.preset,
        values=payload.values or {},
        rules=payload.rules,
        author=principal.actor,
        reason=payload.reason,
        now=timezone.now(),
        base_version=payload.base_version,
    )
    return scope_policy(request, scope)
