"""The functions and tables of Citus that the product uses, as plain ones in ``public``, on a cluster of two nodes.

``citus_calls`` lists what was called, in order. ``citus_fault`` makes a move fail or wait. The tables of stores stay
where they are, except that node two holds what a test puts into ``shard_make``, with statistics of its own: the
coordinator does not see them, and commands on nodes and shards run there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import NotSupportedError, connection

from memory.stores.current import store_use

# The schema that stands for ``store_main`` on node two, and the number of the shards.
NODE_SCHEMA, SHARD = "store_main_on_two", 102008

FAKE = """
CREATE TABLE citus_calls (id serial, said text);
CREATE TABLE citus_fault (what text);
CREATE TABLE pg_dist_node (nodeid int, groupid int, nodename text, nodeport int, noderole text, isactive bool,
                           shouldhaveshards bool);
INSERT INTO pg_dist_node VALUES (1, 0, 'coordinator', 5432, 'primary', true, false),
    (2, 1, 'one', 5432, 'primary', true, true), (3, 2, 'two', 5432, 'primary', true, true);
CREATE TABLE pg_dist_shard (shardid serial, logicalrelid regclass);
CREATE TABLE pg_dist_placement (shardid int, groupid int);
CREATE TABLE pg_dist_cleanup (id int);
CREATE FUNCTION citus_schema_distribute(schema_id regnamespace) RETURNS void LANGUAGE sql AS $$
    INSERT INTO citus_calls (said) VALUES ('distribute ' || schema_id);
    WITH made AS (INSERT INTO pg_dist_shard (logicalrelid)
                  SELECT oid FROM pg_class WHERE relnamespace = schema_id AND relkind = 'r' RETURNING shardid)
    INSERT INTO pg_dist_placement SELECT shardid, 1 FROM made
$$;
CREATE FUNCTION citus_schema_move(schema_id regnamespace, node int, mode text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM citus_fault WHERE what = 'hangs') THEN PERFORM pg_sleep(60); END IF;
    IF EXISTS (SELECT FROM citus_fault WHERE what = 'fails') THEN RAISE 'the node is away'; END IF;
    PERFORM pg_sleep(1.2);
    INSERT INTO citus_calls (said) VALUES (format('move %s to %s by %s', schema_id, node, mode));
    UPDATE pg_dist_placement SET groupid = (SELECT groupid FROM pg_dist_node WHERE nodeid = node);
END $$;
CREATE VIEW citus_schemas AS
    SELECT DISTINCT c.relnamespace::regnamespace AS schema_name, '5 GB'::text AS schema_size
    FROM pg_dist_shard s JOIN pg_class c ON c.oid = s.logicalrelid;
CREATE PROCEDURE citus_cleanup_orphaned_resources() LANGUAGE sql AS $$
    INSERT INTO citus_calls (said) VALUES ('clean')
$$;
CREATE FUNCTION get_rebalance_progress(OUT target_shard_size bigint, OUT source_shard_size bigint) LANGUAGE sql
    AS 'SELECT 5, 10';
CREATE FUNCTION citus_run(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text := command;
BEGIN
    command := replace(command, 'store_main', 'store_main_on_two');
    IF command LIKE 'SELECT%' THEN EXECUTE command INTO result; ELSE EXECUTE command; END IF;
    RETURN result;
END $$;
CREATE FUNCTION run_command_on_all_nodes(command text, OUT nodeid int, OUT success bool, OUT result text)
    RETURNS SETOF record LANGUAGE sql AS $$
    SELECT n.nodeid, NOT away, CASE
        WHEN away THEN 'connection refused'
        WHEN command LIKE '%json_agg%' THEN CASE WHEN n.nodeid = 3 THEN citus_run(command) ELSE '[]' END
        WHEN command LIKE '%slots%' THEN (SELECT count(*) FROM citus_fault WHERE what = 'slot' AND n.nodeid = 2)::text
        WHEN command LIKE '%citus%' THEN CASE WHEN n.nodeid = 3 AND EXISTS (
            SELECT FROM citus_fault WHERE what = 'old') THEN '13.0' ELSE '14.0' END
        ELSE '0.8.5' END
    FROM pg_dist_node n,
        LATERAL (SELECT EXISTS (SELECT FROM citus_fault WHERE what = 'away' AND n.nodeid = 3) AS away) x
$$;
CREATE FUNCTION run_command_on_shards(table_name regclass, command text, OUT shardid bigint, OUT success bool,
                                      OUT result text) LANGUAGE sql AS $$
    SELECT 102008, true, citus_run(format(command, table_name || '_102008'))
$$;
CREATE SCHEMA store_main_on_two
"""
UNFAKE = """
DROP VIEW citus_schemas;
DROP SCHEMA store_main_on_two CASCADE;
DROP FUNCTION citus_schema_distribute, citus_schema_move, get_rebalance_progress, run_command_on_all_nodes,
    run_command_on_shards, citus_run;
DROP PROCEDURE citus_cleanup_orphaned_resources;
DROP TABLE citus_calls, citus_fault, pg_dist_node, pg_dist_shard, pg_dist_placement, pg_dist_cleanup
"""


def run(statement: str) -> list[tuple[object, ...]]:
    """Run statements outside a store, and return the rows of the last one."""
    with store_use(None), connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def shard_make(table: str, *titles: str, then: str) -> None:
    """Make a table on node two whose statistics contain ``titles``, and change its rows by ``then``."""
    shard = f"{NODE_SCHEMA}.{table}_{SHARD}"
    rows = ", ".join(f"('{title}')" for title in titles for _twice in range(2))
    run(f"CREATE TABLE {shard} (title text); INSERT INTO {shard} VALUES {rows}; ANALYZE {shard}; {then.format(shard)}")


def shard_statistics() -> str:
    """Return the statistics on node two."""
    return str(run(f"SELECT most_common_vals, histogram_bounds FROM pg_stats WHERE schemaname = '{NODE_SCHEMA}'"))


@contextmanager
def schemas_distributed_at_once() -> Iterator[None]:
    """Set what makes Citus distribute the tables of a schema that is created from now on, and refuse such a schema, as
    Citus would refuse a later statement on its tables."""
    setting = "citus.enable_schema_based_sharding"

    def refuse(execute: Any, statement: str, *more: Any) -> Any:
        if statement.startswith("CREATE SCHEMA") and run(f"SELECT current_setting('{setting}')") == [("on",)]:
            raise NotSupportedError("alter table command is currently unsupported")
        return execute(statement, *more)

    run(f"SET {setting} TO on")
    try:
        with connection.execute_wrapper(refuse):
            yield
        assert run(f"SELECT current_setting('{setting}')") == [("on",)]
    finally:
        run(f"RESET {setting}")
