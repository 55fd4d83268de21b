"""Filters and tags of the console's templates: `{% load console %}`."""

import datetime as dt
import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django import template
from django.contrib.staticfiles import finders
from django.http import QueryDict
from django.template.context import RequestContext
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString

from memory.console.titles import titled
from memory.core.differences import Piece
from memory.core.scopes import scope_words
from memory.explain.action_words import action_words
from memory.forgetting.run_text import event_words
from memory.predicates.search_text import search_narrow
from memory.transfer.importers import source_title

register = template.Library()
register.filter(titled)
register.filter(source_title)
register.filter("place", scope_words)

_UNITS = (("year", 31_536_000), ("month", 2_629_800), ("day", 86_400), ("hour", 3_600), ("minute", 60))
# The width of the picture of a bar. Pages stretch the picture, so only the filled share matters.
_BAR = 1000
# The kind of the topics that a study of a long text has made.
_STUDY = re.compile(r"^study:[0-9a-f-]{36}$")


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
    """Return a moment in relative words, such as `3 days ago` or `in 2 hours`, with the exact time on hover."""
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
    """Return a number rounded to an integer, with thousands separators; empty for None."""
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
    """Return a salience or score with three significant digits, or `< 0.0001` if it is positive and smaller."""
    if value is None:
        return ""
    figure = float(value)
    if figure == 0:
        return "0"
    if not math.isfinite(figure):
        return "∞" if figure > 0 else "−∞"
    return "< 0.0001" if 0 < figure < 0.0001 else f"{figure:.3g}" if figure < 100 else f"{figure:,.0f}"


@register.filter
def code(sentence: str) -> SafeString:
    """Return a sentence for a page, with its parts in backticks as code."""
    pieces = enumerate(sentence.split("`"))
    return format_html_join("", "{}", ((format_html("<code>{}</code>", one) if at % 2 else one,) for at, one in pieces))


@register.filter
def span(value: float) -> str:
    """Return a length of time, given in seconds, in its largest fitting unit, such as `3 days`."""
    return span_words(value)


@register.filter
def words(value: Any) -> str:
    """Return an internal name, such as `memory_pressure`, as words. The kind of a study is shown without its id."""
    return _STUDY.sub("study", str(value)).replace("_", " ")


@register.filter
def a_run(event: str) -> str:
    """Return the run that an event started, in words for a sentence: `a scheduled run`, `a run after an ingest`."""
    words = event_words(event)
    return f"a {words[0].lower()}{words[1:]}"


register.filter(action_words)


@register.filter
def changed_lines(event: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return (name, text before, text after) for each member of an audit entry."""
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
    """Return an actor without the prefix `user:`. None means another user whose name the viewer may not see."""
    if not value:
        return "another user"
    return value.removeprefix("user:")


_CALLER_KINDS = {"key:": "agent key", "user:": "person"}


@register.filter
def actor_name(value: str) -> str:
    """Return the name of a caller without its prefix, for places that show the kind of caller separately."""
    return value.removeprefix("user:").removeprefix("key:")


@register.simple_tag
def caller_sort(name: str | None) -> SafeString | str:
    """Return the kind of a caller in muted text, such as ` agent key`; empty for a name without a prefix."""
    sort = next((word for prefix, word in _CALLER_KINDS.items() if name and name.startswith(prefix)), None)
    return format_html(' <span class="small muted">{}</span>', sort) if sort else ""


@register.simple_tag
def caller_cell(name: str | None) -> SafeString | str:
    """Return a link to a caller for table columns: the name without its prefix, then the kind of caller."""
    if not name or name == "system":
        return actor(name)
    address = f"{reverse('console:caller')}?{urlencode({'name': name})}"
    link = '<a href="{}" title="Show what they wrote and asked">{}</a>{}'
    return format_html(link, address, actor_name(name), caller_sort(name))


@register.simple_tag
def caller(name: str | None) -> SafeString | str:
    """Return a caller as a link to its page. The system has no such page."""
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
    """Return the id of the run that a notice links to; empty for other notices."""
    tags = str(getattr(message, "extra_tags", "") or "")
    return tags.removeprefix("run:") if tags.startswith("run:") else ""


@register.filter
def undo_run(message: Any) -> str:
    """Return the id of the run that a notice offers to undo; empty for other notices."""
    tags = str(getattr(message, "extra_tags", "") or "")
    return tags.removeprefix("undo:") if tags.startswith("undo:") else ""


@register.filter
def undo_pair(message: Any) -> str:
    """Return the id of the pair of duplicates whose decision a notice offers to undo; empty for other notices."""
    tags = str(getattr(message, "extra_tags", "") or "")
    return tags.removeprefix("pair:") if tags.startswith("pair:") else ""


@register.filter
def named(text: str, names: Sequence[str]) -> SafeString:
    """Return a text with ``names`` marked, in capitals or not. A longer name comes before one that it begins with."""
    if not names:
        return escape(text)
    parts = re.split(f"({'|'.join(map(re.escape, names))})", text, flags=re.IGNORECASE)
    marked = (format_html("<mark>{}</mark>", part) if at % 2 else escape(part) for at, part in enumerate(parts))
    return SafeString("".join(marked))


# For each kind of difference: its HTML tag, and its text for screen readers.
_ONLY = {"removed": ("del", "only in the older: "), "added": ("ins", "only in the newer: ")}


@register.simple_tag
def pair_pieces(pieces: Sequence[Piece]) -> SafeString:
    """Return the text of one side of a pair. Parts that only this side contains are marked by colour, a line and words
    for screen readers. The space before a marked part is not marked."""
    parts = []
    for piece in pieces:
        if piece.kind == "same" or not piece.text.strip():
            parts.append(escape(piece.text))
            continue
        tag, words = _ONLY[piece.kind]
        blank = piece.text[: len(piece.text) - len(piece.text.lstrip())]
        parts.append(
            format_html('{}<{}><span class="hidden-text">{}</span>{}</{}>', blank, tag, words, piece.text.lstrip(), tag)
        )
    return SafeString("".join(parts))


@register.simple_tag
@functools.cache
def font_links() -> SafeString:
    """Return the HTML links for the font of the pages; empty if the package with the font is not installed."""
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
def bar(value: float, most: float, label: str = "", tone: str = "measure") -> SafeString:
    """Return a horizontal bar that shows `value` as a share of `most`. The page must also show the number as text."""
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
    """Return the query string of this page with changed parameters. An empty value removes the parameter.

    Unless `cursor` itself is changed, it is removed, so that a list begins at its first page again.
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
    """Return the query string of this page with a further search condition, such as `kind:note`."""
    return query(context, q=search_narrow(context["request"].GET.get("q", ""), qualifier, value), part=None)


@register.filter
def member(value: Any, name: str) -> Any:
    """Return the attribute `name` of a value; None for an empty name."""
    return getattr(value, name) if name else None
