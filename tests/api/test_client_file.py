"""GET /v1/client.py: the Python client as a file, for whoever can reach the store."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings

from tests.cast import Caller, Cast, secret_of

FILE = Path(settings.BASE_DIR) / "memstate" / "client.py"


def test_the_file_is_served_without_a_key(anonymous: Caller, django_assert_num_queries: Any):
    with django_assert_num_queries(0):
        answer = anonymous.get("/v1/client.py")
    assert (answer.status, answer.content_type) == (200, "text/x-python")
    assert answer.body == FILE.read_bytes()
    assert answer.headers["content-disposition"] == 'attachment; filename="memstate.py"'


def test_a_key_that_opens_nothing_does_not_matter(anonymous: Caller):
    assert Caller(anonymous.send, "ms_made-up").get("/v1/client.py").status == 200


def test_a_copy_that_is_up_to_date_is_not_sent_again(anonymous: Caller):
    first = anonymous.get("/v1/client.py")
    assert first.headers["cache-control"] == "public, no-cache"
    same = anonymous.request("GET", "/v1/client.py", headers={"If-None-Match": first.headers["etag"]})
    assert (same.status, same.body, same.headers["etag"]) == (304, b"", first.headers["etag"])
    older = anonymous.request("GET", "/v1/client.py", headers={"If-None-Match": '"another"'})
    assert (older.status, older.body) == (200, first.body)


def test_a_file_that_was_fetched_speaks_with_the_store(http_cast: Cast, live_server: Any, tmp_path: Path):
    (tmp_path / "memstate.py").write_bytes(http_cast.anonymous.get("/v1/client.py").body)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from memstate import MemState\n"
        f"with MemState({live_server.url!r}) as memory:\n"
        "    memory.ingest('new_topic', title='Tea', summary='Mara drinks green tea.')\n"
        "    print(memory.query('What does she drink?')['summary_text'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "MEMSTATE_API_KEY": secret_of("agent")},
        timeout=60,
    )
    assert "Mara drinks green tea." in done.stdout
