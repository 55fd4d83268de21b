"""The forms of the pages about duplicates: what the list is filtered by, where one looks, and why a pair is decided."""

import uuid
from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import QueryDict

from memory.access.principal import Principal
from memory.console.fields import ReasonField, ScopeField, filter_choice
from memory.console.list_page import FilterForm
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT
from memory.duplicates.merge import MOST_AT_ONCE
from memory.duplicates.pairs import PairFilter, pairs_list

MOST_REASON = 500
# An id with a comma behind it.
PACKED = 37

STATES = {
    "open": "Open",
    "merged": "Merged",
    "kept": "Both kept",
    "superseded": "Superseded",
    "undone": "Undone",
    "lapsed": "Lapsed",
}
VERDICTS = {"duplicate": "The same", "supersedes": "An update"}


class PairsForm(FilterForm[PairFilter]):
    """What the list of pairs can be filtered by. An empty state selects open pairs."""

    state = filter_choice("Status", [*STATES.items(), ("any", "Any")])
    verdict = filter_choice("Verdict", [("", "Any"), *VERDICTS.items()])
    held = filter_choice("Differences", [("", "Any"), ("no", "None that matter"), ("yes", "Some that matter")])
    scope = ScopeField(required=False)

    def to_filter(self) -> PairFilter:
        """Return the filter; a form with errors filters nothing beyond what could be read."""
        cleaned: dict[str, Any] = self.cleaned_data
        state, held = cleaned.get("state") or "open", cleaned.get("held")
        return PairFilter(
            scope=cleaned.get("scope") or ROOT,
            state=None if state == "any" else state,
            verdict=cleaned.get("verdict") or None,
            held=None if not held else held == "yes",
        )


class DecideForm(forms.Form):
    """Why a pair is decided as it is; it may be left unsaid."""

    reason = ReasonField(max_length=MOST_REASON, required=False)


class FindForm(forms.Form):
    """Where to look."""

    scope = ScopeField(required=False, help_text="Includes everything below it. Leave empty for the whole store.")


class MergeConfirmForm(forms.Form):
    """The pairs that the page has shown, and why they are merged."""

    pairs = forms.CharField(widget=forms.HiddenInput, max_length=MOST_AT_ONCE * PACKED)
    seen_at = forms.DateTimeField(widget=forms.HiddenInput)
    next = forms.CharField(widget=forms.HiddenInput, required=False, max_length=2000)
    reason = ReasonField(max_length=MOST_REASON, required=False)

    def clean_pairs(self) -> list[uuid.UUID]:
        """Return the ids. Raises ``ValidationError`` for anything else."""
        try:
            return [uuid.UUID(text) for text in self.cleaned_data["pairs"].split(",")]
        except ValueError as problem:
            raise forms.ValidationError(
                "The selected pairs cannot be read. Select them again.", code=ProblemCode.INVALID_ID
            ) from problem


def pairs_pack(ids: Sequence[uuid.UUID]) -> str:
    """Return ids as one short text for a hidden field."""
    return ",".join(map(str, ids))


def pairs_chosen(members: QueryDict, *, principal: Principal) -> list[uuid.UUID]:
    """Return the pairs that an address names; for ``all`` those that its filter finds. At most one query.

    Raises ``ValueRefused`` for an id that is none, and for more than can be merged at once.
    """
    if members.get("all"):
        form = PairsForm(members)
        # A filter that cannot be read finds nothing: no more is merged than somebody saw.
        if not form.is_valid():
            return []
        rows, following = pairs_list(form.to_filter(), principal=principal, cursor=None, limit=MOST_AT_ONCE)
        if following is not None:
            raise ValueRefused(
                f"More than {MOST_AT_ONCE} pairs match. Narrow the filter, or select some of them.",
                code=ProblemCode.TOO_MANY_PAIRS,
            )
        return [row["id"] for row in rows]
    try:
        found = list(dict.fromkeys(uuid.UUID(text) for text in members.getlist("pair")))
    except ValueError as problem:
        raise ValueRefused("One of the values is not a pair id.", code=ProblemCode.INVALID_ID) from problem
    if len(found) > MOST_AT_ONCE:
        raise ValueRefused(f"At most {MOST_AT_ONCE} pairs can be merged at once.", code=ProblemCode.TOO_MANY_PAIRS)
    return found
