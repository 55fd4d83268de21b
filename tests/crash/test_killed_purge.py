"""A purge that is killed outright at any moment has erased everything or nothing."""

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from django.db import connection, transaction

from memory.erasure.receipts import purges_wait
from memory.erasure.verify import erasure_verify
from memory.models import AccessLog, ErasureReceipt, Topic
from memstate_site.folder import CHECKOUT
from tests.cast import Cast
from tests.erasure.erasing import traces
from tests.forgetting.shop import dump
from tests.waits import line_of

pytestmark = pytest.mark.django_db(transaction=True)

# The full variant is MEMSTATE_TEST_KILLS=10.
STEP = max(1, 20 // int(os.environ.get("MEMSTATE_TEST_KILLS", "2")))
TOPICS = 300

# Forks as the workers do: what is loaded once need not be loaded for each that is killed.
HOST = """
import os, sys, uuid
import django
django.setup()
from django.db import connection
from django.utils import timezone
from memory.access.principal import SYSTEM
from memory.erasure.purge import topics_purge
from tests.crash.stop_points import kill_at_statement

connection.settings_dict["NAME"] = sys.argv[1]
ids = [uuid.UUID(line) for line in open(sys.argv[2]).read().split()]
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        status = 1
        kill_at_statement(connection, int(line))
        try:
            topics_purge(ids, principal=SYSTEM, reason="the crash tests", now=timezone.now())
            status = 0
        finally:
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_purge_that_is_killed_has_erased_everything_or_nothing(http_cast: Cast, tmp_path: Path) -> None:
    items = [
        {
            "placement": "new_topic",
            "topic_id": str(uuid.uuid4()),
            "title": f"Guest {n} of the winter feast",
            "fields": [{"name": "mail", "value": f"guest{n}@feast.example"}],
        }
        for n in range(TOPICS)
    ]
    http_cast.agent.post("/v1/ingest/batch", items).ok()
    kept = http_cast.agent.remember(
        "The hall of the feast", edges=[{"to_topic_id": items[0]["topic_id"], "kind": "of"}]
    )
    http_cast.agent.query("guest7@feast.example")
    ids = tmp_path / "ids"
    ids.write_text("\n".join(str(item["topic_id"]) for item in items))
    environment = {**os.environ, "MEMSTATE_EMBEDDER": "instant", "DJANGO_SETTINGS_MODULE": "memstate_site.settings"}
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, connection.settings_dict["NAME"], str(ids)],
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert host.stdin is not None
    assert host.stdout is not None
    try:
        before, number = dump(), 0
        # At each statement of the purge, or at every STEPth of them, until it comes to its end.
        while not ErasureReceipt.objects.exists():
            host.stdin.write(f"{number}\n")
            host.stdin.flush()
            status = int(line_of(host))
            assert status == (0 if ErasureReceipt.objects.exists() else -signal.SIGKILL), number
            # The server may still be at the statement that no one waits for.
            with transaction.atomic():
                purges_wait()
            assert status == 0 or dump() == before, number
            number += STEP
        print(f"killed {number // STEP - 1} times")
    finally:
        host.stdin.close()
        host.wait(30)
    assert [str(each) for each in Topic.objects.values_list("pk", flat=True)] == [kept]
    assert traces("winter feast", "@feast.example") == []
    assert [row.query for row in AccessLog.objects.all()] == [""]
    receipt = ErasureReceipt.objects.get()
    assert (receipt.number, len(receipt.topic_ids)) == (1, TOPICS)
    assert erasure_verify().ok
