"""The outbox: messages are written in the transaction that causes the event, and sent later."""

import datetime as dt
from collections.abc import Mapping

from django.db import connection, transaction

from memory.core.ids import uuid7_at
from memory.models import NotificationDelivery, NotificationOccurrence, NotificationTarget
from memory.stores.pending import after_commit, work_pending

# The most characters of a text. Messages contain scopes, jobs and counts. They contain no texts of the store, and no
# errors, because errors may quote such texts.
MAX_TEXT = 1000


def occurrence_note(event: str, subject: str, *, text: str, page: str, scope: str, now: dt.datetime) -> None:
    """Write the messages of an event that has no duration. At most four queries, two if no target wants the event."""
    with transaction.atomic():
        occurrence_begin(event, subject, text=text, page=page, scope=scope, now=now)
        NotificationOccurrence.objects.filter(event=event, subject=subject, over_at=None).update(over_at=now)


def occurrence_begin(
    event: str,
    subject: str,
    *,
    text: str,
    page: str,
    scope: str,
    now: dt.datetime,
    target: NotificationTarget | None = None,
) -> None:
    """Open an occurrence of ``event`` for ``subject``, and write a message for each target that wants the event, or
    only for ``target``. Does nothing if the occurrence is already open. ``page`` is the path of a console page. At most
    three queries, one if no target wants the event."""
    wanted = [target] if target else list(NotificationTarget.objects.filter(enabled=True, events__contains=[event]))
    if not wanted:
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Waits for any other transaction that opens the same occurrence.
            cursor.execute(_OPEN_SQL, [event, subject, now])
            opened = cursor.fetchone()
        if opened is not None:
            _write(wanted, _message(event, "begun", text, page, scope, now), opened[0], now=now)


_OPEN_SQL = """
INSERT INTO memory_notificationoccurrence (event, subject, began_at) VALUES (%s, %s, %s)
ON CONFLICT (event, subject) WHERE over_at IS NULL DO NOTHING RETURNING id
"""


def occurrences_open(event: str) -> set[str]:
    """Return the subjects of the open occurrences of an event. One query."""
    return set(
        NotificationOccurrence.objects.filter(event=event, over_at__isnull=True).values_list("subject", flat=True)
    )


def occurrences_end(event: str, texts: Mapping[str, str], *, now: dt.datetime) -> None:
    """End open occurrences, and write a message to each enabled target that was notified of the beginning. ``texts``
    maps each subject to the text of its message. Three queries, plus one for each message; only one if none of the
    occurrences is open."""
    if not texts:
        return
    with transaction.atomic():
        rows = NotificationOccurrence.objects.select_for_update().filter(
            event=event, subject__in=texts, over_at__isnull=True
        )
        ended = {row.pk: row.subject for row in rows}
        if not ended:
            return
        NotificationOccurrence.objects.filter(pk__in=ended).update(over_at=now)
        begun = NotificationDelivery.objects.filter(occurrence__in=ended, target__enabled=True).select_related("target")
        for one in begun:
            said: dict[str, str] = one.message
            subject = ended[one.occurrence_id or 0]
            message = _message(event, "over", texts[subject], said["page"], said["scope"], now)
            _write([one.target], message, one.occurrence_id, now=now)


def test_write(target: NotificationTarget, *, now: dt.datetime) -> None:
    """Write a test message for a target. One query."""
    page = "/settings/notifications/"
    _write([target], _message("test", "test", "This is a test of MemState.", page, "/", now), None, now=now)


def _message(event: str, phase: str, text: str, page: str, scope: str, now: dt.datetime) -> dict[str, str]:
    return {
        "event": event,
        "phase": phase,
        "at": now.isoformat(),
        "scope": scope,
        "text": text[:MAX_TEXT],
        "page": page,
    }


def _write(
    targets: list[NotificationTarget], message: Mapping[str, str], occurrence_id: int | None, *, now: dt.datetime
) -> None:
    NotificationDelivery.objects.bulk_create(
        NotificationDelivery(
            id=uuid7_at(now),
            target=target,
            occurrence_id=occurrence_id,
            message={**message, "occurrence": occurrence_id},
            created_at=now,
            due_at=now,
        )
        for target in targets
    )
    after_commit(work_pending)
