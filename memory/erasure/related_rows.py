"""Derives from the models what a purge of a topic deletes, sets to null, and searches. A row is deleted with a topic if
it refers to the topic by foreign keys, directly or through other rows. ``REFERENCES`` has the exceptions from this, and
``KEPT`` the columns in which nothing is masked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter

from django.apps import apps
from django.db import models
from django.db.backends.utils import CursorWrapper

from memory.stores.citus import cluster_is, nodes_rows
from memory.stores.current import store_current, store_schema
from memory.stores.queue import rows_here_sql

Model = type[models.Model]

# Cut: the reference becomes null, and the referring row stays. Followed: the referring row is deleted, too.
CUT, FOLLOWED = "cut", "followed"
REFERENCES = {
    # A field of another topic may refer to the topic. The field and its value stay.
    ("memory.Revision", "ref_topic"): CUT,
    # A topic that was merged into another states the same, so both are purged.
    ("memory.Topic", "merged_into"): FOLLOWED,
}

# Tables with the content of topics. Nothing is masked in them: rows of purged topics are deleted, and other rows stay.
TEXT_OF_TOPICS = frozenset(
    {
        "memory_topic",
        "memory_topicedit",
        "memory_field",
        "memory_revision",
        "memory_fieldsummary",
        "memory_link",
        "memory_topicvector",
        "memory_topicdocument",
        "memory_topicmention",
        "memory_lexeme",
        "memory_duplicatelook",
    }
)

# Tables and columns in which nothing is masked. They contain names that programs look up, but no memories. The value
# describes the content.
KEPT: dict[str, str] = {
    "django_migrations": "which migrations ran",
    "django_content_type": "names of models",
    "auth_permission": "names of permissions",
    "auth_group": "names of groups",
    "auth_user": "accounts of people who operate the store",
    "memory_apikey": "names of keys, chosen by administrators",
    "memory_scope": "addresses; keys and policies are bound to them",
    "memory_erasurereceipt": "sealed; holds ids and keyed hashes, and a reason that ``receipts`` itself masks",
    "memory_corpustotals": "a number",
    "stores_store": "names of stores, and times",
    "stores_keystore": "hashes of keys",
    "stores_storerole": "an account, a store and a role",
    "stores_workerheartbeat": "a name and a time",
    "memory_watermark": "a name and a number",
    "memory_wakeup": "a scope and an event",
    "memory_notificationtarget": "addresses and names, chosen by administrators",
    "memory_notificationoccurrence": "an event, and ids of runs and jobs",
    "memory_policyversion.values": "what is in force; a purge changes no policy",
    "memory_policyversion.rules": "what is in force; a purge changes no policy",
    "memory_policyversion.diff": "the changes of the above",
    "memory_duplicatepair.differences": "words of the two topics of the pair, which stay",
    "memory_studyjob.phase": "a constant that a study resumes by",
    "memory_studyjob.steps": "constants and numbers that a study resumes by",
    "memory_studyjob.model": "the name of a model",
    "memory_vitality.kind": "a kind",
    "memory_duplicatepair.kind": "a kind",
    "memory_idempotencyrecord.request_hash": "emptied with the reply",
    "memory_accesslog.query_hash": "emptied with the query",
    "memory_conversation.channel": "a constant",
    "memory_conversationturn.intent": "a constant",
    "memory_conversationturn.intent_source": "a constant",
    "memory_conversationturn.ended": "a constant",
    "memory_conversationturn.model": "the name of a model",
    "memory_conversationwrite.what": "a constant",
    "django_q_schedule": "when which job runs, for which scope",
    "django_q_task.id": "the queue finds its tasks by it",
    "django_session.session_key": "a random key",
    "axes_accessattemptexpiration": "a time",
}
# In every table, columns with these names contain identities, scopes and kinds.
_KEPT_COLUMNS = """
action actor approved_by author cluster decided_by event field_type func group hash hook identity key kind lifted_by
method name path_info policy prefix preset previous_hash principal_scope provenance role scope secret_hash session_hash
state status undone_by verb verdict
"""
KEPT_COLUMNS = frozenset(_KEPT_COLUMNS.split())
# Columns in which the ids of purged topics stay. The journal and the receipt record the purge, a list records its
# topics, and a verification records the places of remaining content.
IDS_KEPT = frozenset(
    {
        "memory_auditevent.topic_id",
        "memory_erasurecheck.found",
        "memory_erasurecheck.report",
        "memory_erasurereceipt.topic_ids",
        "memory_forgetlisting.entries",
        "memory_forgetlisting.filter",
    }
)

_COLUMNS_SQL = """
SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, NULL), format_type(a.atttypid, a.atttypmod),
       NOT a.attnotnull,
       coalesce((SELECT bool_or(a.attnum = ANY(i.indkey)) FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary),
                false),
       EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'f' AND a.attnum = ANY(k.conkey)),
       n.nspname IN (current_schema(), 'public') AND c.relkind = 'r', has_table_privilege(c.oid, 'SELECT')
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND c.relispopulated AND a.attnum > 0 AND NOT a.attisdropped
  AND (n.nspname IN (current_schema(), 'public') OR
       current_schema() = 'store_main' AND n.nspname !~ '^(pg|store)_' AND n.nspname <> 'information_schema')
