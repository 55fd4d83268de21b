"""Functions for Citus. On a cluster, each store is on one node, and the coordinator forwards statements to this node.

On plain PostgreSQL, only ``schema_create`` and ``settings_set`` have an effect. All functions run on the coordinator.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Unfinished
from contextlib import suppress
from typing import Any, NamedTuple

from django.db import DatabaseError, connection, transaction
from psycopg import sql

from memory.core.errors import Conflict, NotVisible
from memory.stores.current import SCHEMA_PREFIX, store_schema, store_use
from memory.stores.models import Store

# Null if the library of Citus is not loaded.
VERSION_SQL = "current_setting('citus.version', true)"
# Seconds between two queries for the progress of a move.
_PROGRESS_SECONDS = 0.5

_NODES_SQL = """
SELECT n.nodeid, n.nodename, n.nodeport FROM pg_dist_node n
WHERE n.noderole = 'primary' AND n.isactive AND n.shouldhaveshards
ORDER BY (SELECT count(*) FROM pg_dist_placement p WHERE p.groupid = n.groupid), n.nodeid
"""
_NODES_OF_STORES_SQL = """
SELECT DISTINCT c.relnamespace::regnamespace::text, n.nodeid, n.nodename, n.nodeport
FROM pg_dist_placement p JOIN pg_dist_shard s USING (shardid) JOIN pg_class c ON c.oid = s.logicalrelid
JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
WHERE starts_with(c.relnamespace::regnamespace::text, %s) ORDER BY 1, 2
"""
# If this setting is on, the tables of a new schema are distributed as they are created, and a later statement on them
# fails. On plain PostgreSQL, the setting does not exist.
_PLAIN_TABLES_SQL = """
SELECT set_config(name, 'off', true) FROM (VALUES ('citus.enable_schema_based_sharding')) x (name)
WHERE current_setting(name, true) IS NOT NULL
"""
# The settings of a search that ``doctor`` sends to a node and reads there. The number is not the default of pgvector.
_SENT = {"hnsw.iterative_scan": "strict_order", "hnsw.ef_search": "41"}
# If a table has another owner than its schema, the target cannot read it, and a move waits forever without an error.
_OWNERS_SQL = """
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind IN ('r', 'S') AND c.relowner <> n.nspowner
"""
_TABLES_SQL = "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'"
_SLOTS_SQL = "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE 'citus_shard_%'"
_PROGRESS_SQL = (
    "SELECT coalesce(sum(target_shard_size), 0), coalesce(sum(source_shard_size), 0) FROM get_rebalance_progress()"
)
_UNPLACED_SQL = """
SELECT n.nspname::text FROM pg_namespace n WHERE n.nspname = ANY(%s) AND NOT EXISTS (
    SELECT FROM pg_dist_shard s JOIN pg_class c ON c.oid = s.logicalrelid WHERE c.relnamespace = n.oid)
"""
# The coordinator has only empty tables of the placed stores. The view gives sizes as texts, such as ``8192 bytes``.
_SIZES_SQL = """
SELECT schema_name::text, pg_size_bytes(schema_size) FROM citus_schemas
WHERE schema_name::text = ANY(%s) AND schema_size IS NOT NULL
"""
_CLEAN_SQL = "CALL citus_cleanup_orphaned_resources()"
_VERSIONS_SQL = "SELECT extversion FROM pg_extension WHERE extname = 'citus'"
_VECTOR_SQL = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"


class Node(NamedTuple):
    """A node that may hold stores."""

    number: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def cluster_is() -> bool:
    """Return whether the database is the coordinator of a cluster. One query."""
    return bool(_row("SELECT to_regproc('citus_schema_distribute') IS NOT NULL")[0])


def schema_create(name: str) -> None:
    """Create the schema of a store for plain tables, if there is none. ``schema_place`` distributes the tables later.
    Two statements in one transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_PLAIN_TABLES_SQL)
        cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {store_schema(name)}")


def schema_place(name: str) -> None:
    """Let the cluster place the plain tables of a store on a node, unless they are on one already. Three queries; on
    plain PostgreSQL, one query and no effect."""
    if stores_unplaced([name]):
        _row("SELECT citus_schema_distribute(%s::regnamespace)", [store_schema(name)])


def stores_unplaced(names: Iterable[str]) -> list[str]:
    """Return the names in ``names`` of stores that have a schema, but no tables on a node of the cluster. Two queries;
    on plain PostgreSQL, one query and an empty list."""
    schemas = {store_schema(name): name for name in names}
    return [schemas[found] for (found,) in _rows(_UNPLACED_SQL, [list(schemas)])] if cluster_is() else []


def schema_sizes(names: Sequence[str]) -> dict[str, int]:
    """Return the sizes in bytes of the stores in ``names`` that the cluster has placed, by name. Two queries; on plain
    PostgreSQL, one query and an empty result."""
    if not cluster_is():
        return {}
    sizes = dict(_rows(_SIZES_SQL, [[store_schema(name) for name in names]]))
    return {name: sizes[store_schema(name)] for name in names if store_schema(name) in sizes}


