"""The shape of an export: which columns of which tables stand in a line, made from the models.

So a column that is added to a model is in the file by itself, and a table that is added stands either here or, with the
reason, in ``LEFT_OUT``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from django.db import connection, models

from memory import models as tables

VERSION = 1
FORMAT = "memstate"
# Of a longer history, the older revisions stand in lines of their own behind the line of the topic.
REVISIONS_IN_LINE = 500

# Tables that are not in an export, each with the reason.
LEFT_OUT = {
    "Scope": "stands as a path in every line that lies in one",
    "ApiKey": "opens this installation and no other",
    "IdempotencyRecord": "the replies to requests of the last days; the clients asked this installation",
    "ForgetListing": "lists that are good for an hour, for the caller who asked",
    "ExtractionJob": "work of this installation; what it has stored are topics",
    "StudyJob": "work of this installation; what it has stored are topics",
    "ImportJob": "files of this installation",
    "ImportedTopic": "which file a topic came with",
    "Rekeying": "work of this installation; where a half-life is not the policy's, it begins anew",
    "WakeUp": "calls to the worker of this installation",
    "WorkerHeartbeat": "the pulse of this worker",
    "TopicDocument": "made anew from the text, but for what was merged into another topic",
    "Lexeme": "counted anew",
    "CorpusTotals": "counted anew",
}
# Journal entries about the installation rather than about the memory.
AUDIT_LEFT_OUT = (
    "key_created", "key_revoked", "job_retried", "schedule_paused", "schedule_resumed", "schedule_run",
    "schedule_changed", "import_started", "import_done", "import_failed", "import_cancelled",
    "import_released", "exported",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and the member of a line that it stands in."""

    member: str
    name: str
    sort: str
    field: "models.Field[object, object]"

    @property
    def base_sort(self) -> str:
        """Its sort without a length."""
        return re.sub(r"\(\d+\)", "", self.sort)

    @property
    def is_scope(self) -> bool:
        """Whether it holds the number of a scope, and the line its path."""
        return self.field.related_model is tables.Scope


@dataclass(frozen=True)
class Rows:
    """Rows of one table as objects of JSON, without the columns that go without saying."""

    model: type[models.Model]
    without: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        """The table."""
        return self.model._meta.db_table

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns, in the order of the model."""
        found = []
        for field in self.model._meta.concrete_fields:
            if field.name in self.without or field.attname in self.without:
                continue
            is_scope = field.related_model is tables.Scope
            sort = "text" if is_scope else field.rel_db_type(connection) or ""
            if not (field.is_relation or field.primary_key):
                sort = field.db_type(connection) or ""
            found.append(Column(field.name if is_scope else field.attname, str(field.column), sort, field))
        return tuple(found)

    def told_sql(self, row: str) -> str:
        """Return the columns of ``row``, an alias, as they stand in a line."""
        return ", ".join(
            f'(SELECT path FROM memory_scope WHERE id = {row}."{column.name}") AS "{column.member}"'
            if column.is_scope
            else f'{row}."{column.name}" AS "{column.member}"'
            for column in self.columns
        )

    def record_sql(self) -> str:
        """Return the definition by which the database reads them from an object of JSON."""
        return ", ".join(f'"{column.member}" {column.sort}' for column in self.columns)

    def insert_sql(self, row: str, *, given: Mapping[str, str] | None = None) -> tuple[str, str]:
        """Return the columns of an INSERT and their values, read from ``row``, an alias of a record.

        ``given`` holds, by column, other values than those of the record.
        """
        values = {
            column.name: f'(SELECT id FROM memory_scope WHERE path = {row}."{column.member}")'
            if column.is_scope
            else f'{row}."{column.member}"'
            for column in self.columns
        } | dict(given or {})
        return ", ".join(f'"{name}"' for name in values), ", ".join(values.values())


POLICY_VERSION = Rows(tables.PolicyVersion, ("id", "scope"))
TOPIC = Rows(tables.Topic, ("merged_into",))
# What repeats the topic's is left out.
VITALITY = Rows(tables.Vitality, ("topic", "scope", "kind", "created_at", "rung"))
EDIT = Rows(tables.TopicEdit, ("id", "topic"))
FIELD = Rows(tables.Field, ("topic",))
# References may point ahead, and stand in lines of their own.
REVISION = Rows(tables.Revision, ("field", "ref_topic"))
SUMMARY = Rows(tables.FieldSummary, ("field",))
VECTOR = Rows(tables.TopicVector, ("topic", "scope", "live"))
# Of what was merged into another topic alone.
MENTION = Rows(tables.TopicMention, ("topic", "scope"))
LINK = Rows(tables.Link)
RUN = Rows(tables.ForgetRun)
# Numbers that nothing refers to are given anew, in the order of the old ones.
ACTION = Rows(tables.ForgetAction, ("id",))
PAIR = Rows(tables.DuplicatePair)
ACCESS = Rows(tables.AccessLog)
SHADOW = Rows(tables.ShadowHit, ("id",))
WATERMARK = Rows(tables.Watermark, ("id",))
RECEIPT = Rows(tables.ErasureReceipt)
AUDIT = Rows(tables.AuditEvent, ("id",))
CONVERSATION = Rows(tables.Conversation)
TURN = Rows(tables.ConversationTurn, ("id", "conversation", "study"))
WRITE = Rows(tables.ConversationWrite, ("id", "conversation"))

# Every sort of line but the first and the last, in the order of the file: what refers comes after what it refers to.
ORDER = (
    "policy", "topic", "history", "reference", "merged", "link", "run", "action", "pair", "access", "shadow",
    "watermark", "receipt", "audit", "conversation",
)  # fmt: skip
