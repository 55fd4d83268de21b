"""What a statement may not contain where a store lives on a node of Citus (docs/operations.md), checked as PostgreSQL
understands it: in the tree of the analysed statement, each function and operator is known with its types.

The rules are those of Citus' planner for statements of one shard. The database prints the tree when it is asked to
prepare the statement, so nothing runs twice. ``text_faults`` finds what is not a statement on rows in the sources.
"""

import ast
import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer
from psycopg.pq import DiagnosticField, ExecStatus, TransactionStatus

from memory.stores.database.base import PreparedCursor, StoreCursor, path_set

UPDATE, INSERT, DELETE, MERGE = "2", "3", "4", "5"
_TOKEN = re.compile(rb'"(?:\\.|[^"\\])*"|[(){}\[\]]|(?:\\.|[^\s(){}\[\]])+', re.DOTALL)
# Equal parts of a list, such as the values of a row, or its rows.
_LIST = re.compile(r"(%s|\((?:[^()]|\([^()]*\))*\))(?:, \1)+")
_CHANGES = re.compile(r"\b(insert|update|delete|merge)\b", re.IGNORECASE)
_PRODUCT = str(Path(__file__).parents[2] / "memory") + "/"
_DOORS = (_PRODUCT + "stores/database/", _PRODUCT + "models/prepared.py")
# Functions that a node calls by their number, with the member of the tree that holds it.
_CALLS = {
    "FUNCEXPR": "funcid",
    "OPEXPR": "opfuncid",
    "DISTINCTEXPR": "opfuncid",
    "NULLIFEXPR": "opfuncid",
    "SCALARARRAYOPEXPR": "opfuncid",
    "AGGREF": "aggfnoid",
    "WINDOWFUNC": "winfnoid",
}
_TYPE_MEMBERS = (
    "vartype",
    "consttype",
    "paramtype",
    "funcresulttype",
    "opresulttype",
    "aggtype",
    "wintype",
    "resulttype",
    "casetype",
    "coalescetype",
    "minmaxtype",
    "array_typeid",
    "refrestype",
    "row_typeid",
    "type",
)
_VOLATILITY_SQL = "SELECT oid::text, provolatile::text, oid::regprocedure::text FROM pg_proc WHERE provolatile <> 'i' "
_CASTS_SQL = (
    "SELECT t.oid::text, i.provolatile::text, o.provolatile::text, t.typname::text "
    "FROM pg_type t JOIN pg_proc i ON i.oid = t.typinput JOIN pg_proc o ON o.oid = t.typoutput "
)
_TABLES_SQL = "SELECT c.oid::text, nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"


