"""The tab Curve of Tuning: what a draft of the policy would forget, now and later, and saving the draft."""

import datetime as dt
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils import timezone
from django.utils.http import urlencode

from memory.console.drafts import BacktestForm, SalienceDraft, SaveForm, draft_sent
from memory.console.fields import MAX_ADDRESS, problem_shown
from memory.console.list_page import ListPage
from memory.console.page import OPERATOR, READER, ConsoleRequest, go, page, show
from memory.console.policy_form import draft_error, field_named
from memory.console.policy_steps import draft_save
from memory.console.salience_figure import backtest_figure, bin_query, lookup_address, salience_figure, salience_picture
from memory.console.tuning import tuning_head
from memory.core.errors import Conflict, MemoryProblem, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_normalize
from memory.forgetting.runs import run_start
from memory.policy.effective import policies_current
from memory.policy.read import diff_rows, policy_versions
from memory.simulate.backtest import backtest
from memory.simulate.draft_trial import AFFECTED_COLUMNS, EVENT, draft_preview
from memory.simulate.whatif import Trial, affected_count, affected_page

# The maximum number of newly affected topics on the page. Their list has all of them.
SHOWN = 5
STEPS = ("load", "aside", "swap", "drop", "again")
_STRETCH = ("since", "until", "step")


@page(get=READER, post=READER)
def salience(request: ConsoleRequest) -> HttpResponse:
    """Show the page or, after a threshold was moved, only the effect of the draft. Three queries.

    A form is redirected to the URL of its draft, also after a step that changes the draft, such as loading a preset. If
    the URL would be too long, the page is shown without a redirect.
    """
    sent = request.method == "POST"
    draft = SalienceDraft(request.POST if sent else request.GET, policies=policies_current())
    taken = next((step for step in STEPS if step in (request.POST if sent else request.GET)), None)
    if taken and not (taken == "aside" and draft.refused):
        stepped = draft.stepped(taken)
        draft, sent = (draft, sent) if stepped is None else (stepped, True)
    if sent and not request.htmx and not draft.is_long:
        return HttpResponseRedirect(draft.address)
    return _shown(request, draft, part=bool(request.htmx))


@page(get=READER, post=OPERATOR)
def salience_save(request: ConsoleRequest) -> HttpResponse:
    """Save a draft as the next version. After an error or a conflict, the page shows the draft again."""
    if request.method != "POST":
        return _back(request)
    said = request.POST.dict()
    form, policies = SaveForm(request.POST), policies_current()
    draft = SalienceDraft(said, policies=policies)
    if not form.is_valid() or draft.refused:
        return _shown(request, draft, save=form, status=422)
    try:
        draft_save(request, draft.form, reason=form.cleaned_data["reason"])
    except Conflict as problem:
        return _conflict_show(request, said, form, problem)
    except MemoryProblem as problem:
        draft.form.add_error(field_named(problem), draft_error(problem))
        draft.refused = True
        return _shown(request, draft, save=form, status=422)
    # The policies are read again after the save, so that the page opens with the saved values as its draft.
    return go(request, SalienceDraft({"scope": draft.scope}, policies=policies_current()).address + "&saved=1")


@page(get=READER, post=OPERATOR)
def salience_dry_run(request: ConsoleRequest) -> HttpResponse:
    """Create a dry run under the policy in force, and redirect to it."""
    if request.method != "POST":
        return _back(request)
    scope = scope_normalize(request.POST.get("scope") or "/")
    run = run_start(scope, event=EVENT, dry_run=True, principal=request.principal, now=timezone.now())
    return go(request, "console:run", run_id=run.pk)


@page(get=READER, post=READER)
def salience_backtest(request: ConsoleRequest) -> HttpResponse:
    """Replay the draft and the policy in force over the recorded past. Two queries for each of them, read in batches.

    The draft is one parameter of the URL, or the fields of a form. A form is redirected to the URL with the draft.
    """
    now, sent = timezone.now(), request.method == "POST"
    said = (request.POST if sent else request.GET).dict()
    if "since" not in said:
        said |= {name: str(value) for name, value in BacktestForm.opening(now).items()}
    form, policies = BacktestForm(said), policies_current()
    if "draft" in said:
        draft = draft_sent(said.get("scope", ""), said["draft"], policies=policies)
    else:
        draft = SalienceDraft(said, policies=policies)
    members = {"scope": draft.scope, "draft": draft.own, **{name: said.get(name, "") for name in _STRETCH}}
    address = f"{reverse('console:salience_backtest')}?{urlencode(members)}"
    if len(address) > MAX_ADDRESS:
        address = ""
    if sent and not request.htmx and address:
        return HttpResponseRedirect(address)
    context: dict[str, Any] = {
        "form": form,
        "draft": draft,
        "head": tuning_head("salience_backtest", draft.scope, policies),
    }
    if form.is_valid() and not draft.refused and (sent or "since" in request.GET):
        with problem_shown(form):
            tried = (draft.drafted, draft.policies) if draft.changes else (draft.policies,)
            found = [backtest(each, draft.scope, now=now, **form.stretch) for each in tried]
            figure = backtest_figure(*found)
            context |= {"found": found[0], "present": found[-1], "figure": figure, "address": address}
    template = "parts/salience_backtest.html" if request.htmx else "salience_backtest.html"
    return show(request, template, context, status=422 if form.errors or draft.refused else 200)


