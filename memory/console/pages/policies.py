"""Tuning: the values and rules of a scope, its versions and rollbacks, the presets, and the tree of all policies."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.urls import path, reverse
from django.utils import timezone

from memory.console.drafts import SaveForm
from memory.console.fields import MAX_ADDRESS, ReasonForm
from memory.console.listing import ROWS
from memory.console.page import OPERATOR, READER, ConsoleRequest, go, page, show
from memory.console.policy_form import DraftForm, draft_error, draft_query, field_named
from memory.console.policy_steps import draft_opened, draft_save, draft_stepped, rule_stepped, rules_of_draft
from memory.console.preset_curve import preset_curve
from memory.console.regret_chart import regret_picture
from memory.console.rule_form import RuleForm, signs_of_fields
from memory.console.tuning import address, tuning_head
from memory.core.cursors import cursor_as_number
from memory.core.days import day_begin
from memory.core.errors import Conflict, MemoryProblem, ValueRefused
from memory.core.policy_values import KNOB_LABELS
from memory.core.scopes import ROOT, scope_ancestors, scope_normalize
from memory.explain.regret import regret_days
from memory.forgetting.token_usage import token_gauges
from memory.policy.choices import presets_offered, rule_sets_offered
from memory.policy.draft_steps import preset_overridden
from memory.policy.effective import policies_current
from memory.policy.explain import (
    policy_history,
    policy_newer,
    policy_sheet,
    policy_version_show,
    rules_as_json,
    versions_since,
)
from memory.policy.read import rule_sentence
from memory.policy.save import policy_rollback
from memory.policy.shipped_rule_sets import RULE_SET_LABELS
from memory.policy.snapshot import SetPolicy
from memory.policy.tree import policies_emptied, policies_tree
from memory.predicates.search_text import search_narrow
from memory.simulate.policy_effect import Effect, rollback_effect
from memory.simulate.policy_effect import policy_effect as policy_effect_of

VERSIONS = 20
REGRET_DAYS = 90
EMPTIED = 20
# For each tier of tokens: the search that finds its topics.
TIER_LOOKUPS = {
    "identity": "kind:identity",
    "critical": "pinned:yes",
    "active": "rung:active pinned:no",
    "historical": "rung:summarized OR rung:detached",
    "archive": "rung:archived",
}
# The URL names of the tabs that edit a draft. The URL names for their steps append `_effect`.
VALUES, RULES = "policy", "policy_rules"


class RollbackForm(ReasonForm):
    """The reason for a rollback, and the newest version at the time of the decision."""

    base_version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)


def scope_of(request: ConsoleRequest) -> str:
    """Return the scope in the URL, or the root if there is none. Raises ``ValueRefused``."""
    return scope_normalize(request.GET.get("scope") or ROOT)


def number_of(request: ConsoleRequest, name: str) -> int:
    """Return the number of a version in the form or the URL, 0 if there is none. Raises ``ValueRefused``."""
    members = request.POST if request.method == "POST" and name in request.POST else request.GET
    try:
        return cursor_as_number(members.get(name) or "0")
    except ValueRefused as problem:
        raise ValueRefused(f"{name} must be a version number.") from problem


@page(get=READER)
def policies(request: ConsoleRequest) -> HttpResponse:
    """Show the tree of policies. Three queries. With ``counts``, one more for the number of topics of each policy."""
    counted = "counts" in request.GET
    nodes, following = policies_tree(cursor=request.GET.get("cursor"), limit=ROWS, counted=counted)
    return show(
        request,
        "policies.html",
        {
            "nodes": nodes,
            "next": following,
            "head": tuning_head("policies", scope_of(request), policies_current()),
            "emptied": policies_emptied(limit=EMPTIED + 1),
            "counted": counted,
        },
    )


@page(get=READER)
def policy_versions(request: ConsoleRequest) -> HttpResponse:
    """Show the versions of the policy of a scope, newest first. Two queries. With ``regret``, two more for regret over
    time."""
    scope = scope_of(request)
    before = number_of(request, "cursor")
    versions, following = policy_history(scope, before=before or None, limit=VERSIONS)
    head = tuning_head("policy_versions", scope, policies_current())
    shown: dict[str, Any] = {"head": head, "versions": versions, "next": following}
    if "regret" in request.GET:
        now = timezone.now()
        days = regret_days(days=REGRET_DAYS, principal=request.principal, now=now, scope=scope)
        marks = versions_since([*scope_ancestors(scope), scope], since=day_begin(days[0].day), limit=VERSIONS)
        shown["regret"] = regret_picture(days, marks, scope=scope, now=now)
    return show(request, "policy_versions.html", shown)


@page(get=READER)
def policy_version(request: ConsoleRequest) -> HttpResponse:
    """Show one version. Two queries."""
    version = policy_version_show(scope_of(request), number=number_of(request, "number"))
    return show(request, "policy_version.html", {"version": version})


@page(get=READER)
def policy_presets(request: ConsoleRequest) -> HttpResponse:
    """Show presets and shipped sets of rules, with their differences from the values in force. Two queries."""
    scope = scope_of(request)
    head = tuning_head("policy_presets", scope, policies_current())
    return show(
        request,
        "policy_presets.html",
        {
            "scope": scope,
            "head": head,
            "presets": [{**each, "curve": preset_curve(each["name"])} for each in presets_offered(scope)],
            "sets": rule_sets_offered(scope),
        },
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
            return go(request, address("policy_versions", scope))
    effect = rollback_effect(scope, to=to, now=now)
    return show(
        request,
        "policy_rollback.html",
        {"scope": scope, "to": to, "form": form, "effect": effect, "refused": refused},
        status=409 if refused else 422 if form.errors else 200,
    )


@page(get=READER, post=OPERATOR)
def policy(request: ConsoleRequest, tab: str = VALUES) -> HttpResponse:
    """Show a draft of the values or rules of a scope, or save it as the next version.

    A draft that is refused, or is based on a version that is no longer the newest, is shown again unchanged.
    """
    scope = scope_of(request)
    # The draft is always compared with a version, so an invalid number is refused here.
    number_of(request, "base_version")
    policies = policies_current()
    if request.method != "POST":
        texts = draft_opened(request.GET.dict(), policies=policies, scope=scope)
        form = DraftForm(texts, policies=policies, scope=scope)
        return _editor(request, tab, form, SaveForm(), tried=bool(request.GET.keys() - {"scope"}))
    form, save = DraftForm(request.POST, policies=policies, scope=scope), SaveForm(request.POST)
    if tab == RULES:
        # The rule that is being edited is saved together with the draft.
        texts, rule = rule_stepped(form, request.POST)
        form = DraftForm(texts, policies=policies, scope=scope)
        if rule is not None:
            return _editor(request, tab, form, save, tried=False, rule=rule, status=422)
    # Both forms are validated, so that one reply has all errors.
    if not (form.is_valid() & save.is_valid()):
        return _editor(request, tab, form, save, tried=True, status=422)
    try:
        draft_save(request, form, reason=save.cleaned_data["reason"])
    except Conflict as problem:
        return _editor(request, tab, form, save, tried=True, status=409, conflict=problem)
    except MemoryProblem as problem:
        form.add_error(field_named(problem), draft_error(problem))
        return _editor(request, tab, form, save, tried=True, status=422)
    return go(request, address(tab, scope))


@page(get=READER, post=READER)
def policy_effect(request: ConsoleRequest, tab: str = VALUES) -> HttpResponse:
    """Preview a draft, or apply a step to it, such as disabling a rule, and preview the result."""
    scope = scope_of(request)
    if request.method != "POST":
        # The user returned to the URL of a submitted form.
        return go(request, address(tab, scope))
    number_of(request, "base_version")
    policies = policies_current()
    form = DraftForm(request.POST, policies=policies, scope=scope)
    save = SaveForm(initial={"reason": request.POST.get("reason", "")})
    rule: RuleForm | None = None
    try:
        texts = draft_stepped(form, request.POST)
        if tab == RULES and texts == dict(draft_query(form)):
            texts, rule = rule_stepped(form, request.POST)
    except MemoryProblem as problem:
        form.is_valid()
        form.add_error(field_named(problem), draft_error(problem))
        return _editor(request, tab, form, save, tried=True, status=422)
    form = DraftForm(texts, policies=policies, scope=scope)
    status = 422 if rule is not None and (rule.errors or rule.wrong) else 200
    return _editor(request, tab, form, save, tried=True, rule=rule, status=status)


@page(get=READER)
def policy_tokens(request: ConsoleRequest) -> HttpResponse:
    """Show how many tokens the memories of a scope would take, by tier, and the budgets. Two queries; one reads the
    whole scope."""
    scope = scope_of(request)
    within = "" if scope == ROOT else scope
    gauges = token_gauges(policies_current(), scope)
    most = max((gauge.tokens for gauge in gauges), default=0)
    context = {
        "tiers": [
            {
                "gauge": gauge,
                "lookup": search_narrow(TIER_LOOKUPS[gauge.tier], "scope", within),
                "most": gauge.budget or most,
            }
            for gauge in gauges
        ],
        "budgets": any(gauge.budget is not None for gauge in gauges),
    }
    template = "parts/policy_tokens.html" if request.htmx else "policy_tokens.html"
    return show(request, template, {"scope": scope, **context})


@page(get=READER)
def policy_edit(request: ConsoleRequest) -> HttpResponse:
    """Redirect from the former URL of the editor."""
    tab = RULES if request.GET.keys() & {"add", "switch"} else VALUES
    return go(request, f"{reverse(f'console:{tab}')}?{request.GET.urlencode()}")


def _editor(
    request: ConsoleRequest,
    tab: str,
    form: DraftForm,
    save: SaveForm,
    *,
    tried: bool,
    status: int = 200,
    conflict: Conflict | None = None,
    rule: RuleForm | None = None,
) -> HttpResponse:
    """Render a tab with a draft. For an update during input, render only the part with the effect of the draft.
    ``tried`` says whether the effect is shown."""
    base = int(form["base_version"].value() or 0)
    drafted = form.drafted if form.is_valid() else None
    effect: Effect | None = None
    if drafted is not None and tried:
        effect = policy_effect_of(form.scope, present=form.policies, draft=drafted, now=timezone.now())
    # The rule that is being edited is saved together with the draft.
    changes = rule is not None or (
        drafted is not None and drafted.set_at(form.scope).as_stored() != form.policies.set_at(form.scope).as_stored()
    )
    stale = base != form.policies.numbers.get(form.scope, 0) or conflict is not None
    shown = {
        "scope": form.scope,
        "head": tuning_head(tab, form.scope, form.policies),
        "form": form,
        "save": save,
        "save_url": address(tab, form.scope),
        "effect_url": address(f"{tab}_effect", form.scope),
        "tried": tried,
        "effect": effect,
        "changes": changes,
        "warnings": [] if drafted is None else drafted.warnings(form.scope),
        "overridden": [] if drafted is None else _labels(preset_overridden(drafted.set_at(form.scope))),
        "salience": _salience_address(form),
        "newer": policy_newer(form.scope, than=base) if stale else None,
        "conflict": conflict,
        "typed": request.method == "POST",
    }
    if request.htmx and request.htmx.target == "policy-tried":
        # The status is 200, because the request is valid even if the draft is not.
        return show(request, "parts/policies_tried.html", shown)
    if tab == VALUES:
        shown["sheet"] = policy_sheet(form.scope, now=timezone.now())
        # The form also sends the rules that the draft changes, as hidden fields.
        shown["carried"] = [(name, value) for name, value in draft_query(form) if name == "rules"]
        return show(request, "policy.html", shown, status=status)
    draft = rules_of_draft(form)
    shown |= {
        "rule": rule,
        "signs": signs_of_fields(),
        "carried": [(name, value) for name, value in draft_query(form) if name not in ("rules", "base_version")],
        "own": [] if draft is None else [{"rule": each, "words": rule_sentence(each)} for each in draft.rules],
        "others": [] if draft is None else _others(form, draft),
        "sets": RULE_SET_LABELS,
    }
    return show(request, "policy_rules.html", shown, status=status)


def _labels(names: Sequence[str]) -> list[str]:
    return [KNOB_LABELS.get(name, name) for name in names]


def _others(form: DraftForm, draft: SetPolicy) -> list[dict[str, Any]]:
    """Return the rules in force that the draft does not set itself: those of its preset and of the scopes above."""
    policies = form.policies.with_policy(draft)
    rules = rules_as_json(policies, policies.effective(form.scope))
    return [rule for rule in rules if not rule["here"] or rule["preset"]]


def _salience_address(form: DraftForm) -> str:
    """Return the URL of this draft on the Salience page, without the draft if it is too long for a URL."""
    draft = address("salience", form.scope, **dict(draft_query(form)))
    return draft if len(draft) <= MAX_ADDRESS else address("salience", form.scope)


urlpatterns = [
    path("policies/", policies, name="policies"),
    path("policies/at/", policy, name=VALUES),
    path("policies/edit/effect/", policy_effect, name=f"{VALUES}_effect"),
    path("policies/rules/", policy, {"tab": RULES}, name=RULES),
    path("policies/rules/effect/", policy_effect, {"tab": RULES}, name=f"{RULES}_effect"),
    path("policies/versions/", policy_versions, name="policy_versions"),
    path("policies/version/", policy_version, name="policy_version"),
    path("policies/presets/", policy_presets, name="policy_presets"),
    path("policies/edit/", policy_edit, name="policy_edit"),
    path("policies/tokens/", policy_tokens, name="policy_tokens"),
    path("policies/rollback/", policy_rolled_back, name="policy_rollback"),
]
