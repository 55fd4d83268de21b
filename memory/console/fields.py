"""Form fields that several pages share, and URL converters."""

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.urls import register_converter, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.core.errors import Conflict, MemoryProblem, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import MAX_SCOPE_LENGTH, scope_normalize

# The length of a URL that every browser and server accepts.
MAX_ADDRESS = 6000
# The first and the last day that filters accept.
FIRST_DAY, LAST_DAY = dt.date(1970, 1, 1), dt.date(2200, 12, 31)


def form_error(problem: MemoryProblem) -> ValidationError:
    """Return a problem as a form error, with its code."""
    return ValidationError(problem.sentence, code=problem.code)


@contextmanager
def problem_shown(form: forms.Form, field: str | None = None) -> Iterator[None]:
    """Show a problem as an error of the form: at the field that the problem names, else at ``field``; None means above
    the form. A block that ends with a return leaves the view unless there is a problem."""
    try:
        yield
    except MemoryProblem as problem:
        form.add_error(problem.member if problem.member in form.fields else field, form_error(problem))


class Attempt:
    """Carries out a confirmed form: ``with attempt:`` catches a conflict, which the page then shows as ``refused``.
    ``status`` is that of a page that shows the form again."""

    def __init__(self, form: forms.Form) -> None:
        self.form = form
        self.refused: Conflict | None = None

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> bool:
        """Keep a conflict; other problems pass."""
        if isinstance(problem, Conflict):
            self.refused = problem
        return self.refused is not None

    @property
    def status(self) -> int:
        """The HTTP status."""
        return 409 if self.refused else 422 if self.form.is_bound else 200


def filter_choice(label: str, choices: list[tuple[str, str]]) -> forms.ChoiceField:
    """Return a choice field of a filter. A change submits the form."""
    select = forms.Select(attrs={"data-submits": True})
    return forms.ChoiceField(label=label, choices=choices, required=False, widget=select)


class SuggestInput(forms.TextInput):
    """A text field with suggestions. ``what`` is a key of ``WHAT`` in ``pages/suggest.py``. Without JavaScript, it is a
    plain text field."""

    def __init__(self, what: str, attrs: Mapping[str, Any] | None = None) -> None:
        super().__init__({"autocomplete": "off", **(attrs or {})})
        self.what = what

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Return the field and an empty list of suggestions, which is filled as the user types."""
        place = f"{(attrs or {}).get('id') or name}-suggested"
        asks = {
            "list": place,
            "hx-get": f"{reverse('console:suggest', args=[self.what])}?field={name}",
            "hx-trigger": "focus once, input changed delay:150ms",
            "hx-target": f"#{place}",
            "hx-swap": "innerHTML",
            # These override the attributes that the field would inherit from its form.
            "hx-params": name,
            "hx-sync": "this:replace",
            "hx-indicator": "this",
        }
        field = super().render(name, value, {**(attrs or {}), **asks}, renderer)
        return format_html('{}<datalist id="{}"></datalist>', field, place)


class SuggestField(forms.CharField):
    """A text field with suggestions."""

    what: ClassVar[str]
    defaults: ClassVar[Mapping[str, Any]]

    def __init__(self, *, placeholder: str = "", **options: Any) -> None:
        super().__init__(**{"widget": SuggestInput(self.what), **self.defaults, **options})
        if placeholder:
            self.widget.attrs["placeholder"] = placeholder


class KindField(SuggestField):
    """A kind of topics."""

    what, defaults = "kind", {"label": "Kind", "max_length": 200}


class ActorField(SuggestField):
    """Who did something, as pages show it: the name of an account, ``key:<name>`` for a key, or ``system``."""

    what, defaults = "actor", {"label": "Who", "max_length": 200}


class ActionField(SuggestField):
    """What was done, in the words of the pages."""

    what, defaults = "action", {"label": "What", "max_length": 50}


class ScopeField(SuggestField):
    """A scope path, returned in its canonical form; empty for the whole store."""

    what, defaults = "scope", {"label": "Scope", "max_length": MAX_SCOPE_LENGTH}

    def __init__(self, *, placeholder: str = "/", **options: Any) -> None:
        super().__init__(placeholder=placeholder, **options)

    def clean(self, value: Any) -> str:
        """Return the canonical path, "" if the field is empty. Raises ``ValidationError`` for a malformed path."""
        text = super().clean(value)
        try:
            return scope_normalize(text) if text else ""
        except ValueRefused as problem:
            raise form_error(problem) from problem


def day_require(day: dt.date) -> None:
    """Raise ``ValidationError`` unless a day is between ``FIRST_DAY`` and ``LAST_DAY``."""
    if not FIRST_DAY <= day <= LAST_DAY:
        raise ValidationError(f"Choose a date between {FIRST_DAY} and {LAST_DAY}.", code=ProblemCode.INVALID_PERIOD)


class DayField(forms.DateField):
    """A day in UTC within the bounds ``FIRST_DAY`` and ``LAST_DAY``, so ``start_of`` and ``end_of`` cannot overflow."""

    def __init__(self, **options: Any) -> None:
        bounds = {"min": FIRST_DAY.isoformat(), "max": LAST_DAY.isoformat()}
        super().__init__(widget=forms.DateInput(attrs={"type": "date", **bounds}), **options)

    def clean(self, value: Any) -> dt.date | None:
        """Return the day, None if the field is empty. Raises ``ValidationError`` for a day outside the bounds."""
        day: dt.date | None = super().clean(value)
        if day is not None:
            day_require(day)
        return day


class ReasonField(forms.CharField):
    """The reason of a change, for the journal."""

    def __init__(self, **options: Any) -> None:
        options = {"label": "Reason", "max_length": 1000, "help_text": "Shown in Activity.", **options}
        super().__init__(**options)


class ReasonForm(forms.Form):
    """The required reason of an action."""

    reason = ReasonField()


class OptionalReasonForm(forms.Form):
    """The optional reason of an action that is easily undone, or changes no memory."""

    reason = ReasonField(required=False)


def start_of(day: dt.date | None) -> dt.datetime | None:
    """Return the start of a day in UTC."""
    return None if day is None else dt.datetime.combine(day, dt.time.min, tzinfo=dt.UTC)


def end_of(day: dt.date | None) -> dt.datetime | None:
    """Return the end of a day in UTC, which is the start of the next day."""
    return None if day is None else dt.datetime.combine(day, dt.time.min, tzinfo=dt.UTC) + dt.timedelta(days=1)


class ExportFormConverter:
    """The format of an export at the end of a URL."""

    regex = "csv|jsonl"

    def to_python(self, value: str) -> str:
        """Return the value unchanged."""
        return value

    def to_url(self, value: str) -> str:
        """Return the value unchanged."""
        return value


register_converter(ExportFormConverter, "exportform")