class Node(dict[str, Any]):
    """A node of the tree: its members by name."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind


def tree_read(text: str) -> Any:
    """Return the tree of a statement as PostgreSQL prints it: nodes, lists and words."""
    tokens = [token.decode() for token in _TOKEN.findall(text.encode())]
    place = 0

    def value() -> Any:
        nonlocal place
        token = tokens[place]
        place += 1
        if token == "{":
            node = Node(tokens[place])
            place += 1
            while tokens[place] != "}":
                name = tokens[place].removeprefix(":")
                place += 1
                said = []
                while tokens[place] != "}" and not tokens[place].startswith(":"):
                    said.append(value())
                node[name] = said[0] if len(said) == 1 else said
            place += 1
            return node
        if token in "([":
            items = []
            while tokens[place] not in ")]":
                items.append(value())
            place += 1
            return items
        return token

    return value()


def inside(tree: Any, *, queries: bool = True) -> Iterator[Node]:
    """Yield all nodes of a part of the tree; those of subqueries only with ``queries``."""
    if isinstance(tree, Node):
        if tree.kind == "QUERY" and not queries:
            return
        yield tree
        for member in tree.values():
            yield from inside(member, queries=queries)
    elif isinstance(tree, list):
        for item in tree:
            yield from inside(item, queries=queries)


class Catalog:
    """Which functions are not IMMUTABLE, and which tables belong to stores."""

    def __init__(self, ask: Callable[[str], list[tuple[str, ...]]]) -> None:
        self._ask = ask
        self._functions = {number: (how, name) for number, how, name in ask(_VOLATILITY_SQL)}
        self._casts = {number: row for number, *row in ask(_CASTS_SQL)}
        self._tables: dict[str, str] = {}

    def in_store(self, table: str) -> bool:
        """Return whether a table, by its number, is one of a store."""
        if table not in self._tables:
            self._tables = {number: schema for number, schema in self._ask(_TABLES_SQL)}  # noqa: C416
        return self._tables.get(table, "").startswith("store_")

    def mutable(self, node: Node) -> tuple[str, str] | None:
        """Return how a node changes between calls, ``s`` or ``v``, and what it is; None if it is IMMUTABLE."""
        if node.kind in _CALLS:
            return self._functions.get(node[_CALLS[node.kind]])
        if node.kind == "SQLVALUEFUNCTION":
            return "s", "current_timestamp"
        if node.kind == "NEXTVALUEEXPR":
            return "v", "nextval"
        if node.kind == "COERCEVIAIO":
            source = next((node["arg"][name] for name in _TYPE_MEMBERS if name in node["arg"]), "")
            for number, place in ((source, 1), (node["resulttype"], 0)):
                if number in self._casts and (how := self._casts[number][place]) != "i":
                    return how, f"cast of {self._casts[number][2]}"
        return None


def faults(tree: Any, catalog: Catalog) -> list[str]:
    """Return what Citus refuses in a statement, as short sentences."""
    found: list[str] = []
    for query in (node for node in inside(tree) if node.kind == "QUERY"):
        command = query["commandType"]
        if command not in (UPDATE, INSERT, DELETE, MERGE):
            continue
        target = query["rtable"][int(query["resultRelation"]) - 1]
        if not catalog.in_store(target.get("relid", "")):
            continue
        if command == MERGE:
            found.append("MERGE")
            continue
        places = {
            "RETURNING": query["returningList"],
            "ON CONFLICT": query["onConflict"],
            "WHERE": query["jointree"],
            "SET": query["targetList"] if command == UPDATE else [],
        }
        if command in (UPDATE, DELETE):
            # The planner pulls a subquery in FROM up into the statement, unless it is materialized in WITH.
            for entry in query["rtable"]:
                if isinstance(entry, Node) and entry["rtekind"] == "1":
                    refused = _refused(entry["subquery"]["targetList"], catalog, strict=False)
                    found += [f"{what} in a subquery of FROM" for what in refused]
        if any(node.kind == "SUBSCRIPTINGREF" for node in inside(places["SET"], queries=False)):
            found.append("an element or slice of an array in SET, which ends the server process")
        for place, part in places.items():
            strict = place in ("RETURNING", "ON CONFLICT")
            found += [f"{what} in {place}" for what in _refused(part, catalog, strict=strict)]
        sources = [entry for entry in query["rtable"] if isinstance(entry, Node) and entry["rtekind"] == "1"]
        if command == INSERT:
            found += _insert_faults(query, sources, catalog)
        for cte in _listed(query["cteList"]):
            kind = cte["ctequery"]["commandType"]
            if kind == "1":
                found += [
                    f"{how[1]} in WITH"
                    for node in inside(cte["ctequery"])
                    if command != INSERT and (how := catalog.mutable(node)) and how[0] == "v"
                ]
        if any(
            isinstance(entry, Node) and entry["rtekind"] == "0" and not catalog.in_store(entry["relid"])
            for entry in query["rtable"]
        ):
            found.append("a join with a table outside the store")
    return sorted(set(found))


def _insert_faults(query: Node, sources: list[Node], catalog: Catalog) -> list[str]:
    if not sources:
        links = any(node.kind == "SUBLINK" for node in inside(query["targetList"]))
        return ["a subquery in VALUES"] if links else []
    if not any(node.kind == "NEXTVALUEEXPR" for node in inside(query["targetList"])):
        return []
    # Ids are drawn on the coordinator, so the SELECT is planned by itself, and there without joins. What is
    # materialized is planned apart, and so is what changes rows.
    select = sources[0]["subquery"]
    inlined = {
        cte["ctename"]: cte["ctequery"]
        for part in (query, select)
        for cte in _listed(part["cteList"])
        if cte["ctematerialized"] != "1" and cte["ctequery"]["commandType"] == "1"
    }
    nodes = list(inside([value for name, value in select.items() if name != "cteList"]))
    for node in nodes:
        if node.kind == "RANGETBLENTRY" and node["rtekind"] == "6" and node["ctename"] in inlined:
            nodes += inside(inlined.pop(node["ctename"]))
    sources_read = [node["rtekind"] for node in nodes if node.kind == "RANGETBLENTRY" and node["rtekind"] != "6"]
    if "0" in sources_read and (len(sources_read) > 1 or any(node.kind == "SUBLINK" for node in nodes)):
        return ["INSERT of a join into a table with identity, without WITH ... AS MATERIALIZED"]
    return []


def _listed(part: Any) -> list[Node]:
    return part if isinstance(part, list) else []


def _refused(part: Any, catalog: Catalog, *, strict: bool) -> Iterator[str]:
    for node in inside(part):
        how = catalog.mutable(node)
        if how is not None and (strict or how[0] == "v"):
            yield how[1]
    if strict:
        return
    for node in inside(part, queries=False):
        how = catalog.mutable(node)
        if how is not None and any(each.kind == "VAR" for each in inside(list(node.values()), queries=False)):
            yield f"{how[1]} of a column"
        if node.kind in ("CASEEXPR", "COALESCEEXPR", "CASE", "COALESCE"):
            for each in inside(node):
                if (how := catalog.mutable(each)) is not None:
                    yield f"{how[1]} in CASE or COALESCE"


def statement_faults(connection: Any, sql: bytes, types: Sequence[int] = ()) -> list[str]:
    """Return what Citus refuses in a statement, which is analysed on ``connection`` and not run."""
    pgconn = connection.pgconn
    printed: list[str] = []

    def take(result: Any) -> None:
        printed.append((result.error_field(DiagnosticField.MESSAGE_DETAIL) or b"").decode())

    def ask(query: str) -> list[tuple[str, ...]]:
        result = pgconn.exec_(query.encode())
        return [
            tuple((result.get_value(row, column) or b"").decode() for column in range(result.nfields))
            for row in range(result.ntuples)
        ]

    catalog = _catalog(ask)
    catalog._ask = ask
    idle, handler = pgconn.transaction_status == TransactionStatus.IDLE, pgconn.notice_handler
    pgconn.exec_(b"BEGIN; " + (path_set() or b"") if idle else b"SAVEPOINT citus_rules")
    try:
        pgconn.exec_(b"SET LOCAL debug_print_rewritten = on; SET LOCAL client_min_messages = log")
        pgconn.notice_handler = take
        prepared = pgconn.prepare(b"", sql, types)
    finally:
        pgconn.notice_handler = handler
        pgconn.exec_(b"ROLLBACK" if idle else b"ROLLBACK TO SAVEPOINT citus_rules; RELEASE SAVEPOINT citus_rules")
    if prepared.status != ExecStatus.COMMAND_OK:
        return [f"it cannot be analysed: {prepared.error_message.decode()}"]
    return [fault for text in printed if text.startswith("(") for fault in faults(tree_read(text), catalog)]


_known: list[Catalog] = []


def _catalog(ask: Any) -> Catalog:
    if not _known:
        _known.append(Catalog(ask))
    return _known[0]


class Watch:
    """Checks each statement of the product that is new to this run of the tests, right after it has run."""

    def __init__(self) -> None:
        self._seen: set[Any] = set()
        self._installed = False
        self.found: list[str] = []

    def install(self, patch: Any) -> None:
        """Look at what cursors run from now on."""
        if not self._installed:
            self._installed = True
            for cursor in (StoreCursor, PreparedCursor):
                patch.setattr(cursor, "execute", self._watched(cursor.execute))

    def found_since(self) -> list[str]:
        """Return what was found since the last call."""
        found, self.found = self.found, []
        return found

    def _watched(self, execute: Any) -> Any:
        def watched(cursor: Any, query: Any, params: Any = None, **more: Any) -> Any:
            answer = execute(cursor, query, params, **more)
            text = query if isinstance(query, str) else query.decode() if isinstance(query, bytes) else repr(query)
            # A browser waits for the thread of its request, and not for long. Other tests send the same statements.
            if text not in self._seen and "process_request_thread" not in threading.current_thread().name:
                self._seen.add(text)
                if _CHANGES.search(text) and (caller := _caller()) and _new_to_the_run(text):
                    self._look(cursor, query, params, caller)
            return answer

        return watched

    def _look(self, cursor: Any, query: Any, params: Any, caller: str) -> None:
        types: Sequence[int] = ()
        if isinstance(cursor, PreparedCursor):
            sent = PostgresQuery(Transformer(cursor))
            sent.convert(query, params)
            sql, types = sent.query, sent.types
        else:
            sql = psycopg.ClientCursor(cursor.connection).mogrify(query, params).encode()
        for fault in statement_faults(cursor.connection, sql, types):
            self.found.append(f"{caller}: {fault}")


def _new_to_the_run(text: str) -> bool:
    """Return whether no process of this run has looked at the statement, with lists of values of any length."""
    alike = _LIST.sub(r"\1", _LIST.sub(r"\1", text))
    folder = Path(os.environ["MEMSTATE_TEST_FOLDER"]) / "citus_rules"
    folder.mkdir(exist_ok=True)
    try:
        (folder / hashlib.sha256(alike.encode()).hexdigest()).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _caller() -> str:
    """Return the place in the product that sent the statement; nothing if a test did."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_PRODUCT) and not file.startswith(_DOORS):
            return f"{file.removeprefix(_PRODUCT)}:{frame.f_lineno}"
        if "/tests/" in file and not file.endswith("citus_rules.py") and "site-packages" not in file:
            return ""
        frame = frame.f_back
    return ""


