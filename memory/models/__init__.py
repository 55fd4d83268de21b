"""The tables, one file per noun. Models contain only data and constraints.

Functions that change rows are in the packages that use the models.
"""

from memory.models.access_log import AccessLog
from memory.models.assistant import Conversation, ConversationTurn, ConversationWrite
from memory.models.audit import AuditEvent
from memory.models.corpus import CorpusTotals, Lexeme
from memory.models.duplicates import DuplicateLook, DuplicatePair
from memory.models.erasure import ErasureCheck, ErasureReceipt, ForgetListing
from memory.models.extraction import ExtractionJob
from memory.models.fields import Field, FieldSummary, Revision
from memory.models.idempotency import IdempotencyRecord
from memory.models.job import Job
from memory.models.keys import ApiKey
from memory.models.links import Link
from memory.models.mentions import TopicMention
from memory.models.notifications import NotificationDelivery, NotificationOccurrence, NotificationTarget
from memory.models.pauses import ForgetPause
from memory.models.policies import PartitionActivity, PolicyVersion, Rekeying
from memory.models.runs import ForgetAction, ForgetRun, ShadowHit
from memory.models.scopes import Scope
from memory.models.search import TopicDocument, TopicVector
from memory.models.study import StudyJob
from memory.models.topics import Rung, Topic, TopicEdit
from memory.models.transfer import ImportedTopic, ImportJob
from memory.models.vitality import Vitality
from memory.models.worker import WakeUp, Watermark

__all__ = [
    "AccessLog",
    "ApiKey",
    "AuditEvent",
    "Conversation",
    "ConversationTurn",
    "ConversationWrite",
    "CorpusTotals",
    "DuplicateLook",
    "DuplicatePair",
    "ErasureCheck",
    "ErasureReceipt",
    "ExtractionJob",
    "Field",
    "FieldSummary",
    "ForgetAction",
    "ForgetListing",
    "ForgetPause",
    "ForgetRun",
    "IdempotencyRecord",
    "ImportJob",
    "ImportedTopic",
    "Job",
    "Lexeme",
    "Link",
    "NotificationDelivery",
    "NotificationOccurrence",
    "NotificationTarget",
    "PartitionActivity",
    "PolicyVersion",
    "Rekeying",
    "Revision",
    "Rung",
    "Scope",
    "ShadowHit",
    "StudyJob",
    "Topic",
    "TopicDocument",
    "TopicEdit",
    "TopicMention",
    "TopicVector",
    "Vitality",
    "WakeUp",
    "Watermark",
]
