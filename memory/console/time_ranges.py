"""The time range of a list in the URL: the last hour, 24 hours, 7 or 30 days, or a custom range."""

import datetime as dt
from typing import Any, Generic, NamedTuple, TypeVar

from django import forms
from django.utils import timezone

from memory.console.fields import FIRST_DAY, LAST_DAY, day_require
from memory.console.list_page import FilterForm
from memory.core.days import days_begin
from memory.core.problem_codes import ProblemCode

FilterT = TypeVar("FilterT")

LENGTHS = {"1h": dt.timedelta(hours=1), "24h": dt.timedelta(hours=24)}
# Numbers of days in UTC, including today. Charts count days in the same way.
WHOLE_DAYS = {"7d": 7, "30d": 30}
ALL, CUSTOM = "all", "custom"
LABELS = {"1h": "1 h", "24h": "24 h", "7d": "7 d", "30d": "30 d", ALL: "All", CUSTOM: "Custom"}


class RangeLink(NamedTuple):
    """One choice of the range control. ``value`` is empty for the default range of the list."""

    value: str
    label: str
    chosen: bool


class MinuteInput(forms.DateTimeInput):
    """A field for a day and a time. A day without a time gets its first minute or, with ``last``, its last minute."""

    def __init__(self, *, last: bool) -> None:
        bounds = {"min": f"{FIRST_DAY}T00:00", "max": f"{LAST_DAY}T23:59"}
        super().__init__(attrs={"type": "datetime-local", **bounds}, format="%Y-%m-%dT%H:%M")
        self.last = last

    def format_value(self, value: Any) -> str | None:
        """Return the text of the field."""
        text = super().format_value(value)
        return f"{text}T{'23:59' if self.last else '00:00'}" if text and len(text) == len("2026-01-01") else text


class MinuteField(forms.DateTimeField):
    """A minute or a day in UTC. The value is its start, or with ``last`` its end."""

    def __init__(self, *, last: bool = False, **options: Any) -> None:
        super().__init__(required=False, widget=MinuteInput(last=last), **options)
        self.last = last

    def clean(self, value: Any) -> dt.datetime | None:
        """Return the time, None if the field is empty. Raises ``ValidationError``."""
        chosen: dt.datetime | None = super().clean(value)
        if chosen is None:
            return None
        day_require(chosen.date())
        whole_day = isinstance(value, str) and len(value.strip()) == len("2026-01-01")
        if self.last:
            chosen += dt.timedelta(days=1) if whole_day else dt.timedelta(minutes=1)
        return chosen.astimezone(dt.UTC)


class RangeForm(FilterForm[FilterT], Generic[FilterT]):
    """A filter with a time range. ``range`` in the URL takes precedence over ``since`` and ``until``."""

    since = MinuteField(label="From (UTC)")
    until = MinuteField(label="Until (UTC)", last=True)
    range = forms.ChoiceField(required=False, choices=[("", ""), *LABELS.items()], widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        """Refuse an end that is before the start."""
        said: dict[str, Any] = self.cleaned_data
        since, until = said.get("since"), said.get("until")
        if since and until and until <= since:
            self.add_error("until", forms.ValidationError("This is before “From”.", code=ProblemCode.INVALID_PERIOD))
        return said

    @property
    def range_default(self) -> str:
        """The range that applies if the URL names none."""
        return ALL

    @property
    def range_chosen(self) -> str:
        """The range in the URL, or the default of the list."""
        asked = self.data.get("range", "")
        if asked in LABELS:
            return str(asked)
        return CUSTOM if self.data.get("since") or self.data.get("until") else self.range_default

    @property
    def ranges(self) -> list[RangeLink]:
        """The choices of the range control."""
        return [
            RangeLink("" if value == self.range_default else value, label, value == self.range_chosen)
            for value, label in LABELS.items()
        ]

    def shown(self) -> list[forms.BoundField]:
        """Return the visible fields. The two times are shown only for a custom range."""
        own = self.range_chosen == CUSTOM
        return [field for field in super().shown() if own or field.name not in ("since", "until")]

    def period(self) -> tuple[dt.datetime | None, dt.datetime | None]:
        """Return (start, end). The end is exclusive, and None means no limit."""
        if self.range_chosen in LENGTHS:
            return timezone.now() - LENGTHS[self.range_chosen], None
        if self.range_chosen in WHOLE_DAYS:
            return days_begin(WHOLE_DAYS[self.range_chosen], now=timezone.now()), None
        if self.range_chosen == ALL:
            return None, None
        return self.cleaned_data.get("since"), self.cleaned_data.get("until")
