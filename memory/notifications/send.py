"""Sends the messages of the outbox, and retries after failures with growing waits. If a process is
killed while it sends a message, the message may be sent twice, with the same id."""

import base64
import datetime as dt
import hmac
import json
import threading
import time
import uuid
from email.utils import formatdate

import httpx2
import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.utils import timezone

from memory.core.errors import MemoryProblem
from memory.models import NotificationDelivery
from memory.notifications.addresses import address_refuse, address_resolve
from memory.notifications.targets import EVENTS, target_secret

logger = structlog.get_logger(__name__)

SECONDS = 10.0
# For this long, a delivery belongs to the process that sends it. After that, another process may send it, because the
# first one may have been killed.
LEASE = dt.timedelta(minutes=2)
ATTEMPTS = 8
# The waits between attempts: 1, 3, 9, 27 and 81 minutes, then 4 hours each.
FIRST_WAIT, LONGEST_WAIT = dt.timedelta(minutes=1), dt.timedelta(hours=4)
_Status = NotificationDelivery.Status


class SendFailed(Exception):
    """An attempt failed. The message gives the reason without text from the receiver."""


def deliveries_due(*, now: dt.datetime) -> bool:
    """Return whether a message waits to be sent. One query on a partial index."""
    return NotificationDelivery.objects.filter(status=_Status.WAITING, due_at__lte=now).exists()


def deliveries_send(*, seconds: float) -> int:
    """Send due messages for at most ``seconds``, and return the number of attempts. Three queries per attempt, and one
    when no message is due.

    Several processes may call this at the same time: each delivery is sent by one of them.
    """
    until, made = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        delivery = _take(timezone.now())
        if delivery is None:
            break
        _attempt(delivery)
        made += 1
    return made


def _take(now: dt.datetime) -> NotificationDelivery | None:
    with transaction.atomic():
        due = NotificationDelivery.objects.filter(status=_Status.WAITING, due_at__lte=now)
        delivery = (
            due.select_related("target").select_for_update(skip_locked=True, of=("self",)).order_by("due_at").first()
        )
        if delivery is not None:
            delivery.attempts += 1
            delivery.due_at = now + LEASE
            delivery.save(update_fields=["attempts", "due_at"])
    return delivery


def _attempt(delivery: NotificationDelivery) -> None:
    target = delivery.target
    try:
        if not target.enabled and delivery.message["phase"] != "test":
            raise SendFailed("The target is disabled.")
        answer, sent = (webhook_send if target.kind == target.Kind.WEBHOOK else mail_send)(delivery), True
    except SendFailed as problem:
        answer, sent = str(problem), False
    now = timezone.now()
    delivery.answer = answer[:200]
    if sent or delivery.attempts >= ATTEMPTS or not target.enabled:
        delivery.status, delivery.finished_at = _Status.SENT if sent else _Status.FAILED, now
    else:
        delivery.due_at = now + min(FIRST_WAIT * 3 ** (delivery.attempts - 1), LONGEST_WAIT)
    # ``attempts`` differs if this process was so slow that another process has taken the delivery.
    NotificationDelivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts).update(
        status=delivery.status, answer=delivery.answer, due_at=delivery.due_at, finished_at=delivery.finished_at
    )
    # The log omits the address, which may contain a secret.
    logger.info("notification_attempt", delivery=str(delivery.pk), target=str(target.pk), sent=sent, answer=answer)


def webhook_send(delivery: NotificationDelivery) -> str:
    """Post a message and return a description of the response. Raises ``SendFailed``.

    Redirects are not followed, and the body of the reply is not read. No query.
    """
    body = json.dumps({"id": str(delivery.pk), **delivery.message}).encode()
    headers = _headers(delivery.pk, body, target_secret(delivery.target))
    ended: list[int | str] = []
    # The request runs in a thread that can be abandoned. The timeout of the client limits single reads, but not the DNS
    # lookup.
    thread = threading.Thread(
        target=lambda: ended.append(_post(delivery.target.address, body, headers)), name="webhook", daemon=True
    )
    thread.start()
    thread.join(SECONDS)
    status = ended[0] if ended else "The receiver did not answer in time."
    if isinstance(status, str):
        raise SendFailed(status)
    if not 200 <= status < 300:
        raise SendFailed(f"The receiver answered {status}.")
    return f"The receiver answered {status}."


def _post(address: str, body: bytes, headers: dict[str, str]) -> int | str:
    try:
        parts = address_refuse(address)
        ip = address_resolve(parts)
    except MemoryProblem as problem:
        return problem.sentence
    except (OSError, UnicodeError):
        return "The host is unknown."
    named = f"[{ip}]" if ":" in ip else ip
    place = parts._replace(netloc=f"{named}:{parts.port}" if parts.port else named, fragment="")
    try:
        with (
            httpx2.Client(trust_env=False, follow_redirects=False, timeout=SECONDS) as client,
            client.stream(
                "POST",
                place.geturl(),
                content=body,
                headers={"Host": parts.netloc, **headers},
                # The connection uses the IP address, but the certificate must be valid for the host name.
                extensions={"sni_hostname": parts.hostname},
            ) as reply,
        ):
            return reply.status_code
    except httpx2.TimeoutException:
        return "The receiver did not answer in time."
    except Exception as problem:
        return f"The receiver cannot be reached ({type(problem).__name__})."


def _headers(delivery_id: uuid.UUID, body: bytes, secret: str) -> dict[str, str]:
    """Return the headers of the Standard Webhooks specification, so that receivers can use its libraries."""
    stamp = str(int(time.time()))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signature = hmac.digest(key, f"{delivery_id}.{stamp}.".encode() + body, "sha256")
    return {
        "Content-Type": "application/json",
        "User-Agent": "memstate",
        "webhook-id": str(delivery_id),
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }


def mail_send(delivery: NotificationDelivery) -> str:
    """Send a message as mail. Raises ``SendFailed``. No query."""
    message = delivery.message
    what = EVENTS.get(message["event"], "Test")
    over = "Over: " if message["phase"] == "over" else ""
    mail_post(
        EmailMessage(
            subject=f"[MemState] {over}{what}",
            body=f"{message['text']}\n\nScope: {message['scope']}\nPage in the console: {message['page']}\n",
            to=[delivery.target.address],
            headers={"Message-ID": f"<{delivery.pk}@memstate>", "Date": formatdate(localtime=False)},
        )
    )
    return "The mail server accepted the message."


def mail_post(mail: EmailMessage) -> None:
    """Hand a mail to the mail server. Waits at most ``EMAIL_TIMEOUT`` seconds for each answer. Raises ``SendFailed``.
    No query."""
    if not settings.EMAIL_HOST:
        raise SendFailed("MEMSTATE_MAIL_HOST is not set.")
    try:
        mail.send()
    # smtplib raises OSError or a subclass of it. Django raises ValueError for an address that it cannot encode.
    except (OSError, ValueError) as problem:
        raise SendFailed(f"The mail server refused it ({type(problem).__name__}).") from None


def deliveries_last(most: int) -> list[NotificationDelivery]:
    """Return the newest deliveries with their targets. One query."""
    return list(NotificationDelivery.objects.select_related("target").order_by("-created_at", "-id")[:most])
