"""The demo in the store: everything the story tells is there, once, at its own time. Loaded once for all of them."""

import uuid
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django_q.models import Schedule

from memory.agents.study.progress import session_ids
from memory.core.errors import Conflict
from memory.core.policy_values import Knobs
from memory.demo.build import story_build
from memory.demo.material import minutes_read
from memory.demo.records import Story, topic_id
from memory.demo.store import story_load, story_size
from memory.demo.study import SCOPE as STUDIED
from memory.demo.study import STUDY_ID
from memory.extraction.store import source_text
from memory.forgetting.manual_runs import BY_HAND
from memory.models import (
    AccessLog,
    AuditEvent,
    Conversation,
    ConversationWrite,
    ForgetAction,
    Link,
    Revision,
    StudyJob,
    Topic,
    TopicDocument,
    TopicVector,
    Vitality,
    WakeUp,
)
from memory.policy.schedules import FUNCTION
from tests.cast import Caller, store_rows, worker_turn
from tests.demo.shop import of_the_story

NOW = datetime(2026, 8, 20, 9, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def story() -> Story:
    return story_build(now=NOW, topics=300)


@pytest.fixture(scope="module")
def steps(story: Story, lasting: None) -> int:
    """Load the story and return how many steps were reported."""
    got: list[int] = []
    story_load(story, now=NOW, progress=got.append)
    connection.check_constraints()
    return sum(got)


def by_the_story() -> QuerySet[Revision]:
    """Values of the story's topics, without those that came with what was merged into them."""
    return Revision.objects.filter(field__topic__in=of_the_story()).exclude(provenance="llm")


def archived_at_the_end(story: Story) -> set[str]:
    gone: set[str] = set()
    for change in story.changes:
        if change.action == "archive":
            gone.add(change.key)
        elif change.action == "restore":
            gone.discard(change.key)
    return gone


def archived_by_runs() -> set[Any]:
    applied = ForgetAction.objects.filter(state="applied", to_rung=3).exclude(run__event=BY_HAND)
    back = AuditEvent.objects.filter(action="restored", reason="needed again").values_list("topic_id", flat=True)
    return set(applied.values_list("topic_id", flat=True)) - set(back)


def pinned_at_the_end(story: Story) -> set[str]:
    pinned = {topic.key for topic in story.topics if topic.pinned}
    for change in story.changes:
        if change.action == "pin":
            pinned.add(change.key)
        elif change.action == "unpin":
            pinned.discard(change.key)
    return pinned


def retrievals_that_count(story: Story) -> Counter[str]:
    """How often each topic was returned, less the questions asked again within a minute."""
    within = timedelta(seconds=Knobs().reinforce_once_seconds)
    last: dict[tuple[str, str], datetime] = {}
    times: Counter[str] = Counter()
    for retrieval in story.retrievals:
        asked = (retrieval.actor, retrieval.query)
        if asked in last and retrieval.at - last[asked] < within:
            continue
        last[asked] = retrieval.at
        times.update(retrieval.keys)
    return times


def test_the_story_of_these_tests_holds_something_of_everything(story: Story):
    assert len(story.topics) == 300
    assert len(story.revisions) > 0
    assert len(story.retrievals) > 20
    assert any(topic.links for topic in story.topics)
    assert any(entry.ref_key for topic in story.topics for entry in topic.fields)
    assert archived_at_the_end(story)
    assert pinned_at_the_end(story)
    assert {"archive", "restore", "unpin"} <= {change.action for change in story.changes}


def test_every_topic_is_there_as_it_was_reported(story: Story, steps: int):
    stored = {
        topic.pk: (topic.scope.path, topic.kind, topic.title, topic.summary, sorted(topic.categories), topic.created_at)
        for topic in of_the_story().select_related("scope")
    }
    # What took in a topic of the study has the sort of thing among its categories.
    also = {topic_id(key): ["decision"] for key in minutes_read(day_zero=NOW.date()).same_as.values()}
    assert stored == {
        topic_id(topic.key): (
            topic.scope,
            topic.kind,
            topic.title,
            topic.summary,
            sorted([*topic.categories, *also.get(topic_id(topic.key), ())]),
            topic.at,
        )
        for topic in story.topics
    }


def test_every_field_has_all_its_values_in_order_each_at_its_time(story: Story, steps: int):
    got: dict[tuple[str, str], list[tuple[str, str, datetime]]] = defaultdict(list)
    for topic in story.topics:
        for entry in topic.fields:
            got[topic.key, entry.name].append((entry.value, entry.field_type, topic.at))
    for revision in story.revisions:
        got[revision.key, revision.name].append((revision.value, revision.field_type, revision.at))
    stored = defaultdict(list)
    for revision in by_the_story().select_related("field").order_by("field", "seq"):
        stored[revision.field.topic_id, revision.field.name].append(
            (revision.value, revision.field_type, revision.recorded_at)
        )
    assert stored == {(topic_id(key), name): values for (key, name), values in got.items()}
    reasons = Counter(Revision.objects.filter(seq__gt=1).values_list("why_changed", flat=True))
    assert reasons == Counter(revision.why_changed for revision in story.revisions)


def test_links_and_references_lead_where_the_story_says(story: Story, steps: int):
    links = Link.objects.filter(source__in=of_the_story(), target__in=of_the_story())
    assert set(links.values_list("source_id", "target_id", "kind")) == {
        (topic_id(topic.key), topic_id(link.to_key), link.kind) for topic in story.topics for link in topic.links
    }
    first_values = by_the_story().filter(seq=1, ref_topic__isnull=False)
    assert set(first_values.values_list("field__topic_id", "field__name", "ref_topic_id")) == {
        (topic_id(topic.key), entry.name, topic_id(entry.ref_key))
        for topic in story.topics
        for entry in topic.fields
        if entry.ref_key
    }


def test_every_retrieval_is_logged_and_counted(story: Story, steps: int):
    asked = AccessLog.objects.filter(kind="query")
    assert Counter(asked.values_list("at", "actor", "query")) == Counter(
        (retrieval.at, retrieval.actor, retrieval.query) for retrieval in story.retrievals
    )
    assert not AccessLog.objects.filter(folded_at__isnull=True).exists()
    wanted = retrievals_that_count(story)
    assert sum(wanted.values()) > 0
    rows = Vitality.objects.filter(topic__in=of_the_story())
    assert dict(rows.values_list("topic_id", "retrieval_count")) == {
        topic_id(topic.key): wanted[topic.key] for topic in story.topics
    }
    last: dict[str, datetime] = {}
    for retrieval in story.retrievals:
        last.update(dict.fromkeys(retrieval.keys, retrieval.at))
    for key, at in last.items():
        seen = Vitality.objects.get(topic_id=topic_id(key)).last_retrieved_at
        assert seen is not None
        assert timedelta() <= at - seen < timedelta(seconds=Knobs().reinforce_once_seconds)


def test_what_was_asked_for_often_outweighs_what_was_never_asked_for(story: Story, steps: int):
    often = [key for key, _times in retrievals_that_count(story).most_common(3)]
    never = [topic.key for topic in story.topics if topic.key not in retrievals_that_count(story) and not topic.pinned]
    salience = dict(Vitality.objects.values_list("topic_id", "fade"))
    assert (
        min(salience[topic_id(key)] for key in often)
        > sorted(salience[topic_id(key)] for key in never)[len(never) // 2]
    )


def test_archived_ones_are_archived_and_pinned_ones_pinned_and_no_others(story: Story, steps: int, operator: Caller):
    keys = {topic_id(topic.key): topic.key for topic in story.topics}
    by_hand = archived_at_the_end(story)
    gone = by_hand | {keys[pk] for pk in archived_by_runs()}
    assert gone > by_hand
    assert {keys[pk] for pk in Topic.objects.filter(rung=3).values_list("pk", flat=True)} == gone
    for table in (Vitality, TopicVector, TopicDocument):
        rows = table.objects.filter(live=False, topic__in=of_the_story())
        assert {keys[pk] for pk in rows.values_list("pk", flat=True)} == gone
    assert {keys[pk] for pk in Vitality.objects.filter(pinned=True).values_list("pk", flat=True)} == (
        pinned_at_the_end(story)
    )
    journal = AuditEvent.objects.filter(action__in=["archived", "restored", "pinned", "unpinned"], actor="demo")
    actions = {"archive": "archived", "restore": "restored", "pin": "pinned", "unpin": "unpinned"}
    assert Counter(journal.values_list("at", "topic_id", "action", "reason")) == Counter(
        (change.at, topic_id(change.key), actions[change.action], change.reason) for change in story.changes
    )
    title = Topic.objects.get(pk=topic_id(min(gone))).title
    assert str(topic_id(min(gone))) not in operator.found(title, top_k=50)


def test_what_a_person_changed_is_changed_between_the_retrievals_before_and_those_after(story: Story, steps: int):
    once = timedelta(seconds=Knobs().reinforce_once_seconds)
    compared = 0
    for change in story.changes:
        event = AuditEvent.objects.get(topic_id=topic_id(change.key), at=change.at)
        reinforced_at = datetime.fromisoformat(event.before["reinforced_at"])
        assert reinforced_at <= change.at
        for retrieval in story.retrievals:
            if change.key in retrieval.keys and retrieval.at <= change.at:
                compared += 1
                assert reinforced_at > retrieval.at - once
    assert compared
    for at, folded_at in AccessLog.objects.values_list("at", "folded_at"):
        following = [change.at for change in story.changes if change.at >= at]
        assert at <= folded_at <= min(following, default=NOW)


def test_every_topic_can_be_found_by_meaning_and_by_word(story: Story, steps: int, agent: Caller):
    assert not TopicVector.objects.filter(embedding__isnull=True).exists()
    assert not TopicDocument.objects.filter(uncounted=True).exists()
    turn = worker_turn()
    assert {name: turn[name] for name in ("folded", "embedded")} == {"folded": 0, "embedded": 0}
    gone = {topic_id(key) for key in archived_at_the_end(story)} | archived_by_runs()
    living = [topic for topic in story.topics if topic_id(topic.key) not in gone]
    for topic in living[:10]:
        assert str(topic_id(topic.key)) in agent.found(topic.title, top_k=5), topic.title


def test_no_run_by_schedule_is_overdue_once_the_story_is_there(story: Story, steps: int):
    coming = list(Schedule.objects.filter(func=FUNCTION).values_list("next_run", flat=True))
    assert len(coming) == 3
    assert min(coming) > NOW
    # What the study wrote some hours before is news to the reasoner.
    got = WakeUp.objects.filter(scope__path=STUDIED, event="ingest_complete").values_list("first_at", flat=True)
    assert list(got) == [NOW]


def test_progress_ends_where_it_was_said_to_end(story: Story, steps: int):
    assert steps == story_size(story)


@pytest.mark.parametrize(("topics", "seed"), [(300, 7), (100, 7), (300, 8)])
def test_a_second_load_is_refused_in_a_sentence_and_changes_nothing(steps: int, topics: int, seed: int):
    before = store_rows()
    again = story_build(now=NOW + timedelta(days=1), seed=seed, topics=topics)
    with pytest.raises(Conflict) as refused:
        story_load(again, now=NOW + timedelta(days=1), progress=lambda _steps: None)
    assert refused.value.code == "already-exists"
    assert store_rows() == before


@pytest.mark.usefixtures("steps")
def test_a_conversation_tells_how_the_latest_change_came(operator: Caller) -> None:
    talk = Conversation.objects.get(scope="/")
    written = ConversationWrite.objects.get(conversation=talk)
    revision = Revision.objects.select_related("field").get(pk=written.revision_id)
    assert (revision.field.topic_id, revision.seq) == (written.topic_id, revision.field.last_seq)
    assert [turn.place for turn in talk.told.order_by("place")] == [1, 2]
    # It can be taken back as any other.
    looked = operator.post(f"/v1/chat/{talk.pk}/undo", {"dry_run": True}).ok()
    assert looked["taken_back"]["values"] == 1
    assert looked["left"] == []


@pytest.mark.usefixtures("steps")
def test_a_long_text_is_studied_through_and_can_be_taken_back(operator: Caller, settings: Any) -> None:
    job = StudyJob.objects.get()
    got = operator.get(f"/v1/studies/{job.pk}").ok()
    assert (got["status"], got["progress"], got["warning"], got["failure"]) == ("done", 1, None, None)
    assert (got["done"], got["linked"], got["merged"]) == (got["segments"], got["to_link"], 1)
    turn = job.conversation.told.get()
    assert (turn.study_id, turn.ended) == (job.pk, "done")
    length = len(source_text(job.source_id) or "")
    assert length > settings.MEMSTATE_CHAT_CHUNK_THRESHOLD_CHARS
    assert f"{length:,} characters" in turn.message
    # The same topics whoever loads it, each with the text it came from, and beside what the story tells.
    ids = session_ids(job)
    assert ids[0] == uuid.uuid5(STUDY_ID, "0:0")
    assert set(Topic.objects.filter(kind=job.kind).values_list("pk", flat=True)) == set(ids)
    assert job.links == Link.objects.filter(source__in=ids, target__in=of_the_story()).count()
    assert str(ids[-1]) in operator.found("give up before the first search", scope=job.scope)
    journal = AuditEvent.objects.filter(after__study=str(job.pk)).order_by("id")
    assert list(journal.values_list("action", "actor")) == [("study_started", "mara"), ("study_done", "mara")]
    looked = operator.post(f"/v1/chat/{job.conversation_id}/undo", {"dry_run": True}).ok()
    assert (looked["taken_back"]["topics"], looked["taken_back"]["merges"], looked["left"]) == (len(ids), 1, [])
