"""A store in which there are ``n`` of everything that pages show, made through the API where that is quick enough."""

import dataclasses
import datetime as dt
import itertools
import uuid
from typing import Any

from django.utils import timezone
from django_q.models import Schedule, Success
from django_q.tasks import async_task

from memory.access.keys import key_create
from memory.access.principal import SYSTEM
from memory.core.ids import uuid7
from memory.erasure.filters import ForgetFilter
from memory.erasure.forget_list_create import forget_list
from memory.forgetting.manual_actions import topics_release
from memory.jobs import tasks
from memory.models import (
    AccessLog,
    AuditEvent,
    Conversation,
    ConversationTurn,
    ConversationWrite,
    DuplicatePair,
    ErasureReceipt,
    ExtractionJob,
    ForgetListing,
    ForgetRun,
    ImportJob,
    Link,
    PolicyVersion,
    Revision,
    ShadowHit,
    StudyJob,
    Topic,
)
from memory.notifications.outbox import test_write
from memory.notifications.targets import target_add
from memory.stores.models import Store
from tests.cast import Caller, worker_turn
from tests.console.people import account_make
from tests.forgetting.shop import policy_put, run, topics_make


@dataclasses.dataclass(frozen=True)
class Crowd:
    """What the addresses of pages are about."""

    topic_id: uuid.UUID
    run_id: uuid.UUID
    key_id: uuid.UUID
    schedule_id: int
    pair_id: uuid.UUID
    extraction_id: uuid.UUID
    import_id: uuid.UUID
    conversation_id: uuid.UUID
    study_id: uuid.UUID
    listing_id: uuid.UUID
    receipt_id: uuid.UUID
    access_id: int
    target_id: uuid.UUID
    person_id: int
    store_name: str
    place: int = 1

    def given(self, arguments: tuple[str, ...]) -> dict[str, Any]:
        """Return those of ``arguments`` that stand for a row."""
        return {name: value for name, value in dataclasses.asdict(self).items() if name in arguments}


def crowd_make(operator: Caller, n: int) -> Crowd:
    """Fill the store. The topic has ``n`` revisions, links, uses and changes; the run has ``n`` actions."""
    now = timezone.now()
    policy_put(operator, topic_count_soft_limit=0, max_archive_share=1, prune_after_days=0)
    fields = [{"name": "city", "value": "Berlin"}]
    forgotten = topics_make(operator, n, days=200, fields=fields)
    topics_make(operator, n, days=1, fields=fields)
    placed = [{"placement": "new_topic", "title": "topic", "scope": f"/place/{place}"} for place in range(n)]
    operator.post("/v1/ingest/batch", placed).ok()
    released = map(uuid.UUID, topics_make(operator, n, scope="/released"))
    topics_release(list(released), principal=SYSTEM, reason="for the test", now=now)
    main = forgotten[0]
    operator.post(
        "/v1/ingest/batch",
        [
            {"placement": "version_field", "topic_id": main, "fields": [{"name": "city", "value": f"city {place}"}]}
            for place in range(n)
        ],
    ).ok()
    # Its many revisions have been news; it is forgotten all the same.
    made = run(operator, dry_run=False)
    operator.post("/v1/topics/archive", {"topic_ids": [main], "reason": "for the test"})
    worker_turn()
    Link.objects.bulk_create(
        Link(source_id=uuid.UUID(main), target_id=other, kind="next to", created_at=now, actor="test")
        for other in map(uuid.UUID, forgotten[1:])
    )
    asked = AccessLog.objects.bulk_create(
        AccessLog(
            at=now - dt.timedelta(minutes=place),
            kind="lookup" if place % 2 else "query",
            actor="test",
            scope="/",
            query=f"topic {place}",
            query_hash=str(place),
            topic_ids=[uuid.UUID(main)],
            bump=0.1,
            field_bump=0.1,
            folded_at=now,
            counted=True,
        )
        for place in range(n)
    )
    ShadowHit.objects.bulk_create(
        ShadowHit(access=access, topic_id=uuid.UUID(main), rank=1, similarity=0.9, at=access.at) for access in asked
    )
    AuditEvent.objects.bulk_create(
        AuditEvent(at=now - dt.timedelta(minutes=place), actor="test", action="pinned", topic_id=uuid.UUID(main))
        for place in range(n)
    )
    _runs_make(uuid.UUID(made["run_id"]), n)
    _policies_make(n, now)
    for place in range(n):
        key = key_create(name=f"key {place}", role="agent", secret=f"ms_secret-{place}", scope=f"/place/{place}")
        someone = account_make("operator", name=f"person {place}")
    worker_turn()
    _jobs_make(n, now)
    schedule = Schedule.objects.get(func="memory.jobs.tasks.upkeep").pk
    pair_id = _pairs_make(forgotten, now)
    return Crowd(
        topic_id=uuid.UUID(main),
        run_id=uuid.UUID(made["run_id"]),
        key_id=key.pk,
        schedule_id=schedule,
        pair_id=pair_id,
        listing_id=_listings_make(n, now),
        receipt_id=_receipts_make(n, now),
        access_id=_recall_make(forgotten, now),
        target_id=_targets_make(n, now),
        person_id=someone.pk,
        store_name=_stores_make(n, now),
        extraction_id=_extractions_make(operator, n, now),
        import_id=_imports_make(n, now),
        **_conversations_make(forgotten, n, now),
    )