def stores_nodes() -> dict[str, list[Node]]:
    """Return the nodes that hold tables of each store, by the name of the store. A store has several nodes only if it
    was not placed as a whole. One query."""
    found = defaultdict(list)
    for schema, *node in _rows(_NODES_OF_STORES_SQL, [SCHEMA_PREFIX]):
        found[schema.removeprefix(SCHEMA_PREFIX)].append(Node(*node))
    return found


def settings_set(values: Mapping[str, str]) -> None:
    """Set settings for the rest of the transaction, on a cluster also on the node of the store. One query, and on a
    cluster those of ``settings_send``."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {'set_config(%s, %s, true), ' * len(values)}{VERSION_SQL}",
            [part for pair in values.items() for part in pair],
        )
        *_values, cluster = cursor.fetchone()
    if cluster:
        settings_send(values)


def settings_send(values: Mapping[str, str]) -> None:
    """Set settings on the node of the store for the rest of the transaction; ``set_config`` would not reach the node.
    One statement, plus one for each setting. Each statement is sent separately, because Citus would forward a string of
    several statements as a whole."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL citus.propagate_set_commands TO 'local'")
        for name, value in values.items():
            cursor.execute(sql.SQL("SET LOCAL {} TO {}").format(sql.Identifier(*name.split(".")), sql.Literal(value)))


def nodes_list() -> list[Node]:
    """Return the nodes of the cluster that may hold stores; none on plain PostgreSQL. At most two queries."""
    return _nodes() if cluster_is() else []


def node_find(name: str) -> Node:
    """Return the node ``name``, which is its host or ``host:port``. Two queries. Raises ``Conflict`` if there is no
    cluster, ``NotVisible`` for an unknown node."""
    return _named(_nodes(), name)


def _nodes() -> list[Node]:
    """Return the nodes that may hold stores. The node with the fewest tables comes first."""
    if not cluster_is():
        raise Conflict("Stores have nodes only where the database is the coordinator of a Citus cluster.")
    return [Node(*row) for row in _rows(_NODES_SQL)]


def _named(nodes: Sequence[Node], name: str) -> Node:
    for node in nodes:
        if name in (node.host, str(node)):
            return node
    raise NotVisible(f"The cluster has no node {name}.")


def move_plan(name: str, to: str | None) -> tuple[Node, Node]:
    """Return the node of a store, and the node to which it would move. ``to`` is the host or ``host:port`` of this
    target. If it is None, the target is the other node with the fewest tables. Five queries, which change nothing.

    Raises ``Conflict`` if there is no cluster, the store is already on the target, a table has another owner than the
    schema, or a move is running or has left replication slots; ``NotVisible`` for an unknown node.
    """
    nodes = _nodes()
    schema = store_schema(name)
    here = stores_nodes().get(name, [])
    if len(here) != 1:
        raise Conflict(f"The store {name} is on no node or on several nodes, so it cannot be moved.")
    target = next((each for each in nodes if each != here[0]), None) if to is None else _named(nodes, to)
    if target is None:
        raise NotVisible("The cluster has no node beside the present one.")
    if target == here[0]:
        raise Conflict(f"The store {name} is on {target} already.")
    if _row(_OWNERS_SQL, [schema])[0]:
        raise Conflict(f"Tables of the store {name} have another owner than their schema. Make it the owner first.")
    if slots := _slots_left():
        raise Conflict(
            f"Another move is running, or has left replication slots on {', '.join(slots)}. "
            f"Wait for it, or run `{_CLEAN_SQL}` there."
        )
    return here[0], target


def schema_move(
    name: str, target: Node, *, seconds: float, progress: Callable[[int, int], object] = lambda _done, _all: None
) -> None:
    """Move a store while it is in use, and renew its statistics on the new node. ``progress`` is called with the copied
    and the total bytes. Needs autocommit. Uses a second connection.

    Raises ``Conflict`` if the move fails or takes longer than ``seconds``. The store then stays on its node, and the
    copy is removed.
    """
    try:
        with ThreadPoolExecutor(1) as threads:
            moving = threads.submit(_move, store_schema(name), target, seconds)
            while True:
                with suppress(Unfinished):
                    moving.result(_PROGRESS_SECONDS)
                    break
                # The progress is only displayed, so errors are ignored.
                with suppress(DatabaseError):
                    done, total = _row(_PROGRESS_SQL)
                    progress(int(done), int(total))
    except DatabaseError as problem:
        with store_use(None), connection.cursor() as cursor:
            cursor.execute(_CLEAN_SQL)
        reason = (str(problem).strip().splitlines() or ["unknown"])[0]
        raise Conflict(f"The store {name} was not moved and stays where it was: {reason}") from problem
    schema = store_schema(name)
    tables = _rows(_TABLES_SQL, [schema])
    with store_use(None), connection.cursor() as cursor:
        for (table,) in tables:
            cursor.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(schema, table)))


