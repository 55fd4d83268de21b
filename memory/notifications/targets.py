"""Adds, changes and removes targets of notifications. Each change is journaled, without secrets."""

import base64
import datetime as dt
import hmac
import secrets
import uuid
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from memory.access.principal import Principal
from memory.core.endpoints import endpoint_address
from memory.core.errors import Conflict, NotAllowed, NotVisible, ValueRefused
from memory.core.ids import uuid7_at
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT
from memory.models import AuditEvent, NotificationDelivery, NotificationTarget
from memory.notifications.addresses import address_refuse

# Every event, with its description.
EVENTS = {
    "run_held": "A run waits for approval",
    "job_failed": "A job or a run failed",
    "worker_stopped": "The worker stopped",
    "regret": "Too many archived memories were missed",
}
Kind = NotificationTarget.Kind


def target_get(target_id: uuid.UUID, *, lock: bool = False) -> NotificationTarget:
    """Return a target. ``lock`` locks its row until the transaction ends. One query. Raises ``NotVisible``."""
    rows = NotificationTarget.objects.select_for_update() if lock else NotificationTarget.objects
    target = rows.filter(pk=target_id, removed_at__isnull=True).first()
    if target is None:
        raise NotVisible("This target does not exist.")
    return target


def targets_list() -> list[NotificationTarget]:
    """Return all targets that are not removed, enabled ones first. One query."""
    return list(NotificationTarget.objects.filter(removed_at__isnull=True).order_by("-enabled", "name", "id"))


def target_add(
    *,
    kind: str,
    name: str,
    address: str,
    events: list[str],
    regret_above: float | None,
    reason: str,
    principal: Principal,
    now: dt.datetime,
    target_id: uuid.UUID | None = None,
) -> tuple[NotificationTarget, str]:
    """Store a new target. Return it and the secret that signs its messages. Two queries.

    ``target_id`` is set if the same form may be sent twice: a second target with this id raises ``Conflict``. Raises
    ``ValueRefused`` for invalid values, and ``NotAllowed``.
    """
    _operator_require(principal)
    _values_refuse(kind, address, events, regret_above)
    target = NotificationTarget(
        id=target_id or uuid7_at(now),
        kind=kind,
        name=name,
        address=address,
        salt=secrets.token_hex(32),
        events=events,
        regret_above=regret_above,
        created_at=now,
    )
    with transaction.atomic():
        try:
            target.save(force_insert=True)
        except IntegrityError:
            raise Conflict(
                "This target has already been added. Its secret was shown then and cannot be shown again.",
                code=ProblemCode.ALREADY_EXISTS,
            ) from None
        _audit("notification_target_added", {}, _shown(target), reason=reason, principal=principal, now=now)
    return target, target_secret(target)


def target_change(
    target_id: uuid.UUID, *, reason: str, principal: Principal, now: dt.datetime, **values: Any
) -> NotificationTarget:
    """Change members of a target: name, address, events, regret_above, enabled. Three queries.

    Raises ``NotVisible``, ``NotAllowed``, and ``ValueRefused`` for invalid values.
    """
    _operator_require(principal)
    with transaction.atomic():
        target = target_get(target_id, lock=True)
        before = _shown(target)
        address = target.address
        for name, value in values.items():
            setattr(target, name, value)
        _values_refuse(target.kind, target.address, target.events, target.regret_above)
        target.save(update_fields=[*values])
        after = _shown(target)
        if address != target.address:
            # Pages show only the host, so a change of the path would not be visible.
            after["address_changed"] = True
        if after != before:
            _audit("notification_target_changed", before, after, reason=reason, principal=principal, now=now)
    return target


def target_remove(target_id: uuid.UUID, *, reason: str, principal: Principal, now: dt.datetime) -> NotificationTarget:
    """Remove a target: it is disabled, and no page shows it. Return it. Three queries. Raises ``NotVisible`` and
    ``NotAllowed``."""
    _operator_require(principal)
    with transaction.atomic():
        target = target_get(target_id, lock=True)
        before = _shown(target)
        target.enabled, target.removed_at = False, now
        target.save(update_fields=["enabled", "removed_at"])
        _audit("notification_target_removed", before, {}, reason=reason, principal=principal, now=now)
    return target


