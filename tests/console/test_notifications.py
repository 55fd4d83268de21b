"""The page of notifications: a target, its secret shown once, and what was sent."""

import re
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from memory.models import AuditEvent, NotificationDelivery, NotificationTarget
from memory.notifications.send import deliveries_send
from memory.notifications.targets import target_secret
from tests.console.people import body_of, codes_of
from tests.notifications.receiver import receiving

pytestmark = pytest.mark.django_db
PAGE = "/settings/notifications/"


def form_of(client: Client, **other: Any) -> dict[str, Any]:
    once = re.search(r'name="once" value="([^"]+)"', body_of(client.get(f"{PAGE}new/")))
    assert once
    filled = {
        "once": once[1],
        "kind": "webhook",
        "name": "pager",
        "address": "https://93.184.216.34/hook/in-the-path",
        "events": ["run_held", "regret"],
        "regret_above": "2.5",
        "reason": "on call",
    }
    return filled | other


def test_a_target_is_added_and_its_secret_is_shown_once(administrator: Client) -> None:
    form = form_of(administrator)
    made = administrator.post(f"{PAGE}new/", form)
    target = NotificationTarget.objects.get()
    secret = target_secret(target)

    assert secret in body_of(made)
    assert "no-store" in made.headers["Cache-Control"]
    assert (target.events, target.regret_above) == (["run_held", "regret"], 0.025)
    event = AuditEvent.objects.get(action="notification_target_added")
    assert (event.actor, event.reason, event.after["to"]) == ("user:administrator", "on call", "93.184.216.34")
    edit = f"{PAGE}{target.pk}/"
    admin = f"/admin/memory/notificationtarget/{target.pk}/change/"
    for address in (PAGE, edit, "/audit/", "/audit/export.jsonl", admin):
        page = body_of(administrator.get(address))
        assert secret not in page
        assert "in-the-path" not in page
        assert target.salt not in page
    assert all(secret not in str(session.get_decoded()) for session in Session.objects.all())
    # Sent again, the form makes no second one.
    assert codes_of(administrator.post(f"{PAGE}new/", form)) == ["already-exists"]
    assert NotificationTarget.objects.count() == 1


def test_a_target_is_changed_and_disabled_and_its_address_stays(administrator: Client) -> None:
    administrator.post(f"{PAGE}new/", form_of(administrator))
    target = NotificationTarget.objects.get()
    edit = f"{PAGE}{target.pk}/"
    administrator.post(edit, {"name": "mailbox", "events": ["job_failed"], "address": "", "reason": "holiday"})
    target.refresh_from_db()
    assert (target.name, target.events, target.regret_above, target.enabled) == ("mailbox", ["job_failed"], None, False)
    assert target.address.endswith("in-the-path")
    event = AuditEvent.objects.get(action="notification_target_changed")
    assert (event.before["enabled"], event.after["enabled"], event.reason) == (True, False, "holiday")

    before = target_secret(target)
    renewed = body_of(administrator.post(f"{edit}secret/", {"reason": "leaked"}))
    target.refresh_from_db()
    assert target_secret(target) in renewed
    assert before not in renewed
    assert AuditEvent.objects.get(action="notification_secret_renewed").reason == "leaked"


@pytest.mark.parametrize(
    ("other", "code"),
    [
        ({"address": "https://10.0.0.1/"}, "invalid-member"),
        ({"address": "http://example.org/"}, "invalid-member"),
        ({"events": ["regret"], "regret_above": ""}, "invalid-member"),
        ({"kind": "mail", "address": "mara@example.org"}, "conflict"),
        ({"reason": ""}, "required"),
    ],
)
def test_what_is_refused_changes_nothing(administrator: Client, other: dict[str, Any], code: str) -> None:
    reply = administrator.post(f"{PAGE}new/", form_of(administrator, **other))
    assert (reply.status_code, codes_of(reply)) == (422, [code])
    assert not NotificationTarget.objects.exists()


def test_a_test_is_sent_and_its_status_is_shown(administrator: Client, settings: Any) -> None:
    settings.MEMSTATE_NOTIFY_PRIVATE_ADDRESSES = True
    with receiving() as receiver:
        administrator.post(f"{PAGE}new/", form_of(administrator, address=receiver.address))
        target = NotificationTarget.objects.get()
        receiver.statuses = [500, 200]
        administrator.post(f"{PAGE}{target.pk}/test/")
        deliveries_send(seconds=10)
        page = body_of(administrator.get(PAGE))
        assert "retrying" in page
        assert "The receiver answered 500." in page
        NotificationDelivery.objects.update(due_at="2026-01-01T00:00Z")
        deliveries_send(seconds=10)
        part = body_of(administrator.get(f"{PAGE}sent/", headers={"HX-Request": "true"}))
        assert ">sent<" in part
    assert all(message.signed_by(target_secret(target)) for message in receiver.came)


def test_a_message_that_was_given_up_is_sent_again(administrator: Client) -> None:
    administrator.post(f"{PAGE}new/", form_of(administrator))
    administrator.post(f"{PAGE}{NotificationTarget.objects.get().pk}/test/")
    delivery = NotificationDelivery.objects.get()
    assert codes_of(administrator.post(f"{PAGE}sent/{delivery.pk}/")) == ["conflict"]
    NotificationDelivery.objects.update(status="failed", attempts=9)
    assert f"{PAGE}sent/{delivery.pk}/" in body_of(administrator.get(PAGE))

    administrator.post(f"{PAGE}sent/{delivery.pk}/")

    assert NotificationDelivery.objects.values_list("id", "status", "attempts").get() == (delivery.pk, "waiting", 0)
    assert AuditEvent.objects.filter(action="notification_sent_again").count() == 1


def test_a_removed_target_gets_nothing_and_is_not_shown(administrator: Client) -> None:
    administrator.post(f"{PAGE}new/", form_of(administrator))
    target = NotificationTarget.objects.get()

    administrator.post(f"{PAGE}{target.pk}/remove/", {"reason": "left the team"})

    assert administrator.get(PAGE).context["targets"] == []
    assert administrator.get(f"{PAGE}{target.pk}/").status_code == 404
    target.refresh_from_db()
    assert (target.enabled, target.removed_at is not None) == (False, True)
    assert AuditEvent.objects.get(action="notification_target_removed").reason == "left the team"