_VERB = (
    "SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|CREATE|ALTER|DROP|TRUNCATE|SET|RESET|LOCK|ANALYZE|VACUUM|COPY|CALL|DO|"
    "COMMENT|GRANT|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE"
)
_SETTING = r"(hnsw\.|enable_)"
# What a node would not know, and where it may be written nevertheless: the first migration runs before the cluster
# places the tables, and ``settings_send`` is the way of settings to a node.
_TEXTS: tuple[tuple[str, str, str], ...] = (
    ("a trigger", r"\bCREATE\s+(OR\s+REPLACE\s+)?(CONSTRAINT\s+)?TRIGGER\b", ""),
    ("several statements in one string", rf"\b({_VERB})\b[^;]*;\s*({_VERB})\b", ""),
    ("SET (n_distinct) after the tables are placed", r"\bSET\s*\(\s*n_distinct", "migrations/0001_initial.py"),
    ("a plan without parameters", r"(?<!IS NULL THEN set_config\('plan_cache_mode', ')force_generic_plan", ""),
    ("a setting that does not reach the node", rf"set_config\(\s*'{_SETTING}", "recall/probe.py"),
    ("a setting that does not reach the node", rf"\bSET\s+(LOCAL\s+|SESSION\s+)?{_SETTING}", ""),
    ("a setting that is computed", r"set_config\(\s*(?!')|set_config\(\s*'[^']*\0", "stores/citus.py"),
)


def text_faults(path: str, source: str) -> list[str]:
    """Return what a cluster would refuse or ignore in the strings of a Python file, except docstrings. ``path`` is that
    below ``memory``."""
    tree = ast.parse(source)
    texts = list(_texts(tree))
    found = [
        f"{path}:{line}: {what}"
        for line, text in texts
        for what, pattern, allowed in _TEXTS
        if path != allowed and re.search(pattern, text)
    ]
    calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    if any(re.search(rf"set_config\(\s*'{_SETTING}", text) for _line, text in texts) and "settings_send" not in calls:
        found.append(f"{path}: its settings are not sent to the node")
    return found


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the strings of a file with their lines. A value within an f-string is a zero byte."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in inner:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            yield node.lineno, node.value if isinstance(node.value, str) else node.value.decode(errors="replace")
        elif isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(each.value) if isinstance(each, ast.Constant) else "\0" for each in node.values),
            )
