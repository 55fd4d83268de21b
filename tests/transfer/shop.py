"""What the tests of this folder share: a store with everything that an export can hold, and the same store empty."""

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

from django.db import connection
from django.utils import timezone

from memory.access.principal import SYSTEM, Principal
from memory.duplicates.pair_actions import pair_keep_both, pair_merge, pair_supersede, pair_undo
from memory.erasure.purge import topics_purge
from memory.forgetting.manual_actions import topics_release
from memory.ingest.mentions import Mentions, mentions_add
from memory.jobs import tasks
from memory.models import ImportJob, Revision, Topic
from memory.policy.save import policy_rollback, policy_save
from memory.transfer.export import store_export
from memory.transfer.importing import import_start
from memory.transfer.work import import_work
from tests.cast import Cast, Clock
from tests.duplicates.shop import pair_make, twins
from tests.erasure.erasing import history_make
from tests.explain.past import days_live

ODD = 'Ünïcödé "quoted" \\ back\\slash \\u0000 \t tab \u2028 line, 東京, \U0001f9ed, {"json": [1.0, null]}'


def exported(principal: Principal = SYSTEM, **asked: Any) -> bytes:
    """Return an export as one piece."""
    return b"".join(store_export(principal=principal, **asked))


def lines(content: bytes, kind: str | None = None) -> list[bytes]:
    """Return the lines of an export, of one kind if asked."""
    found = content.splitlines(keepends=True)
    return [line for line in found if kind is None or line.startswith(b'{"type":"%s"' % kind.encode())]


def kinds(content: bytes) -> set[str]:
    """Return which kinds of line an export has."""
    return {line.split(b'"')[3].decode() for line in lines(content)}


def ended(kept: list[bytes]) -> bytes:
    """Return lines without the last as an export that is whole."""
    return b"".join(kept) + b'{"type":"end","lines":%d}\n' % (len(kept) + 1)