def _recall_make(topics: list[str], now: dt.datetime) -> int:
    """A query that returned every topic, with as many below the cut and as many missed."""
    ids = list(map(uuid.UUID, topics))
    access = AccessLog.objects.create(
        at=now,
        actor="test",
        scope="/",
        query="topic",
        query_hash="recall",
        topic_ids=ids,
        scores=[0.5] * len(ids),
        relevances=[0.5] * len(ids),
        cut_ids=ids,
        bump=0.1,
        field_bump=0.1,
        folded_at=now,
        counted=True,
    )
    ShadowHit.objects.bulk_create(
        ShadowHit(access=access, topic_id=topic, rank=1, similarity=0.9, at=access.at) for topic in ids
    )
    return access.pk


def _targets_make(n: int, now: dt.datetime) -> uuid.UUID:
    """So many targets with a message each; return the first."""
    targets = [
        target_add(
            kind="webhook",
            name=f"target {place}",
            address="https://93.184.216.34/",
            events=["job_failed"],
            regret_above=None,
            reason="for the test",
            principal=SYSTEM,
            now=now,
        )[0]
        for place in range(n)
    ]
    for target in targets:
        test_write(target, now=now)
    return targets[0].pk


def _stores_make(n: int, now: dt.datetime) -> str:
    """So many stores without tables; return the first."""
    made = Store.objects.bulk_create(Store(name=f"customer_{place}", created_at=now) for place in range(n))
    return made[0].name


def _pairs_make(topics: list[str], now: dt.datetime) -> uuid.UUID:
    """A pair for each topic with the next one; return the first."""
    ids = sorted(map(uuid.UUID, topics))
    scope = Topic.objects.get(pk=ids[0]).scope_id
    DuplicatePair.objects.all().delete()
    pairs = DuplicatePair.objects.bulk_create(
        DuplicatePair(
            id=uuid7(now_ms=int(now.timestamp() * 1000)),
            scope_id=scope,
            one_id=one,
            other_id=other,
            verdict="duplicate",
            similarity=0.95,
            held=False,
            one_hash="",
            other_hash="",
            found_at=now,
        )
        for one, other in itertools.pairwise(ids)
    )
    return pairs[0].pk


def _listings_make(n: int, now: dt.datetime) -> uuid.UUID:
    """So many lists of everything there is; return the newest, which asks for an address."""
    made = forget_list("release", wanted=ForgetFilter(scope="/"), principal=SYSTEM, now=now)
    ForgetListing.objects.filter(pk=made.id).update(query="ann@example.org")
    members = {
        field.attname: getattr(made, field.attname)
        for field in ForgetListing._meta.concrete_fields
        if hasattr(made, field.attname)
    }
    ForgetListing.objects.bulk_create(
        ForgetListing(
            **members | {"id": uuid.uuid4(), "identity": "system", "created_at": now - dt.timedelta(days=1 + place)}
        )
        for place in range(n)
    )
    return made.id


def _receipts_make(n: int, now: dt.datetime) -> uuid.UUID:
    """So many receipts of so many topics each, in a chain that no one has made; return the last."""
    hashes = [f"{place:064x}" for place in range(n)]
    receipts = ErasureReceipt.objects.bulk_create(
        ErasureReceipt(
            id=uuid.uuid4(),
            number=1 + place,
            at=now,
            actor="test",
            reason="for the test",
            scope="/",
            topic_ids=[str(uuid.uuid4()) for _ in hashes],
            content_hashes=hashes,
            identifier_hashes=hashes,
            counts={"memory_topic": n},
            hash=hashes[place],
        )
        for place in range(n)
    )
    return receipts[-1].pk


def _extractions_make(operator: Caller, n: int, now: dt.datetime) -> uuid.UUID:
    """So many texts that facts were extracted from; return one that has stored so many, and found as many known."""
    text = " ".join(f"Person {place} lives in house {place}." for place in range(n))
    asked = {"content": text, "store": True, "scope": "/extracted"}
    job_id = operator.post("/v1/extract?background=1", asked).json["job_id"]
    tasks.extraction_continue(job_id)
    made = ExtractionJob.objects.get(pk=job_id)
    members = {field.attname: getattr(made, field.attname) for field in ExtractionJob._meta.concrete_fields}
    ExtractionJob.objects.bulk_create(
        ExtractionJob(**members | {"id": uuid.uuid4(), "created_at": now - dt.timedelta(days=1 + place)})
        for place in range(n)
    )
    return made.pk


