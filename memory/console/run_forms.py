"""Forms of the pages about runs: the filters of the lists, and the start of a run."""

from typing import Any

from django import forms

from memory.console.fields import ScopeField, filter_choice
from memory.console.list_page import FilterForm, sort_columns, sort_field
from memory.console.time_ranges import RangeForm
from memory.core.rules import EVENTS
from memory.core.scopes import ROOT
from memory.forgetting.manual_runs import BY_HAND, REVISE
from memory.forgetting.run_list import ORDERS, ActionCounts, ActionFilter, RunFilter
from memory.forgetting.run_text import event_words, state_words

_STATUSES = [
    ("", "Any"),
    ("planned", "Planned"),
    ("held", "Waiting for approval"),
    ("applying", "In progress"),
    ("done", "Done"),
    ("undone", "Undone"),
    ("failed", "Failed"),
    ("refused", "Refused"),
    ("replaced", "Replaced"),
]
SORTS = sort_columns(ORDERS)


# The most characters of an action or a state.
MAX_WORD = 20


class RunsForm(RangeForm[RunFilter]):
    """The filter of the list of runs."""

    scope = ScopeField(required=False)
    status = filter_choice("Status", _STATUSES)
    event = filter_choice(
        "Kind", [("", "Any forgetting run"), *((event, event_words(event)) for event in (*EVENTS, BY_HAND, REVISE))]
    )
    dry = filter_choice("Dry runs", [("", "Include"), ("no", "Exclude"), ("yes", "Only dry runs")])
    sort = sort_field(SORTS)

    field_order = ("scope", "status", "event", "dry")

    def to_filter(self) -> RunFilter:
        """Return the filter; invalid fields are ignored."""
        since, until = self.period()
        cleaned: dict[str, Any] = self.cleaned_data
        status, dry = cleaned.get("status") or None, cleaned.get("dry")
        return RunFilter(
            scope=cleaned.get("scope") or ROOT,
            status="failed" if status == "replaced" else status,
            event=cleaned.get("event") or None,
            dry_run=None if not dry else dry == "yes",
            replaced=status == "replaced" if status in ("failed", "replaced") else None,
            since=since,
            until=until,
            sort=cleaned.get("sort") or "time",
        )


DRY_RUN, FOR_APPROVAL = "show", "approve"


class StartForm(forms.Form):
    """The scope of a new run, and whether its plan is a dry run or waits for approval."""

    scope = ScopeField(required=False, help_text="Leave empty for the whole store.")
    then = forms.ChoiceField(
        choices=[(DRY_RUN, "Dry run"), (FOR_APPROVAL, "Ask for approval")],
        required=False,
        label="What becomes of the plan",
    )


class ActionsForm(FilterForm[ActionFilter]):
    """The filter of the actions of a run."""

    action = filter_choice("Action", [])
    state = filter_choice("Outcome", [])

    def __init__(self, data: Any, *, tally: ActionCounts | None = None) -> None:
        super().__init__(data)
        if tally is None:
            # Exports and counts only read the filter, so they need no choices.
            self.fields["action"] = self.fields["state"] = forms.CharField(required=False, max_length=MAX_WORD)
            return
        for name, counts, label in (
            ("action", tally.by_action, lambda value: value),
            ("state", tally.by_state, state_words),
        ):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            known = [(value, f"{label(value)} ({times:,})") for value, times in counts.items()]
            asked = self.data.get(name, "")
            # The URL may name a value that no action has any more.
            gone = [(asked, asked)] if asked.isidentifier() and len(asked) <= MAX_WORD and asked not in counts else []
            field.choices = [("", "Any"), *known, *gone]

    def to_filter(self) -> ActionFilter:
        """Return the filter."""
        cleaned: dict[str, Any] = self.cleaned_data
        return ActionFilter(action=cleaned.get("action") or None, state=cleaned.get("state") or None)
