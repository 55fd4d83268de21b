"""What becomes of each line of a batch, decided before anything is written: the check and the import ask the same.

Lines wait in a temporary table with a column ``why``: null for what is brought, else the reason why not. An import
remembers in the store which topics it has brought; a check, which brings none, in a table of its own.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.backends.utils import CursorWrapper

from memory.domain.scopes import ROOT
from memory.ingest.bulk import rows_copy
from memory.models.expressions import path_within_sql
from memory.transfer.lines import Lines
from memory.transfer.masks import lines_masked
from memory.transfer.report import BROUGHT

_TABLES = """
CREATE TEMPORARY TABLE IF NOT EXISTS transfer_line (n bigint, line jsonb, why text);
CREATE TEMPORARY TABLE IF NOT EXISTS transfer_found (sort text, id text, PRIMARY KEY (sort, id));
CREATE TEMPORARY TABLE IF NOT EXISTS transfer_erased (id text PRIMARY KEY);
TRUNCATE transfer_line, transfer_erased;
"""
_DROP = "DROP TABLE IF EXISTS pg_temp.transfer_line, pg_temp.transfer_found, pg_temp.transfer_erased"
# The ids ``e.id`` of topics that purges have erased here.
ERASED = "memory_erasurereceipt r CROSS JOIN LATERAL jsonb_array_elements_text(r.topic_ids) AS e (id)"
# The receipts that this import has brought tell of the store that the file is from.
_ERASED = f"""
INSERT INTO transfer_erased SELECT DISTINCT e.id FROM {ERASED}
WHERE r.number NOT BETWEEN %(receipt_first)s AND %(receipt_last)s
"""
_COUNTS = "SELECT coalesce(why, %(brought)s), count(*) FROM transfer_line GROUP BY 1"

_BOUNDS = {"path": "%(path)s::text", "below": "%(below)s::text", "beyond": "%(beyond)s::text"}
_WITHIN = path_within_sql("s.path", **_BOUNDS)
# A run that whoever imports may see; ``o`` is the run.
RUN_SEEN = f"(%(everywhere)s OR {path_within_sql('o.scope', **_BOUNDS)})"


@dataclass(slots=True)
class Ground:
    """The store as an import finds it: who imports, and what the numbers of its rows are moved up by.

    ``offsets`` are for links, summaries and accesses: 0 where the table was empty, so that numbers stay. ``fresh`` says
    that the store was empty altogether. ``last_audit`` is the last journal entry that was there before, and receipts
    from ``receipts[0]`` to ``receipts[1]`` came with the file.
    """

    path: str
    job: uuid.UUID | None = None
    fresh: bool = False
    offsets: dict[str, int] = field(default_factory=dict)
    last_audit: int = 2**62
    receipts: tuple[int, int] = (0, -1)
    accesses: int = 0

    @property
    def checking(self) -> bool:
        """Whether nothing is to be written."""
        return self.job is None

    def parameters(self) -> dict[str, Any]:
        """Return it as the parameters of the statements."""
        return {
            "path": self.path,
            "below": f"{self.path}/",
            "beyond": f"{self.path}0",
            "everywhere": self.path == ROOT,
            "job": self.job,
            "fresh": self.fresh,
            "link": self.offsets.get("link", 0),
            "summary": self.offsets.get("summary", 0),
            "access": self.offsets.get("access", 0),
            "access_last": self.offsets.get("access", 0) + self.offsets.get("access_most", 0),
            "last_audit": self.last_audit,
            "receipt_first": self.receipts[0],
            "receipt_last": self.receipts[1],
            "accesses": self.accesses,
            "brought": BROUGHT,
        }


def lines_stage(cursor: CursorWrapper, batch: Lines, ground: Ground) -> None:
    """Lay out a batch, and mark what of it is not brought. A constant number of statements.

    What others repeat of what was erased here is masked. ``DataError`` is what the database says to JSON that it cannot
    hold.
    """
    cursor.execute(_TABLES)
    masked = list(lines_masked(batch.sort, batch.lines, receipts=ground.receipts))
    rows_copy(cursor, "transfer_line", ("n", "line"), enumerate(masked, start=batch.first))
    parameters = ground.parameters()
    cursor.execute(_ERASED, parameters)
    for statement in _marks(batch.sort, checking=ground.checking):
        cursor.execute(statement, parameters)
    if ground.checking:
        for sort, path in _IDS.get(batch.sort, ()):
            cursor.execute(_FOUND, {"sort": sort, "path": path})


def lines_counted(cursor: CursorWrapper) -> dict[str, int]:
    """Return how many lines of the batch are brought, and how many not, by reason. One statement."""
    cursor.execute(_COUNTS, {"brought": BROUGHT})
    return {why: int(count) for why, count in cursor.fetchall()}


def stage_clear(cursor: CursorWrapper) -> None:
    """Remove the temporary tables of this connection. One statement."""
    cursor.execute(_DROP)


# By sort of line, what of it no other may be, as the sort and where it stands: later lines may also refer to it.
_IDS: dict[str, tuple[tuple[str, str], ...]] = {
    "policy": (("policy", "$.scope"),),
    "topic": (
        ("topic", "$.id"),
        ("field", "$.fields[*].id"),
        ("revision", "$.fields[*].revisions[*].id"),
        ("summary", "$.fields[*].summaries[*].id"),
    ),
    "history": (("revision", "$.revisions[*].id"),),
    "merged": (("merged", "$.topic"),),
    "link": (("link", "$.id"),),
    "run": (("run", "$.id"),),
    "pair": (("pair", "$.id"),),
    "access": (("access", "$.id"),),
    "receipt": (("receipt", "$.hash"),),
    "conversation": (("conversation", "$.id"),),
}
# The tables in which these ids stand; of those with a number, as it is moved up.
_STORED = {
    "field": "memory_field o WHERE o.id = (x #>> '{}')::uuid",
    "revision": "memory_revision o WHERE o.id = (x #>> '{}')::uuid",
    "merged": "memory_topic o WHERE o.id = (x #>> '{}')::uuid AND o.merged_into_id IS NOT NULL",
    "run": "memory_forgetrun o WHERE o.id = (x #>> '{}')::uuid",
    "pair": "memory_duplicatepair o WHERE o.id = (x #>> '{}')::uuid",
    "conversation": "memory_conversation o WHERE o.id = (x #>> '{}')::uuid",
    "policy": "memory_policyversion o WHERE o.scope = x #>> '{}'",
}
_NUMBERED = {
    "summary": "memory_fieldsummary o WHERE o.id = (x #>> '{}')::bigint + %(summary)s",
    "link": "memory_link o WHERE o.id = (x #>> '{}')::bigint + %(link)s",
    "access": "memory_accesslog o WHERE o.id = (x #>> '{}')::bigint + %(access)s",
}
# What a check has found so far.
_FOUND = """
INSERT INTO transfer_found
SELECT %(sort)s, x #>> '{}' FROM transfer_line l CROSS JOIN LATERAL jsonb_path_query(l.line, %(path)s::jsonpath) x
WHERE l.why IS NULL ON CONFLICT DO NOTHING
"""


class _Words:
    """The conditions that marks are made of, for a check or for an import."""

    def __init__(self, *, checking: bool) -> None:
        self.checking = checking

    def new(self, topic: str) -> str:
        """This import brings the topic."""
        if self.checking:
            return self._found("topic", topic)
        return (
            f"EXISTS (SELECT 1 FROM memory_importedtopic m WHERE m.topic_id = ({topic})::uuid AND m.job_id = %(job)s)"
        )

    def there(self, topic: str) -> str:
        """The topic is in the store, within the scope of who imports; or comes with this import."""
        stored = (
            "EXISTS (SELECT 1 FROM memory_topic t JOIN memory_scope s ON s.id = t.scope_id "
            f"WHERE t.id = ({topic})::uuid AND (%(everywhere)s OR {_WITHIN}))"
        )
        return f"({stored} OR {self.new(topic)})"

    def erased(self, topic: str) -> str:
        """A purge has erased the topic here."""
        return f"EXISTS (SELECT 1 FROM transfer_erased e WHERE e.id = {topic})"

    def stored(self, sort: str, table: str, value: str, condition: str) -> str:
        """A row of another table is in the store, or comes with this import."""
        stored = f"EXISTS (SELECT 1 FROM {table} o WHERE {condition})"
        return f"({stored} OR {self._found(sort, value)})" if self.checking else stored

    def why_not(self, *topics: str) -> str:
        """Why a line that hangs on these topics is not brought; null if it is."""
        erased = " OR ".join(map(self.erased, topics))
        missing = " OR ".join(f"NOT {self.there(topic)}" for topic in topics)
        new = " OR ".join(map(self.new, topics))
        return f"CASE WHEN {erased} THEN 'erased' WHEN {missing} THEN 'missing' WHEN NOT ({new}) THEN 'there' END"

    def known(self, sort: str, path: str) -> str:
        """An id of the line is in the store, or an earlier line of this import has said it."""
        # What has a number is moved to where nobody else is.
        looked = [table for table in (_STORED.get(sort), None if self.checking else _NUMBERED.get(sort)) if table]
        if self.checking:
            looked.append(f"transfer_found w WHERE w.sort = '{sort}' AND w.id = x #>> '{{}}'")
        there = " OR ".join(f"EXISTS (SELECT 1 FROM {table})" for table in looked) or "false"
        places = (
            "SELECT b.n, row_number() OVER (PARTITION BY x ORDER BY b.n) AS place FROM transfer_line b "
            f"CROSS JOIN LATERAL jsonb_path_query(b.line, '{path}') x WHERE b.why IS NULL"
        )
        return (
            f"(EXISTS (SELECT 1 FROM jsonb_path_query(l.line, '{path}') x WHERE {there}) "
            f"OR l.n IN (SELECT d.n FROM ({places}) d WHERE d.place > 1))"
        )

    @staticmethod
    def _found(sort: str, value: str) -> str:
        return f"EXISTS (SELECT 1 FROM transfer_found w WHERE w.sort = '{sort}' AND w.id = {value})"


def _mark(why: str, condition: str = "true") -> str:
    return f"UPDATE transfer_line l SET why = {why} WHERE l.why IS NULL AND {condition}"


def _marks(sort: str, *, checking: bool) -> Sequence[str]:
    words = _Words(checking=checking)
    return _MARKS[sort](words)


def _known(sort: str) -> Callable[[_Words], Sequence[str]]:
    """Lines that are there if what they are known by is."""
    return lambda words: tuple(_mark("'there'", words.known(*each)) for each in _IDS[sort])


def _topic(words: _Words) -> Sequence[str]:
    own = "l.line->>'id'"
    stored = f"EXISTS (SELECT 1 FROM memory_topic t WHERE t.id = ({own})::uuid)"
    topic, *parts = _IDS["topic"]
    return (
        _mark("'erased'", words.erased(own)),
        _mark("'there'", f"({stored} OR {words.known(*topic)})"),
        # A field that was another topic's when that came: one of them was merged into the other since.
        *(_mark("'elsewhere'", words.known(*part)) for part in parts),
    )


def _history(words: _Words) -> Sequence[str]:
    return (*_hangs("topic")(words), *(_mark("'elsewhere'", words.known(*part)) for part in _IDS["history"]))


def _hangs(*members: str, sort: str = "") -> Callable[[_Words], Sequence[str]]:
    """Lines that hang on topics, and that may be known by an id of their own."""
    return lambda words: (
        _mark(words.why_not(*(f"l.line->>'{member}'" for member in members))),
        *(_known(sort)(words) if sort else ()),
    )


def _target(member: str, *, sort: str = "") -> Callable[[_Words], Sequence[str]]:
    """Lines of a topic that point to another, which has to be there, and that may be known by an id."""
    target = f"l.line->>'{member}'"
    return lambda words: (
        _mark(words.why_not("l.line->>'topic'")),
        _mark("'erased'", words.erased(target)),
        _mark("'missing'", f"NOT {words.there(target)}"),
        *(_known(sort)(words) if sort else ()),
    )


def _action(words: _Words) -> Sequence[str]:
    run = words.stored(
        "run", "memory_forgetrun", "l.line->>'run_id'", f"o.id = (l.line->>'run_id')::uuid AND {RUN_SEEN}"
    )
    return _mark(words.why_not("l.line->>'topic_id'")), _mark("'missing'", f"NOT {run}")


def _access(words: _Words) -> Sequence[str]:
    ids = "jsonb_array_elements_text(l.line->'topic_ids') x"
    erased = f"EXISTS (SELECT 1 FROM {ids} WHERE {words.erased('x')})"
    new, there = (f"EXISTS (SELECT 1 FROM {ids} WHERE {word})" for word in (words.new("x"), words.there("x")))
    # Told by all that it says but for its number; what came with this import is not what was there before.
    same = """EXISTS (
        SELECT 1 FROM memory_accesslog a WHERE a.at = (l.line->>'at')::timestamptz AND a.actor = l.line->>'actor'
        AND a.kind = l.line->>'kind' AND a.scope = l.line->>'scope' AND a.query = l.line->>'query'
        AND a.query_hash = l.line->>'query_hash' AND NOT (a.id > %(access)s AND a.id <= %(access_last)s))"""
    return (
        _mark("'erased'", erased),
        _mark("'there'", f"NOT %(fresh)s AND NOT {new} AND ({there} OR {same})"),
        *_known("access")(words),
    )


def _shadow(words: _Words) -> Sequence[str]:
    access = words.stored(
        "access",
        "memory_accesslog",
        "l.line->>'access_id'",
        # Beyond those of the file are others'.
        "o.id = (l.line->>'access_id')::bigint + %(access)s AND o.id <= %(access_last)s",
    )
    return _mark(words.why_not("l.line->>'topic_id'")), _mark("'missing'", f"NOT {access}")


def _watermark(words: _Words) -> Sequence[str]:
    # How far the log has been read counts for the log that came with it.
    if words.checking:
        return (_mark("'there'", "NOT EXISTS (SELECT 1 FROM transfer_found w WHERE w.sort = 'access')"),)
    return (_mark("'there'", "%(accesses)s = 0"),)


def _receipt(words: _Words) -> Sequence[str]:
    # What goes on behind the last receipt of the store; in a store without any, everything does.
    last = "coalesce((SELECT max(o.number) FROM memory_erasurereceipt o), 0)"
    goes_on = f"""EXISTS (
        SELECT 1 FROM transfer_line b JOIN memory_erasurereceipt o ON o.hash = b.line->>'previous_hash'
        WHERE o.number = {last} AND (b.line->>'number')::bigint = {last} + 1)"""
    if words.checking:
        goes_on = f"({goes_on} OR EXISTS (SELECT 1 FROM transfer_found w WHERE w.sort = 'receipt'))"
    same = "o.id = (l.line->>'id')::uuid AND o.hash = l.line->>'hash'"
    return (
        _mark("'there'", f"EXISTS (SELECT 1 FROM memory_erasurereceipt o WHERE {same})"),
        _mark("'chain'", f"((l.line->>'number')::bigint <= {last} OR ({last} > 0 AND NOT {goes_on}))"),
    )


def _audit(words: _Words) -> Sequence[str]:
    own = "l.line->>'topic_id'"
    # What tells of a receipt stands and falls with it.
    receipt = words.stored(
        "receipt",
        "memory_erasurereceipt",
        "l.line->'after'->>'hash'",
        "o.id::text = l.line->'after'->>'receipt' AND o.hash = l.line->'after'->>'hash'",
    )
    same = """EXISTS (
        SELECT 1 FROM memory_auditevent a WHERE a.at = (l.line->>'at')::timestamptz AND a.action = l.line->>'action'
        AND a.actor = l.line->>'actor' AND a.topic_id IS NOT DISTINCT FROM (l.line->>'topic_id')::uuid
        AND a.scope = l.line->>'scope' AND a.reason = l.line->>'reason' AND a.before = l.line->'before'
        AND a.after = l.line->'after' AND a.id <= %(last_audit)s)"""
    return (
        _mark("'erased'", words.erased(own)),
        _mark("'missing'", f"l.line->>'action' = 'purged' AND l.line->'after' ? 'hash' AND NOT {receipt}"),
        _mark("'there'", f"NOT %(fresh)s AND {own} IS NOT NULL AND NOT {words.new(own)} AND {words.there(own)}"),
        _mark("'there'", f"NOT %(fresh)s AND ({own} IS NULL OR NOT {words.new(own)}) AND {same}"),
    )


_MARKS: dict[str, Callable[[_Words], Sequence[str]]] = {
    "policy": _known("policy"),
    "topic": _topic,
    "history": _history,
    "reference": _target("to"),
    "merged": _target("into", sort="merged"),
    "link": _hangs("source_id", "target_id", sort="link"),
    "run": _known("run"),
    "action": _action,
    "pair": _hangs("one_id", "other_id", sort="pair"),
    "access": _access,
    "shadow": _shadow,
    "watermark": _watermark,
    "receipt": _receipt,
    "audit": _audit,
    "conversation": _known("conversation"),
}
