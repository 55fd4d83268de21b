"""Counts and exports of lists: how many rows there are, in words, and all of them as CSV or JSON Lines.

A list is a page of rows and the cursor of the next; how many there are in all is asked for by itself, afterwards.
"""

import csv
import datetime as dt
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

from memory.console.page import refusal, show
from memory.core.problem_codes import ProblemCode

ROWS = 50
# Counts stop here, because larger exact counts are not worth their time.
COUNT_AT_MOST = 100_000
# Rows per statement of an export, which bounds memory and the duration of a statement.
EXPORT_ROWS = 1000

Row = Mapping[str, Any]
Fetch = Callable[[str | None, int], tuple[Sequence[Row], str | None]]

# What a spreadsheet would take for a formula at the beginning of a cell (OWASP, "CSV Injection"). Full-width forms are
# read as the plain ones by some.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_WITHIN = re.compile(r'[;\t\r\n]"*(?=[=+\-@＝＋－＠])')


def count_words(request: HttpRequest, count: Callable[[int], int], noun: str = "row") -> HttpResponse:
    """Return how many rows a list has, as words that replace the place kept for them. ``count(most)`` stops counting
    after ``most`` and then returns one more."""
    found = count(COUNT_AT_MOST)
    many = f"{noun[:-1]}ies" if re.search("[^aeiou]y$", noun) else f"{noun}s"
    if found > COUNT_AT_MOST:
        said = f"More than {COUNT_AT_MOST:,} {many}"
    else:
        said = f"{found:,} {noun if found == 1 else many}"
    if getattr(request, "htmx", False):
        return HttpResponse(said, content_type="text/plain; charset=utf-8")
    return show(request, "count.html", {"said": said, "query": request.GET.urlencode()})


def filter_refused(request: HttpRequest, form: forms.Form) -> HttpResponse:
    """Return the page that refuses an export with an invalid filter, which would otherwise export everything."""
    wrong = [
        str(error) if name == "__all__" else f"{form[name].label}: {error}"
        for name, errors in form.errors.items()
        for error in errors
    ]
    return refusal(
        request, 422, "Nothing exported", " ".join(["The filter is not valid.", *wrong]), ProblemCode.INVALID_MEMBER
    )


def export(name: str, *, form: str, columns: Sequence[str], fetch: Fetch) -> StreamingHttpResponse:
    """Stream all rows of a list as ``csv`` or ``jsonl``: one statement per ``EXPORT_ROWS`` rows, flat memory.

    ``fetch(cursor, limit)`` returns rows and the next cursor, as every list does. ``columns`` are written in order.
    """
    rows = ({column: row.get(column) for column in columns} for row in _all(fetch))
    lines, kind = (csv_lines(columns, rows), "text/csv") if form == "csv" else (json_lines(rows), "application/jsonl")
    reply = StreamingHttpResponse(lines, content_type=f"{kind}; charset=utf-8")
    reply.headers["Content-Disposition"] = f'attachment; filename="memstate-{name}.{form}"'
    return reply


def _all(fetch: Fetch) -> Iterator[Row]:
    cursor: str | None = None
    while True:
        rows, cursor = fetch(cursor, EXPORT_ROWS)
        yield from rows
        if cursor is None:
            return


class _Line:
    """A file-like object that returns what the csv module writes, for the response to send."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text = text


def csv_lines(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Return the lines of a CSV file that opens in a spreadsheet as what it is: text that looks like a formula gets an
    apostrophe in front, numbers and moments stay as they are."""
    line = _Line()
    # Texts are quoted, so that a semicolon stays within its cell where it is the separator.
    writer = csv.writer(line, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(columns)
    # The byte order mark lets spreadsheets recognize UTF-8.
    yield "\ufeff" + line.text
    for row in rows:
        writer.writerow([cell(row[column]) for column in columns])
        yield line.text


def cell(value: Any) -> str | float:
    """Return a value for the csv module, which leaves only numbers unquoted."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if plain else cell_text(value)


def cell_text(value: Any) -> str:
    """Return a value as one cell: empty for None, JSON for lists and objects, and text that cannot be a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dt.datetime):
        return value.isoformat()
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else str(value)
    text = text.replace("\x00", "")
    # Where lists are parted by something else than commas, a quote that is not the first thing of a line protects
    # nothing, so within a text no cell or line may begin with a formula either.
    text = _WITHIN.sub(r"\g<0>'", text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def json_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Return each row as one line of JSON."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, default=_plain) + "\n"


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, (dt.datetime, dt.date)) else str(value)
