"""Receipts: what was tampered with, taken out or put elsewhere is found, and they name nothing of what was erased."""

import uuid
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.erasure.purge import scope_common, topics_purge
from memory.erasure.receipts import receipts_verify
from memory.erasure.verify import erasure_verify
from memory.models import AuditEvent, ErasureReceipt
from tests.cast import Cast, cast_make, in_process, raises_code


@pytest.fixture(scope="module")
def cast(lasting: None) -> Cast:
    return cast_make(in_process)


@pytest.fixture(scope="module")
def five(cast: Cast) -> list[ErasureReceipt]:
    return [
        topics_purge(
            [uuid.UUID(cast.operator.remember(f"The {word} of the {word} in the {word}", scope=f"/user/{word}"))],
            principal=SYSTEM,
            reason=f"the {word} of the {word}, in the {word}, was private",
            now=timezone.now(),
        )
        for word in ("amber", "birch", "cedar", "delta", "ember")
    ]


def test_receipts_are_numbered_without_a_gap_and_each_holds_the_hash_of_the_one_before(five: Any) -> None:
    assert [receipt.number for receipt in five] == [1, 2, 3, 4, 5]
    assert [receipt.previous_hash for receipt in five] == ["", *(receipt.hash for receipt in five[:-1])]
    chain = receipts_verify()
    assert (chain.ok, chain.count, chain.broken_at, chain.sentences) == (True, 5, None, ())


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("reason", "nothing happened"),
        ("actor", "somebody else"),
        ("scope", "/elsewhere"),
        ("topic_ids", []),
        ("content_hashes", []),
        ("identifier_hashes", ["0" * 64]),
        ("counts", {"memory_topic": 7}),
        ("at", timezone.now()),
        ("previous_hash", "0" * 64),
        ("hash", "0" * 64),
        ("reason_hash", "0" * 64),
    ],
)
def test_any_column_that_was_changed_is_found(five: Any, column: str, value: Any) -> None:
    ErasureReceipt.objects.filter(number=3).update(**{column: value})
    chain = receipts_verify()
    assert (chain.ok, chain.broken_at) == (False, 3)
    assert "3" in chain.sentences[0]


def test_a_receipt_that_was_changed_with_its_hash_and_all_that_follow_is_found(five: Any) -> None:
    from memory.erasure.receipts import receipt_hash

    previous = ""
    for receipt in ErasureReceipt.objects.order_by("number"):
        if receipt.number == 3:
            receipt.topic_ids = []
        receipt.previous_hash = previous
        receipt.hash = previous = receipt_hash(receipt)
        receipt.save()
    chain = receipts_verify()
    assert (chain.ok, chain.broken_at) == (False, 3)
    assert "Receipt 3" in chain.sentences[0]
    # The audit is changed as well; the seal cannot be, without the secret key.
    for receipt in ErasureReceipt.objects.filter(number__gte=3):
        event = AuditEvent.objects.get(after__number=receipt.number, action="purged")
        event.after["hash"] = receipt.hash
        event.save()
    chain = receipts_verify()
    assert (chain.ok, chain.broken_at) == (False, 3)


@pytest.mark.parametrize("number", [1, 3, 5])
def test_a_missing_receipt_is_found_the_last_one_too(five: Any, number: int) -> None:
    ErasureReceipt.objects.filter(number=number).delete()
    chain = receipts_verify()
    assert (chain.ok, chain.broken_at) == (False, number)
    assert f"Receipt {number} is missing" in chain.sentences[0]
    with pytest.raises(CommandError):
        call_command("verify_erasure", "--quiet")


def test_all_receipts_missing_are_found(five: Any) -> None:
    ErasureReceipt.objects.all().delete()
    assert receipts_verify().broken_at == 1


def test_receipts_in_another_order_are_found(five: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memory_erasurereceipt SET number = 100 WHERE number = 2")
        cursor.execute("UPDATE memory_erasurereceipt SET number = 2 WHERE number = 3")
        cursor.execute("UPDATE memory_erasurereceipt SET number = 3 WHERE number = 100")
    assert receipts_verify().broken_at == 2


def test_an_audit_that_was_emptied_is_found(five: Any) -> None:
    AuditEvent.objects.filter(action="purged", after__number=4).delete()
    chain = receipts_verify()
    assert (chain.ok, chain.broken_at) == (False, 4)


def test_with_another_secret_key_it_is_said_that_texts_cannot_be_looked_for(five: Any, settings: Any) -> None:
    settings.SECRET_KEY = "another key of the tests, as long as it has to be"
    verdict = erasure_verify()
    assert not verdict.ok
    assert len(verdict.chain.sentences) == 1
    with raises_code(CommandError, "erasure-not-proven"):
        call_command("verify_erasure", "--quiet")


def test_receipts_are_read_over_the_api_within_the_scope_of_the_key(five: Any, cast: Cast) -> None:
    page = cast.reader.get("/v1/receipts?limit=2").ok()
    assert [item["number"] for item in page["items"]] == [5, 4]
    assert page["items"][0]["reason"] == "[erased], was private"
    rest = cast.reader.get(f"/v1/receipts?limit=200&cursor={page['next']}").ok()
    assert ([item["number"] for item in rest["items"]], rest["next"]) == ([3, 2, 1], None)
    one = cast.reader.get(f"/v1/receipts/{five[2].pk}").ok()
    assert (one["number"], one["hash"], one["scope"]) == (3, five[2].hash, "/user/cedar")
    assert cast.alice.get("/v1/receipts").ok() == {"items": [], "next": None}
    assert cast.alice.get(f"/v1/receipts/{five[2].pk}").status == 404
    assert cast.reader.get(f"/v1/receipts/{uuid.uuid4()}").status == 404
    assert cast.anonymous.get("/v1/receipts").status == 401
    assert cast.reader.get("/v1/receipts?cursor=nonsense").status == 422


def test_the_scope_of_a_receipt_holds_all_that_went() -> None:
    assert scope_common(["/user/a/x", "/user/a/y"]) == "/user/a"
    assert scope_common(["/user/a"]) == "/user/a"
    assert scope_common(["/user/a", "/team"]) == "/"
