"""Suggestions for a text that a caller types. Read-only.

Scopes and kinds may be suggested only to callers who may see the whole store. Topics are suggested by title or id, and
runs by id, kind or scope, to all callers.
"""

import re
import uuid
from typing import Any

from django.conf import settings
from django.db.models import Q

from memory.access.principal import Principal
from memory.console.queries.archive_list import like_plain
from memory.core.scopes import ROOT
from memory.forgetting.manual_runs import BY_HAND, REVISE
from memory.forgetting.run_text import EVENT_WORDS
from memory.models import ForgetRun
from memory.models.labels import label_sql
from memory.models.statements import rows_read
from memory.predicates.binding import Bound, path_q, path_sql
from memory.text.folding import WORD
from memory.text.search_words import words_for_search

MAX = 20
# At most this many of the newest topics are searched by title, and this many of the newest runs by kind and scope.
TOPICS_SEARCHED, RUNS_SEARCHED = 20_000, 500
# A shorter text is not treated as the beginning of an id.
LEAST_OF_ID = 6
# Shorter words are not searched in the index, because too many words begin with them.
LEAST_OF_WORD = 3
# A text without a slash is also searched for inside the paths of this many of the newest scopes.
SCOPES_SEARCHED = 20_000

# Each step reads one entry of the index of paths, and skips all paths below the segment that completes the prefix.
# ``chr(1)`` precedes every character of a path, and "0" is the character after "/".
_SCOPES_SQL = """
WITH RECURSIVE step (path) AS (
    (SELECT path FROM memory_scope WHERE path ~>=~ %(prefix)s::text ORDER BY path USING ~<~ LIMIT 1)
    UNION ALL
    SELECT (
        SELECT s.path FROM memory_scope s
        WHERE s.path ~>=~ CASE WHEN slash = 0 THEN step.path || chr(1)
                               ELSE left(step.path, %(size)s + slash) || '0' END
        ORDER BY s.path USING ~<~ LIMIT 1
    )
    FROM step, LATERAL (SELECT strpos(substr(step.path, %(size)s + 2), '/') AS slash) cut
    WHERE starts_with(step.path, %(prefix)s)
)
SELECT path FROM step WHERE starts_with(path, %(prefix)s) LIMIT %(steps)s
"""
_SCOPES_WITHIN_SQL = """
SELECT path FROM (SELECT id, path FROM memory_scope ORDER BY id DESC LIMIT %(searched)s) newest
WHERE strpos(lower(path), lower(%(text)s)) > 0 ORDER BY length(path), path LIMIT %(most)s
"""
# Each step reads one entry of the index of kinds.
_KINDS_SQL = """
WITH RECURSIVE step (kind) AS (
    (SELECT kind FROM memory_topic WHERE kind ~>=~ %(prefix)s::text AND kind <> '' ORDER BY kind USING ~<~ LIMIT 1)
    UNION ALL
    SELECT (SELECT t.kind FROM memory_topic t WHERE t.kind ~>~ step.kind ORDER BY t.kind USING ~<~ LIMIT 1)
    FROM step WHERE starts_with(step.kind, %(prefix)s)
)
SELECT kind FROM step WHERE starts_with(kind, %(prefix)s) LIMIT %(most)s
"""

# The index of words finds live topics by the beginnings of words. Archived topics are found only if they are among the
# newest topics.
_TOPICS_SQL = """
WITH found (id) AS (
    (SELECT id FROM memory_topic WHERE id BETWEEN {first} AND {last} LIMIT {most})
    UNION
    (SELECT t.id FROM (
        SELECT topic_id FROM memory_topicdocument
        WHERE live AND document @@ to_tsquery({config}, {query}) LIMIT {searched}
     ) d JOIN memory_topic t ON t.id = d.topic_id WHERE {label} ILIKE ALL ({patterns}) LIMIT {most})
    UNION
    (SELECT t.id FROM (SELECT * FROM memory_topic ORDER BY id DESC LIMIT {searched}) t
     WHERE {label} ILIKE ALL ({patterns}) LIMIT {most})
)
SELECT t.id, {label}, s.path, left(t.summary, 120)
FROM found JOIN memory_topic t USING (id) JOIN memory_scope s ON s.id = t.scope_id
WHERE {within} AND t.merged_into_id IS NULL ORDER BY t.released_at NULLS FIRST, length({label}), t.id LIMIT {most}
"""