def _imports_make(n: int, now: dt.datetime) -> uuid.UUID:
    """So many imports that are done, with so much to tell; return the last."""
    report = {"source": "mem0", "lines": n, "losses": [f"loss {place}" for place in range(n)]}
    made = ImportJob.objects.bulk_create(
        ImportJob(
            id=uuid.uuid4(),
            digest="0" * 64,
            source="mem0",
            scope="/brought",
            status="done",
            lines=n,
            done=n,
            counts={"topic": {"brought": n}},
            report=report,
            actor="test",
            identity="test",
            role="operator",
            principal_scope="/",
            created_at=now - dt.timedelta(hours=place),
            moved_at=now,
            finished_at=now,
        )
        for place in range(n)
    )
    return made[-1].pk


def _conversations_make(topics: list[str], n: int, now: dt.datetime) -> dict[str, uuid.UUID]:
    """So many conversations; the newest has so many turns with calls, and has written to so many topics."""
    made = Conversation.objects.bulk_create(
        Conversation(
            id=uuid.uuid4(),
            scope="/",
            actor="test",
            identity="test",
            created_at=now,
            moved_at=now - dt.timedelta(minutes=place),
            turns=n,
        )
        for place in range(n)
    )
    study = StudyJob.objects.create(
        id=uuid.uuid4(),
        conversation=made[0],
        scope="/",
        actor="test",
        identity="test",
        role="operator",
        principal_scope="/",
        part_chars=1000,
        segments=n,
        done=n,
        status="cancelled",
        created_at=now,
        moved_at=now,
    )
    calls = [
        {"tool": "topic", "arguments": {"topic_id": each}, "ok": True, "ms": 1.0, "topic_ids": [each], "said": ""}
        for each in topics
    ]
    ConversationTurn.objects.bulk_create(
        ConversationTurn(
            conversation=made[0],
            place=1 + place,
            scope="/",
            at=now,
            message="What is known?",
            reply="This.",
            ended="done",
            tool_log=calls,
            study=study,
        )
        for place in range(n)
    )
    fields = dict(Revision.objects.filter(seq=1, field__topic__in=topics).values_list("field__topic", "id"))
    ConversationWrite.objects.bulk_create(
        ConversationWrite(conversation=made[0], topic_id=topic, at=now, what=what, revision_id=revision)
        for place, (topic, revision) in enumerate(fields.items())
        for what in (["version"] if place % 2 else ["topic", "field"])
    )
    return {"conversation_id": made[0].pk, "study_id": study.pk}


def _runs_make(like: uuid.UUID, n: int) -> None:
    pattern = ForgetRun.objects.get(pk=like)
    members = {field.attname: getattr(pattern, field.attname) for field in ForgetRun._meta.concrete_fields}
    statuses = ForgetRun.Status.values
    made = []
    for place in range(n):
        at = pattern.created_at - dt.timedelta(hours=place + 1)
        members |= {"id": uuid7(now_ms=int(at.timestamp() * 1000)), "created_at": at}
        # One that is at work would be in the way of others, and of which there is one at a time.
        status = statuses[place % len(statuses)]
        made.append(ForgetRun(**{**members, "status": "done" if status == "applying" else status}))
    ForgetRun.objects.bulk_create(made)


def _policies_make(n: int, now: dt.datetime) -> None:
    """So many versions for the whole store, and so many places with a policy of their own."""
    first = PolicyVersion.objects.get(scope="/")
    said = {"author": "test", "reason": "for the test", "created_at": now, "diff": first.diff}
    PolicyVersion.objects.bulk_create(
        PolicyVersion(scope="/", number=2 + place, values={**first.values, "topic_count_soft_limit": place}, **said)
        for place in range(n)
    )
    PolicyVersion.objects.bulk_create(
        PolicyVersion(scope=f"/place/{place}", number=1, values={"prune_after_days": 1 + place}, **said)
        for place in range(n)
    )


def _jobs_make(n: int, now: dt.datetime) -> None:
    for place in range(n):
        async_task("memory.jobs.tasks.run_continue", str(uuid.UUID(int=place)))
    Success.objects.bulk_create(
        Success(
            id=uuid.uuid4().hex,
            name=f"job {place}",
            func="memory.jobs.tasks.upkeep",
            started=now,
            stopped=now,
            success=True,
            group="upkeep",
        )
        for place in range(n)
    )
    tasks.schedules_ensure()
