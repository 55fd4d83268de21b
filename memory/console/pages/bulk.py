"""One change to many topics. Selected topics are changed immediately, and the notice offers Undo. A change of all
topics that match a filter is planned as a run, whose page shows what would change. A release or purge becomes a list to
forget.

Lists post the selected topics or, with ``all=<list>``, their filter. A plan contains the topics that matched when it
was made. So topics that begin to match the filter later are not changed.
"""

import uuid
from collections.abc import Callable

from django import forms
from django.http import HttpResponse, QueryDict
from django.urls import path
from django.utils import timezone

from memory.access.principal import Principal
from memory.console.forget_forms import PURGE, RELEASE
from memory.console.page import OPERATOR, ConsoleRequest, go, page
from memory.console.pages.archived import archived_chosen
from memory.console.pages.released import released_chosen
from memory.console.undo import back_to, go_back, skipped_say, topics_words, undo_offer
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.erasure.filters import ForgetFilter
from memory.erasure.forget_list_create import forget_list
from memory.forgetting.manual_actions import MAX_AT_ONCE, VERBS, topics_move, topics_plan

# The verbs that are changes of topics. A release or purge is a list to forget.
CHANGES = ("restore", "archive", "pin", "unpin")
Chosen = Callable[..., list[uuid.UUID]]
# For each list in which all topics that match the filter can be selected: the function that returns their ids.
LISTS: dict[str, Chosen] = {"archived": archived_chosen, "released": released_chosen}


class PickedForm(forms.Form):
    """When the list was shown, and where to go afterwards."""

    seen_at = forms.DateTimeField(widget=forms.HiddenInput)
    next = forms.CharField(widget=forms.HiddenInput, required=False, max_length=2000)


def ids_chosen(members: QueryDict, *, principal: Principal) -> list[uuid.UUID]:
    """Return the ids of the named topics, or of all topics that match the filter. At most one query. Raises
    ``ValueRefused`` for an invalid id, and if too many topics match."""
    source = LISTS.get(members.get("all", ""))
    if source is not None:
        found = source(members, principal=principal, at_most=MAX_AT_ONCE)
        if len(found) > MAX_AT_ONCE:
            raise ValueRefused(
                f"More than {MAX_AT_ONCE:,} memories match, and at most {MAX_AT_ONCE:,} can be changed at once. "
                "Go back and narrow the filter.",
                code=ProblemCode.TOO_LARGE,
            )
        return found
    try:
        return list(dict.fromkeys(uuid.UUID(text) for text in members.getlist("topic")))
    except ValueError as problem:
        raise ValueRefused("One of the values is not a memory id.") from problem


@page(post=OPERATOR)
def bulk(request: ConsoleRequest, verb: str) -> HttpResponse:
    """Change the selected topics immediately, or plan a change of all topics that match a filter and redirect to the
    plan. About sixteen queries for a change, six for a plan."""
    now = timezone.now()
    ids = _ids_named(request)
    picked = PickedForm(request.POST)
    back = back_to(request, request.POST.get("next", ""))
    if picked.is_valid() and not request.POST.get("all"):
        seen_at = picked.cleaned_data["seen_at"]
        run, left = topics_move(verb, ids, seen_at=seen_at, principal=request.principal, reason="", now=now)
        if run is not None:
            undo_offer(request, f"{topics_words(run.applied)} {VERBS[verb].action}.", run)
        skipped_say(request, left)
        return go_back(request, back)
    run, left = topics_plan(verb, ids, principal=request.principal, now=now)
    if run is not None:
        return go(request, "console:run", run.pk)
    skipped_say(request, left)
    return go_back(request, back)


def _ids_named(request: ConsoleRequest) -> list[uuid.UUID]:
    ids = ids_chosen(request.POST, principal=request.principal)
    if not ids:
        raise ValueRefused("No memory was selected. Go back and select memories.", code=ProblemCode.MISSING_MEMBER)
    return ids


@page(post=OPERATOR)
def bulk_forget(request: ConsoleRequest, verb: str) -> HttpResponse:
    """Create a list of selected topics to release or purge, which is confirmed on its own page. Costs as much as
    ``forget_list``, and one more query for a filter."""
    wanted = ForgetFilter(ids=_ids_named(request))
    listing = forget_list(verb, wanted=wanted, principal=request.principal, now=timezone.now())
    return go(request, "console:forget_list", listing.id)


urlpatterns = [path(f"bulk/{verb}/", bulk, {"verb": verb}, name=f"bulk_{verb}") for verb in CHANGES]
urlpatterns += [path(f"bulk/{verb}/", bulk_forget, {"verb": verb}, name=f"bulk_{verb}") for verb in (RELEASE, PURGE)]