ORDER BY n.nspname, c.relname, a.attnum
"""
_STATISTICS_SQL = """
SELECT {table} AS tablename, attname, value FROM (
    SELECT s.tablename, s.attname, unnest(array_cat(array_cat(
        coalesce(s.most_common_vals::text::text[], '{{}}'), coalesce(s.histogram_bounds::text::text[], '{{}}')),
        coalesce(s.most_common_elems::text::text[], '{{}}'))) AS value
    FROM pg_stats s
    JOIN pg_class c ON c.relname = s.tablename AND c.relnamespace = s.schemaname::regnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = s.attname
    WHERE {schema} AND a.atttypid IN (
        'text'::regtype, 'varchar'::regtype, 'text[]'::regtype, 'varchar[]'::regtype, 'jsonb'::regtype,
        'tsvector'::regtype, 'uuid'::regtype, 'uuid[]'::regtype)
) x WHERE value <> ''
"""
_OF_STORE = "(s.schemaname = current_schema() OR s.schemaname = 'public' AND current_schema() = 'store_main')"
# On a node, the name of a table ends with the number of its shard.
_TABLE_ON_NODE = r"regexp_replace(tablename, '_\d+$', '')"
# The tables on a node that are being analyzed.
_ANALYZED_SQL = f"""
SELECT {_TABLE_ON_NODE} FROM (
    SELECT c.relname AS tablename FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
    WHERE l.mode = 'ShareUpdateExclusiveLock' AND c.relname ~ '_\\d+$'
    AND c.relnamespace::regnamespace::text = '{{schema}}'
) x
"""
_TOPICS = "id = ANY(%(ids)s)"
TEXTS = frozenset({"text", "character varying", "character", "citext", "name"})
DOCUMENTS = frozenset({"json", "jsonb"})
TEXT_ARRAYS = frozenset(f"{each}[]" for each in TEXTS)


@dataclass(frozen=True, slots=True)
class Belonging:
    """The rows of ``model`` that belong to topics. ``where`` is the SQL condition; its parameter is ``ids``."""

    model: Model
    where: str

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.model._meta.db_table


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a database table, as described by the catalog."""

    schema: str
    table: str
    name: str
    data_type: str
    full_type: str
    nullable: bool
    key: bool
    foreign: bool
    in_schema: bool
    readable: bool

    @property
    def of_project(self) -> bool:
        """Whether the table belongs to the project or one of its libraries. A purge does not change other tables."""
        return self.in_schema and self.table in _our_tables()

    @property
    def table_label(self) -> str:
        """The table, with its schema if it belongs to another application."""
        return self.table if self.of_project else f"{self.schema}.{self.table}"

    @property
    def label(self) -> str:
        """Table and column, for messages."""
        return f"{self.table_label}.{self.name}"

    @property
    def quoted_table(self) -> str:
        """The table as quoted SQL."""
        return f'"{self.schema}"."{self.table}"'

    @property
    def rows_here(self) -> str:
        """The SQL condition for the rows of the current store."""
        return rows_here_sql(self.table) if self.schema == "public" else "true"

    @property
    def kept(self) -> bool:
        """Whether the column contains names and no content."""
        named = self.table in KEPT or f"{self.table}.{self.name}" in KEPT or self.name in KEPT_COLUMNS
        return self.of_project and named


