"""Loads the hits of a lookup: state and text of each topic, with the words marked."""

import datetime as dt
import itertools
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import connection

from memory.models.formulas_sql import rung_label_sql, salience_now_sql
from memory.models.labels import label_sql
from memory.recall.ranking import Ranked
from memory.text.search_words import pairs, runs_without_spaces

# PostgreSQL puts these private characters around marked words. They are removed from the text before it is marked.
_OPEN, _CLOSE = "\ue000", "\ue001"
_BODY_CHARS = 20_000
# Titles and snippets are cut after this number of characters, because a value may have no space at all.
_SHOWN_CHARS = 400
# If no word is marked, this number of characters from the beginning are shown.
_PLAIN_CHARS = 220
# And at most this number of characters before the first letters that were found in a script without spaces.
_BEFORE_CHARS = 30
_TITLE = f"StartSel={_OPEN},StopSel={_CLOSE},HighlightAll=true"
_SNIPPET = (
    f'StartSel={_OPEN},StopSel={_CLOSE},MaxFragments=2,MaxWords=32,MinWords=20,ShortWord=0,FragmentDelimiter=" … "'
)

_HITS_SQL = """
WITH hit AS MATERIALIZED (
    SELECT a.place, t.id, t.title, t.summary, {label} AS label, t.kind, s.path, t.rung, t.categories, t.provenance,
           t.created_at, t.updated_at, t.released_at, {salience} AS salience, v.live, v.pinned, v.retrieval_count,
           v.last_retrieved_at, {body} AS body
    FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS a (id, place)
    JOIN memory_topic t ON t.id = a.id
    JOIN memory_scope s ON s.id = t.scope_id
    JOIN memory_vitality v ON v.topic_id = t.id
)
SELECT id, title, summary, label, kind, path,
       CASE WHEN released_at IS NOT NULL THEN 'released' WHEN live THEN 'live' ELSE 'archived' END, {rung}, categories,
       salience, pinned, retrieval_count, last_retrieved_at, created_at, updated_at, provenance,
       {marked_title}, {marked_body}, {plain}
FROM hit ORDER BY place
"""

# Without title and summary, the first value stands for them, so its name is left out.
_BODY = f"""
left(concat_ws(' · ', nullif(t.summary, ''), (
    SELECT string_agg(CASE WHEN x.place > 1 OR t.title || t.summary <> '' THEN x.name || ': ' ELSE '' END || x.value,
                      ' · ' ORDER BY x.place)
    FROM (SELECT f.name, r.value, row_number() OVER (ORDER BY f.created_at, f.id) AS place
          FROM memory_field f JOIN memory_revision r ON r.field_id = f.id AND r.seq = f.last_seq
          WHERE f.topic_id = t.id AND r.value <> '') x
)), {_BODY_CHARS})
"""

# The part of the text around the first pair of letters that the search found.
_PLAIN_FROM_PAIR = f"""
substr(body, greatest(1, coalesce(
    (SELECT min(nullif(strpos(body, pair), 0)) FROM unnest(%(wanted)s::text[]) AS pair), 1) - {_BEFORE_CHARS}
), {_PLAIN_CHARS + 1})
"""

Piece = tuple[str, bool]


@dataclass(slots=True)
class SearchHit:
    """A topic that a lookup found, with the words marked. In a ranked search, ``score`` is set, and ``exact`` states
    whether every word occurs."""

    topic_id: uuid.UUID
    title: str
    summary: str
    label: str
    kind: str
    scope: str
    standing: str
    rung: str
    categories: list[str]
    salience: float
    pinned: bool
    retrievals: int
    last_retrieved_at: dt.datetime | None
    created_at: dt.datetime
    updated_at: dt.datetime
    provenance: str
    title_pieces: list[Piece] = field(default_factory=list)
    snippet: list[Piece] = field(default_factory=list)
    score: Ranked | None = None
    exact: bool = True


