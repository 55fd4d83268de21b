"""Forms of the pages about duplicates: the filter of the list, the scope to search, and the reason of a decision."""

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
from memory.duplicates.pair_actions import MAX_AT_ONCE
from memory.duplicates.pairs import PairFilter, pairs_list

MAX_REASON = 500
# The length of an id and a comma.
PACKED = 37

STATES = {"open": "Open", "merged": "Merged", "kept": "Both kept", "superseded": "Superseded", "lapsed": "Lapsed"}
VERDICTS = {"duplicate": "The same", "supersedes": "An update"}


class PairsForm(FilterForm[PairFilter]):
    """The filter of the list of pairs. An empty state selects open pairs."""

    state = filter_choice("Status", [*STATES.items(), ("any", "Any")])
    verdict = filter_choice("Verdict", [("", "Any"), *VERDICTS.items()])
    held = filter_choice("Differences", [("", "Any"), ("no", "None"), ("yes", "Some")])
    scope = ScopeField(required=False)

    def to_filter(self) -> PairFilter:
        """Return the filter; invalid fields are ignored."""
        cleaned: dict[str, Any] = self.cleaned_data
        state, held = cleaned.get("state") or "open", cleaned.get("held")
        return PairFilter(
            scope=cleaned.get("scope") or ROOT,
            state=None if state == "any" else state,
            verdict=cleaned.get("verdict") or None,
            held=None if not held else held == "yes",
        )


class DecideForm(forms.Form):
    """The optional reason of a decision about a pair."""

    reason = ReasonField(
        max_length=MAX_REASON, required=False, widget=forms.TextInput(attrs={"placeholder": "optional"})
    )


class FindForm(forms.Form):
    """The scope to search."""

    scope = ScopeField(required=False, help_text="Includes everything below it. Leave empty for the whole store.")


class MergeConfirmForm(forms.Form):
    """The pairs shown on the page, and the reason for merging them."""

    pairs = forms.CharField(widget=forms.HiddenInput, max_length=MAX_AT_ONCE * PACKED)
    seen_at = forms.DateTimeField(widget=forms.HiddenInput)
    next = forms.CharField(widget=forms.HiddenInput, required=False, max_length=2000)
    reason = ReasonField(max_length=MAX_REASON, required=False)

    def clean_pairs(self) -> list[uuid.UUID]:
        """Return the ids. Raises ``ValidationError`` if the text is not a list of ids."""
        try:
            return [uuid.UUID(text) for text in self.cleaned_data["pairs"].split(",")]
        except ValueError as problem:
            raise forms.ValidationError(
                "The selected pairs cannot be read. Select them again.", code=ProblemCode.INVALID_MEMBER
            ) from problem


def pairs_pack(ids: Sequence[uuid.UUID]) -> str:
    """Return ids as one short text for a hidden field."""
    return ",".join(map(str, ids))


def pairs_chosen(members: QueryDict, *, principal: Principal) -> list[uuid.UUID]:
    """Return the ids of the pairs that a URL names. If the URL contains ``all``, return the ids of the pairs that match
    its filter. At most one query.

    Raises ``ValueRefused`` for an invalid id, and for more pairs than can be merged at once.
    """
    if members.get("all"):
        form = PairsForm(members)
        # An invalid filter matches nothing. Without its invalid fields, it would match pairs that the user did not see.
        if not form.is_valid():
            return []
        rows, following = pairs_list(form.to_filter(), principal=principal, cursor=None, limit=MAX_AT_ONCE)
        if following is not None:
            raise ValueRefused(
                f"More than {MAX_AT_ONCE} pairs match. Narrow the filter, or select some of them.",
                code=ProblemCode.TOO_LARGE,
            )
        return [row["id"] for row in rows]
    try:
        found = list(dict.fromkeys(uuid.UUID(text) for text in members.getlist("pair")))
    except ValueError as problem:
        raise ValueRefused("One of the values is not a pair id.") from problem
    if len(found) > MAX_AT_ONCE:
        raise ValueRefused(f"At most {MAX_AT_ONCE} pairs can be merged at once.", code=ProblemCode.TOO_LARGE)
    return found