@cache
def belongings() -> tuple[Belonging, ...]:
    """Return the rows that belong to topics, in an order in which they can be deleted: the topics come last. A row that
    belongs to several rows is deleted if one of these is deleted."""
    topic: Model = apps.get_model("memory", "Topic")
    owned: dict[Model, dict[Model, list[str]]] = {topic: {}}
    ahead: list[Model] = [topic]
    while ahead:
        owner = ahead.pop()
        for model, column in _keys_to(owner):
            if model not in owned:
                owned[model] = {}
                ahead.append(model)
            owned[model].setdefault(owner, []).append(column)
    where: dict[Model, str] = {topic: _TOPICS}
    # Owners come first, because the condition of a row contains the condition of its owner.
    for model in TopologicalSorter({model: set(owners) for model, owners in owned.items()}).static_order():
        if model is not topic:
            where[model] = " OR ".join(
                f'"{column}" = ANY({_ids_sql(owner, where[owner])})'
                for owner, columns in owned[model].items()
                for column in columns
            )
    return tuple(Belonging(model, condition) for model, condition in reversed(where.items()))


@cache
def _our_tables() -> frozenset[str]:
    models_of_all = apps.get_models(include_auto_created=True)
    return frozenset({"django_migrations", *(model._meta.db_table for model in models_of_all if model._meta.managed)})


@cache
def cuts() -> tuple[tuple[Model, str], ...]:
    """Return the references that are set to null, as pairs of a model and a column."""
    return tuple(
        (apps.get_model(label), apps.get_model(label)._meta.get_field(name).column)
        for (label, name), how in REFERENCES.items()
        if how == CUT
    )


def columns_of(cursor: CursorWrapper) -> list[Column]:
    """Return every column of the tables in which the current store has rows, except system tables. Rows that belong to
    no other store belong to the store ``main``. One statement."""
    cursor.execute(_COLUMNS_SQL)
    return [column for row in cursor.fetchall() if (column := Column(*row)).rows_here != "false"]


def key_sql(columns: Sequence[Column]) -> str:
    """Return the SQL expression for the primary key of a row as one text."""
    keys = [f'"{column.name}"::text' for column in columns if column.key]
    # ``concat_ws`` is not IMMUTABLE, so Citus refuses it in RETURNING.
    return " || ' ' || ".join(keys) or "''"


def statistics_read(cursor: CursorWrapper) -> list[tuple[str, str, str]]:
    """Return (table, column, value) for each value in the planner's statistics of texts and ids. One statement. On a
    cluster, the statistics of stores are on the nodes (``statistics_on_nodes``)."""
    cursor.execute(_STATISTICS_SQL.format(table="tablename", schema=_OF_STORE))
    return list(cursor.fetchall())


def statistics_on_nodes() -> tuple[list[tuple[str, str, str]], list[str]]:
    """Return the values of ``statistics_read`` from the nodes of a cluster, and the nodes that could not be read. Two
    statements. On plain PostgreSQL, both lists are empty after one statement. Statistics that the running transaction
    has changed are not seen."""
    if not cluster_is():
        return [], []
    here = f"s.schemaname = '{store_schema(store_current())}'"
    rows, away = nodes_rows(_STATISTICS_SQL.format(table=_TABLE_ON_NODE, schema=here))
    return [(table, column, value) for table, column, value in rows], away


def analyzed_on_nodes() -> set[str]:
    """Return the tables of the current store that a node of the cluster is analyzing now. The new statistics may still
    contain deleted rows. One statement."""
    rows, _away = nodes_rows(_ANALYZED_SQL.format(schema=store_schema(store_current())))
    return {table for (table,) in rows}


def _keys_to(owner: Model) -> Iterator[tuple[Model, str]]:
    for model in apps.get_models(include_auto_created=True):
        if model is owner or not model._meta.managed or model._meta.proxy:
            continue
        for key in model._meta.local_fields:
            is_exception = (model._meta.label, key.name) in REFERENCES
            if isinstance(key, models.ForeignKey) and key.related_model is owner and not is_exception:
                yield model, str(key.column)


def _ids_sql(owner: Model, where: str) -> str:
    if where == _TOPICS:
        return "%(ids)s"
    # With the array, the subquery runs once and before the rest, whatever the planner estimates.
    return f'ARRAY(SELECT "{owner._meta.pk.column}" FROM "{owner._meta.db_table}" WHERE {where})'
