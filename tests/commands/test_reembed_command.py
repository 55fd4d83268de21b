"""``manage.py reembed``: from one model to another, a step at a time, without losing what there is."""

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from memory.embedding import EmbeddingFailed, embedder_reset
from memory.embedding.base import Vectors
from memory.embedding.instant import InstantEmbedder
from memory.models import TopicVector
from tests.cast import Caller, raises_code, worker_turn

# Words that the search for words ignores, so that only meaning can find them.
ONLY_MEANING = "to be or not to be"
# Enough for three steps.
TOPICS = 150
OTHER_MODEL = "another/model"


def reembed() -> str:
    """Run the command and return its last words."""
    out = io.StringIO()
    call_command("reembed", stdout=out)
    return out.getvalue()


def remember_many(agent: Caller, number: int = TOPICS) -> None:
    items = [{"placement": "new_topic", "title": f"Topic {at}"} for at in range(number)]
    assert agent.post("/v1/ingest/batch", items).ok()["accepted"] == number


def forget_what_embedded() -> None:
    """Let all vectors be another model's, with numbers that this model would not give."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE memory_topicvector SET model = %s,"
            " embedding = (SELECT array_agg(0.05) FROM generate_series(1, vector_dims(embedding)))::vector",
            [OTHER_MODEL],
        )


def vectors() -> dict[Any, tuple[str, str, list[float]]]:
    """Return every topic's model, hash and vector."""
    rows = TopicVector.objects.values_list("topic_id", "model", "text_hash", "embedding")
    return {topic_id: (model, text_hash, list(embedding)) for topic_id, model, text_hash, embedding in rows}


def assert_vectors_are(wanted: dict[Any, tuple[str, str, list[float]]]) -> None:
    present = vectors()
    assert {key: row[:2] for key, row in present.items()} == {key: row[:2] for key, row in wanted.items()}
    for topic_id, (_model, _hash, embedding) in wanted.items():
        assert present[topic_id][2] == pytest.approx(embedding, abs=1e-6)


def done() -> int:
    """Return how many topics have a vector of the present model."""
    return TopicVector.objects.filter(model=InstantEmbedder.model_name, embedding__isnull=False).count()


def assert_found_by_meaning(caller: Caller, title: str) -> None:
    first = caller.query(title)["candidates"][0]
    assert (first["title"], first["similarity"]) == (title, pytest.approx(1.0, abs=1e-5))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of topics that the embedder is asked for, in order."""
    texts: list[str] = []
    real = InstantEmbedder.embed_passages

    def _noted(self: InstantEmbedder, passages: Sequence[str]) -> Vectors:
        texts.extend(text for text in passages if text.startswith("Topic "))
        return real(self, passages)

    monkeypatch.setattr(InstantEmbedder, "embed_passages", _noted)
    return texts


Break = Callable[[Callable[[list[str]], bool]], None]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Break]:
    """Let the embedder fail for the requests that a condition picks out, until ``with`` ends."""
    real = InstantEmbedder.embed_passages

    def _break(fails: Callable[[list[str]], bool]) -> None:
        def _perhaps(self: InstantEmbedder, passages: Sequence[str]) -> Vectors:
            if fails(list(passages)):
                raise EmbeddingFailed("The endpoint is on holiday.")
            return real(self, passages)

        monkeypatch.setattr(InstantEmbedder, "embed_passages", _perhaps)

    yield _break
    monkeypatch.setattr(InstantEmbedder, "embed_passages", real)


def test_every_topic_gets_a_vector_of_the_present_model(agent: Caller, asked: list[str]):
    remember_many(agent)
    right = vectors()
    forget_what_embedded()
    assert agent.query("Topic 3")["candidates"][0]["similarity"] is None
    asked.clear()
    assert "instant" in reembed()
    assert_vectors_are(right)
    assert sorted(asked) == sorted(f"Topic {at}" for at in range(TOPICS))
    assert_found_by_meaning(agent, "Topic 3")


def test_archived_topics_are_embedded_as_well(agent: Caller, operator: Caller):
    topic_id = agent.remember(ONLY_MEANING)
    operator.post(f"/v1/topics/{topic_id}/archive", {"reason": "tidying"}).ok()
    forget_what_embedded()
    reembed()
    assert done() == 1


def test_topics_that_wait_for_their_first_vector_are_embedded_as_well(agent: Caller):
    agent.post("/v1/ingest?defer=1", {"placement": "new_topic", "title": ONLY_MEANING}).ok()
    assert done() == 0
    reembed()
    assert_found_by_meaning(agent, ONLY_MEANING)


def test_where_all_vectors_are_right_nothing_is_embedded(agent: Caller, asked: list[str]):
    remember_many(agent, 5)
    before = vectors()
    asked.clear()
    assert "instant" in reembed()
    assert asked == []
    assert_vectors_are(before)


@pytest.mark.django_db
def test_an_empty_store_is_no_error():
    assert "instant" in reembed()


def test_stopped_by_the_embedder_it_says_so_and_the_second_run_does_only_the_rest(
    agent: Caller, asked: list[str], broken: Break
):
    remember_many(agent)
    right = vectors()
    forget_what_embedded()
    served = 0

    def _holiday_after_the_first_step(texts: list[str]) -> bool:
        nonlocal served
        served += sum(text.startswith("Topic ") for text in texts)
        return served > 64

    broken(_holiday_after_the_first_step)
    with raises_code(CommandError, "embedder-unavailable") as refused:
        reembed()
    assert refused.value.returncode == 1
    first = done()
    assert 0 < first < TOPICS
    broken(lambda _texts: False)
    # Those that are left are found by their words meanwhile.
    left = TopicVector.objects.exclude(model="instant", embedding__isnull=False).values_list("topic__title", flat=True)
    assert left[0] in [candidate["title"] for candidate in agent.query(left[0], top_k=5)["candidates"]]
    asked.clear()
    reembed()
    assert_vectors_are(right)
    assert len(asked) == len(set(asked)) == TOPICS - first


def test_killed_between_two_steps_the_second_run_does_only_the_rest(
    agent: Caller, monkeypatch: pytest.MonkeyPatch, asked: list[str]
):
    remember_many(agent)
    right = vectors()
    forget_what_embedded()
    noted = InstantEmbedder.embed_passages

    def _killed(self: InstantEmbedder, passages: Sequence[str]) -> Vectors:
        if len(asked) >= 100:
            raise KeyboardInterrupt
        return noted(self, passages)

    asked.clear()
    with monkeypatch.context() as patch:
        patch.setattr(InstantEmbedder, "embed_passages", _killed)
        with pytest.raises(KeyboardInterrupt):
            reembed()
    first = done()
    assert 0 < first < TOPICS
    asked.clear()
    reembed()
    assert_vectors_are(right)
    assert len(asked) == TOPICS - first


def test_one_text_that_cannot_be_embedded_does_not_keep_the_others_from_it(agent: Caller, broken: Break):
    remember_many(agent)
    forget_what_embedded()
    broken(lambda texts: "Topic 7" in texts)
    with raises_code(CommandError, "work-left") as refused:
        reembed()
    assert refused.value.returncode == 1
    assert done() == TOPICS - 1
    # It is found by its words all the same.
    assert "Topic 7" in [candidate["title"] for candidate in agent.query("number 7", top_k=5)["candidates"]]
    broken(lambda _texts: False)
    reembed()
    assert done() == TOPICS


def test_an_embedder_that_does_not_work_at_all_leaves_the_old_vectors(agent: Caller, broken: Break):
    remember_many(agent)
    forget_what_embedded()
    before = vectors()
    broken(lambda _texts: True)
    with raises_code(CommandError, "embedder-unavailable") as refused:
        reembed()
    assert refused.value.returncode == 1
    assert_vectors_are(before)


def column_type() -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
            " WHERE attrelid = 'memory_topicvector'::regclass AND attname = 'embedding'"
        )
        return str(cursor.fetchone()[0])


def index_definition() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_indexdef('topicvector_hnsw'::regclass)")
        return str(cursor.fetchone()[0])


@pytest.fixture
def width(transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Choose another model by the length of its vectors; afterwards the column is what it was, whatever happened."""
    before, column, index = settings.MEMSTATE_EMBEDDING_DIMENSION, column_type(), index_definition()

    def _choose(dimension: int) -> None:
        settings.MEMSTATE_EMBEDDING_DIMENSION = dimension
        monkeypatch.setattr(InstantEmbedder, "model_name", "instant" if dimension == before else f"instant-{dimension}")
        embedder_reset()

    try:
        yield _choose
    finally:
        _choose(before)
        with connection.cursor() as cursor:
            cursor.execute("DROP INDEX IF EXISTS topicvector_hnsw")
            cursor.execute(f"ALTER TABLE memory_topicvector ALTER embedding TYPE {column} USING NULL")
            cursor.execute(index)