def _back(request: ConsoleRequest) -> HttpResponse:
    """Redirect to the page, for a user who returned to the URL of a submitted form."""
    return go(request, f"{reverse('console:salience')}?{request.GET.urlencode()}")


def _draft_valid(request: ConsoleRequest) -> SalienceDraft:
    """Return the draft in the URL. Raises ``ValueRefused`` with the first error of an invalid draft."""
    draft = SalienceDraft(request.GET, policies=policies_current())
    if draft.refused:
        wrong = next(iter(draft.form.errors.as_data().values()))[0]
        raise ValueRefused(wrong.messages[0], code=ProblemCode.INVALID_POLICY)
    return draft


def _trial(draft: SalienceDraft, now: dt.datetime) -> Trial:
    return Trial(draft.scope, draft.policies, draft.drafted, now, event=EVENT, subset=draft.subset)


def _conflict_show(request: ConsoleRequest, said: dict[str, str], form: SaveForm, problem: Conflict) -> HttpResponse:
    """Show the page again with the draft, and with the version that another user has saved meanwhile.

    The draft is then based on that version. So the user, who now sees the version, can save the draft again.
    """
    policies = policies_current()
    draft = SalienceDraft(said, policies=policies)
    newest = policies.numbers.get(draft.scope, 0)
    again = SalienceDraft({**said, "base_version": str(newest)}, policies=policies)
    versions, _older = policy_versions(draft.scope, limit=1)
    conflict = {
        "sentence": problem.sentence,
        "code": problem.code,
        "version": versions[0] if versions else None,
        "diff": diff_rows(versions[0]["diff"], scope=draft.scope) if versions else [],
    }
    return _shown(request, again, save=form, conflict=conflict, status=409)


def _shown(
    request: ConsoleRequest,
    draft: SalienceDraft,
    *,
    save: SaveForm | None = None,
    conflict: dict[str, Any] | None = None,
    part: bool = False,
    status: int = 200,
) -> HttpResponse:
    tried = draft_preview(_trial(draft, timezone.now()), other=draft.other, scale=draft.scale, limit=SHOWN)
    knobs = draft.drafted.knobs(draft.scope)
    words = _lookup_words(draft)
    bins = [
        {**each, "address": lookup_address(words, bin_query(each["low"], each["high"], is_last=each["is_last"]))}
        if words
        else each
        for each in tried.bins
    ]
    figure = salience_figure(
        tried.found.histogram, knobs, scale=draft.scale, lookup=lookup_address(words) if words else ""
    )
    reply = show(
        request,
        "parts/salience_effect.html" if part else "salience.html",
        {
            "draft": draft,
            "tried": tried,
            "bins": bins,
            "figure": figure,
            "picture": None if part else salience_picture(figure),
            "held": draft.form.held,
            "head": tuning_head("salience", draft.scope, draft.policies),
            "save": save or SaveForm(initial={"reason": draft.reason}),
            "most_address": MAX_ADDRESS,
            "conflict": conflict,
            "saved": "saved" in request.GET,
        },
        # An incomplete number during input is not an error; the reply has the status 200.
        status=422 if draft.refused and status == 200 and not part else status,
    )
    if part:
        reply.headers["HX-Replace-Url"] = f"{reverse('console:salience')}?{draft.held_query}"
    return reply


def _lookup_words(draft: SalienceDraft) -> str:
    """Return the search that finds the topics of the histogram. It is empty if scores under the draft may differ from
    stored salience, because searches compare stored salience."""
    drafted, present = (each.knobs(draft.scope) for each in (draft.drafted, draft.policies))
    if drafted.strategy not in ("half_life", "static") or drafted.keys != present.keys:
        return ""
    kind, rung = draft.subset.kind, draft.where.cleaned_data.get("rung")
    parts = [f'scope:"{draft.scope}"', f'kind:"{kind}"' if kind else "", f"rung:{rung}" if rung else ""]
    return " ".join(filter(None, parts))


# The topics that a draft newly affects. Two queries for a page, two for the count.
AFFECTED = ListPage(
    name="salience_affected",
    address="salience/affected/",
    read=_draft_valid,
    fetch=lambda asked, cursor, limit: affected_page(
        _trial(asked.filter, asked.now), only_new=True, cursor=cursor, limit=limit
    ),
    count=lambda asked, most: affected_count(_trial(asked.filter, asked.now), only_new=True, at_most=most),
    noun="memory",
    columns=AFFECTED_COLUMNS,
    file=lambda _asked: "affected",
    more=lambda asked, _topics: {"draft": asked.filter},
)

urlpatterns = [
    path("salience/", salience, name="salience"),
    path("salience/save/", salience_save, name="salience_save"),
    path("salience/dry-run/", salience_dry_run, name="salience_dry_run"),
    *AFFECTED.urlpatterns,
    path("salience/backtest/", salience_backtest, name="salience_backtest"),
]
