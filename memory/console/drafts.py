"""The state of the Salience page, read from its URL: scope, topics, scale, and one or two drafts."""

import datetime as dt
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import QueryDict
from django.urls import reverse

from memory.console.fields import MAX_ADDRESS, DayField, KindField, ReasonField, ScopeField, end_of, start_of
from memory.console.policy_form import DraftForm, draft_query, preset_taken
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT
from memory.models import Rung
from memory.policy.partition import TopicSubset
from memory.policy.snapshot import Policies

OTHER = "b"
# The most runs of a backtest. They are limited because the user waits for the result.
MAX_RUNS = 200
BACKTEST_DAYS = 90
MAX_REASON = 1000

_RUNGS = [("", "Any"), *((rung.label, rung.label) for rung in Rung)]
_SCALES = [("log", "logarithmic"), ("linear", "linear")]


class WhereForm(forms.Form):
    """Which topics are shown, and on which scale. An invalid value is ignored, and its field shows an error."""

    scope = ScopeField(required=False, widget=forms.HiddenInput(attrs={"id": False}))
    kind = KindField(required=False, placeholder="any")
    rung = forms.ChoiceField(required=False, choices=_RUNGS, label="Stage")
    scale = forms.ChoiceField(required=False, choices=_SCALES, label="Scale", initial="log")

    @property
    def subset(self) -> TopicSubset:
        """Which topics of the scope are shown."""
        cleaned: dict[str, Any] = self.cleaned_data
        rungs = {rung.label: int(rung) for rung in Rung}
        return TopicSubset(kind=cleaned.get("kind") or None, rung=rungs.get(cleaned.get("rung", "")))

    @property
    def chosen_scale(self) -> str:
        """The scale of the histogram."""
        return str(self.cleaned_data.get("scale") or "log")


class SaveForm(forms.Form):
    """The reason for saving a draft. The fields of the draft are in the same HTML form."""

    # Only a save requires a reason.
    use_required_attribute = False
    reason = ReasonField(
        max_length=MAX_REASON,
        help_text="",
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "aria-required": "true", "placeholder": "Why? Shown in Activity."}
        ),
    )


class BacktestForm(forms.Form):
    """The period of a backtest, and the number of days between its runs."""

    scope = ScopeField(required=False, widget=forms.HiddenInput(attrs={"id": False}))
    draft = forms.CharField(widget=forms.HiddenInput, required=False, max_length=200_000)
    since = DayField(label="From")
    until = DayField(label="Until")
    step = forms.IntegerField(
        label="Days between runs", min_value=1, max_value=365, widget=forms.NumberInput(attrs={"size": 4})
    )

    @staticmethod
    def opening(now: dt.datetime) -> dict[str, Any]:
        """Return the initial values: the last ninety days, one run per day."""
        return {"since": now.date() - dt.timedelta(days=BACKTEST_DAYS), "until": now.date(), "step": 1}

    def clean(self) -> dict[str, Any]:
        """Refuse a backtest with more than ``MAX_RUNS`` runs."""
        cleaned: dict[str, Any] = self.cleaned_data
        since, until, step = cleaned.get("since"), cleaned.get("until"), cleaned.get("step")
        if since and until and step and (until - since).days / step > MAX_RUNS:
            sentence = f"A backtest has at most {MAX_RUNS} runs. Choose fewer days or a longer step."
            self.add_error("step", forms.ValidationError(sentence, code=ProblemCode.INVALID_PERIOD))
        return cleaned

    @property
    def stretch(self) -> dict[str, Any]:
        """The arguments ``start``, ``end`` and ``step`` of ``backtest``."""
        cleaned = self.cleaned_data
        return {
            "start": start_of(cleaned["since"]),
            "end": end_of(cleaned["until"]),
            "step": dt.timedelta(days=cleaned["step"]),
        }


