"""No page of the console shows or changes another store, although all ids are the same; ids that a store lacks are
unknown there."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db.models import CharField, F, TextField, Value
from django.db.models.functions import Concat
from django.test import Client
from django.utils import timezone
from django_q.models import Failure

from memory.jobs import tasks
from memory.jobs.stores import store_create
from memory.models import ErasureCheck, Job
from memory.stores.current import MAIN, store_use
from tests.cast import Caller
from tests.console.crowd import Crowd, crowd_make
from tests.console.people import account_make, body_of, client_of
from tests.console.table import Address, addresses
from tests.stores.two import OTHER, OURS, THEIRS, other_make, rows_of

pytestmark = pytest.mark.django_db
# Columns whose text is shown and decides nothing.
SHOWN = ("title", "summary", "reason", "query", "message", "reply", "text")


@pytest.fixture
def crowd(operator: Caller) -> Crowd:
    """Two stores with the same ids, full of what the pages are about."""
    made = crowd_make(operator, 3)
    now = timezone.now()
    Failure.objects.create(
        id=uuid.uuid4().hex,
        name=OURS,
        func="memory.jobs.tasks.upkeep",
        started=now,
        stopped=now,
        success=False,
        result=f"{OURS} is not there.",
    )
    ErasureCheck.objects.create(
        id=uuid.uuid4(),
        receipts=1,
        actor="test",
        identity="system",
        role="operator",
        principal_scope="/",
        created_at=now,
        moved_at=now,
    )
    for model in apps.get_app_config("memory").get_models():
        fields = [each for each in model._meta.concrete_fields if isinstance(each, CharField | TextField)]
        texts = [each.name for each in fields if each.name in SHOWN]
        if texts:
            model._default_manager.update(**{name: Concat(Value(f"{OURS} "), F(name)) for name in texts})
    other_make()
    return made


def asked() -> list[Address]:
    """Return the addresses for which one has to be signed in."""
    return [each for each in addresses() if each.roles and "anybody" not in each.roles.values()]


def read(client: Client, crowd: Crowd, *, known: bool = True) -> Iterator[tuple[str, Any, str]]:
    """Yield address, answer and text, in lower case, of each page, about what is in ``main``."""
    for address in asked():
        assert address.roles
        if "GET" in address.roles:
            given = crowd.given(address.arguments) if known else {}
            reply = client.get(address.url(**given))
            yield address.name, reply, body_of(reply).lower()


def test_no_page_shows_another_store(crowd: Crowd) -> None:
    there = client_of(account_make("administrator", name="there", store=OTHER), raise_request_exception=False)
    here = client_of(account_make("operator", name="here"), raise_request_exception=False)
    for client, own, foreign in ((there, THEIRS, OURS), (here, OURS, THEIRS)):
        spoken = worked = 0
        for name, reply, text in read(client, crowd):
            assert reply.status_code < 500, name
            assert foreign not in text, name
            spoken += own in text
            worked += reply.status_code == 200
        # It is no proof if nothing was shown.
        assert spoken > 25
        assert worked > 50


def test_no_form_changes_another_store(crowd: Crowd) -> None:
    client = client_of(account_make("administrator", name="there", store=OTHER), raise_request_exception=False)
    before = rows_of(MAIN)
    changed = rows_of(OTHER)
    for address in asked():
        assert address.roles
        if "POST" in address.roles and address.name != "account":
            reply = client.post(address.path(**crowd.given(address.arguments)), {"reason": "x", "act": "state"})
            assert reply.status_code < 500, address.name
            assert OURS not in body_of(reply).lower(), address.name
    assert rows_of(MAIN) == before
    assert rows_of(OTHER) != changed


def test_ids_of_another_store_are_as_unknown_as_any(crowd: Crowd) -> None:
    store_create("empty")
    client = client_of(account_make("administrator", name="there", store="empty"), raise_request_exception=False)
    unknown = {name: reply.status_code for name, reply, _text in read(client, crowd, known=False)}
    missed = 0
    for name, reply, text in read(client, crowd):
        assert reply.status_code == unknown[name], name
        assert OURS not in text, name
        missed += reply.status_code == 404
    assert missed > 25


def test_jobs_in_steps_work_in_their_store(crowd: Crowd) -> None:
    models = {kind.name: kind.model for kind in tasks.TASKS.values() if kind.model is not None}
    jobs = {}
    for name, model in models.items():
        rows = model._default_manager.order_by("pk")
        jobs[name] = (rows.filter(status=Job.Status.WORKING).first() or rows.all()[0]).pk
    for store in (MAIN, OTHER):
        with store_use(store):
            for name, model in models.items():
                model._default_manager.filter(pk=jobs[name]).update(status=Job.Status.WORKING, finished_at=None, done=0)
    before = rows_of(MAIN)
    for name, model in models.items():
        with store_use(OTHER):
            was = list(model._default_manager.filter(pk=jobs[name]).values())
        getattr(tasks, name.rpartition(".")[2])(str(jobs[name]), store=OTHER)
        with store_use(OTHER):
            assert list(model._default_manager.filter(pk=jobs[name]).values()) != was, name
    assert rows_of(MAIN) == before
