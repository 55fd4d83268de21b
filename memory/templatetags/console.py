"""Filters and tags of the console's templates: `{% load console %}`."""

import datetime as dt
import functools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django import template
from django.contrib.staticfiles import finders
from django.http import QueryDict
from django.template.context import RequestContext
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from memory.core.differences import Piece
from memory.forgetting.run_text import event_words
from memory.insight.action_words import action_words
from memory.predicates.search_text import search_narrow

register = template.Library()

_UNITS = (("year", 31_536_000), ("month", 2_629_800), ("day", 86_400), ("hour", 3_600), ("minute", 60))
# A bar is drawn in a picture of this width and stretched; only its share matters.
_BAR = 1000


def span_words(seconds: float) -> str:
    """Return a length of time in its largest fitting unit, such as `3 days`."""
    seconds = abs(seconds)
    for unit, length in _UNITS:
        if seconds >= length:
            count = round(seconds / length)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a minute"


@register.simple_tag(takes_context=True)
def when(context: RequestContext, moment: dt.datetime | str | None, never: str = "never") -> SafeString | str:
    """Return a moment as people say it, with the exact one on hover: `3 days ago`, `in 2 hours`."""
    if moment is None or moment == "":
        return never
    if isinstance(moment, str):
        moment = dt.datetime.fromisoformat(moment)
    exact = moment.astimezone(dt.UTC)
    seconds = (exact - context["now"]).total_seconds()
    words = "now" if abs(seconds) < 5 else f"in {span_words(seconds)}" if seconds > 0 else f"{span_words(seconds)} ago"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', exact.isoformat(), f"{exact:%Y-%m-%d %H:%M:%S} UTC", words
    )


@register.filter
def number(value: Any) -> str:
    """Return a number with commas, rounded to a whole one, nothing for None."""
    return "" if value is None else f"{round(float(value)):,}"


@register.filter
def signed(value: Any) -> str:
    """Return a difference with its sign: `+12`, `−3`, `±0`."""
    whole = int(value)
    return f"+{whole:,}" if whole > 0 else f"−{-whole:,}" if whole < 0 else "±0"


@register.filter
def percent(value: Any) -> str:
    """Return a share as a percentage."""
    return "" if value is None else f"{float(value):.1%}"


@register.filter
def score(value: Any) -> str:
    """Return a salience or score with three significant digits; what is as good as nothing says so."""
    if value is None:
        return ""
    figure = float(value)
    if figure == 0:
        return "0"
    if not math.isfinite(figure):
        return "∞" if figure > 0 else "−∞"
    return "< 0.0001" if 0 < figure < 0.0001 else f"{figure:.3g}" if figure < 100 else f"{figure:,.0f}"


@register.filter
def span(value: float) -> str:
    """Return a length of time, given in seconds, in its largest fitting unit, such as `3 days`."""
    return span_words(value)


@register.filter
def words(value: Any) -> str:
    """Return a name of the store, such as `memory_pressure`, as words."""
    return str(value).replace("_", " ")


@register.filter
def a_run(event: str) -> str:
    """Return what set off a run, within a sentence: `a scheduled run`, `a run after an ingest`."""
    words = event_words(event)
    return f"a {words[0].lower()}{words[1:]}"


register.filter(action_words)