def _move(schema: str, target: Node, seconds: float) -> None:
    try:
        with store_use(None), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, false)", [str(int(seconds * 1000))])
            cursor.execute(
                "SELECT citus_schema_move(%s::regnamespace, %s::int, 'force_logical')", [schema, target.number]
            )
    finally:
        connection.close()


def cluster_faults() -> list[str]:
    """Return the faults of the cluster as sentences. Eight queries, three of them on every node, and four for each
    node with a store."""
    faults = []
    for what, statement in (("Citus", _VERSIONS_SQL), ("pgvector", _VECTOR_SQL)):
        if len(versions := {version for _node, version in _everywhere(statement)}) > 1:
            faults.append(f"The nodes have different versions of {what}: {', '.join(sorted(versions))}.")
    if slots := _slots_left():
        faults.append(f"A move of a store runs or has left replication slots on {', '.join(slots)}.")
    if left := _row("SELECT count(*) FROM pg_dist_cleanup")[0]:
        faults.append(f"Moves have left {left} tables or slots behind; run `{_CLEAN_SQL}`.")
    owners = _row(_OWNERS_SQL.replace("n.nspname = %s", "n.nspname LIKE 'store\\_%%'"), [])
    if owners[0]:
        faults.append(f"{owners[0]} tables of stores have another owner than their schema and cannot be moved.")
    if unplaced := stores_unplaced(Store.objects.filter(cluster="").values_list("name", flat=True)):
        faults.append(f"These stores are on no node: {', '.join(sorted(unplaced))}. `manage.py migrate` places them.")
    placed = stores_nodes()
    if divided := sorted(name for name, nodes in placed.items() if len(nodes) > 1):
        faults.append(
            f"These stores have tables on several nodes: {', '.join(divided)}. They cannot be moved as a whole."
        )
    # One store of each node.
    stores = {node: name for name, nodes in placed.items() for node in nodes}
    faults += [
        f"The settings of the vector index do not reach {node}, so searches in large scopes find too few topics."
        for node, name in stores.items()
        if not _settings_arrive(name)
    ]
    return faults


def _settings_arrive(name: str) -> bool:
    """Return whether the node of a store gets the settings of a search. Four statements."""
    with transaction.atomic():
        settings_send(_SENT)
        # The coordinator forwards the whole statement, because it reads a table of the store.
        read = sql.SQL("SELECT {} FROM (SELECT count(*) FROM {}) x").format(
            sql.SQL(", ").join(sql.SQL("current_setting({}, true)").format(sql.Literal(setting)) for setting in _SENT),
            sql.Identifier(store_schema(name), "memory_corpustotals"),
        )
        return _rows(read) == [tuple(_SENT.values())]


def nodes_rows(select: str) -> tuple[list[list[Any]], list[str]]:
    """Run a SELECT on every node. Return its rows, and the nodes that could not run it. One query, which is not part of
    the running transaction."""
    rows: list[list[Any]] = []
    away = []
    for node, success, said in _answers(f"SELECT coalesce(json_agg(r), '[]')::text FROM ({select}) r"):  # noqa: S608
        if success:
            rows += [list(row.values()) for row in json.loads(said)]
        else:
            away.append(node)
    return rows, away


def shard_run(table: str, command: str) -> None:
    """Run a command on the node of a store. ``table`` is the name of a table of the store, with its schema. In
    ``command``, ``%s`` is the table on the node, and ``%L`` its name as a text. One query, which is not part of the
    running transaction. Raises ``DatabaseError``."""
    answers = _rows("SELECT success, result FROM run_command_on_shards(%s::regclass, %s)", [table, command])
    if failed := [said for success, said in answers if not success]:
        raise DatabaseError("; ".join(failed))


def _slots_left() -> list[str]:
    """Return the nodes with replication slots of running or failed moves. One query."""
    return [node for node, left in _everywhere(_SLOTS_SQL) if left != "0"]


def _everywhere(statement: str) -> list[tuple[str, str]]:
    """Run a statement on every node, and return pairs of a node and its value. One query. Raises ``DatabaseError``."""
    answers = _answers(statement)
    if failed := [f"{node}: {said}" for node, success, said in answers if not success]:
        raise DatabaseError("; ".join(failed))
    return [(node, said or "") for node, _success, said in answers]


def _answers(statement: str) -> list[tuple[str, bool, str]]:
    """Run a statement on every node. Return triples: a node, whether the statement succeeded there, and its value or
    its error. One query."""
    return _rows(
        "SELECT n.nodename || ':' || n.nodeport, r.success, r.result "
        "FROM run_command_on_all_nodes(%s) r JOIN pg_dist_node n USING (nodeid)",
        [statement],
    )


def _rows(statement: str | sql.Composable, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
    with store_use(None), connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def _row(statement: str, parameters: list[Any] | None = None) -> tuple[Any, ...]:
    return _rows(statement, parameters)[0]
