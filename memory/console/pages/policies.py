"""Policies: the tree of them, what one puts in force, its history, and the way back in it."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.http import urlencode

from memory.console.fields import MOST_ADDRESS, ReasonForm, ScopeField, SuggestInput, form_error
from memory.console.listing import ROWS
from memory.console.page import OPERATOR, READER, ConsoleRequest, go, page, show
from memory.console.policy_form import DraftForm, draft_of, draft_query, field_named
from memory.console.policy_steps import draft_opened, draft_save, draft_stepped
from memory.core.cursors import cursor_as_number
from memory.core.errors import Conflict, MemoryProblem, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT, scope_normalize
from memory.insight.policy_effect import Effect, rollback_effect
from memory.insight.policy_effect import policy_effect as policy_effect_of
from memory.policy.choices import presets_offered, rule_sets_offered
from memory.policy.draft_steps import draft_start, preset_overridden
from memory.policy.effective import policies_current
from memory.policy.explain import policy_history, policy_newer, policy_sheet, policy_version_show, rules_as_json
from memory.policy.save import policy_rollback
from memory.policy.shipped_rule_sets import SHIPPED_RULE_SETS
from memory.policy.tree import policies_emptied, policies_tree

VERSIONS = 20
EMPTIED = 20


class OpenForm(forms.Form):
    """Which scope to look at."""

    scope = ScopeField(required=False, label="Open policy of", widget=SuggestInput("scope", {"size": 32}))


class RollbackForm(ReasonForm):
    """Why somebody goes back, and on which version they decided it."""

    base_version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)


def address(name: str, scope: str, **more: Any) -> str:
    """Return the address of a page about the policy of ``scope``."""
    return f"{reverse(f'console:{name}')}?{urlencode({'scope': scope, **more}, doseq=True)}"


def scope_of(request: ConsoleRequest) -> str:
    """Return the scope a page is about, the root unless one is named. Raises ``ValueRefused``."""
    return scope_normalize(request.GET.get("scope", ROOT))


def number_of(request: ConsoleRequest, name: str) -> int:
    """Return the number of a version in the form or the address, 0 if it is left out. Raises ``ValueRefused``."""
    members = request.POST if request.method == "POST" and name in request.POST else request.GET
    try:
        return cursor_as_number(members.get(name) or "0")
    except ValueRefused as problem:
        raise ValueRefused(f"{name} must be a version number.", code=ProblemCode.INVALID_ID) from problem


@page(get=READER)
def policies(request: ConsoleRequest) -> HttpResponse:
    """Show the tree of policies. Three queries; the topics under each are counted afterwards, by one more."""
    counted = "counts" in request.GET
    nodes, following = policies_tree(cursor=request.GET.get("cursor"), limit=ROWS, counted=counted)
    return show(
        request,
        "policies.html",
        {
            "nodes": nodes,
            "next": following,
            "form": OpenForm(),
            "emptied": policies_emptied(limit=EMPTIED + 1),
            "counted": counted,
        },
    )


@page(get=READER)
def policy(request: ConsoleRequest) -> HttpResponse:
    """Show one policy with what is in force and its history. Three queries."""
    scope = scope_of(request)
    before = number_of(request, "cursor")
    history = policy_history(scope, before=before or None, limit=VERSIONS)
    return show(
        request,
        "policy.html",
        {"sheet": policy_sheet(scope, now=timezone.now()), "versions": history.items, "next": history.next},
    )


@page(get=READER)
def policy_version(request: ConsoleRequest) -> HttpResponse:
    """Show one version by itself. Two queries."""
    version = policy_version_show(scope_of(request), number=number_of(request, "number"))
    return show(request, "policy_version.html", {"version": version})


@page(get=READER)
def policy_presets(request: ConsoleRequest) -> HttpResponse:
    """Show presets and shipped sets of rules, as they differ from what is in force. Two queries."""
    scope = scope_of(request)
    return show(
        request,
        "policy_presets.html",
        {"scope": scope, "presets": presets_offered(scope), "sets": rule_sets_offered(scope)},
    )


@page(get=OPERATOR, post=OPERATOR)
def policy_rolled_back(request: ConsoleRequest) -> HttpResponse:
    """Preview and execute a rollback to a version."""
    scope, to, now = scope_of(request), number_of(request, "to"), timezone.now()
    form = RollbackForm(request.POST if request.method == "POST" else None)
    refused: MemoryProblem | None = None
    if form.is_valid():
        try:
            version = policy_rollback(
                scope,
                to=to,
                author=request.principal.actor,
                reason=form.cleaned_data["reason"],
                now=now,
                base_version=form.cleaned_data["base_version"],
            )
        except MemoryProblem as problem:
            refused = problem
        else:
            done = f"{scope} is rolled back to version {to}" if to else f"The policy of {scope} is cleared"
            messages.success(request, f"{done}, as version {version.number}.")
            return go(request, address("policy", scope))
    effect = rollback_effect(scope, to=to, now=now)
    return show(
        request,
        "policy_rollback.html",
        {"scope": scope, "to": to, "form": form, "effect": effect, "refused": refused},
        status=409 if refused else 422 if form.errors else 200,
    )


@page(get=OPERATOR, post=OPERATOR)
def policy_edit(request: ConsoleRequest) -> HttpResponse:
    """Show a draft of the policy, or save it as the next version.

    A draft that is refused, and one made on a version that is no longer the newest, comes back as it was typed.
    """
    scope = scope_of(request)
    # The draft is always compared with a version.
    number_of(request, "base_version")
    policies = policies_current()
    if request.method != "POST":
        texts = draft_opened(request.GET.dict(), policies=policies, scope=scope)
        form = DraftForm(texts, policies=policies, scope=scope)
        return _editor(request, form, ReasonForm(), tried=request.GET.keys() > {"scope"})
    form, save = DraftForm(request.POST, policies=policies, scope=scope), ReasonForm(request.POST)
    # Both are checked, so that one reply has all errors.
    if not (form.is_valid() & save.is_valid()):
        return _editor(request, form, save, tried=True, status=422)
    try:
        draft_save(request, form, reason=save.cleaned_data["reason"])
    except Conflict as problem:
        return _editor(request, form, save, tried=True, status=409, conflict=problem)
    except MemoryProblem as problem:
        form.add_error(field_named(problem), form_error(problem))
        return _editor(request, form, save, tried=True, status=422)
    return go(request, address("policy", scope))


@page(get=OPERATOR, post=OPERATOR)
def policy_effect(request: ConsoleRequest) -> HttpResponse:
    """Preview a draft, or apply a step to it, such as disabling a rule, and preview the result."""
    scope = scope_of(request)
    if request.method != "POST":
        # The user returned to the URL of a submitted form.
        return go(request, address("policy_edit", scope))
    number_of(request, "base_version")
    policies = policies_current()
    form = DraftForm(request.POST, policies=policies, scope=scope)
    save = ReasonForm(initial={"reason": request.POST.get("reason", "")})
    try:
        texts, clashes = draft_stepped(form, request.POST)
    except MemoryProblem as problem:
        form.is_valid()
        form.add_error(field_named(problem), form_error(problem))
        return _editor(request, form, save, tried=True, status=422)
    form = DraftForm(texts, policies=policies, scope=scope)
    return _editor(request, form, save, tried=True, clashes=clashes)


def _editor(
    request: ConsoleRequest,
    form: DraftForm,
    save: ReasonForm,
    *,
    tried: bool,
    status: int = 200,
    conflict: Conflict | None = None,
    clashes: Sequence[str] | None = None,
) -> HttpResponse:
    """Render the editor, or the part with the effect of the draft, which is updated during input."""
    base = int(form["base_version"].value() or 0)
    drafted = form.drafted if form.is_valid() else None
    effect: Effect | None = None
    if drafted is not None and tried:
        preset, values, rules = draft_of(form)
        effect = policy_effect_of(form.scope, preset=preset, values=values, rules=rules, now=timezone.now())
    stale = base != form.policies.numbers.get(form.scope, 0) or conflict is not None
    shown = {
        "scope": form.scope,
        "form": form,
        "save": save,
        "tried": tried,
        "effect": effect,
        "rules": [] if drafted is None else rules_as_json(drafted, drafted.effective(form.scope)),
        "warnings": [] if drafted is None else drafted.warnings(form.scope),
        "overridden": [] if drafted is None else preset_overridden(draft_start(drafted, form.scope)),
        "salience": _salience_address(form),
        "sets": tuple(SHIPPED_RULE_SETS),
        "newer": policy_newer(form.scope, than=base) if stale else None,
        "conflict": conflict,
        "clashes": clashes,
        "merged": clashes is not None,
        "typed": request.method == "POST",
    }
    if request.htmx and request.htmx.target == "policy-tried":
        # The request is valid even if the draft is not.
        return show(request, "parts/policies_tried.html", shown)
    return show(request, "policy_edit.html", shown, status=status)


def _salience_address(form: DraftForm) -> str:
    """Return the URL of this draft on the Salience page, without the draft if it is too long for a URL."""
    draft = address("salience", form.scope, **dict(draft_query(form)))
    return draft if len(draft) <= MOST_ADDRESS else address("salience", form.scope)


urlpatterns = [
    path("policies/", policies, name="policies"),
    path("policies/at/", policy, name="policy"),
    path("policies/version/", policy_version, name="policy_version"),
    path("policies/presets/", policy_presets, name="policy_presets"),
    path("policies/edit/", policy_edit, name="policy_edit"),
    path("policies/edit/effect/", policy_effect, name="policy_effect"),
    path("policies/rollback/", policy_rolled_back, name="policy_rollback"),
]
