"""The index of mentions holds all that a topic has ever said, however it was written."""

import datetime as dt
import importlib
import io
import uuid
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.demo.build import story_build
from memory.demo.store import story_load
from memory.ingest.bulk import array_literal, rows_copy
from memory.ingest.mentions import MAX_WORD_BYTES
from memory.models import Field, Revision, Topic, TopicEdit, TopicMention, TopicVector
from memory.text.aliases import aliases_find
from memory.text.folding import fold
from memory.text.keys import keys_index
from memory.text.name_match import sounds_index
from memory.text.names import words_index
from tests.cast import Caller, Cast, Clock, worker_turn
from tests.transfer.shop import emptied, exported, imported, rich

pytestmark = pytest.mark.django_db
UPGRADE = importlib.import_module("memory.migrations.0009_keys_of_every_notation")
SCRIPTS = [
    ("Mohammed al-Haddad", "محمد الحداد يسكن في عمّان."),
    ("Olga Petrova", "Телефон Ольги Петровой записан."),
    ("Nino Beridze", "ნინო ბერიძე ცხოვრობს თბილისში."),
    ("Анна Ковальская", "Anna Kovalskaya pays the rent."),
    ("राहुल शर्मा", "Rahul Sharma pays the rent."),
    ("Olga Petrova", "オルガ・ペトロワは東京に住んでいる。"),
    ("Kim Minsu", "김민수는 부산에 산다."),
]


@pytest.mark.parametrize(("name", "stored"), SCRIPTS, ids=[name for name, _stored in SCRIPTS])
def test_a_purge_finds_a_name_in_another_script_among_many_memories(operator: Caller, name: str, stored: str) -> None:
    own = [operator.remember(f"{name} has job number {number}.") for number in range(40)]
    other = operator.remember(stored)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE memory_topicmention SET words = ARRAY(SELECT e FROM unnest(words) e WHERE e NOT LIKE '%%~%%')"
        )
    UPGRADE.keys_set(None, connection.schema_editor(collect_sql=True))
    done = operator.post("/v1/forget", {"verb": "purge", "query": f"everything about {name}"}).ok()
    assert {other, *own} == {match["topic_id"] for match in done["matches"]}


def test_the_upgrade_gives_every_row_the_keys_of_present_and_earlier_texts(operator: Caller) -> None:
    topic = operator.remember("Contract INV-100", values={"phone": "+49 170 1234567"})
    operator.patch(f"/v1/topics/{topic}", {"title": "Contract INV-200", "summary": "of anna@x.io"}).ok()
    plain = operator.remember("She likes tea")
    TopicMention.objects.update(identifiers=["email:anna@x.io", "code:inv100"])
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memory_topicmention SET words = words || '{l~cntrct}'")
    UPGRADE.keys_set(None, connection.schema_editor(collect_sql=True))
    assert {"key:inv100", "key:inv200", "key:anna@x.io", "key:491701234567"} <= set(row(topic).identifiers)
    assert row(plain).identifiers == []
    assert holds_all(topic)


def row(topic_id: str) -> TopicMention:
    return TopicMention.objects.get(pk=topic_id)


def said(topic: Topic) -> set[str]:
    """All texts that the store holds of what ``topic`` says and said."""
    texts = {topic.title, topic.summary}
    for value, why, impact in Revision.objects.filter(field__topic=topic).values_list(
        "value", "why_changed", "impact_expected"
    ):
        texts |= {value, why, impact}
    for before in TopicEdit.objects.filter(topic=topic).values_list("before", flat=True):
        texts |= {before.get("title", ""), before.get("summary", "")}
    return texts - {""}


def holds_all(topic_id: object) -> bool:
    topic = Topic.objects.get(pk=topic_id)
    texts = said(topic)
    names = set(Field.objects.filter(topic=topic).values_list("name", flat=True))
    mention = TopicMention.objects.get(pk=topic_id)
    identifiers = set().union(*map(keys_index, texts))
    words = set().union(*map(words_index, texts | names), *map(sounds_index, texts))
    words = {word for word in words if len(word.encode()) <= MAX_WORD_BYTES}
    assert mention.identifiers == sorted(identifiers)
    assert mention.words == sorted(words)
    aliases = {fold(name) for text in texts for pair in aliases_find(text) for name in pair}
    assert mention.aliases == sorted(name for name in aliases if len(name.encode()) <= MAX_WORD_BYTES)
    return mention.scope_id == topic.scope_id


