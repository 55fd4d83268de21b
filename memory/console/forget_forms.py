"""Forms of the pages about forgetting on command: the request, the selection, and the confirmation."""

import re
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.http import QueryDict

from memory.console.fields import ReasonField, ScopeField, SuggestInput, form_error
from memory.core.durations import duration_parse
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.erasure.filters import ForgetFilter
from memory.models import ForgetListing

# The limits of the API, in characters.
MAX_QUERY, MAX_REASON, MAX_WORDS = 2000, 500, 2000
RELEASE, PURGE = ForgetListing.Verb.RELEASE.value, ForgetListing.Verb.PURGE.value
NOTHING_ASKED = "Enter what to forget: a text, or a scope, age, kind or category."
WHY_PURGED = "A purge cannot be undone. Enter a reason; it is kept in the receipt."


class WordsField(forms.CharField):
    """Names separated by commas, returned as a list."""

    def __init__(self, **options: Any) -> None:
        options = {"max_length": MAX_WORDS, "required": False, "help_text": "Separated by commas.", **options}
        super().__init__(**options)

    def clean(self, value: Any) -> list[str]:
        """Return the names, each once. Raises ``ValidationError``."""
        text = super().clean(value)
        return list(dict.fromkeys(name for each in text.split(",") if (name := each.strip())))


class AgeField(forms.CharField):
    """A duration such as ``30d``, returned as text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=20, required=False, help_text="For example 24h, 30d, 2w or 6m (months).", **options)

    def clean(self, value: Any) -> str:
        """Return the text, "" if the field is empty. Raises ``ValidationError`` for an invalid duration."""
        text: str = super().clean(value)
        if text:
            try:
                duration_parse(text)
            except ValueRefused as problem:
                raise form_error(problem) from problem
        return text


class ForgetForm(forms.Form):
    """What to forget, and how. Submitting the form creates a list of the topics; nothing is forgotten yet."""

    verb = forms.ChoiceField(choices=[(RELEASE, "Release"), (PURGE, "Purge")], initial=RELEASE, label="Action")
    query = forms.CharField(
        required=False,
        max_length=MAX_QUERY,
        label="Text",
        help_text="A name, an address, a number, or a sentence such as “forget the wifi password”. Addresses and "
        "numbers match in any notation, but only as a whole.",
        widget=forms.TextInput(attrs={"placeholder": "alex@example.org", "autocomplete": "off"}),
    )
    scope = ScopeField(required=False, help_text="Includes everything below it.")
    older_than = AgeField(label="Older than")
    kinds = WordsField(label="Kinds", widget=SuggestInput("kinds"))
    categories = WordsField(label="Categories")
    reason = ReasonField(max_length=MAX_REASON, required=False)

    def clean(self) -> dict[str, Any]:
        """Return the cleaned values. Adds an error if the request is empty, or if a purge has no reason."""
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors and not any(cleaned.get(name) for name in ("query", *FILTERS)):
            self.add_error(None, forms.ValidationError(NOTHING_ASKED, code=ProblemCode.MISSING_MEMBER))
        if cleaned.get("verb") == PURGE and "reason" in cleaned and not cleaned["reason"]:
            self.add_error("reason", forms.ValidationError(WHY_PURGED, code=ProblemCode.MISSING_MEMBER))
        return cleaned

    def to_filter(self) -> ForgetFilter:
        """Return the conditions that topics must meet, other than the text and the scope."""
        cleaned = self.cleaned_data
        return ForgetFilter(
            older_than=cleaned["older_than"] or None,
            kinds=cleaned["kinds"] or None,
            categories=cleaned["categories"] or None,
        )


# The fields that select topics, other than the text.
FILTERS = ("scope", "older_than", "kinds", "categories")


class ForgetConfirmForm(forms.Form):
    """The confirmation of a list. For a purge, the user must type one of ``phrases``. By default, the label of the
    field names the first phrase; ``asks`` replaces this label. For a release, ``phrases`` is empty. ``verify`` requests
    a verification after a purge. ``reason`` is asked for if the list has none."""

    typed = forms.CharField(
        required=False,
        max_length=2000,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "off", "spellcheck": "false"}),
    )

    verify = forms.BooleanField(required=False, label="Verify afterwards that nothing is left")
    reason = ReasonField(max_length=MAX_REASON, error_messages={"required": WHY_PURGED})

    def __init__(self, data: Any = None, *, phrases: Iterable[str] = (), asks: str = "", reason: str = "") -> None:
        super().__init__(data)
        if reason:
            del self.fields["reason"]
        else:
            self.fields["reason"].required = bool(phrases)
        self.phrases = tuple(phrases)
        self.asks = asks or f"Type “{self.phrases[0]}” to confirm" if self.phrases else ""
        if self.phrases:
            typed = self.fields["typed"]
            typed.label, typed.required = self.asks, True
            typed.error_messages["required"] = "Type the confirmation to purge."

    def clean_typed(self) -> str:
        """Return the typed text. Raises ``ValidationError`` if it is not one of the phrases."""
        typed: str = self.cleaned_data["typed"]
        if self.phrases and _comparable(typed) not in map(_comparable, self.phrases):
            raise forms.ValidationError("The text does not match. Nothing was purged.", code=ProblemCode.INVALID_MEMBER)
        return typed


class PickForm(forms.Form):
    """The topics of a list that stay ticked. ``listed`` are the ids of the whole list: a page with boxes for ``shown``
    says nothing about the others, so they stay."""

    def __init__(self, data: QueryDict, *, listed: Sequence[str] = ()) -> None:
        super().__init__(data)
        shown = set(data.getlist("shown"))
        self.picked = data.getlist("topic") + [each for each in listed if shown and each not in shown]
        self.ids: list[uuid.UUID] = []

    def clean(self) -> dict[str, Any]:
        """Store the ids in ``ids``. Raises ``ValidationError`` if there are none, or if one is invalid."""
        try:
            self.ids = list(dict.fromkeys(uuid.UUID(text) for text in self.picked))
        except ValueError as problem:
            raise forms.ValidationError(
                "One of the memory ids is not valid.", code=ProblemCode.INVALID_MEMBER
            ) from problem
        if not self.ids:
            raise forms.ValidationError(
                "No memory is ticked. Go back and tick at least one memory of the list.",
                code=ProblemCode.MISSING_MEMBER,
            )
        return super().clean() or {}


def _comparable(text: str) -> str:
    """Return a typed phrase for a comparison: in lower case, without extra spaces, and without commas within
    numbers."""
    return re.sub(r"(?<=\d),(?=\d)", "", " ".join(text.split())).casefold()
