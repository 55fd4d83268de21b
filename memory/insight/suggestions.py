"""Completions of scopes and kinds by their beginning. Read-only, for callers who see the whole store."""

from django.db import connection

from memory.core.scopes import ROOT

MOST = 20
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
# One entry of the index of kinds per kind.
_KINDS_SQL = """
WITH RECURSIVE step (kind) AS (
    (SELECT kind FROM memory_topic WHERE kind ~>=~ %(prefix)s::text AND kind <> '' ORDER BY kind USING ~<~ LIMIT 1)
    UNION ALL
    SELECT (SELECT t.kind FROM memory_topic t WHERE t.kind ~>~ step.kind ORDER BY t.kind USING ~<~ LIMIT 1)
    FROM step WHERE starts_with(step.kind, %(prefix)s)
)
SELECT kind FROM step WHERE starts_with(kind, %(prefix)s) LIMIT %(most)s
"""


def scopes_suggested(text: str, *, most: int = MOST) -> list[str]:
    """Return scopes that begin with ``text``, completed by one segment: ``/u`` gives ``/user``, ``/user`` gives
    ``/user/alice``. A ``text`` without a slash is also found inside paths. At most two queries; the first reads two
    entries of an index per result."""
    prefix = text if text.startswith(ROOT) else ROOT + text
    # A segment with a scope of its own takes two steps.
    found = _column(_SCOPES_SQL, prefix=prefix, size=len(prefix), steps=2 * most)
    above = [prefix] if any(path.startswith(f"{prefix}/") for path in found) else []
    scopes = list(dict.fromkeys([*above, *(_cut(path, len(prefix)) for path in found)]))[:most]
    if text and ROOT not in text and len(scopes) < most:
        within = _column(_SCOPES_WITHIN_SQL, text=text, searched=SCOPES_SEARCHED, most=most)
        scopes = list(dict.fromkeys([*scopes, *within]))[:most]
    return scopes


def kinds_suggested(prefix: str, *, most: int = MOST) -> list[str]:
    """Return kinds of topics that begin with ``prefix``. One query, which reads one entry of an index per result."""
    return _column(_KINDS_SQL, prefix=prefix, most=most)


def _cut(path: str, size: int) -> str:
    end = path.find("/", size + 1)
    return path if end < 0 else path[:end]


def _column(sql: str, **values: str | int) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [value for (value,) in cursor.fetchall()]