class SalienceDraft:
    """The policy in force at a scope, and one or two drafts of it that are read from a URL."""

    def __init__(self, data: Mapping[str, Any], *, policies: Policies) -> None:
        self.policies = policies
        self.where = WhereForm(data)
        self.where.is_valid()
        self.scope: str = self.where.cleaned_data.get("scope") or ROOT
        self.scale = self.where.chosen_scale
        self.subset = self.where.subset
        self.reason = str(data.get("reason", ""))[:MAX_REASON]
        self.form = DraftForm(data, policies=policies, scope=self.scope)
        self.refused = not self.form.is_valid()
        has_other = any(name.startswith(f"{OTHER}-") for name in data)
        self.other_form = DraftForm(data, policies=policies, scope=self.scope, prefix=OTHER) if has_other else None
        # An invalid second draft is ignored.
        if self.other_form is not None and not self.other_form.is_valid():
            self.other_form = None

    @property
    def drafted(self) -> Policies:
        """The policies as they would be with the draft; the policies in force if the draft is invalid."""
        return self.form.drafted or self.policies

    @property
    def changes(self) -> bool:
        """Whether the draft differs from what is set at the scope."""
        after, before = (each.set_at(self.scope).as_stored() for each in (self.drafted, self.policies))
        return after != before

    @property
    def other(self) -> Policies | None:
        """The policies as they would be with the second draft; None if there is no second draft."""
        return self.other_form.drafted if self.other_form else None

    @property
    def filters(self) -> list[tuple[str, str]]:
        """The query parameters other than the drafts and the reason, as (name, value)."""
        members = [("scope", self.scope), ("kind", self.subset.kind or ""), ("rung", self._rung), ("scale", self.scale)]
        return [(name, value) for name, value in members if value and (name, value) != ("scale", "log")]

    @property
    def filtered(self) -> bool:
        """Whether only some of the topics of the scope are shown."""
        return bool(self.subset.kind) or self.subset.rung is not None

    @property
    def _rung(self) -> str:
        return "" if self.subset.rung is None else Rung(self.subset.rung).label

    @property
    def own(self) -> str:
        """The first draft alone, as a query string."""
        return urlencode(draft_query(self.form))

    @property
    def others(self) -> list[tuple[str, str]]:
        """The query parameters of the second draft."""
        return [] if self.other_form is None else draft_query(self.other_form, prefix=OTHER)

    @property
    def query(self) -> str:
        """The filters and the drafts as a query string."""
        return urlencode([*self.filters, *draft_query(self.form), *self.others])

    @property
    def is_long(self) -> bool:
        """Whether ``address`` is too long for a URL."""
        return len(self.address) > MAX_ADDRESS

    @property
    def address(self) -> str:
        """The URL of the page with the whole state, including the reason."""
        return f"{reverse('console:salience')}?{self.query}{self._reason_query}"

    @property
    def held_query(self) -> str:
        """The query string of ``address``. If the URL would be too long, the drafts and the reason are omitted."""
        return urlencode(self.filters) if self.is_long else self.query + self._reason_query

    @property
    def _reason_query(self) -> str:
        return f"&{urlencode({'reason': self.reason})}" if self.reason else ""

    def stepped(self, step: str) -> "SalienceDraft | None":
        """Return the draft after ``step``, one of ``STEPS`` in ``pages/salience.py``. None for a swap without a second
        draft."""
        members = self._step_members(step)
        if members is None:
            return None
        return SalienceDraft({**dict(members), "reason": self.reason}, policies=self.policies)

    def _step_members(self, step: str) -> list[tuple[str, str]] | None:
        form, lead = self.form, f"{OTHER}-"
        match step:
            case "load":
                return [*self.filters, *preset_taken(form).items(), *self.others]
            case "aside":
                return [*self.filters, *draft_query(form), *draft_query(form, prefix=OTHER)]
            case "swap" if self.others:
                swapped = [(name.removeprefix(lead), value) for name, value in self.others]
                return [*self.filters, *swapped, *draft_query(form, prefix=OTHER)]
            case "drop":
                return [*self.filters, *draft_query(form)]
            case "again":
                return [*self.filters, *self.others]
            case _:
                return None


def draft_sent(scope: str, draft: str, *, policies: Policies) -> SalienceDraft:
    """Parse ``draft``, a query string with a draft for ``scope``. Raises ``ValueRefused`` if it cannot be read."""
    try:
        members = QueryDict(draft).dict()
    except ValueError as problem:
        raise ValueRefused("The draft cannot be read. Reload the page.", code=ProblemCode.INVALID_POLICY) from problem
    return SalienceDraft({**members, "scope": scope}, policies=policies)