def test_a_new_topic_is_indexed_with_title_summary_values_and_reasons(agent: Caller) -> None:
    topic = agent.post(
        "/v1/ingest",
        {
            "placement": "new_topic",
            "title": "Mara (mara@x.io)",
            "summary": "Robert, also known as Bob, knows her",
            "fields": [{"name": "phone", "value": "+49 170 1234567", "why_changed": "ticket ABC-123"}],
        },
    ).ok()["topic_id"]
    found = row(topic)
    assert {"key:mara@x.io", "key:491701234567", "key:abc123"} <= set(found.identifiers)
    assert {"robert", "bob"} <= set(found.aliases)
    assert holds_all(topic)


def test_versions_and_extensions_add_and_take_nothing_away(agent: Caller) -> None:
    topic = agent.remember("Server", values={"address": "10.0.0.1"})
    agent.post(
        "/v1/ingest",
        {"placement": "version_field", "topic_id": topic, "fields": [{"name": "address", "value": "10.0.0.12"}]},
    ).ok()
    agent.post(
        "/v1/ingest",
        {"placement": "extend_topic", "topic_id": topic, "fields": [{"name": "owner", "value": "ann@x.io"}]},
    ).ok()
    assert {"key:10.0.0.1", "key:10.0.0.12", "key:ann@x.io"} <= set(row(topic).identifiers)
    assert holds_all(topic)


def test_an_edit_adds_the_new_title_and_keeps_the_old_one(operator: Caller) -> None:
    topic = operator.remember("Contract INV-100")
    operator.patch(f"/v1/topics/{topic}", {"title": "Contract INV-200", "summary": "of anna@x.io"}).ok()
    assert {"key:inv100", "key:inv200", "key:anna@x.io"} <= set(row(topic).identifiers)
    assert holds_all(topic)


def test_a_deferred_ingest_is_indexed_at_once(agent: Caller) -> None:
    topic = agent.post(
        "/v1/ingest?defer=1", {"placement": "new_topic", "title": "a@x.io", "fields": [{"name": "n", "value": "1"}]}
    ).ok()["topic_id"]
    assert "key:a@x.io" in row(topic).identifiers
    assert holds_all(topic)


def test_a_batch_indexes_new_and_stored_topics_and_several_items_of_one(agent: Caller) -> None:
    stored = agent.remember("Stored", values={"code": "ABC-1"})
    fresh = str(uuid.uuid4())
    reply = agent.post(
        "/v1/ingest/batch",
        [
            {
                "placement": "new_topic",
                "topic_id": fresh,
                "title": "Fresh",
                "fields": [{"name": "code", "value": "ABC-2"}],
            },
            {"placement": "version_field", "topic_id": fresh, "fields": [{"name": "code", "value": "ABC-3"}]},
            {"placement": "version_field", "topic_id": stored, "fields": [{"name": "code", "value": "ABC-4"}]},
            {"placement": "version_field", "topic_id": stored, "fields": [{"name": "code", "value": "ABC-5"}]},
        ],
    ).ok()
    assert reply["refused"] == 0
    assert {"key:abc2", "key:abc3"} <= set(row(fresh).identifiers)
    assert {"key:abc1", "key:abc4", "key:abc5"} <= set(row(stored).identifiers)
    assert holds_all(fresh)
    assert holds_all(stored)


def test_archived_restored_and_released_topics_keep_their_row(operator: Caller) -> None:
    topic = operator.remember("Kept a@x.io")
    before = row(topic)
    operator.post(f"/v1/topics/{topic}/archive", {"reason": "test"}).ok()
    worker_turn()
    assert row(topic).identifiers == before.identifiers
    operator.post(f"/v1/topics/{topic}/restore", {"reason": "test"}).ok()
    worker_turn()
    assert row(topic).words == before.words


def test_a_text_of_one_endless_word_is_stored(agent: Caller) -> None:
    topic = agent.remember("Long", values={"key": "a1" * 9_000, "url": "https://x.io/" + "p/" * 5_000})
    assert holds_all(topic)


