"""What is written to the outbox arrives: signed, repeated under the same id, and once."""

import datetime as dt
import multiprocessing
import os
import signal
import threading
from typing import Any

import pytest
from django.core import mail
from django.db import connection, connections
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.models import NotificationDelivery, NotificationTarget
from memory.notifications import addresses, send
from memory.notifications.outbox import test_write as write_test
from memory.notifications.send import ATTEMPTS, LEASE, deliveries_due, deliveries_send
from memory.notifications.targets import target_add, target_change
from tests.cast import raises_code
from tests.notifications.receiver import Receiver

pytestmark = pytest.mark.django_db


def target_make(address: str, *, kind: str = "webhook") -> tuple[NotificationTarget, str]:
    return target_add(
        kind=kind,
        name="pager",
        address=address,
        events=["run_held"],
        regret_above=None,
        reason="for the test",
        principal=SYSTEM,
        now=timezone.now(),
    )


def write(receiver: Receiver) -> tuple[NotificationDelivery, str]:
    target, secret = target_make(receiver.address)
    write_test(target, now=timezone.now())
    return NotificationDelivery.objects.get(), secret


def again() -> NotificationDelivery:
    """Make the next attempt now."""
    NotificationDelivery.objects.update(due_at=timezone.now())
    deliveries_send(seconds=10)
    return NotificationDelivery.objects.get()


def test_a_message_is_signed_over_id_time_and_body(receiver: Receiver) -> None:
    delivery, secret = write(receiver)

    assert deliveries_send(seconds=10) == 1
    (message,) = receiver.came
    assert message.signed_by(secret)
    assert not message.signed_by("whsec_" + "A" * 44)
    assert abs(int(message.headers["webhook-timestamp"]) - timezone.now().timestamp()) < 60
    assert message.headers["webhook-id"] == message.data["id"] == str(delivery.pk)
    assert message.headers["host"] == receiver.address.split("/")[2]
    assert (message.data["event"], message.data["phase"]) == ("test", "test")
    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempts, delivery.answer) == ("sent", 1, "The receiver answered 204.")
    assert deliveries_send(seconds=10) == 0


def test_after_an_error_it_is_sent_again_later_under_the_same_id(receiver: Receiver) -> None:
    _delivery, secret = write(receiver)
    receiver.statuses = [500, 503, 200]

    deliveries_send(seconds=10)
    waiting = NotificationDelivery.objects.get()
    assert (waiting.status, waiting.answer) == ("waiting", "The receiver answered 500.")
    assert dt.timedelta(seconds=50) < waiting.due_at - timezone.now() < dt.timedelta(seconds=70)
    assert not deliveries_due(now=timezone.now())
    first = again().due_at - timezone.now()
    assert first > dt.timedelta(minutes=2)
    assert again().status == "sent"
    assert len({message.headers["webhook-id"] for message in receiver.came}) == 1
    assert all(message.signed_by(secret) for message in receiver.came)


def test_it_is_given_up_after_the_last_attempt(receiver: Receiver) -> None:
    write(receiver)
    receiver.statuses = [500]
    for _attempt in range(ATTEMPTS):
        found = again()
    assert (found.status, found.attempts, len(receiver.came)) == ("failed", ATTEMPTS, ATTEMPTS)
    assert not deliveries_due(now=timezone.now() + dt.timedelta(days=30))


def test_redirects_are_not_followed(receiver: Receiver) -> None:
    write(receiver)
    receiver.statuses, receiver.location = [302], receiver.address
    deliveries_send(seconds=10)
    assert len(receiver.came) == 1
    assert NotificationDelivery.objects.get().answer == "The receiver answered 302."


def test_messages_to_a_disabled_target_are_given_up(receiver: Receiver) -> None:
    delivery, _secret = write(receiver)
    NotificationDelivery.objects.update(message=delivery.message | {"phase": "begun"})
    target_change(delivery.target_id, enabled=False, reason="enough", principal=SYSTEM, now=timezone.now())
    deliveries_send(seconds=10)
    assert NotificationDelivery.objects.get().status == "failed"
    assert receiver.came == []


@pytest.mark.parametrize(
    "address",
    [
        "https://127.0.0.1/",
        "https://10.1.2.3/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[64:ff9b::a00:1]/",
        "https://0.0.0.0/",
    ],
)
def test_private_addresses_are_refused(address: str) -> None:
    with raises_code(Exception, "invalid-member"):
        target_make(address)


