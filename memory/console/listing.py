"""Counts of lists in words, and exports of lists as CSV or JSON Lines.

A request for a list returns one page of rows and the cursor of the next page. A separate request returns the count.
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
# Counts stop at this number. A larger exact count is not worth its time.
COUNT_AT_MOST = 100_000
# Rows per query of an export. The limit bounds the memory and the duration of a query.
EXPORT_ROWS = 1000

Row = Mapping[str, Any]
Fetch = Callable[[str | None, int], tuple[Sequence[Row], str | None]]

# Spreadsheets read a cell that begins with one of these as a formula (OWASP, "CSV Injection"). Some also accept the
# full-width characters.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_FORMULA_INSIDE = re.compile(r'[;\t\r\n]"*(?=[=+\-@＝＋－＠])')


def count_words(request: HttpRequest, count: Callable[[int], int], noun: str = "row") -> HttpResponse:
    """Return the number of rows of a list in words: as plain text for a partial update, otherwise as a page.
    ``count(most)`` returns the number of rows, or ``most`` + 1 if there are more."""
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
    """Return the page that refuses an export because of an invalid filter. Without the invalid fields, the filter would
    export too many rows."""
    wrong = [
        str(error) if name == "__all__" else f"{form[name].label}: {error}"
        for name, errors in form.errors.items()
        for error in errors
    ]
    return refusal(
        request, 422, "Nothing exported", " ".join(["The filter is not valid.", *wrong]), ProblemCode.INVALID_MEMBER
    )


def export(name: str, *, form: str, columns: Sequence[str], fetch: Fetch) -> StreamingHttpResponse:
    """Stream all rows of a list in the format ``form`` (``csv`` or ``jsonl``). Runs one query per ``EXPORT_ROWS`` rows,
    in constant memory.

    ``fetch(cursor, limit)`` returns rows and the next cursor. ``columns`` are written in order.
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
    """A file-like object that keeps the line that the csv module wrote last."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text = text


def csv_lines(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Return the lines of a CSV file that is safe to open in a spreadsheet: text that looks like a formula gets an
    apostrophe in front. Numbers and times are unchanged."""
    line = _Line()
    # Texts are quoted, so that a semicolon does not split a cell in programs that separate cells by semicolons.
    writer = csv.writer(line, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(columns)
    # The byte order mark lets spreadsheets recognize UTF-8.
    yield "\ufeff" + line.text
    for row in rows:
        writer.writerow([cell(row[column]) for column in columns])
        yield line.text


def cell(value: Any) -> str | float:
    """Return a value for the csv module: a number unchanged, so that it is not quoted; anything else as text."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if plain else cell_text(value)


def cell_text(value: Any) -> str:
    """Return a value as the text of a cell: empty for None, JSON for lists and objects. Text that looks like a formula
    gets an apostrophe in front."""
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
    # Some programs separate cells by a character other than a comma, and ignore quotes within a line. For these
    # programs, a cell may begin in the middle of a text. It must not begin with a formula either.
    text = _FORMULA_INSIDE.sub(r"\g<0>'", text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def json_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Return each row as one line of JSON."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, default=_json_default) + "\n"


def _json_default(value: Any) -> str:
    return value.isoformat() if isinstance(value, (dt.datetime, dt.date)) else str(value)
