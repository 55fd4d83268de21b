"""``manage.py key``: keys made at the terminal are the keys that requests are let in with."""

import datetime as dt
import io
import re

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from memory.access.keys import key_create
from memory.models import ApiKey, AuditEvent
from tests.cast import Caller, Clock, in_process, raises_code

pytestmark = [pytest.mark.django_db]


def key(*words: str) -> str:
    """Run the command with these words and return what it says."""
    out = io.StringIO()
    call_command("key", *words, stdout=out)
    return out.getvalue()


def made(*words: str) -> str:
    """Make a key and return its secret: the one word in what is said that looks like it."""
    said = key("create", *words)
    (secret,) = re.findall(r"^ms_[\w-]{40,}$", said, re.MULTILINE)
    assert said.count(secret) == 1
    return str(secret)


def lines_of_list() -> list[list[str]]:
    return [line.split() for line in key("list").splitlines()]


def test_a_new_key_opens_the_store_and_its_secret_is_never_shown_again():
    secret = made("laptop")
    caller = Caller(in_process, secret)
    assert caller.topic(caller.remember("Tea"))["title"] == "Tea"
    stored = ApiKey.objects.get()
    assert (stored.name, stored.role, stored.scope, stored.expires_at) == ("laptop", "agent", "/", None)
    assert secret not in str(ApiKey.objects.values().get())
    assert secret not in key("list")
    event = AuditEvent.objects.get(action="key_created")
    assert event.actor == "terminal"
    assert secret not in str(AuditEvent.objects.filter(pk=event.pk).values().get())


@pytest.mark.parametrize(("role", "status"), [("reader", 403), ("agent", 200), ("operator", 200)])
def test_the_role_of_a_key_is_the_one_asked_for(role: str, status: int):
    caller = Caller(in_process, made("laptop", "--role", role))
    assert caller.post("/v1/ingest", {"placement": "new_topic", "title": "Tea"}).status == status
    assert caller.post("/v1/query", {"q": "Tea"}).status == 200
    # What only operators may do.
    past = {"placement": "new_topic", "title": "Tea", "created_at": "2020-01-01T00:00:00Z"}
    assert (caller.post("/v1/ingest", past).status == 200) == (role == "operator")


def test_only_a_key_made_so_may_forget(agent: Caller):
    agent.remember("Tea")
    for more, status in (((), 403), (("--may-forget",), 200)):
        caller = Caller(in_process, made("laptop", *more))
        assert caller.post("/v1/forget", {"query": "tea"}).status == status
        assert ("may forget" in key("list")) == bool(more)
    event = AuditEvent.objects.filter(action="key_created", actor="terminal").latest("id")
    assert event.after["may_forget"] is True
    with pytest.raises(CommandError) as problem:
        key("create", "laptop", "--role", "reader", "--may-forget")
    assert problem.value.code == "contradictory-request"


def test_a_key_sees_nothing_outside_its_scope(agent: Caller):
    outside, inside = agent.remember("Bob's", scope="/user/bob"), agent.remember("Alice's", scope="/user/alice/home")
    caller = Caller(in_process, made("alice", "--scope", "user/alice/"))
    assert ApiKey.objects.order_by("-created_at").first().scope == "/user/alice"
    assert caller.get(f"/v1/topics/{inside}").status == 200
    assert caller.get(f"/v1/topics/{outside}").status == 404


def test_a_key_ends_after_its_days(clock: Clock):
    clock.stop()
    caller = Caller(in_process, made("guest", "--days", "3"))
    clock.forward(days=2, hours=23, minutes=59)
    assert caller.post("/v1/query", {"q": "Tea"}).status == 200
    clock.forward(minutes=2)
    answer = caller.post("/v1/query", {"q": "Tea"})
    assert answer.status == 401
    assert answer.code == "key-expired"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("laptop", "--days", "0"), "invalid-member"),
        (("laptop", "--days", "-1"), "invalid-member"),
        (("laptop", "--days", "999999999999"), "invalid-member"),
        (("laptop", "--scope", "/a b"), "invalid-scope"),
        (("",), "invalid-member"),
        (("x" * 101,), "invalid-member"),
        (("laptop", "--role", "god"), r"invalid choice: 'god'"),
        (("laptop", "--days", "soon"), r"invalid int value: 'soon'"),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(words: tuple[str, ...], said: str):
    with pytest.raises(CommandError, match=said) as refused:
        key("create", *words)
    assert refused.value.returncode == 1
    assert not ApiKey.objects.exists()
    assert not AuditEvent.objects.exists()


