"""Form fields that several pages share, and what addresses hold."""

import datetime as dt
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.urls import register_converter

from memory.domain.errors import ValueRefused
from memory.domain.scopes import MAX_SCOPE_LENGTH, scope_normalize

# How long an address may be: what every browser and server takes.
MOST_ADDRESS = 6000


class ScopeField(forms.CharField):
    """A scope path, returned in its canonical form; nothing stands for the whole store."""

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
            raise ValidationError(problem.sentence) from problem


class DayField(forms.DateField):
    """A day in UTC."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.DateInput(attrs={"type": "date"}), **options)


class ReasonField(forms.CharField):
    """Why somebody changes something; journals show it."""

    def __init__(self, **options: Any) -> None:
        options = {"label": "Reason", "max_length": 1000, "help_text": "Journals show it.", **options}
        super().__init__(**options)


def start_of(day: dt.date | None) -> dt.datetime | None:
    """Return the first moment of a day in UTC."""
    return None if day is None else dt.datetime.combine(day, dt.time.min, tzinfo=dt.UTC)


def end_of(day: dt.date | None) -> dt.datetime | None:
    """Return the first moment after a day in UTC."""
    return None if day is None else dt.datetime.combine(day, dt.time.min, tzinfo=dt.UTC) + dt.timedelta(days=1)


class ExportFormConverter:
    """The form of an export, as the end of an address."""

    regex = "csv|jsonl"

    def to_python(self, value: str) -> str:
        """Return the form."""
        return value

    def to_url(self, value: str) -> str:
        """Return the form."""
        return value


register_converter(ExportFormConverter, "exportform")
