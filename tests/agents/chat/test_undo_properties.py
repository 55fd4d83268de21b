"""Any conversation among other writers: its undo restores what it alone has changed, and touches nothing else."""

import datetime as dt
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import example, given
from hypothesis import strategies as st

from memory.core.errors import MemoryProblem
from memory.forgetting.runs import run_undo
from tests.agents.chat.shop import OPERATOR, Talk
from tests.cast import Caller, Cast
from tests.forgetting.shop import NOON
from tests.generated import examples

# Topics 0 to 2 are there before; those that the conversation makes come after, and are asked for round and round.
BEFORE = 3
names = st.sampled_from(["city", "job", "pet"])
values = st.sampled_from(["Oslo", "Bergen", "", "a cat"])
which = st.integers(0, 5)
talk_steps = st.lists(
    st.one_of(
        st.tuples(st.just("new"), which, names, values),
        st.tuples(st.just("extend"), which, names, values),
        st.tuples(st.just("version"), which, names, values),
        st.tuples(st.just("link"), which, which, st.none()),
        st.tuples(st.just("merge"), which, which, st.none()),
    ),
    min_size=1,
    max_size=12,
)
other_steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), which, names, values),
        st.tuples(st.just("link"), which, which, st.none()),
        st.tuples(st.just("ask"), which, names, values),
        st.tuples(st.just("archive"), which, names, values),
    ),
    max_size=4,
)


def got(operator: Caller, topic_ids: list[str]) -> dict[str, Any]:
    """What the API tells of these topics: values, links and rungs."""
    found = {}
    for topic_id in topic_ids:
        topic = operator.topic(topic_id)
        found[topic_id] = {
            "fields": {each["name"]: each["current"]["value"] for each in topic["fields"] if each["current"]["value"]},
            "links": sorted((each["direction"], each["kind"], each["topic_id"]) for each in topic["neighbors"]),
            **{name: topic[name] for name in ("title", "summary", "rung", "categories", "released_at", "merged_into")},
        }
    return found


def history(topic_ids: list[str] | None = None) -> dict[str, str]:
    """Each revision by its id, as a checksum of what it says; of some topics or of all."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.id::text, md5(concat_ws('|', r.value, r.field_type, r.ref_topic_id, r.valid_from, r.recorded_at, "
            "r.provenance, r.why_changed, r.actor)) FROM memory_revision r JOIN memory_field f ON f.id = r.field_id "
            "WHERE %(ids)s::text[] IS NULL OR f.topic_id::text = ANY(%(ids)s)",
            {"ids": topic_ids},
        )
        return dict(cursor.fetchall())


def everything_of(topic_ids: list[str]) -> list[str]:
    """Checksums of every row of some topics, with where they stand."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT md5(concat(to_jsonb(t), to_jsonb(v), (SELECT jsonb_agg(to_jsonb(f) ORDER BY f.id) "
            "FROM memory_field f WHERE f.topic_id = t.id), (SELECT to_jsonb(d) FROM memory_topicdocument d "
            "WHERE d.topic_id = t.id), (SELECT jsonb_agg(to_jsonb(l) ORDER BY l.id) FROM memory_link l "
            "WHERE l.source_id = t.id))) FROM memory_topic t JOIN memory_vitality v ON v.topic_id = t.id "
            "WHERE t.id::text = ANY(%s) ORDER BY t.id",
            [topic_ids],
        )
        return [row[0] for row in cursor.fetchall()]


def speak(talk: Talk, step: tuple[Any, ...], ids: list[str], merged: set[str]) -> None:
    """Do what the model asks for; what the store refuses is refused."""
    with suppress(MemoryProblem):
        _speak(talk, step, ids, merged)


def _speak(talk: Talk, step: tuple[Any, ...], ids: list[str], merged: set[str]) -> None:
    verb, one, two, three = step
    live = [each for each in ids if each not in merged]
    topic = live[one % len(live)]
    if verb == "new":
        ids.append(talk.new("Anna", **{two: three}))
    elif verb == "extend":
        talk.extend(topic, **{two: three})
    elif verb == "version":
        talk.version(topic, two, three)
    elif verb == "link" and topic != live[two % len(live)]:
        talk.extend(topic, (live[two % len(live)],))
    elif verb == "merge" and live[BEFORE:]:
        # Only what the conversation has made goes.
        made, into = live[BEFORE:][one % len(live[BEFORE:])], live[two % len(live)]
        if made != into:
            # The one that was written to last stays.
            talk.version(into, "note", "joined")
            talk.merge(made, into)
            merged.add(made)


