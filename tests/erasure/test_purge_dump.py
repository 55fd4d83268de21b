"""After a purge, a dump of the database says nothing of what was erased."""

import uuid

import pytest
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.erasure.purge import topics_purge
from memory.erasure.verify import erasure_verify
from tests.cast import Cast
from tests.erasure.erasing import NEEDLES, PERSON, dump, history_make

pytestmark = [pytest.mark.django_db(transaction=True)]


def test_a_dump_of_the_database_holds_neither_the_texts_nor_their_identifiers(http_cast: Cast) -> None:
    made = history_make(http_cast)
    before = dump().casefold()
    assert all(needle.casefold() in before for needle in NEEDLES)
    hers = [uuid.UUID(made[name]) for name in ("fact", "old", "kept", "deferred")]
    topics_purge(hers, principal=SYSTEM, reason=f"{PERSON} asked", now=timezone.now(), request_texts=[PERSON])
    after = dump().casefold()
    assert [needle for needle in NEEDLES if needle.casefold() in after] == []
    assert "the pier, on sundays" in after
    assert erasure_verify().ok
