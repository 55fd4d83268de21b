"""Read-only tables for administrators. Rows must be changed by operations that write a journal entry."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django_q.models import Failure, OrmQ, Schedule, Success

from memory import models
from memory.stores.models import StoreRole, WorkerHeartbeat

admin.site.site_header = admin.site.site_title = "MemState"
admin.site.index_title = "Raw rows"


def _sign_in(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    """Redirect to the index, or to the sign-in page of the console, which limits failed attempts. Raises
    ``PermissionDenied`` for people without access."""
    if admin.site.has_permission(request):
        return redirect("admin:index")
    if request.user.is_authenticated:
        # A redirect to the sign-in page would lead back to this page.
        raise PermissionDenied
    return redirect_to_login(request.GET.get("next") or reverse("admin:index"))


admin.site.login = _sign_in  # type: ignore[method-assign]


def _password(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    return redirect("console:account")


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shows rows without allowing changes."""

    # No exact count, because it would take longer than the rest of the page for a large table.
    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Return False: rows are created by operations such as ingest."""
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Return False: changes must be journaled."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Return False: rows are removed by operations such as purge."""
        return False


# Passwords are changed in the console, which journals the change.
admin.site.password_change = _password  # type: ignore[method-assign, assignment]
# The queue's own pages would let an administrator of the console run any function on the host.
# Django's pages of accounts would change people without a journal entry.
for model in (Schedule, OrmQ, Success, Failure, User, Group):
    admin.site.unregister(model)


def _register(
    model: type,
    *columns: str,
    filters: tuple[str, ...] = (),
    search: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
) -> None:
    options = {"list_display": columns, "list_filter": filters, "search_fields": search, "exclude": exclude}
    admin.site.register(model, type(f"{model.__name__}Admin", (ReadOnlyAdmin,), options))


_register(
    User,
    "username",
    "is_staff",
    "is_superuser",
    "is_active",
    "last_login",
    filters=("is_active",),
    search=("username",),
    exclude=("password",),
)
_register(StoreRole, "user", "store", "role")
_register(models.Scope, "path", search=("path",))
_register(models.Topic, "title", "scope", "kind", "rung", "created_at", filters=("rung",), search=("=id", "title"))
_register(models.TopicEdit, "topic", "at", "actor")
_register(
    models.Vitality, "topic", "salience", "reinforced_at", "retrieval_count", "pinned", filters=("pinned", "rung")
)
_register(models.Field, "name", "topic", "last_seq", "cold_through", "salience", search=("name",))
_register(models.Revision, "field", "seq", "field_type", "recorded_at", "provenance")
_register(models.FieldSummary, "field", "from_seq", "through_seq", "method", "depth")
_register(models.Link, "source", "kind", "target", "created_at")
_register(models.TopicVector, "topic", "model", "live", "text_hash", filters=("live", "model"))
_register(models.TopicDocument, "topic", "length", "live", "uncounted", filters=("live", "uncounted"))
_register(models.Lexeme, "word", "documents", search=("word",))
_register(models.CorpusTotals, "documents")
_register(models.AccessLog, "at", "kind", "actor", "scope", "query", "folded_at", "counted", filters=("kind",))
_register(models.AuditEvent, "at", "actor", "action", "topic_id", "scope", "reason", filters=("action",))
_register(models.ForgetPause, "created_at", "scope", "actor", "until", "lifted_at", "lifted_by")
_register(models.NotificationTarget, "name", "kind", "events", "enabled", "created_at", exclude=("address", "salt"))
_register(models.NotificationOccurrence, "began_at", "event", "subject", "over_at", filters=("event",))
_register(
    models.NotificationDelivery, "created_at", "target", "status", "attempts", "due_at", "answer", filters=("status",)
)
_register(models.ForgetListing, "created_at", "verb", "scope", "actor", "count", "executed_at", filters=("verb",))
_register(models.ErasureReceipt, "number", "at", "actor", "scope", "reason", "hash")
_register(models.TopicMention, "topic", "scope", "identifiers")
_register(
    models.ApiKey,
    "name",
    "prefix",
    "role",
    "scope",
    "may_forget",
    "created_at",
    "expires_at",
    "revoked_at",
    "last_used_at",
)
_register(models.IdempotencyRecord, "actor", "key", "status", "created_at")
_register(models.WakeUp, "scope", "event", "first_at", "last_at", "times")
_register(WorkerHeartbeat, "name", "seen_at")
_register(models.Watermark, "name", "position", "taken")
_register(models.PolicyVersion, "scope", "number", "preset", "author", "reason", "created_at", search=("scope",))
_register(models.PartitionActivity, "scope", "active_until")
_register(models.Rekeying, "scope", "started_at", "finished_at", "done", "total")
_register(models.ForgetRun, "created_at", "event", "scope", "status", "planned", "applied", filters=("status",))
_register(models.ForgetAction, "run", "place", "action", "topic", "state", "at", filters=("action", "state"))
_register(models.ExtractionJob, "created_at", "scope", "status", "done", "segments", "actor", filters=("status",))
_register(
    models.StudyJob, "created_at", "scope", "status", "phase", "done", "topics", "actor", filters=("status", "phase")
)
_register(models.Conversation, "moved_at", "scope", "channel", "turns", "actor", filters=("channel",))
_register(models.ConversationTurn, "at", "conversation", "place", "intent", "ended", filters=("ended",))
_register(models.ConversationWrite, "at", "conversation", "topic", "what", "undone_at", filters=("what",))
_register(models.ImportJob, "created_at", "source", "status", "done", "lines", "actor", filters=("status", "source"))
_register(models.ErasureCheck, "created_at", "status", "done", "expected", "receipts", "actor", filters=("status",))
_register(models.ImportedTopic, "topic", "job")
_register(models.DuplicatePair, "found_at", "verdict", "state", "similarity", "held", filters=("verdict", "state"))
_register(models.DuplicateLook, "topic", "waiting", filters=("waiting",))
_register(models.ShadowHit, "at", "topic", "rank", "similarity")
_register(Schedule, "name", "func", "args", "schedule_type", "minutes", "cron", "next_run", "repeats")
_register(OrmQ, "id", "name", "func", "lock")
_register(Success, "name", "func", "started", "stopped", filters=("func",))
_register(Failure, "name", "func", "started", "stopped", "attempt_count", filters=("func",))
