"""Loading the demo: once, whole or not at all, beside what was there; and the command that does it."""

import io
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from memory.demo import store
from memory.demo.build import story_build
from memory.demo.records import Story
from memory.demo.store import story_load
from memory.embedding import EmbeddingFailed
from memory.embedding.base import Vectors
from memory.embedding.instant import InstantEmbedder
from memory.models import AccessLog, Field, Revision, Topic, TopicVector, Vitality
from tests.cast import Caller, store_rows, worker_turn
from tests.demo.shop import of_the_story

NOW = datetime(2026, 8, 20, 9, 30, tzinfo=UTC)

pytestmark = [pytest.mark.django_db]


@pytest.fixture(scope="module")
def story() -> Story:
    made = story_build(now=NOW, topics=100)
    assert {"archive", "restore"} <= {change.action for change in made.changes}
    assert made.retrievals
    return made


def test_a_load_that_is_stopped_leaves_nothing_and_can_be_repeated(story: Story, monkeypatch: pytest.MonkeyPatch):
    before = store_rows()
    last = max(change.at for change in story.changes)
    real = store._change_apply

    def _stopped(change: store.StoryChange) -> None:
        if change.at == last:
            raise KeyboardInterrupt
        real(change)

    with monkeypatch.context() as patch:
        patch.setattr(store, "_change_apply", _stopped)
        with pytest.raises(KeyboardInterrupt):
            story_load(story, now=NOW, progress=lambda _steps: None)
    assert store_rows() == before
    story_load(story, now=NOW, progress=lambda _steps: None)
    assert of_the_story().count() == len(story.topics)


def _rows_of(topic_id: str) -> list[object]:
    return [
        *Topic.objects.filter(pk=topic_id).values(),
        *Vitality.objects.filter(pk=topic_id).values(),
        *Field.objects.filter(topic=topic_id).values(),
        *Revision.objects.filter(field__topic=topic_id).values(),
    ]


def test_what_was_there_before_is_left_alone(agent: Caller, story: Story):
    own = agent.remember("Mine", values={"tea": "green"})
    before = _rows_of(own)
    story_load(story, now=NOW, progress=lambda _steps: None)
    assert _rows_of(own) == before
    assert of_the_story().count() == len(story.topics) + 1


def demo(**options: int) -> str:
    out = io.StringIO()
    call_command("demo", stdout=out, **options)
    return out.getvalue()


def test_the_command_fills_an_empty_store(agent: Caller):
    said = demo(topics=40)
    assert said.startswith("The store now holds 40 topics with ")
    assert f" {Revision.objects.filter(seq__gt=1).count()} later revisions" in said
    assert f" {AccessLog.objects.count()} retrievals" in said
    assert of_the_story().count() == 40
    assert Field.objects.exists()
    assert not TopicVector.objects.filter(embedding__isnull=True).exists()
    assert not Topic.objects.filter(created_at__gt=timezone.now()).exists()
    title = Topic.objects.filter(rung=0).order_by("-created_at")[0].title
    assert title in [candidate["title"] for candidate in agent.query(title)["candidates"]]


def test_the_command_refuses_to_run_twice(agent: Caller):
    demo(topics=40)
    before = store_rows()
    with pytest.raises(CommandError, match=r"\[already-exists\]$") as refused:
        demo(topics=40)
    assert refused.value.returncode == 1
    assert store_rows() == before


@pytest.mark.parametrize("topics", [0, -1, 4001])
def test_the_command_refuses_a_size_that_it_has_no_story_for(topics: int):
    with pytest.raises(CommandError, match=r"\[invalid-member\]$"):
        demo(topics=topics)
    assert not Topic.objects.exists()


@pytest.mark.parametrize("topics", [1, 2, 3])
def test_the_smallest_stories_can_be_loaded(topics: int):
    demo(topics=topics)
    assert of_the_story().count() == topics


def test_where_the_embedder_fails_the_story_is_there_and_the_worker_does_the_rest(monkeypatch: pytest.MonkeyPatch):
    def _fails(_self: InstantEmbedder, _passages: Sequence[str]) -> Vectors:
        raise EmbeddingFailed("The endpoint is on holiday.")

    with monkeypatch.context() as patch:
        patch.setattr(InstantEmbedder, "embed_passages", _fails)
        with pytest.raises(CommandError, match=r"holiday\."):
            demo(topics=40)
    assert Topic.objects.count() == 40
    assert TopicVector.objects.filter(embedding__isnull=True).count() == 40
    worker_turn()
    assert not TopicVector.objects.filter(embedding__isnull=True).exists()
