"""The shape of an export: which columns of which tables stand in a line, made from the models.

So a column that is added to a model is in the file by itself, and a table that is added stands either here or, with the
reason, in ``LEFT_OUT``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    "DuplicateLook": "stands as ``looked`` with its topic; one that waits is looked at anew",
    "TopicDocument": "made anew from the text, but for what was merged into another topic",
    "Lexeme": "counted anew",
    "CorpusTotals": "counted anew",
}
# Journal entries about the installation rather than about the memory.
AUDIT_LEFT_OUT = (
    "key_created",
    "key_revoked",
    "job_retried",
    "schedule_paused",
    "schedule_resumed",
    "schedule_run",
    "schedule_changed",
    "import_started",
    "import_done",
    "import_failed",
    "import_cancelled",
    "import_released",
    "exported",
)


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
    """Rows of one table as objects of JSON. ``without`` names the columns that are left out, each with the reason."""

    model: type[models.Model]
    without: Mapping[str, str] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """The table."""
        return self.model._meta.db_table

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns, in the order of the model."""
        found = []
        for own in self.model._meta.concrete_fields:
            if own.name in self.without:
                continue
            is_scope = own.related_model is tables.Scope
            sort = "text" if is_scope else own.rel_db_type(connection) or ""
            if not (own.is_relation or own.primary_key):
                sort = own.db_type(connection) or ""
            found.append(Column(own.name if is_scope else own.attname, str(own.column), sort, own))
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


# Numbers that nothing refers to are given anew, in the order of the old ones.
_ANEW = "given anew, in the order of the old ones; nothing refers to it"
_HOLDER = "that of the object around it"
_REPEATED = "repeats the topic's"
_APART = "stands in a line of its own, as it may point ahead"

POLICY_VERSION = Rows(tables.PolicyVersion, {"id": _ANEW, "scope": _HOLDER})
TOPIC = Rows(tables.Topic, {"merged_into": _APART})
VITALITY = Rows(
    tables.Vitality,
    {"topic": _HOLDER, "scope": _REPEATED, "kind": _REPEATED, "created_at": _REPEATED, "rung": _REPEATED},
)
EDIT = Rows(tables.TopicEdit, {"id": _ANEW, "topic": _HOLDER})
FIELD = Rows(tables.Field, {"topic": _HOLDER})
REVISION = Rows(tables.Revision, {"field": _HOLDER, "ref_topic": _APART})
SUMMARY = Rows(tables.FieldSummary, {"field": _HOLDER})
VECTOR = Rows(tables.TopicVector, {"topic": _HOLDER, "scope": _REPEATED, "live": _REPEATED})
# Of what was merged into another topic alone.
MENTION = Rows(tables.TopicMention, {"topic": _HOLDER, "scope": _REPEATED})
LINK = Rows(tables.Link)
RUN = Rows(tables.ForgetRun)
ACTION = Rows(tables.ForgetAction, {"id": _ANEW})
PAIR = Rows(tables.DuplicatePair)
ACCESS = Rows(tables.AccessLog)
SHADOW = Rows(tables.ShadowHit, {"id": _ANEW})
WATERMARK = Rows(tables.Watermark, {"id": _ANEW})
RECEIPT = Rows(tables.ErasureReceipt)
AUDIT = Rows(tables.AuditEvent, {"id": _ANEW})
# The first account or key of another installation is somebody else.
CONVERSATION = Rows(
    tables.Conversation, {"identity": "an account or a key of this installation; elsewhere nobody goes on with it"}
)
TURN = Rows(
    tables.ConversationTurn,
    {"id": _ANEW, "conversation": _HOLDER, "study": "a job, which is work of this installation"},
)
WRITE = Rows(tables.ConversationWrite, {"id": _ANEW, "conversation": _HOLDER})

# Every sort of line but the first and the last, in the order of the file: what refers comes after what it refers to.
ORDER = (
    "policy",
    "topic",
    "history",
    "reference",
    "merged",
    "link",
    "run",
    "action",
    "pair",
    "access",
    "shadow",
    "watermark",
    "receipt",
    "audit",
    "conversation",
)
