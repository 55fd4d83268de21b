"""Shows the sentences of a why-card with links and short days. No query."""

import datetime as dt

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from memory.core.policy_values import KNOB_LABELS
from memory.explain.why_sentences import Mark, Sentence


def sentence_html(sentence: Sentence, *, now: dt.datetime) -> SafeString:
    """Return a sentence of a why-card as HTML."""
    parts = ((part if isinstance(part, str) else _mark_html(part, now),) for part in sentence)
    return format_html_join("", "{}", parts)


def _mark_html(mark: Mark, now: dt.datetime) -> SafeString:
    match mark.kind:
        case "time":
            return _day(*mark.about, now=now)
        case "topic":
            return _link("another memory", reverse("console:topic", args=mark.about))
        case "run":
            return _link(mark.text, reverse("console:run", args=mark.about))
        case "caller":
            return _link(mark.text.removeprefix("user:"), _address("caller", name=mark.text))
        case "version":
            policy, number = mark.about
            # The defaults have no page.
            return _link(mark.text, _version_address(policy, number)) if number else format_html("{}", mark.text)
        case "limit":
            return _limit_html(*mark.about)
        case "uses":
            return _link(mark.text, "#uses")


def _day(moment: dt.datetime, *, now: dt.datetime) -> SafeString:
    """Return a day as ``14 Nov``, with the year unless it is the current year, and with the exact time on hover."""
    exact = moment.astimezone(dt.UTC)
    words = f"{exact.day} {exact:%b}" if exact.year == now.year else f"{exact.day} {exact:%b %Y}"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', exact.isoformat(), f"{exact:%Y-%m-%d %H:%M:%S} UTC", words
    )


def _link(text: str, address: str) -> SafeString:
    return format_html('<a href="{}">{}</a>', address, text)


def _limit_html(name: str, value: float, policy: str, number: int) -> SafeString:
    """Return a threshold as a link to the version that set it, with its names and this version on hover."""
    title = f"{KNOB_LABELS.get(name, name)} ({name}), {f'version {number} of {policy}' if number else 'the default'}"
    if not number:
        return format_html('<span title="{}">{}</span>', title, f"{value:g}")
    return format_html('<a href="{}" title="{}">{}</a>', _version_address(policy, number), title, f"{value:g}")


def _version_address(policy: str, number: int) -> str:
    return _address("policy_version", scope=policy, number=number)


def _address(page: str, **query: str | int) -> str:
    return f"{reverse(f'console:{page}')}?{urlencode(query)}"
