"""Conditions as SQL: one filter on the narrow rows, and on the topic's own row only where nothing else will do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memory.domain.conditions import RUNGS, AllOf, AnyOf, Comparison, Condition, Not, value_words
from memory.domain.patterns import pattern_to_postgres
from memory.models.expressions import salience_effective_sql, scope_within_sql

Bind = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class ConditionSql:
    """A boolean expression, and whether it refers to the topic's own row."""

    sql: str
    needs_topic: bool


def condition_sql(
    condition: Condition,
    *,
    vitality: str = "v",
    topic: str = "t",
    now: str,
    score_sql: str,
    bind: Bind,
    categories_added: Mapping[str, str] | None = None,
) -> ConditionSql:
    """Return ``condition`` as SQL over aliases of Vitality and Topic. No queries.

    ``now`` is an expression of type timestamptz, ``score_sql`` the score of the topic. ``bind`` registers a value and
    returns its placeholder, such as ``%(p3)s``. ``categories_added`` says, by category, on which topics other rules of
    the same run put it: they count as having it. It refers to the topic's row only if ``needs_topic``; what is put into
    ``categories_added`` may refer to it as well. The expression is true or false, never null, beneath every ``not``.
    """
    compiler = _Compiler(vitality, topic, now, score_sql, bind, categories_added or {})
    return ConditionSql(compiler.compile(condition), compiler.needs_topic)


class _Compiler:
    def __init__(
        self, vitality: str, topic: str, now: str, score_sql: str, bind: Bind, categories_added: Mapping[str, str]
    ) -> None:
        self.v, self.t, self.now, self.score_sql, self.bind = vitality, topic, now, score_sql, bind
        self.categories_added = categories_added
        self.needs_topic = False

    def compile(self, condition: Condition) -> str:
        match condition:
            case AllOf(parts):
                return f"({' AND '.join(self.compile(part) for part in parts)})"
            case AnyOf(parts):
                return f"({' OR '.join(self.compile(part) for part in parts)})"
            case Not(part):
                # Not NOT: where something unknown is false, the opposite of it is true.
                return f"({self.compile(part)} IS NOT TRUE)"
            case Comparison():
                return self._comparison(condition)

    def _comparison(self, comparison: Comparison) -> str:
        op, value = comparison.op, comparison.value
        match comparison.field:
            case "scope":
                return self._scope(op, str(value))
            case "category":
                return self._categories(value_words(comparison))
            case "kind":
                return self._word(f"{self.v}.kind", comparison)
            case "provenance":
                self.needs_topic = True
                return self._word(f"{self.t}.provenance", comparison)
            case "rung":
                rungs = self.bind([RUNGS.index(word) for word in value_words(comparison)])
                found = f"{self.v}.rung = ANY({rungs}::smallint[])"
                return f"({found})" if op in ("is", "in") else f"(NOT {found})"
            case "pinned":
                return f"({self.v}.pinned)" if value else f"(NOT {self.v}.pinned)"
            case "age":
                return self._elapsed(f"{self.v}.created_at", op, value)
            case "idle":
                return self._elapsed(f"coalesce({self.v}.last_retrieved_at, {self.v}.created_at)", op, value)
            case "retrievals":
                return self._number(f"{self.v}.retrieval_count", op, f"{self.bind(value)}::bigint")
            case "score":
                return self._number(f"({self.score_sql})", op, f"{self.bind(value)}::float8")
            case "salience":
                effective = salience_effective_sql(self.v, self.now)
                return self._number(effective, op, f"{self.bind(value)}::float8")
            case "text":
                parts = (self._text(f"{self.t}.{column}", op, str(value)) for column in ("title", "summary"))
                return f"({' OR '.join(parts)})"
            case column:
                return self._text(f"{self.t}.{column}", op, str(value))

    def _scope(self, op: str, path: str) -> str:
        column = f"{self.v}.scope_id"
        if op == "is":
            return f"({column} = ANY(ARRAY(SELECT id FROM memory_scope WHERE path = {self.bind(path)}::text)))"
        if path == "/":
            return "(true)"
        scope, below = (self.bind(bound)[2:-2] for bound in (path, path + "/"))
        return f"({scope_within_sql(column, scope=scope, below=below)})"

    def _categories(self, categories: tuple[str, ...]) -> str:
        self.needs_topic = True
        stored = f"{self.t}.categories && {self.bind(list(categories))}::varchar[]"
        added = (self.categories_added[word] for word in categories if word in self.categories_added)
        return f"({' OR '.join([stored, *added])})"

    def _word(self, column: str, comparison: Comparison) -> str:
        words = value_words(comparison)
        if len(words) == 1:
            return f"({column} {'=' if comparison.op in ('is', 'in') else '<>'} {self.bind(words[0])}::text)"
        found = f"{column} = ANY({self.bind(list(words))}::text[])"
        return f"({found})" if comparison.op == "in" else f"(NOT {found})"

    def _elapsed(self, moment: str, op: str, seconds: Any) -> str:
        # Longer ago is earlier. The moment stands alone on its side, so that the other is computed once.
        turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
        return f"({moment} {turned} {self.now} - make_interval(secs => {self.bind(float(seconds))}::float8))"

    def _number(self, number: str, op: str, bound: str) -> str:
        return f"({number} {'=' if op == 'is' else op} {bound})"

    def _text(self, column: str, op: str, value: str) -> str:
        self.needs_topic = True
        if op == "matches":
            return f"({column} ~* {self.bind(pattern_to_postgres(value))}::text)"
        return f"(strpos(lower({column}), lower({self.bind(value)}::text)) > 0)"
