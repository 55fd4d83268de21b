"""What the tests of erasure share: a store with a history, and two ways to look for a text in all of the database."""

import datetime as dt
import os
import subprocess
import uuid
from typing import Any

from django.db import connection
from django.utils import timezone
from django_q.models import Task
from django_q.tasks import async_task

from memory.models import ForgetListing
from memstate_site.postgres.binaries import packaged_binaries
from tests.cast import Cast, worker_turn

PERSON = "Zofia Wyszynska"
EMAIL = "zofia.wyszynska@lumen.example"
PHONE = "+48 601 234 567"
FACT = "Zofia Wyszynska moved from Gdansk into the flat above the bakery"
# However these are written, nothing of them may be left.
NEEDLES = (PERSON, "Wyszynska", EMAIL, "wyszynska@", "601 234 567", "601234567", FACT, "flat above the bakery")


def copies() -> dict[str, str]:
    """Return every table and sequence of the database as COPY writes it, tables of the system left out."""
    found: dict[str, str] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind IN ('r', 'S') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
        )
        for schema, table in cursor.fetchall():
            with cursor.cursor.copy(f'COPY (SELECT * FROM "{schema}"."{table}") TO STDOUT') as copy:
                found[table] = b"".join(bytes(part) for part in copy).decode()
        cursor.execute("SELECT * FROM pg_stats WHERE schemaname = current_schema()")
        found["pg_stats"] = "\n".join(map(str, cursor.fetchall()))
    return found


def traces(*needles: str) -> list[tuple[str, str]]:
    """Return the tables in which one of these texts stands, in whatever case, and the text."""
    tables = {table: text.casefold() for table, text in copies().items()}
    # The queue keeps pickles.
    said = "".join(str((each.args, each.kwargs, each.result)) for each in Task.objects.all())
    tables["django_q_task"] += said.casefold()
    return [(table, needle) for table, text in tables.items() for needle in needles if needle.casefold() in text]


def dump() -> str:
    """Return what pg_dump writes of the database of the tests."""
    binaries = packaged_binaries()
    got = connection.settings_dict
    where = {
        "PGHOST": str(got["HOST"]),
        "PGPORT": str(got["PORT"] or ""),
        "PGUSER": str(got["USER"]),
        "PGPASSWORD": str(got["PASSWORD"]),
        "PGDATABASE": str(got["NAME"]),
    }
    environment = {**os.environ, **{name: value for name, value in where.items() if value}}
    command = [str(binaries.folder / "bin" / "pg_dump"), "--inserts"]
    return subprocess.run(command, env=environment, capture_output=True, check=True, text=True, timeout=60).stdout


def history_make(cast: Cast, *, scope: str = "/people/zofia") -> dict[str, str]:
    """Fill a store with everything that can come to hold what a topic says, and return the ids by name."""
    agent, operator = cast.agent, cast.operator
    past = (timezone.now() - dt.timedelta(days=400)).isoformat()
    made: dict[str, Any] = {}
    lately = (timezone.now() - dt.timedelta(days=60)).isoformat()
    made["fact"] = operator.remember(
        PERSON,
        summary=FACT,
        scope=scope,
        created_at=lately,
        last_used_at=lately,
        salience=0.8,
        values={"email": EMAIL, "phone": PHONE, "note": "Keeps the key of the shed"},
    )
    for turn in range(8):
        agent.ingest(
            "version_field",
            topic_id=made["fact"],
            fields=[
                {
                    "name": "note",
                    "value": f"{PERSON} told story number {turn} about the flat above the bakery",
                    "why_changed": f"{PERSON} wrote from {EMAIL}",
                    "impact_expected": "Call +48601234567 first",
                }
            ],
        )
    made["old"] = operator.remember(
        f"Old note on {PERSON}",
        created_at=past,
        last_used_at=past,
        salience=0.2,
        scope=scope,
        values={"who": f"{PERSON}, {EMAIL}"},
    )
    made["friend"] = agent.remember(
        "The gardener",
        scope=scope,
        fields=[{"name": "knows", "value": "somebody", "ref_topic_id": made["fact"]}],
        edges=[{"to_topic_id": made["fact"], "kind": "knows"}],
    )
    agent.ingest(
        "extend_topic",
        topic_id=made["fact"],
        edges=[{"to_topic_id": made["friend"], "kind": "knows"}],
        fields=[{"name": "bike", "value": "blue"}],
    )
    made["other"] = agent.remember("Harbor walk", scope=scope, values={"place": "The pier, on Sundays"})
    # Said once with a key, so that the reply is kept.
    kept = {"placement": "new_topic", "title": f"Call {PERSON}", "scope": scope, "fields": []}
    made["kept"] = agent.post("/v1/ingest", kept, headers={"Idempotency-Key": "kept-1"}).ok()["topic_id"]
    agent.patch(f"/v1/topics/{made['kept']}", {"title": f"Ring {PERSON} at {PHONE}", "reason": f"{PERSON} asked"}).ok()
    made["deferred"] = agent.post(
        "/v1/ingest?defer=1", {"placement": "new_topic", "title": f"Later: {EMAIL}", "scope": scope, "fields": []}
    ).ok()["topic_id"]
    # A run that folds her history into a summary and archives the old note, and is taken back.
    policy = {"values": {"topic_count_soft_limit": 0, "max_archive_share": 1.0}, "reason": "for the test"}
    operator.put(f"/v1/policies{scope}", policy).ok()
    made["run"] = operator.post("/v1/runs", {"event": "manual", "dry_run": False, "scope": scope}).ok()["run_id"]
    operator.post(f"/v1/runs/{made['run']}/undo", {"reason": f"{PERSON} is still needed"}).ok()
    for question in (f"where does {PERSON} live", EMAIL.upper(), "+48 (601) 234-567", FACT, "harbor walk on sundays"):
        agent.query(question, scope="/people")
    cast.reader.topic(made["fact"])
    worker_turn()
    # Changes by hand, each with a reason that names her.
    operator.post(f"/v1/topics/{made['fact']}/pin", {"reason": f"{PERSON} is important"}).ok()
    operator.post(f"/v1/topics/{made['other']}/pin", {"reason": f"asked for by {PERSON}, {EMAIL}"}).ok()
    operator.post(f"/v1/topics/{made['fact']}/archive", {"reason": f"as {EMAIL} wanted"}).ok()
    operator.post(f"/v1/topics/{made['fact']}/restore", {"reason": ""}).ok()
    now = timezone.now()
    # As it is stored when someone asks what a purge would take.
    ForgetListing.objects.create(
        id=uuid.uuid4(),
        verb="purge",
        scope="/",
        query=EMAIL,
        reason=f"{PERSON} asked",
        actor="x",
        identity="x",
        count=1,
        created_at=now,
        expires_at=now,
        entries=[{"id": made["fact"], "why": f"It names {EMAIL}.", "confidence": 1.0, "excerpt": FACT, "state": []}],
    )
    # Jobs: one waiting, one done, one failed with the row in its words.
    async_task("memory.jobs.tasks.run_continue", made["fact"], f"for {EMAIL}")
    for number, success in enumerate((True, False)):
        Task.objects.create(
            id=uuid.uuid4().hex,
            name=f"job {number}",
            func="memory.jobs.tasks.upkeep",
            args=(made["fact"], EMAIL),
            kwargs={},
            result=f"Failing row contains ({made['fact']}, {PERSON}, {EMAIL})",
            success=success,
            started=now,
            stopped=now,
        )
    # The planner learns what the columns hold.
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return made