@pytest.mark.parametrize(
    "words", [[], [""], ["null", "NULL"], ['a"b', "a\\b", "\\"], ["{a,b}", " x ", "é\n", "'", '"']]
)
def test_any_words_are_stored_as_they_are(words: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE told (words text[]) ON COMMIT DROP")
        rows_copy(cursor, "told", "words", [[array_literal(words)]])
        cursor.execute("SELECT words FROM told")
        assert cursor.fetchone() == (words,)


def test_a_write_costs_one_statement_more(agent: Caller) -> None:
    stored = [agent.remember(f"Topic {n}", values={"n": f"ABC-{n}"}) for n in range(12)]

    def versions(ids: list[str]) -> list[dict[str, object]]:
        return [
            {"placement": "version_field", "topic_id": it, "fields": [{"name": "n", "value": f"{it} x@x.io"}]}
            for it in ids
        ]

    def cost(items: list[dict[str, object]]) -> list[str]:
        with CaptureQueriesContext(connection) as seen:
            agent.post("/v1/ingest/batch", items).ok()
        return [query["sql"] for query in seen.captured_queries]

    few, many = cost(versions(stored[:2])), cost(versions(stored))
    assert len(few) == len(many)
    assert sum("UPDATE memory_topicmention" in sql for sql in many) == 1


def test_the_demo_is_in_the_index() -> None:
    now = dt.datetime(2026, 8, 20, 9, 30, tzinfo=dt.UTC)
    story_load(story_build(now=now, topics=300), now=now, progress=lambda _steps: None)
    assert TopicMention.objects.count() == Topic.objects.count()
    for topic_id in Topic.objects.order_by("id").values_list("id", flat=True)[::29]:
        assert holds_all(topic_id)


def test_every_writer_gives_each_topic_its_row(cast: Cast, clock: Clock, tmp_path: Path) -> None:
    # Ingest, batches, edits, merges, undone merges and purges; then an import of all of it into an empty store.
    rich(cast, clock)
    assert topics_without_row() == []
    content = exported()
    emptied()
    imported(content, tmp_path)
    assert Topic.objects.exists()
    assert topics_without_row() == []


def topics_without_row() -> list[uuid.UUID]:
    return list(Topic.objects.filter(topicmention=None).values_list("pk", flat=True))


def test_embedding_anew_leaves_the_index(agent: Caller) -> None:
    topic = agent.remember("Kept a@x.io")
    before = row(topic)
    TopicVector.objects.update(model="another/model")
    call_command("reembed", stdout=io.StringIO())
    after = row(topic)
    assert (after.identifiers, after.words, after.aliases) == (before.identifiers, before.words, before.aliases)


WORDS = st.sampled_from(
    [
        "ann@x.io",
        "a.smith@x.io",
        "10.0.0.1",
        "10.0.0.12",
        "INV-100",
        "INV-100-2",
        "+49 170 1234567",
        "0170 1234567",
        "3 March 2024",
        "03/04/2024",
        "$5",
        "Müller",
        "Анна",
        "王伟",
        "see",
        "https://x.io/a",
        "/api/users",
        "@ann",
        "#trip",
        "3pm",
        "a.k.a.",
        "Bob",
        "Robert",
        "東京",
        "1,234",
    ]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    title=TEXTS,
    summary=TEXTS,
    steps=st.lists(st.tuples(st.sampled_from(["version", "extend", "edit"]), TEXTS, TEXTS), max_size=4),
)
def test_the_index_is_what_all_texts_ever_said_name(
    operator: Caller, title: str, summary: str, steps: list[tuple[str, str, str]]
) -> None:
    made = operator.post(
        "/v1/ingest",
        {"placement": "new_topic", "title": title, "summary": summary, "fields": [{"name": "a", "value": title}]},
    )
    topic = made.ok()["topic_id"]
    for number, (step, one, other) in enumerate(steps):
        if step == "edit":
            operator.patch(f"/v1/topics/{topic}", {"title": one, "summary": other}).ok()
        else:
            name = "a" if step == "version" else f"f{number}"
            operator.post(
                "/v1/ingest",
                {
                    "placement": f"{step}_field" if step == "version" else "extend_topic",
                    "topic_id": topic,
                    "fields": [{"name": name, "value": one, "why_changed": other}],
                },
            ).ok()
    assert holds_all(topic)
