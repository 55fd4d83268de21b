"""A key of the installation names the store of each request; any other key opens one store."""

from typing import Any

import httpx2
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memory.access.impersonation import principal_recheck
from memory.access.keys import key_authenticate, key_create, key_revoke
from memory.core.errors import ValueRefused
from memory.jobs.stores import store_create
from memory.models import AuditEvent, Topic
from memory.stores.current import MAIN, store_use
from memory.stores.models import Store
from memstate.client import MemState
from tests.cast import Caller, Cast, in_process, raises_code

pytestmark = pytest.mark.django_db

SECRET = "ms_the-secret-of-the-installation"
IN_OTHER = {"X-MemState-Store": "other"}


@pytest.fixture
def hosting() -> Caller:
    store_create("other")
    key_create(name="hosting", role="operator", secret=SECRET, installation=True)
    return Caller(in_process, SECRET)


def _topic(caller: Caller, **more: Any) -> Any:
    return caller.post("/v1/ingest", {"placement": "new_topic", "title": "Tea"}, **more)


def test_each_request_names_its_store(cast: Cast, hosting: Caller) -> None:
    there = _topic(hosting, headers=IN_OTHER).ok()["topic_id"]
    here = _topic(hosting).ok()["topic_id"]
    assert hosting.get(f"/v1/topics/{there}").code == "not-found"
    assert hosting.get(f"/v1/topics/{there}", headers=IN_OTHER).ok()["title"] == "Tea"
    assert cast.agent.topic(here)["title"] == "Tea"
    hosting.post(f"/v1/topics/{there}/pin", {"reason": "x"}, headers=IN_OTHER).ok()
    with store_use("other"):
        assert [str(pk) for pk in Topic.objects.values_list("pk", flat=True)] == [there]
        assert AuditEvent.objects.get(action="pinned").actor == "key:hosting"
    assert not AuditEvent.objects.filter(action="pinned").exists()


@pytest.mark.parametrize("name", ["nowhere", "", "public", "other; x"])
def test_a_store_that_does_not_exist_is_not_found(hosting: Caller, name: str) -> None:
    answer = _topic(hosting, headers={"X-MemState-Store": name})
    assert (answer.status, answer.code) == (404, "not-found")
    assert Topic.objects.count() == 0


def test_any_other_key_opens_its_own_store_only(cast: Cast, hosting: Caller) -> None:
    with store_use("other"):
        key_create(name="agent", role="operator", secret=SECRET + "2")
    theirs = Caller(in_process, SECRET + "2")
    for caller, own, named in ((cast.operator, MAIN, "other"), (theirs, "other", MAIN), (theirs, "other", "nowhere")):
        answer = _topic(caller, headers={"X-MemState-Store": named})
        assert (answer.status, answer.code) == (403, "not-allowed")
        with store_use(own):
            before = Topic.objects.count()
        _topic(caller, headers={"X-MemState-Store": own}).ok()
        with store_use(own):
            assert Topic.objects.count() == before + 1


def test_a_store_that_is_behind_answers_503(hosting: Caller) -> None:
    Store.objects.filter(pk="other").update(version="")
    assert _topic(hosting, headers=IN_OTHER).code == "store-behind"
    _topic(hosting).ok()


def test_background_work_in_another_store_ends_with_the_key(hosting: Caller) -> None:
    now = timezone.now()
    with store_use(MAIN):
        principal = key_authenticate(SECRET, now=now, store="other")
    with store_use("other"):
        assert principal_recheck(principal, now=now) == principal
    with store_use(MAIN):
        key_revoke(SECRET[:8], actor="x", reason="x", now=now)
    with store_use("other"):
        assert principal_recheck(principal, now=now) is None
    assert _topic(hosting, headers=IN_OTHER).code == "key-revoked"


def test_a_key_of_main_has_no_rights_in_a_job_of_another_store(cast: Cast, hosting: Caller) -> None:
    assert cast.operator.secret is not None
    now = timezone.now()
    with store_use(MAIN):
        principal = key_authenticate(cast.operator.secret, now=now)
    with store_use("other"):
        assert principal_recheck(principal, now=now) is None


def test_the_command_makes_and_lists_it(capsys: pytest.CaptureFixture[str]) -> None:
    store_create("other")
    call_command("key", "create", "hosting", "--role", "operator", "--installation")
    secret = capsys.readouterr().out.split()[-1]
    _topic(Caller(in_process, secret), headers=IN_OTHER).ok()
    call_command("key", "list")
    assert "for all stores" in capsys.readouterr().out
    with pytest.raises(CommandError, match="not-allowed"):
        call_command("key", "--in-store", "other", "create", "hosting", "--installation")
    with raises_code(ValueRefused, "not-allowed"):
        key_create(name="x", role="agent", secret=SECRET, may_forget=True, installation=True)


def test_the_client_names_the_store(hosting: Caller) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        headers = {name: request.headers[name] for name in ("X-API-Key", "X-MemState-Store") if name in request.headers}
        reply = in_process(request.method, request.url.path, request.content, headers)
        return httpx2.Response(reply.status, headers=reply.headers, content=reply.body)

    transport = httpx2.MockTransport(answer)
    for store, topics in ((None, 0), ("other", 1)):
        with MemState(api_key=SECRET, store=store, transport=transport) as client:
            if store:
                client.ingest("new_topic", title="Tea")
            assert len(list(client.topics_iter())) == topics