def hits_load(ids: Sequence[uuid.UUID], *, marks: Sequence[str] | None, now: dt.datetime) -> list[SearchHit]:
    """Return the hits for ``ids``, in that order. The words and phrases in ``marks`` are marked. If ``marks`` is None,
    as for exports, there are no marked texts. At most one query."""
    if not ids:
        return []
    parameters: dict[str, Any] = {"ids": list(ids), "now": now}
    body, marked_title, marked_body, plain = "NULL", "NULL", "NULL", "NULL"
    wanted = [pair for text in marks or () for run in runs_without_spaces(text) for pair in pairs(run)]
    if marks is not None:
        parameters |= {"config": settings.MEMSTATE_TEXT_SEARCH_CONFIG, "title_options": _TITLE, "options": _SNIPPET}
        parameters |= {f"m{place}": text for place, text in enumerate(marks)}
        parts = [f"phraseto_tsquery(%(config)s::regconfig, %(m{place})s)" for place in range(len(marks))]
        tsquery = f"({' || '.join(parts)})" if parts else "''::tsquery"
        body = _BODY
        plain = f"left(body, {_PLAIN_CHARS + 1})"
        if wanted:
            parameters["wanted"] = wanted
            plain = _PLAIN_FROM_PAIR
        marked_title = _headline("title", tsquery, "title_options")
        # A short text is shown completely.
        whole, parts_of = _headline("body", tsquery, "title_options"), _headline("body", tsquery, "options")
        marked_body = f"CASE WHEN length(body) <= {_PLAIN_CHARS} THEN {whole} ELSE {parts_of} END"
    sql = _HITS_SQL.format(
        salience=salience_now_sql("v", "%(now)s::timestamptz", scope="v.scope_id"),
        body=body,
        marked_title=marked_title,
        marked_body=marked_body,
        plain=plain,
        rung=rung_label_sql("rung"),
        label=label_sql(),
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        hits = []
        for *row, title, snippet, beginning in cursor.fetchall():
            hit = SearchHit(*row)
            if marks is not None:
                hit.title_pieces = _pairs_marked(pieces_marked(title), wanted)
                hit.snippet = pieces_marked(snippet or "")
                if not any(is_marked for _text, is_marked in hit.snippet):
                    hit.snippet = pieces_marked(beginning or "", most=_PLAIN_CHARS)
                hit.snippet = _pairs_marked(hit.snippet, wanted)
            hits.append(hit)
        return hits


def _headline(column: str, tsquery: str, options: str) -> str:
    clean = f"translate({column}, '{_OPEN}{_CLOSE}', '')"
    return f"ts_headline(%(config)s::regconfig, {clean}, {tsquery}, %({options})s)"


def _pairs_marked(pieces: list[Piece], wanted: Sequence[str]) -> list[Piece]:
    """Mark the pairs of letters in ``wanted`` too. PostgreSQL takes a whole clause of such a script for one word."""
    if not wanted:
        return pieces
    pair = re.compile(f"(?=({'|'.join(map(re.escape, wanted))}))")
    result: list[Piece] = []
    for text, is_marked in pieces:
        spots = {at for found in pair.finditer(text) for at in range(found.start(), found.end(1))}
        for marked, letters in itertools.groupby(range(len(text)), spots.__contains__):
            at = list(letters)
            result.append((text[at[0] : at[-1] + 1], is_marked or marked))
    return result


def pieces_marked(text: str, *, most: int = _SHOWN_CHARS) -> list[Piece]:
    """Return a marked text as pieces ``(text, is marked)``, cut after ``most`` characters."""
    pieces: list[Piece] = []
    marked, remaining = False, most
    for part in re.split(f"([{_OPEN}{_CLOSE}])", text):
        if part in (_OPEN, _CLOSE):
            marked = part == _OPEN
        elif part and remaining > 0:
            pieces.append((part if len(part) <= remaining else part[:remaining] + "…", marked))
            remaining -= len(part)
    return pieces