def topics_suggested(text: str, *, principal: Principal, most: int) -> list[tuple[Any, ...]]:
    """Return topics whose id begins with ``text`` or whose label contains the words of ``text``, as (id, label, scope,
    beginning of the summary). One query, which reads at most twice ``TOPICS_SEARCHED`` titles."""
    bound = Bound()
    # Pairs of letters are shorter than words.
    found = WORD.findall(words_for_search(text))
    words = [word for word in found if len(word) >= LEAST_OF_WORD or not word.isascii()]
    first, last = _ids(text)
    statement = _TOPICS_SQL.format(
        first=f"{bound.bind(str(first))}::uuid",
        last=f"{bound.bind(str(last))}::uuid",
        config=f"{bound.bind(settings.MEMSTATE_TEXT_SEARCH_CONFIG)}::text::regconfig",
        query=bound.bind(" & ".join(f"'{word}':*" for word in words)),
        patterns=f"{bound.bind([f'%{like_plain(word)}%' for word in text.split()])}::text[]",
        within=path_sql("s.path", principal.scope, bound.bind),
        label=label_sql(),
        most=int(most),
        searched=TOPICS_SEARCHED,
    )
    return rows_read(statement, bound.values)


def runs_suggested(text: str, *, principal: Principal, most: int) -> list[ForgetRun]:
    """Return runs whose id begins with ``text`` or whose kind or scope contains ``text``, newest first. One query."""
    events = [event for event, words in EVENT_WORDS.items() if text.casefold() in words.casefold()]
    newest = ForgetRun.objects.exclude(event__in=(BY_HAND, REVISE)).order_by("-created_at", "-id")[:RUNS_SEARCHED]
    alike = Q(pk__in=newest.values("pk")) & (Q(event__in=events) | Q(scope__icontains=text))
    found = ForgetRun.objects.filter(path_q(principal.scope), Q(pk__range=_ids(text)) | alike)
    return list(found.order_by("-created_at", "-id")[:most])


def _ids(text: str) -> tuple[uuid.UUID, uuid.UUID]:
    """Return the first and the last id that can begin with ``text``. If there are none, return an unused id twice."""
    digits = text.replace("-", "").lower()
    if not LEAST_OF_ID <= len(digits) <= 32 or not re.fullmatch("[0-9a-f]+", digits):
        return uuid.UUID(int=0), uuid.UUID(int=0)
    return uuid.UUID(digits.ljust(32, "0")), uuid.UUID(digits.ljust(32, "f"))


def scopes_suggested(text: str, *, most: int = MAX) -> list[str]:
    """Return scopes that begin with ``text``, completed by one segment: ``/u`` gives ``/user``, ``/user`` gives
    ``/user/alice``. A ``text`` without a slash is also found inside paths. At most two queries; the first reads two
    entries of an index per result."""
    prefix = text if text.startswith(ROOT) else ROOT + text
    # A segment takes two steps if the path that ends with it is a scope.
    found = _column(_SCOPES_SQL, prefix=prefix, size=len(prefix), steps=2 * most)
    above = [prefix] if any(path.startswith(f"{prefix}/") for path in found) else []
    size = len(prefix) + 1
    completed = [path[:size] + path[size:].partition("/")[0] for path in found]
    scopes = list(dict.fromkeys([*above, *completed]))[:most]
    if text and ROOT not in text and len(scopes) < most:
        within = _column(_SCOPES_WITHIN_SQL, text=text, searched=SCOPES_SEARCHED, most=most)
        scopes = list(dict.fromkeys([*scopes, *within]))[:most]
    return scopes


def kinds_suggested(prefix: str, *, most: int = MAX) -> list[str]:
    """Return kinds of topics that begin with ``prefix``. One query, which reads one entry of an index per result."""
    return _column(_KINDS_SQL, prefix=prefix, most=most)


def _column(sql: str, **values: str | int) -> list[str]:
    return [value for (value,) in rows_read(sql, values)]
