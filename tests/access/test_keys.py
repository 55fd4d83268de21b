"""Making keys, and authenticating with them, without a request."""

import datetime as dt
from typing import Any

import pytest

from memory.access.keys import KeyRefused, key_authenticate, key_create, key_ensure, secret_generate, secret_hash
from memory.access.principal import Principal
from memory.core.errors import NotAllowed, NotVisible, ValueRefused
from memory.models import ApiKey, AuditEvent

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def test_secrets_are_long_marked_and_never_the_same():
    made = {secret_generate() for _ in range(100)}
    assert len(made) == 100
    assert all(secret.startswith("ms_") and len(secret) >= 40 for secret in made)


@pytest.mark.django_db
def test_a_key_is_kept_as_a_hash_with_a_prefix_and_journaled():
    secret = secret_generate()
    key = key_create(name="mine", role="agent", secret=secret, actor="somebody", reason="because")
    stored = ApiKey.objects.get(pk=key.pk)
    assert stored.secret_hash == secret_hash(secret)
    assert secret.startswith(stored.prefix)
    assert len(stored.prefix) <= 8
    event = AuditEvent.objects.get()
    assert (event.actor, event.action, event.reason) == ("somebody", "key_created", "because")
    assert secret not in str(event.after)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "bad",
    [
        {"role": "god"},
        {"role": ""},
        {"scope": "/a b"},
        {"name": ""},
        {"name": "x" * 101},
        {"name": "x" * 10_000},
        {"role": "reader", "may_forget": True},
        {"role": "operator", "may_forget": True},
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(bad: dict[str, Any]):
    with pytest.raises(ValueRefused):
        key_create(**{"name": "mine", "role": "agent", "secret": secret_generate(), **bad})
    assert not ApiKey.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.django_db
def test_the_longest_name_can_be_written_into_every_journal():
    from memory.ingest.apply import ingest_apply, ingest_prepare
    from memory.ingest.items import IngestItem

    secret = secret_generate()
    key_create(name="x" * 100, role="agent", secret=secret)
    principal = key_authenticate(secret, now=NOW)
    items = [IngestItem(placement="new_topic", title="Tea")]
    prepared = ingest_prepare(items, principal=principal, now=NOW, defer=False)
    ingest_apply(prepared, principal=principal, now=NOW)
    assert AuditEvent.objects.filter(actor="key:" + "x" * 100).exists()


@pytest.mark.django_db
def test_ensuring_a_key_makes_it_once_and_never_undoes_a_revocation():
    key_ensure(name="first", role="agent", secret="ms_the-same-secret-each-time")
    key_ensure(name="first", role="agent", secret="ms_the-same-secret-each-time")
    ApiKey.objects.get()
    ApiKey.objects.update(revoked_at=NOW)
    key_ensure(name="first", role="agent", secret="ms_the-same-secret-each-time")
    with pytest.raises(KeyRefused):
        key_authenticate("ms_the-same-secret-each-time", now=NOW)


@pytest.mark.parametrize(
    ("role", "may"),
    [("reader", ["reader"]), ("agent", ["reader", "agent"]), ("operator", ["reader", "agent", "operator"])],
)
def test_a_role_covers_those_before_it(role: str, may: list[str]):
    principal = Principal("id", "actor", role)
    for wanted in ("reader", "agent", "operator"):
        if wanted in may:
            principal.require(wanted)
        else:
            with pytest.raises(NotAllowed) as refused:
                principal.require(wanted)
            assert refused.value.code == "role-too-low"


@pytest.mark.parametrize(
    ("bound", "path", "chosen"),
    [
        ("/", None, "/"),
        ("/", "/a", "/a"),
        ("/", "a/b/", "/a/b"),
        ("/a", None, "/a"),
        ("/a", "/a/b", "/a/b"),
        ("/a", "//a//", "/a"),
        ("/a", "/", None),
        ("/a", "", None),
        ("/a", "/ab", None),
        ("/a", "/A", None),
        ("/a/b", "/a", None),
    ],
)
def test_a_scope_is_chosen_within_the_callers(bound: str, path: str | None, chosen: str | None):
    principal = Principal("id", "actor", "agent", bound)
    if chosen is None:
        with pytest.raises(NotVisible):
            principal.scope_chosen(path)
    else:
        assert principal.scope_chosen(path) == chosen
        assert principal.sees(chosen)
