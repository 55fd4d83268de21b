"""A lookup as SQL: the tree that was typed becomes one condition with bound parameters."""

import datetime as dt
from collections.abc import Container
from typing import Any

from memory.domain.conditions import RUNGS
from memory.domain.lookup_tree import (
    ARCHIVED,
    LIVE,
    RELEASED,
    AllOf,
    AnyOf,
    Between,
    Compare,
    Elapsed,
    Flag,
    HasField,
    IdBegins,
    Leaf,
    Named,
    NeverUsed,
    Not,
    OnRung,
    Phrase,
    Tree,
    Within,
    Word,
)
from memory.models import Rung
from memory.models.expressions import salience_effective_sql, scope_within_sql

# Each topic that is not merged has exactly one standing.
STANDING_SQL = {
    LIVE: "lv.live",
    ARCHIVED: f"(lv.rung = {int(Rung.ARCHIVED)} AND t.released_at IS NULL AND t.merged_into_id IS NULL)",
    RELEASED: "(t.released_at IS NOT NULL AND t.merged_into_id IS NULL)",
}
# Archived and released documents stand beside the index of words, which holds the live ones only.
_DOCUMENT_SQL = {LIVE: "ld.live", ARCHIVED: "NOT ld.live", RELEASED: "NOT ld.live"}


def lookup_sql(
    tree: Tree | None, *, standing: str, now: dt.datetime, config: str, blank: Container[str] = ()
) -> tuple[str, dict[str, Any]]:
    """Return ``tree`` as a condition on ``t`` (Topic) and ``lv`` (Vitality), and its parameters. No queries.

    ``standing`` is the list in which it is asked; ``config`` is the configuration of text search; ``blank`` are the
    texts of which that leaves nothing to search by. The condition is true or false, never null, beneath every ``Not``.
    The names of its parameters begin with ``lk``.
    """
    compiler = _Compiler(standing, config, blank)
    compiler.values["lk_now"] = now
    condition = "true" if tree is None else compiler.compile(tree)
    return condition, compiler.values


class _Compiler:
    def __init__(self, standing: str, config: str, blank: Container[str]) -> None:
        self.values: dict[str, Any] = {"lk_config": config}
        self.documents = _DOCUMENT_SQL[standing]
        self.blank = blank

    def bind(self, value: object, kind: str) -> str:
        name = f"lk{len(self.values)}"
        self.values[name] = value
        return f"%({name})s::{kind}"

    def compile(self, tree: Tree) -> str:
        match tree:
            case AllOf(parts):
                return f"({' AND '.join(self.compile(part) for part in parts)})"
            case AnyOf(parts):
                return f"({' OR '.join(self.compile(part) for part in parts)})"
            case Not(part):
                # Not NOT: where something unknown is false, the opposite of it is true.
                return f"({self.compile(part)} IS NOT TRUE)"
            case _:
                return self._leaf(tree)

    def _leaf(self, leaf: Leaf) -> str:
        match leaf:
            case Word(text):
                return "true" if text in self.blank else self._document("plainto_tsquery", text)
            case Phrase(text):
                # The words by index, where there are any; then letter by letter.
                by_word = [] if text in self.blank else [self._document("phraseto_tsquery", text)]
                return f"({' AND '.join([*by_word, self._verbatim(text)])})"
            case IdBegins(digits):
                low, high = self.bind(digits.ljust(32, "0"), "uuid"), self.bind(digits.ljust(32, "f"), "uuid")
                return f"(t.id BETWEEN {low} AND {high})"
            case Within("/"):
                return "true"
            case Within(path):
                names = f"lk{len(self.values)}", f"lk{len(self.values) + 1}"
                self.values |= zip(names, (path, path + "/"), strict=True)
                return f"({scope_within_sql('t.scope_id', scope=names[0], below=names[1])})"
            case Named("category", value):
                return f"(t.categories && ARRAY[{self.bind(value, 'varchar')}])"
            case Named(name, value):
                return f"(t.{name} = {self.bind(value, 'text')})"
            case OnRung(rung):
                return f"(lv.rung = {RUNGS.index(rung):d})"
            case HasField(name, value):
                return self._field(name, value)
            case Flag("pinned", value):
                return f"(lv.pinned = {self.bind(value, 'bool')})"
            case Flag("live"):
                return "(lv.live)"
            case Flag():
                return "(t.released_at IS NOT NULL)"
            case Compare(name, op, value):
                return self._compare(name, op, value)
            case Between(name, low, high):
                return f"({self._compare(name, '>=', low)} AND {self._compare(name, '<=', high)})"
            case Elapsed(name, op, seconds):
                since = "t.created_at" if name == "created" else "coalesce(lv.last_retrieved_at, lv.created_at)"
                # Longer ago is earlier. The moment stands alone on its side, so that an index can serve it.
                turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
                ago = f"%(lk_now)s::timestamptz - make_interval(secs => {self.bind(seconds, 'float8')})"
                return f"({since} {turned} {ago})"
            case NeverUsed():
                return "(lv.last_retrieved_at IS NULL)"

    def _document(self, function: str, text: str) -> str:
        asked = f"{function}(%(lk_config)s::text::regconfig, {self.bind(text, 'text')})"
        return (
            f"(t.id IN (SELECT ld.topic_id FROM memory_topicdocument ld WHERE {self.documents} "
            f"AND ld.document @@ {asked}))"
        )

    def _verbatim(self, text: str) -> str:
        part = f"lower({self.bind(text, 'text')})"
        return (
            f"(strpos(lower(t.title), {part}) > 0 OR strpos(lower(t.summary), {part}) > 0 OR EXISTS ("
            "SELECT 1 FROM memory_field lf JOIN memory_revision lr ON lr.field_id = lf.id AND lr.seq = lf.last_seq "
            f"WHERE lf.topic_id = t.id AND strpos(lower(lr.value), {part}) > 0))"
        )

    def _field(self, name: str, value: str | None) -> str:
        named = f"lf.name = {self.bind(name, 'text')}"
        if value is None:
            return f"(EXISTS (SELECT 1 FROM memory_field lf WHERE lf.topic_id = t.id AND {named}))"
        return (
            "(EXISTS (SELECT 1 FROM memory_field lf "
            "JOIN memory_revision lr ON lr.field_id = lf.id AND lr.seq = lf.last_seq "
            f"WHERE lf.topic_id = t.id AND {named} AND lower(lr.value) = lower({self.bind(value, 'text')})))"
        )

    def _compare(self, name: str, op: str, value: float | dt.date) -> str:
        match name:
            case "salience":
                effective = salience_effective_sql("lv", "%(lk_now)s::timestamptz")
                return f"({effective} {op} {self.bind(value, 'float8')})"
            case "retrievals":
                return f"(lv.retrieval_count {op} {self.bind(value, 'bigint')})"
            case _:
                assert isinstance(value, dt.date)
                return self._day("t.created_at" if name == "created" else "lv.last_retrieved_at", op, value)

    def _day(self, column: str, op: str, day: dt.date) -> str:
        start = dt.datetime.combine(day, dt.time.min, tzinfo=dt.UTC)
        end = start + dt.timedelta(days=1)
        match op:
            case "<" | ">=":
                return f"({column} {op} {self.bind(start, 'timestamptz')})"
            case "<=":
                return f"({column} < {self.bind(end, 'timestamptz')})"
            case ">":
                return f"({column} >= {self.bind(end, 'timestamptz')})"
            case _:
                return f"({column} >= {self.bind(start, 'timestamptz')} AND {column} < {self.bind(end, 'timestamptz')})"