# A large store searches its index, which has to be one of the new width as well.
@pytest.mark.parametrize("exact_below", [2000, 0], ids=["small", "large"])
@pytest.mark.parametrize("dimension", [64, 768])
def test_a_model_of_another_width_resizes_the_column_and_everything_is_found_by_meaning_again(
    width: Callable[[int], None], agent: Caller, settings: Any, dimension: int, exact_below: int
):
    settings.MEMSTATE_KNOBS = {"recall_exact_below": exact_below}
    remember_many(agent, 70)
    agent.remember(ONLY_MEANING)
    worker_turn()
    index = index_definition()
    assert_found_by_meaning(agent, ONLY_MEANING)
    width(dimension)
    # Between the change of the setting and the end of the run there is no meaning to compare, but there are words.
    assert agent.query("Topic 7", top_k=1)["candidates"][0]["title"] == "Topic 7"
    assert f"{dimension}" in reembed()
    assert column_type() == f"vector({dimension})"
    assert index_definition() == index
    assert done() == 71
    assert_found_by_meaning(agent, ONLY_MEANING)
    assert_found_by_meaning(agent, "Topic 69")
    agent.remember("Topic 70")
    assert_found_by_meaning(agent, "Topic 70")


def test_a_model_of_another_width_that_does_not_work_leaves_the_column_and_the_vectors(
    width: Callable[[int], None], agent: Caller, broken: Break
):
    remember_many(agent, 70)
    before, column = vectors(), column_type()
    width(64)
    broken(lambda _texts: True)
    with raises_code(CommandError, "embedder-unavailable"):
        reembed()
    assert column_type() == column
    assert_vectors_are(before)


def test_stopped_after_the_column_was_resized_the_second_run_goes_on(
    width: Callable[[int], None], agent: Caller, broken: Break
):
    remember_many(agent)
    width(64)
    served = 0

    def _holiday_after_the_first_step(texts: list[str]) -> bool:
        nonlocal served
        served += sum(text.startswith("Topic ") for text in texts)
        return served > 64

    broken(_holiday_after_the_first_step)
    with raises_code(CommandError, "embedder-unavailable"):
        reembed()
    assert column_type() == "vector(64)"
    first = done()
    assert 0 < first < TOPICS
    broken(lambda _texts: False)
    reembed()
    assert done() == TOPICS
    assert_found_by_meaning(agent, "Topic 149")