def emptied() -> None:
    """Remove everything but the keys, as in a store that has just been made."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(quote_ident(table_name), ', ') FROM information_schema.tables "
            "WHERE table_schema = current_schema() AND table_name LIKE 'memory_%' AND table_name <> 'memory_apikey'"
        )
        tables = cursor.fetchone()[0]
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"TRUNCATE {tables} RESTART IDENTITY")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def imported(content: bytes, folder: Path, principal: Principal = SYSTEM, **asked: Any) -> ImportJob:
    """Import a file of this content, which must come to its end, and return the import."""
    path = folder / f"{uuid.uuid4().hex}.jsonl"
    path.write_bytes(content)
    job = import_start(path, principal=principal, now=timezone.now(), **asked)
    job = import_work(job.pk, clock=timezone.now, seconds=600)
    assert job.status == ImportJob.Status.DONE, (job.status, job.failure)
    return job


def derived() -> dict[str, list[str]]:
    """Return what is made from the texts of topics that were not merged: documents, mentions, and what is embedded."""
    said = {
        "documents": "SELECT topic_id, s.path, live, document::text, length FROM memory_topicdocument d "
        "JOIN memory_scope s ON s.id = d.scope_id WHERE topic_id IN {topics} ORDER BY 1",
        "mentions": 'SELECT topic_id, s.path, ARRAY(SELECT x COLLATE "C" FROM unnest(identifiers) x ORDER BY 1), '
        'ARRAY(SELECT x COLLATE "C" FROM unnest(words) x ORDER BY 1), '
        'ARRAY(SELECT x COLLATE "C" FROM unnest(aliases) x ORDER BY 1) '
        "FROM memory_topicmention m JOIN memory_scope s ON s.id = m.scope_id WHERE topic_id IN {topics} ORDER BY 1",
        "vectors": "SELECT topic_id, s.path, live, model, text_hash FROM memory_topicvector v "
        "JOIN memory_scope s ON s.id = v.scope_id WHERE topic_id IN {topics} ORDER BY 1",
    }
    found: dict[str, list[str]] = {}
    with connection.cursor() as cursor:
        for name, sql in said.items():
            cursor.execute(sql.format(topics="(SELECT id FROM memory_topic WHERE merged_into_id IS NULL)"))
            found[name] = [str(row) for row in cursor.fetchall()]
    return found


def rich(cast: Cast, clock: Clock) -> dict[str, Any]:
    """Fill a store with everything that an export can hold, by the ways that fill one, and return some ids by name."""
    agent, operator = cast.agent, cast.operator
    made: dict[str, Any] = {"past": days_live(cast, clock, days=14, runs_from=8)}
    made |= history_make(cast)
    got: dict[str, Any] = {"author": "ops", "now": clock.now}
    policy_save("/", preset="balanced", values={"shadow_share": 1.0}, rules=None, reason="fewer", **got)
    policy_save("/home", preset=None, values={"mode": "review"}, rules=RULES, reason=ODD, **got)
    policy_rollback("/home", to=0, reason="was better", **got)
    made["odd"] = operator.remember(
        ODD.replace("\t", " "),
        summary="",
        categories=["ä", "b"],
        scope="/odd/Ünï",
        created_at="0001-02-03T04:05:06Z",
        fields=[
            {"name": "json", "value": '{"a": 1.10, "b": [1e300, "\\u00e9"]}', "field_type": "json"},
            {"name": "empty", "value": ""},
            {"name": "text", "value": ODD},
            {"name": "number", "value": "0.1", "field_type": "float"},
        ],
    )
    agent.ingest("extend_topic", topic_id=made["odd"], edges=[{"to_topic_id": made["odd"], "kind": "itself"}])
    _merges(cast, clock, made)
    _purges(operator, made)
    _long_history(made)
    operator.post(f"/v1/topics/{made['other']}/archive", {"reason": "seldom"}).ok()
    made["pinned"] = agent.remember("Allergic to nuts", pinned=True)
    made["released"] = agent.remember("An old address")
    topics_release([uuid.UUID(made["released"])], principal=SYSTEM, reason="moved", now=clock.now)
    agent.query("harbor walk")
    tasks.upkeep()
    return made


RULES = [
    {
        "name": "keep",
        "events": ["ingest_complete"],
        "action": "pin",
        "condition": {"field": "text", "op": "matches", "value": "allerg(y|ic)"},
    }
]


def _merges(cast: Cast, clock: Clock, made: dict[str, Any]) -> None:
    """One merge that stands, one that was undone, one into what was merged, one pair kept, one superseded."""
    got = {"principal": SYSTEM, "reason": "the same"}

    def pair(title: str) -> Any:
        older = cast.agent.remember(title, values={"city": "Oslo", "phone": f"12 {title}"}, edges=[])
        clock.forward(minutes=1)
        newer = cast.agent.remember(title, values={"city": "Bergen", "job": "pilot"})
        cast.agent.ingest("extend_topic", topic_id=older, edges=[{"to_topic_id": made["odd"], "kind": "near"}])
        cast.agent.ingest("version_field", topic_id=newer, fields=[{"name": "city", "value": "Narvik"}])
        clock.forward(minutes=1)
        return pair_make(older, newer).pk

    made["merged"] = pair_merge(one := pair("Anna"), now=clock.now, **got).pk
    made["merged_pair"] = one
    pair_merge(two := pair("Bert"), now=clock.now, **got)
    pair_undo(two, now=clock.now, **got)
    pair_keep_both(pair("Carla"), now=clock.now, **got)
    made["superseded"] = pair_supersede(pair("Dora"), now=clock.now, **got).pk
    first, second = twins(cast.agent, "Emil, also known as Milo")
    clock.forward(minutes=1)
    third = cast.agent.remember("Emil, also known as Milo")
    pair_merge(pair_make(first, second).pk, now=clock.now, **got)
    pair_merge(pair_make(second, third).pk, now=clock.now, **got)


def _purges(operator: Any, made: dict[str, Any]) -> None:
    made["purged"] = [operator.remember(f"The secret of {word}", scope="/secrets") for word in ("amber", "birch")]
    for topic_id in made["purged"]:
        topics_purge([uuid.UUID(topic_id)], principal=SYSTEM, reason="asked for", now=timezone.now())


def _long_history(made: dict[str, Any]) -> None:
    """A field with more revisions than stand in one line."""
    topic = Topic.objects.get(pk=made["odd"])
    field = topic.fields.get(name="text")
    field.last_seq, field.cold_through = 1201, 700
    field.save()
    first = field.revisions.get()
    Revision.objects.bulk_create(
        Revision(
            id=uuid.uuid5(topic.pk, str(seq)),
            field=field,
            seq=seq,
            value=f"{ODD} of Rumpelstilzchen{seq}" if seq < 1201 else ODD,
            valid_from=first.valid_from,
            recorded_at=first.recorded_at + dt.timedelta(seconds=seq),
        )
        for seq in range(2, 1202)
    )
    mentions = Mentions()
    mentions.read(field.revisions.values_list("value", flat=True))
    with connection.cursor() as cursor:
        mentions_add(cursor, {topic.pk: mentions})
