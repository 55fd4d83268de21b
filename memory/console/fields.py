"""Form fields that several pages share, and URL converters."""

import datetime as dt
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.urls import register_converter

from memory.core.errors import MemoryProblem, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import MAX_SCOPE_LENGTH, scope_normalize

# The length of a URL that every browser and server accepts.
MOST_ADDRESS = 6000
# Days that filters take.
FIRST_DAY, LAST_DAY = dt.date(1970, 1, 1), dt.date(2200, 12, 31)


def form_error(problem: MemoryProblem) -> ValidationError:
    """Return a problem as a form error, with its code."""
    return ValidationError(problem.sentence, code=problem.code)


def filter_choice(label: str, choices: list[tuple[str, str]]) -> forms.ChoiceField:
    """Return a choice of a filter, which submits its form as soon as it changes."""
    select = forms.Select(attrs={"data-submits": True})
    return forms.ChoiceField(label=label, choices=choices, required=False, widget=select)


class ScopeField(forms.CharField):
    """A scope path, returned in its canonical form; empty for the whole store."""

    def __init__(self, **options: Any) -> None:
        options = {"label": "Scope", "max_length": MAX_SCOPE_LENGTH, **options}
        super().__init__(**options)
        self.widget.attrs["placeholder"] = "/"

    def clean(self, value: Any) -> str:
        """Return the canonical path, "" for none. Raises ``ValidationError`` with the sentence of the domain."""
        text = super().clean(value)
        try:
            return scope_normalize(text) if text else ""
        except ValueRefused as problem:
            raise form_error(problem) from problem


class DayField(forms.DateField):
    """A day in UTC. The range of years keeps the days before and after it valid."""

    def __init__(self, **options: Any) -> None:
        bounds = {"min": FIRST_DAY.isoformat(), "max": LAST_DAY.isoformat()}
        super().__init__(widget=forms.DateInput(attrs={"type": "date", **bounds}), **options)

    def clean(self, value: Any) -> dt.date | None:
        """Return the day, None for none. Raises ``ValidationError``."""
        day: dt.date | None = super().clean(value)
        if day is not None and not FIRST_DAY <= day <= LAST_DAY:
            raise ValidationError(f"Choose a date between {FIRST_DAY} and {LAST_DAY}.", code=ProblemCode.INVALID_PERIOD)
        return day


class ReasonField(forms.CharField):
    """The reason of a change, for the journal."""

    def __init__(self, **options: Any) -> None:
        options = {"label": "Reason", "max_length": 1000, "help_text": "Recorded in the audit.", **options}
        super().__init__(**options)


class ReasonForm(forms.Form):
    """The reason of an action; required."""

    reason = ReasonField()


def start_of(day: dt.date | None) -> dt.datetime | None:
    """Return the start of a day in UTC."""
    return None if day is None else dt.datetime.combine(day, dt.time.min, tzinfo=dt.UTC)


def end_of(day: dt.date | None) -> dt.datetime | None:
    """Return the end of a day in UTC, exclusive."""
    return None if day is None else dt.datetime.combine(day, dt.time.min, tzinfo=dt.UTC) + dt.timedelta(days=1)


class ExportFormConverter:
    """The format of an export at the end of a URL."""

    regex = "csv|jsonl"

    def to_python(self, value: str) -> str:
        """Return the form."""
        return value

    def to_url(self, value: str) -> str:
        """Return the form."""
        return value


register_converter(ExportFormConverter, "exportform")