def others(step: tuple[Any, ...], agent: Caller, operator: Caller, ids: list[str]) -> None:
    """Someone else uses the store."""
    verb, one, two, three = step
    topic = ids[one % len(ids)]
    if verb == "write":
        agent.post(
            "/v1/ingest", {"placement": "extend_topic", "topic_id": topic, "fields": [{"name": two, "value": three}]}
        )
    elif verb == "link":
        agent.post(
            "/v1/ingest",
            {"placement": "extend_topic", "topic_id": topic, "edges": [{"to_topic_id": ids[two % len(ids)]}]},
        )
    elif verb == "ask":
        agent.query("Anna")
    else:
        operator.post(f"/v1/topics/{topic}/archive")


# Merges one above the other, of which an upper one has to stay.
STACKED = [
    ("new", 3, "city", "a cat"),
    ("link", 2, 4, None),
    ("extend", 1, "pet", "a cat"),
    ("version", 3, "city", ""),
    ("new", 2, "job", "a cat"),
    ("merge", 0, 2, None),
    ("merge", 3, 3, None),
    ("new", 3, "job", "Oslo"),
    ("merge", 2, 2, None),
    ("merge", 4, 0, None),
    ("merge", 2, 1, None),
    ("extend", 3, "job", ""),
]
# A merge that moves a link which others' topics and one of its own share.
LINKED = [("new", 1, "job", "Oslo"), ("link", 2, 3, None), ("merge", 3, 0, None)]


@pytest.mark.django_db
@given(steps=talk_steps, before=other_steps)
@example(steps=LINKED, before=[])
@example(steps=STACKED, before=[("ask", 1, "pet", "")])
@examples(10)
def test_undo_restores_what_was_there_before(cast: Cast, monkeypatch: Any, steps: Any, before: Any) -> None:
    with transaction.atomic(), monkeypatch.context() as patch:
        moment = [NOON]
        patch.setattr(timezone, "now", lambda: moment[0])
        ids = [cast.agent.remember("Anna", values={"city": "Rome"}) for _ in range(BEFORE)]
        alone = [cast.agent.remember("Bob", values={"city": "Rome"}, scope="/bob")]
        for step in before:
            moment[0] += dt.timedelta(minutes=1)
            others(step, cast.agent, cast.operator, ids[:BEFORE])
        moment[0] += dt.timedelta(minutes=1)
        there, talk, merged = got(cast.operator, ids), Talk(), set[str]()
        for step in steps:
            moment[0] += dt.timedelta(minutes=1)
            speak(talk, step, ids, merged)
        said, rows = history(), everything_of(alone)
        moment[0] += dt.timedelta(minutes=1)
        done = talk.undo()
        # Two that it has merged and then written to stay one; that says what it said before.
        assert {part.what for part in done.left} <= {"merge", "topic"}
        assert got(cast.operator, ids[:BEFORE]) == there
        made = got(cast.operator, ids[BEFORE:]).values()
        assert all(bool(each["released_at"]) != bool(each["merged_into"]) for each in made)
        assert {key: value for key, value in history().items() if key in said} == said
        assert everything_of(alone) == rows
        assert talk.undo().taken_back == []
        if done.run_id:
            assert run_undo(done.run_id, principal=OPERATOR, reason="", now=moment[0]).conflicts == []
        transaction.set_rollback(True)


@pytest.mark.django_db
@given(steps=talk_steps, between=other_steps, more=talk_steps, after=other_steps)
@examples(10)
def test_what_others_wrote_is_never_lost(
    cast: Cast, monkeypatch: Any, steps: Any, between: Any, more: Any, after: Any
) -> None:
    with transaction.atomic(), monkeypatch.context() as patch:
        moment = [NOON]
        patch.setattr(timezone, "now", lambda: moment[0])
        ids = [cast.agent.remember("Anna", values={"city": "Rome"}) for _ in range(BEFORE)]
        talk, merged = Talk(), set[str]()
        for group, theirs in ((steps, False), (between, True), (more, False), (after, True)):
            for step in group:
                moment[0] += dt.timedelta(minutes=1)
                if theirs:
                    others(step, cast.agent, cast.operator, ids)
                else:
                    speak(talk, step, ids, merged)
        said, ours = history(), talk.revisions()
        theirs_last = talk.newest() - ours
        moment[0] += dt.timedelta(minutes=1)
        conversation = talk.undo_freely()
        assert {key: value for key, value in history().items() if key in said} == said
        # A field has the last value that another caller wrote.
        assert theirs_last <= talk.newest()
        released = {str(part.topic_id) for part in conversation.taken_back if part.what == "topic"}
        assert released.isdisjoint(ids[:BEFORE])
        transaction.set_rollback(True)