@pytest.mark.parametrize(
    "address",
    ["http://example.org/", "ftp://example.org/", "https://", "https://me:secret@example.org/", "https://a b/"],
)
def test_other_addresses_are_refused(address: str) -> None:
    with raises_code(Exception, "invalid-member"):
        target_make(address)


def test_a_name_that_leads_to_a_private_address_is_not_asked(receiver: Receiver, settings: Any) -> None:
    target, _secret = target_make(receiver.address)
    settings.MEMSTATE_NOTIFY_PRIVATE_ADDRESSES = False
    target.address = "https://localhost/"
    target.save()
    write_test(target, now=timezone.now())
    deliveries_send(seconds=10)
    found = NotificationDelivery.objects.get()
    assert (found.status, found.attempts) == ("waiting", 1)
    assert "MEMSTATE_NOTIFY_PRIVATE_ADDRESSES" in found.answer


def test_the_connection_goes_to_the_address_that_was_checked(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    _delivery, _secret = write(receiver)
    NotificationTarget.objects.update(address=receiver.address.replace("127.0.0.1", "hook.invalid"))
    looked_up = []

    def getaddrinfo(host: str, *_args: Any, **_more: Any) -> Any:
        looked_up.append(host)
        return [(2, 1, 6, "", ("127.0.0.1", 0))]

    # Only this room asks for names here, so the client has been given the address.
    monkeypatch.setattr(addresses.socket, "getaddrinfo", _only_names(addresses.socket.getaddrinfo, getaddrinfo))
    deliveries_send(seconds=10)
    assert looked_up == ["hook.invalid"]
    assert receiver.came[0].headers["host"].startswith("hook.invalid:")


def _only_names(real: Any, patched: Any) -> Any:
    def ask(host: Any, *args: Any, **more: Any) -> Any:
        return patched(host, *args, **more) if host == "hook.invalid" else real(host, *args, **more)

    return ask


def test_addresses_of_the_link_stay_forbidden(receiver: Receiver) -> None:
    with raises_code(Exception, "invalid-member"):
        target_make("http://169.254.169.254/")


def test_mail_carries_the_id_too(settings: Any) -> None:
    with raises_code(Exception, "conflict"):
        target_make("mara@example.org", kind="mail")
    settings.EMAIL_HOST = "mail.example.org"
    target, _secret = target_make("mara@example.org", kind="mail")
    write_test(target, now=timezone.now())
    deliveries_send(seconds=10)
    (sent,) = mail.outbox
    assert sent.to == ["mara@example.org"]
    assert str(NotificationDelivery.objects.get().pk) in sent.extra_headers["Message-ID"]
    with raises_code(Exception, "invalid-member"):
        target_make("mara@example.org\nBcc: eve@example.org", kind="mail")


@pytest.mark.django_db(transaction=True)
def test_two_workers_send_each_message_once(receiver: Receiver) -> None:
    target, _secret = target_make(receiver.address)
    for _one in range(20):
        write_test(target, now=timezone.now())

    def work() -> None:
        deliveries_send(seconds=30)
        connections.close_all()

    threads = [threading.Thread(target=work) for _worker in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    ids = [message.headers["webhook-id"] for message in receiver.came]
    assert len(ids) == len(set(ids)) == 20


@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_between_sending_and_marking_sends_again_under_the_same_id(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivery, secret = write(receiver)
    connection.close()

    def killed(one: NotificationDelivery) -> str:
        send_really(one)
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    send_really = send.webhook_send
    with monkeypatch.context() as patch:
        patch.setattr(send, "webhook_send", killed)
        worker = multiprocessing.get_context("fork").Process(target=deliveries_send, kwargs={"seconds": 10})
        worker.start()
        worker.join(30)
    assert worker.exitcode == -signal.SIGKILL
    assert len(receiver.came) == 1
    # While the killed worker might still be sending, others leave the message.
    assert not deliveries_due(now=timezone.now())
    assert deliveries_due(now=timezone.now() + LEASE)
    assert again().status == "sent"
    assert [message.headers["webhook-id"] for message in receiver.came] == [str(delivery.pk)] * 2
    assert all(message.signed_by(secret) for message in receiver.came)