@register.filter
def changed_lines(event: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what an entry of the audit changed: each member's name, and its text before and after."""
    before, after = event["before"], event["after"]
    names = dict.fromkeys([*before, *after])
    return [(name.replace("_", " "), _plain_text(before.get(name)), _plain_text(after.get(name))) for name in names]


def _plain_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')}: {_plain_text(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_plain_text, value))
    return "" if value is None else str(value)


@register.filter
def pretty_json(value: Any) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


@register.filter
def actor(value: str | None) -> str:
    """Return who did something as people call it; None is somebody the viewer may not know."""
    if not value:
        return "another user"
    return value.removeprefix("user:")


_SORTS = {"key:": "agent key", "user:": "person"}


@register.filter
def actor_name(value: str) -> str:
    """Return the name of a caller alone, for places that say who did something in another way."""
    return value.removeprefix("user:").removeprefix("key:")


@register.simple_tag
def caller_sort(name: str | None) -> SafeString | str:
    """Return quietly what kind of caller a name belongs to, such as ` agent key`; nothing if the name says it."""
    sort = next((word for prefix, word in _SORTS.items() if name and name.startswith(prefix)), None)
    return format_html(' <span class="small muted">{}</span>', sort) if sort else ""


@register.simple_tag
def caller_cell(name: str | None) -> SafeString | str:
    """Return a caller as ``caller`` does, by the name alone and with the kind of caller: for columns."""
    if not name or name == "system":
        return actor(name)
    address = f"{reverse('console:caller')}?{urlencode({'name': name})}"
    link = '<a href="{}" title="Show what they wrote and asked">{}</a>{}'
    return format_html(link, address, actor_name(name), caller_sort(name))


@register.simple_tag
def caller(name: str | None) -> SafeString | str:
    """Return who did something as a link to the page about them; the store itself has none."""
    if not name or name == "system":
        return actor(name)
    address = f"{reverse('console:caller')}?{urlencode({'name': name})}"
    return format_html('<a href="{}" title="Show what they wrote and asked">{}</a>', address, actor(name))


@register.simple_tag
def scope_link(path: str) -> SafeString:
    """Return a scope as a link to the page about it."""
    address = f"{reverse('console:scope')}?{urlencode({'scope': path})}"
    return format_html('<a class="mono break" href="{}">{}</a>', address, path)


@register.filter
def named_run(message: Any) -> str:
    """Return the id of the run that a notice leads to, nothing for other notices."""
    tags = str(getattr(message, "extra_tags", "") or "")
    return tags.removeprefix("run:") if tags.startswith("run:") else ""


@register.filter
def undo_run(message: Any) -> str:
    """Return the id of the run that a notice offers to take back, nothing for other notices."""
    tags = str(getattr(message, "extra_tags", "") or "")
    return tags.removeprefix("undo:") if tags.startswith("undo:") else ""


@register.filter
def undo_pair(message: Any) -> str:
    """Return the id of the pair of duplicates whose decision a notice offers to take back, nothing for others."""
    tags = str(getattr(message, "extra_tags", "") or "")
    return tags.removeprefix("pair:") if tags.startswith("pair:") else ""


# What each mark of a pair says to those who do not see it.
_ONLY = {"removed": ("del", "only in the older: "), "added": ("ins", "only in the newer: ")}


@register.simple_tag
def pair_pieces(pieces: Sequence[Piece]) -> SafeString:
    """Return one side of a pair with what only this side says marked, in colour, by a line and in words. The blank
    before a marked word is not marked."""
    told = []
    for piece in pieces:
        if piece.kind == "same" or not piece.text.strip():
            told.append(escape(piece.text))
            continue
        tag, words = _ONLY[piece.kind]
        blank = piece.text[: len(piece.text) - len(piece.text.lstrip())]
        told.append(
            format_html('{}<{}><span class="hidden-text">{}</span>{}</{}>', blank, tag, words, piece.text.lstrip(), tag)
        )
    return SafeString("".join(told))


@register.simple_tag
@functools.cache
def font_links() -> SafeString:
    """Return the links of the font of the pages, which comes with a package; nothing if that is not installed."""
    if not finders.find("fonts/figtree.ttf"):
        return SafeString("")
    return format_html(
        '<link rel="preload" as="font" type="font/ttf" href="{}" crossorigin><link rel="stylesheet" href="{}">',
        static("fonts/figtree.ttf"),
        static("console/font.css"),
    )


@register.simple_tag
def rung(name: str) -> SafeString:
    """Return the badge of a rung. `name` is its label."""
    return format_html('<span class="rung rung-{}">{}</span>', name, name)


@register.simple_tag
def bar(value: float, most: float, label: str = "", tone: str = "accent") -> SafeString:
    """Return a horizontal bar that shows `value` as a part of `most`; the words beside it have to say the number."""
    share = 0.0 if not most else max(0.0, min(1.0, float(value) / float(most)))
    return format_html(
        '<svg class="bar tone-{}" viewBox="0 0 {} 8" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="bar-rest" width="{}" height="8"/><rect class="bar-part" width="{}" height="8"/></svg>',
        tone,
        _BAR,
        label or f"{share:.0%}",
        _BAR,
        round(share * _BAR),
    )


@register.simple_tag(takes_context=True)
def query(context: RequestContext, **changes: Any) -> str:
    """Return the query string of this page with members changed; an empty value takes one away.

    Anything but `cursor` begins at the first page again.
    """
    members: QueryDict = context["request"].GET.copy()
    if "cursor" not in changes:
        members.pop("cursor", None)
    for name, value in changes.items():
        members.pop(name, None)
        if value not in (None, ""):
            members[name] = str(value)
    return f"?{members.urlencode()}" if members else "?"


@register.simple_tag(takes_context=True)
def narrow(context: RequestContext, qualifier: str, value: str) -> str:
    """Return the address of the search of this page with a condition such as `kind:note`."""
    return query(context, q=search_narrow(context["request"].GET.get("q", ""), qualifier, value), part=None)


@register.filter
def member(value: Any, name: str) -> Any:
    """Return a member of a value by its name, nothing for no name."""
    return getattr(value, name) if name else None
