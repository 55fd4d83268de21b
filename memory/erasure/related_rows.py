"""Derives from the models what a purge of a topic deletes, what it sets to null, and what it searches.

A row with a foreign key to a topic, directly or through other rows, belongs to the topic and is deleted with it. Thus a
table that is added later is included. Exceptions are in ``REFERENCES``. Tables and columns that are not searched for
erased content are in ``KEPT``, with the reason.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter

from django.apps import apps
from django.db import models
from django.db.backends.utils import CursorWrapper

Model = type[models.Model]

# Cut: the reference becomes null and the row stays. Followed: the referring row is deleted too.
CUT, FOLLOWED = "cut", "followed"
REFERENCES = {
    # A field of another topic may refer to the topic; its own value stays.
    ("memory.Revision", "ref_topic"): CUT,
    # A topic merged into another states the same, so both are purged.
    ("memory.Topic", "merged_into"): FOLLOWED,
}

# Tables with the content of topics. Rows of other topics are never changed.
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

# Tables and columns in which nothing is masked. They have names that programs look up, not memories.
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
# Columns with these names have identities, scopes and kinds in every table.
_KEPT_COLUMNS = """
action actor approved_by author cluster decided_by event field_type func group hash hook identity key kind lifted_by
method name path_info policy prefix preset previous_hash principal_scope provenance role scope secret_hash session_hash
state status undone_by verb verdict
"""
KEPT_COLUMNS = frozenset(_KEPT_COLUMNS.split())
# Columns that keep the ids of purged topics. The journal and the receipt record the purge; a list records its topics; a
# verification records where something is left.
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
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND (n.nspname !~ '^store_' OR n.nspname = current_schema())
ORDER BY n.nspname, c.relname, a.attnum
"""
_STATISTICS_SQL = """
SELECT tablename, attname, value FROM (
    SELECT s.tablename, s.attname, unnest(array_cat(array_cat(
        coalesce(s.most_common_vals::text::text[], '{}'), coalesce(s.histogram_bounds::text::text[], '{}')),
        coalesce(s.most_common_elems::text::text[], '{}'))) AS value
    FROM pg_stats s
    JOIN pg_class c ON c.relname = s.tablename AND c.relnamespace = s.schemaname::regnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = s.attname
    WHERE s.schemaname IN (current_schema(), 'public') AND a.atttypid IN (
        'text'::regtype, 'varchar'::regtype, 'text[]'::regtype, 'varchar[]'::regtype, 'jsonb'::regtype,
        'tsvector'::regtype, 'uuid'::regtype, 'uuid[]'::regtype)
) x WHERE value <> ''
"""
_TOPICS = "id = ANY(%(ids)s)"
TEXTS = frozenset({"text", "character varying", "character", "citext", "name"})
DOCUMENTS = frozenset({"json", "jsonb"})
TEXT_ARRAYS = frozenset(f"{each}[]" for each in TEXTS)


@dataclass(frozen=True, slots=True)
class Belonging:
    """The rows of ``model`` that belong to the topics ``%(ids)s``, as an SQL condition (``where``)."""

    model: Model
    where: str

    @property
    def table(self) -> str:
        """The table."""
        return self.model._meta.db_table


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of the database, read from the catalog."""

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
    def kept(self) -> bool:
        """Whether the column has names, not content."""
        return self.of_project and column_kept(self.table, self.name)

    @property
    def own_text(self) -> bool:
        """Whether the column has the content of topics."""
        return self.of_project and self.table in TEXT_OF_TOPICS


def column_kept(table: str, name: str) -> bool:
    """Return whether a column of the project has names, not content."""
    return table in KEPT or f"{table}.{name}" in KEPT or name in KEPT_COLUMNS


@cache
def belongings() -> tuple[Belonging, ...]:
    """Return the rows that belong to topics, in an order in which they can be deleted: the topics come last.

    A row with several owners belongs to each of them: a pair of duplicates is deleted with either topic.
    """
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
    # Owners first, because the condition of a row contains the condition of its owner.
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
    """Return the references that are cut: the model and the column."""
    return tuple(
        (apps.get_model(label), apps.get_model(label)._meta.get_field(name).column)
        for (label, name), how in REFERENCES.items()
        if how == CUT
    )


def columns_of(cursor: CursorWrapper) -> list[Column]:
    """Return every column of every table, without system tables and those of other stores. One statement."""
    cursor.execute(_COLUMNS_SQL)
    return [Column(*row) for row in cursor.fetchall()]


def key_sql(columns: Sequence[Column]) -> str:
    """Return the primary key of a row as SQL for a text."""
    keys = [f'"{column.name}"::text' for column in columns if column.key]
    return f"concat_ws(' ', {', '.join(keys)})" if keys else "''"


def statistics_read(cursor: CursorWrapper) -> list[tuple[str, str, str]]:
    """Return the values in the planner's statistics of columns with texts and ids: table, column, value. One
    statement."""
    cursor.execute(_STATISTICS_SQL)
    return list(cursor.fetchall())


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
    # As an array, so that the subquery runs once and first, independent of the planner's estimates.
    return f'ARRAY(SELECT "{_pk(owner)}" FROM "{owner._meta.db_table}" WHERE {where})'


def _pk(model: Model) -> str:
    column = model._meta.pk.column
    assert column is not None
    return str(column)