def delivery_retry(delivery_id: uuid.UUID, *, principal: Principal, now: dt.datetime) -> None:
    """Send a message again that was given up, with the same id. Three queries. Raises ``NotVisible``, ``Conflict`` if
    the message was not given up or its target is disabled, and ``NotAllowed``."""
    _operator_require(principal)
    with transaction.atomic():
        rows = NotificationDelivery.objects.select_for_update(of=("self",)).select_related("target")
        delivery = rows.filter(pk=delivery_id).first()
        if delivery is None:
            raise NotVisible("This message does not exist.")
        if delivery.status != NotificationDelivery.Status.FAILED or not delivery.target.enabled:
            raise Conflict("Only a message that was given up can be sent again, and only to an enabled target.")
        delivery.status, delivery.attempts, delivery.due_at = NotificationDelivery.Status.WAITING, 0, now
        delivery.finished_at = None
        delivery.save(update_fields=["status", "attempts", "due_at", "finished_at"])
        after = {"delivery": str(delivery_id), "to": target_place(delivery.target)}
        _audit("notification_sent_again", {}, after, reason="", principal=principal, now=now)


def target_secret_renew(target_id: uuid.UUID, *, reason: str, principal: Principal, now: dt.datetime) -> str:
    """Create and return a new secret, which replaces the present one at once. Three queries."""
    _operator_require(principal)
    with transaction.atomic():
        target = target_get(target_id, lock=True)
        target.salt = secrets.token_hex(32)
        target.save(update_fields=["salt"])
        _audit("notification_secret_renewed", {}, _shown(target), reason=reason, principal=principal, now=now)
    return target_secret(target)


def target_secret(target: NotificationTarget) -> str:
    """Return the secret that signs the messages of a webhook, as receivers configure it. No query.

    The secret is derived from ``SECRET_KEY``, so that neither the database nor a backup contains it.
    """
    key = hmac.digest(settings.SECRET_KEY.encode(), f"memstate.notifications\n{target.salt}".encode(), "sha256")
    return "whsec_" + base64.b64encode(key).decode()


def target_place(target: NotificationTarget) -> str:
    """Return the destination as pages and journals show it: the mail address, or the host of the webhook."""
    return target.address if target.kind == Kind.MAIL else endpoint_address(target.address).host


def _operator_require(principal: Principal) -> None:
    principal.require("operator")
    if not principal.sees(ROOT):
        raise NotAllowed("Notifications are for the whole store.")


def _values_refuse(kind: str, address: str, events: list[str], regret_above: float | None) -> None:
    if kind == Kind.WEBHOOK:
        address_refuse(address)
    else:
        try:
            validate_email(address)
        except ValidationError:
            raise ValueRefused("Enter a valid mail address.", member="address") from None
        if not settings.EMAIL_HOST:
            raise ValueRefused("Mail cannot be sent, because MEMSTATE_MAIL_HOST is not set.", code=ProblemCode.CONFLICT)
    if not events or not set(events) <= EVENTS.keys():
        raise ValueRefused(f"Choose events among {', '.join(EVENTS)}.", member="events")
    if ("regret" in events) != (regret_above is not None) or not 0 <= (regret_above or 0) <= 1:
        raise ValueRefused("Set a value from 0 to 100 % for the event regret, and none without this event.")


def _shown(target: NotificationTarget) -> dict[str, Any]:
    return {
        "target": str(target.pk),
        "name": target.name,
        "kind": target.kind,
        "to": target_place(target),
        "events": target.events,
        "regret_above": target.regret_above,
        "enabled": target.enabled,
    }


def _audit(
    action: str, before: dict[str, Any], after: dict[str, Any], *, reason: str, principal: Principal, now: dt.datetime
) -> None:
    AuditEvent.objects.create(
        at=now, actor=principal.actor, action=action, scope=ROOT, reason=reason, before=before, after=after
    )