def test_the_list_tells_the_state_of_each_key_oldest_first():
    assert key("list") == ""
    valid = made("valid one", "--role", "reader", "--scope", "/user/alice")
    expired = made("expired one", "--days", "1")
    revoked = made("revoked one", "--role", "operator")
    both = made("both", "--days", "1")
    soon = made("soon", "--days", "1")
    ApiKey.objects.filter(name__in=["expired one", "both"]).update(expires_at=timezone.now() - dt.timedelta(days=1))
    key("revoke", revoked[:8])
    key("revoke", both[:8])
    Caller(in_process, valid).query("Tea")
    used = f"{timezone.now():%Y-%m-%d}"
    listed = lines_of_list()
    assert [line[:4] for line in listed] == [
        [valid[:8], "reader", "valid", "/user/alice"],
        [expired[:8], "agent", "expired", "/"],
        [revoked[:8], "operator", "revoked", "/"],
        [both[:8], "agent", "revoked", "/"],
        [soon[:8], "agent", "valid", "/"],
    ]
    assert [line[4:6] for line in listed] == [["used", used], *[["never", "used"]] * 4]
    assert [line[-2:] for line in listed[:3]] == [["valid", "one"], ["expired", "one"], ["revoked", "one"]]


def test_a_revoked_key_opens_nothing_and_the_journal_says_who_and_why():
    secret, other = made("laptop", "--scope", "/user/alice"), made("phone")
    caller = Caller(in_process, secret)
    caller.query("Tea")
    assert "'laptop'" in key("revoke", secret[:8], "--reason", "left on a train")
    answer = caller.post("/v1/query", {"q": "Tea"})
    assert answer.status == 401
    assert answer.code == "key-revoked"
    Caller(in_process, other).query("Tea")
    event = AuditEvent.objects.get(action="key_revoked")
    assert (event.actor, event.reason, event.scope) == ("terminal", "left on a train", "/user/alice")
    assert event.before == {"name": "laptop", "role": "agent", "prefix": secret[:8]}
    assert secret not in str(AuditEvent.objects.filter(pk=event.pk).values().get())


@pytest.mark.parametrize("prefix", ["ms_nobod", "", "ms_", "%", "ms_the-\x7f"])
def test_an_unknown_prefix_is_refused_in_a_sentence_and_revokes_nothing(prefix: str):
    made("laptop")
    with raises_code(CommandError, "not-found") as refused:
        key("revoke", prefix)
    assert refused.value.returncode == 1
    assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()
    assert not AuditEvent.objects.filter(action="key_revoked").exists()


def test_a_key_is_revoked_once():
    secret = made("laptop")
    key("revoke", secret[:8])
    when = ApiKey.objects.get().revoked_at
    with raises_code(CommandError, "not-found"):
        key("revoke", secret[:8])
    assert ApiKey.objects.get().revoked_at == when
    assert AuditEvent.objects.filter(action="key_revoked").count() == 1


def test_a_prefix_that_two_keys_share_is_refused_in_a_sentence_until_one_of_them_is_gone():
    first = "ms_twins-the-first-of-them-in-this-test"
    second = "ms_twins-the-second-of-them-in-this-test"
    for name, secret in (("first", first), ("second", second)):
        key_create(name=name, role="agent", secret=secret)
    with raises_code(CommandError, "ambiguous-request") as refused:
        key("revoke", "ms_twins")
    assert refused.value.returncode == 1
    for secret in (first, second):
        assert Caller(in_process, secret).post("/v1/query", {"q": "Tea"}).status == 200
    ApiKey.objects.filter(name="first").update(revoked_at=timezone.now())
    key("revoke", "ms_twins")
    assert Caller(in_process, second).post("/v1/query", {"q": "Tea"}).status == 401


@pytest.mark.parametrize("words", [(), ("forget",), ("create",), ("revoke",)])
def test_an_incomplete_command_is_refused(words: tuple[str, ...]):
    with pytest.raises(CommandError):
        key(*words)
