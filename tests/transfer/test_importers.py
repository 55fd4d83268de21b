"""What files of other systems become, before anything is written."""

import datetime as dt
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.access.principal import SYSTEM
from memory.core.errors import MemoryProblem
from memory.core.scopes import scope_normalize
from memory.ingest.items import IngestItem
from memory.policy.snapshot import Policies
from memory.transfer.importers import IMPORTERS, importer, new_items, stream
from memory.transfer.importers.draft import Draft
from memory.transfer.importers.guess import source_guess
from memory.transfer.importers.importer import Importer
from memory.transfer.importers.mem0 import scope_segment
from memory.transfer.importers.new_items import item_id, items_new
from memory.transfer.importers.times import time_parse
from memory.transfer.report import ImportReport

NOW = dt.datetime(2026, 7, 1, tzinfo=dt.UTC)
MEM0, CHAT = IMPORTERS["mem0"], IMPORTERS["chat"]
ONE = "0b8e7c1a-5d2f-4c3b-9a10-000000000001"
TWO = "0b8e7c1a-5d2f-4c3b-9a10-000000000002"


def memory(text: str = "Prefers tea to coffee", **more: Any) -> dict[str, Any]:
    """A memory as ``get_all`` returns it."""
    return {
        "id": ONE,
        "memory": text,
        "hash": "5d41402abc4b2a76b9719d911017c592",
        "metadata": None,
        "score": None,
        "created_at": "2025-03-01T09:00:00-08:00",
        "updated_at": None,
        "user_id": "mara",
        **more,
    }


def drafts(source: Importer, path: Path, said: object) -> list[Draft]:
    """Read what is given as text, or as the JSON of a value."""
    path.write_text(said if isinstance(said, str) else json.dumps(said))
    return list(source.drafts(path, scope="/brought", now=NOW))


def item(source: Importer, path: Path, said: object) -> IngestItem:
    """Read a file of one entry, which is brought."""
    (draft,) = drafts(source, path, said)
    assert draft.item is not None, draft.problem
    return draft.item


def survey(source: Importer, path: Path) -> ImportReport:
    """Count what a file comes to in an empty store."""
    return source.check(path, scope="/brought", principal=SYSTEM, now=NOW)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file to write to."""
    return tmp_path / "foreign.json"


@pytest.fixture(autouse=True)
def _empty_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_items, "ids_known", lambda _ids: (set(), set()))
    monkeypatch.setattr(importer, "policies_current", Policies)


class TestMem0:
    def test_a_memory_keeps_its_id_age_owner_and_what_is_said_of_it(self, file: Path) -> None:
        said = memory(
            updated_at="2025-04-02T10:00:00+00:00",
            agent_id="cook",
            run_id="r-7",
            actor_id="mara",
            role="user",
            categories=["food", "food", "habits"],
            immutable=True,
            metadata={"cups": 3, "warm": True, "price": 2.5, "kinds": ["green"], "shop": {"city": "Bonn"}, "no": None},
        )
        made = item(MEM0, file, {"results": [said]})
        assert (made.topic_id, made.title, made.topic_kind) == (ONE, "", "memory")
        assert made.scope == "/brought/user/mara/agent/cook/run/r-7"
        assert made.created_at == dt.datetime(2025, 3, 1, 17, tzinfo=dt.UTC)
        assert made.valid_from == dt.datetime(2025, 4, 2, 10, tzinfo=dt.UTC)
        assert (made.categories, made.pinned) == (["food", "habits"], True)
        assert {each.name: each.typed(None)[::-1] for each in made.fields} == {
            "memory": ("string", "Prefers tea to coffee"),
            "role": ("string", "user"),
            "actor_id": ("string", "mara"),
            "cups": ("int", "3"),
            "warm": ("bool", "true"),
            "price": ("float", "2.5"),
            "kinds": ("list", '["green"]'),
            "shop": ("json", '{"city": "Bonn"}'),
        }

    @pytest.mark.parametrize(
        "shape",
        [
            lambda said: json.dumps(said),
            lambda said: json.dumps({"results": said}),
            lambda said: json.dumps({"count": 2, "next": None, "results": said, "relations": []}, indent=4),
            lambda said: json.dumps({"memories": said}),
            lambda said: "\n".join(map(json.dumps, said)),
            lambda said: "\ufeff" + "\r\n\r\n".join(map(json.dumps, said)) + "\n",
            lambda said: "\n".join(json.dumps(each, indent=2) for each in said),
        ],
    )
    def test_each_shape_of_the_file_gives_the_same(self, file: Path, shape: Any) -> None:
        found = drafts(MEM0, file, shape([memory(), memory("Has a dog", id=TWO)]))
        assert [draft.item and draft.item.topic_id for draft in found] == [ONE, TWO]

    @pytest.mark.parametrize(
        ("more", "member", "clause"),
        [
            ({"hash": "abc"}, "hash", "made anew"),
            ({"score": 0.5}, "score", "search"),
            ({"embedding": [0.1, 0.2]}, "embedding", "its own model"),
            ({"expiration_date": "2026-01-01"}, "expiration_date", "policies"),
            ({"structured_attributes": {"day": 1}}, "structured_attributes", "time"),
            ({"mood": "good"}, "mood", "not known"),
            ({"created_at": "soon"}, "created_at", "not a readable time"),
            ({"created_at": "2031-01-01T00:00:00Z"}, "created_at", "future"),
            ({"metadata": {"x" * 300: 1}}, "metadata", "1 to 200"),
            ({"metadata": {"long": "x" * 100_001}}, "metadata.long", "100,000"),
            ({"metadata": "words"}, "metadata", "not an object"),
            ({"metadata": {f"n{n}": n for n in range(250)}}, "metadata", "keeps at most 190"),
            ({"categories": [1, "food"]}, "categories", "each a name"),
            ({"user_id": {"a": 1}}, "user_id", "neither a text"),
        ],
    )
    def test_what_has_no_place_is_reported_and_the_rest_is_brought(
        self, file: Path, more: dict[str, Any], member: str, clause: str
    ) -> None:
        (draft,) = drafts(MEM0, file, [memory(**more)])
        assert draft.item is not None
        assert any(name == member and clause in why for name, why in draft.lost), draft.lost

    @pytest.mark.parametrize(
        ("entry", "sentence"),
        [
            (memory("half \ud800"), "surrogate"),
            (memory("nul \x00"), "NUL"),
            (["a list"], " list"),
            (7, "this is a number"),
            (7.5, "this is a number"),
            (None, "this is null"),
        ],
    )
    def test_a_bad_entry_is_reported_with_its_place_and_nothing_of_the_file_is_brought(
        self, file: Path, entry: object, sentence: str
    ) -> None:
        bad, good = drafts(MEM0, file, [entry, memory("Has a dog", id=TWO)])
        assert bad.place == "Entry 1 (line 1)"
        assert bad.item is None
        assert sentence in bad.problem
        assert good.item is not None
        report = survey(MEM0, file)
        assert len(report.problems) == 1
        assert report.problems[0].startswith("Entry 1 (line 1): ")

    @pytest.mark.parametrize(
        ("entry", "sentence"),
        [
            (memory(""), "without text"),
            (memory("  "), "without text"),
            ({"id": ONE}, "without text"),
            (memory("x" * 100_001), "too long: "),
            (memory(user_id="x" * 600), "too long: "),
        ],
    )
    def test_what_says_nothing_or_is_too_long_is_a_loss(self, file: Path, entry: object, sentence: str) -> None:
        drafts(MEM0, file, [entry, memory("Has a dog", id=TWO)])
        report = survey(MEM0, file)
        assert (report.lines, report.total("brought"), report.problems) == (2, 2, [])
        assert any(loss.startswith("1 of 2: ") and sentence in loss for loss in report.losses), report.losses

    def test_relations_and_a_memory_that_stands_twice_are_counted_as_lost(self, file: Path) -> None:
        relation = {"source": "mara", "relationship": "likes", "destination": "tea"}
        drafts(MEM0, file, {"results": [memory(), memory("Other words")], "relations": [relation, relation]})
        counted = survey(MEM0, file)
        assert (counted.lines, counted.sorts["topic"], counted.problems) == (4, {"brought": 1}, [])
        assert counted.losses == [
            "2 of 4: relations: not kept, they connect names, without the memories that they come from.",
            "1 of 4: hash: not kept, it is made anew from the text.",
            "1 of 4: memories: not kept, an earlier memory of the file is the same or has the same id.",
        ]

    def test_odd_ids_make_topics_that_a_second_import_finds(self, file: Path) -> None:
        said = [memory("a", id=17), memory("b", id="mem_x"), memory("c", id=None)]
        first, second = drafts(MEM0, file, said), drafts(MEM0, file, list(reversed(said)))
        ids = {draft.item.topic_id for draft in first if draft.item}
        assert len(ids) == 3
        assert ids == {draft.item.topic_id for draft in second if draft.item}
        assert all(draft.notes for draft in first)

    @pytest.mark.parametrize("name", ["mara", "a/b", "..", ".", "50% off", "two words", "tab\there", "ünïcode", "%20"])
    def test_a_name_becomes_a_segment_that_can_be_read_back(self, file: Path, name: str) -> None:
        segment = scope_segment(name)
        assert unquote(segment) == name
        assert item(MEM0, file, [memory(user_id=name)]).scope == scope_normalize(f"/brought/user/{segment}")


class TestChat:
    def test_messages_become_topics_that_follow_one_another(self, file: Path) -> None:
        first, second = drafts(
            CHAT,
            file,
            [
                {"role": "user", "content": "I moved to Bonn.", "time": "2025-05-01T10:00:00Z", "name": "Mara"},
                {"role": "assistant", "content": "Welcome there!", "time": "2025-05-01T10:00:07Z"},
            ],
        )
        assert first.item
        assert second.item
        assert (first.item.title, first.item.topic_kind, first.item.scope) == ("", "message", "/brought")
        assert [(each.name, each.value) for each in first.item.fields] == [
            ("text", "I moved to Bonn."),
            ("role", "user"),
            ("name", "Mara"),
        ]
        assert not first.item.edges
        assert [(str(edge.to_topic_id), edge.kind) for edge in second.item.edges] == [(first.item.topic_id, "follows")]
        assert second.item.created_at == dt.datetime(2025, 5, 1, 10, 0, 7, tzinfo=dt.UTC)

    @pytest.mark.parametrize(
        "said",
        [
            {"role": "user", "content": "Hello there"},
            {"role": "user", "content": [{"type": "text", "text": "Hello there"}]},
            {"role": "user", "content": [{"type": "output_text", "text": {"value": "Hello there"}}]},
            {"role": "user", "content": {"content_type": "text", "parts": ["Hello there"]}},
            {"author": {"role": "user"}, "content": {"parts": ["Hello there"]}},
            {"message": {"author": {"role": "user"}, "content": {"parts": ["Hello there"]}}},
            {"from": "user", "value": "Hello there"},
            {"sender": "user", "text": "Hello there"},
            {"speaker": "user", "message": "Hello there"},
        ],
    )
    def test_other_names_of_role_and_text_are_understood(self, file: Path, said: dict[str, Any]) -> None:
        made = item(CHAT, file, [said])
        assert {each.name: each.value for each in made.fields} == {"text": "Hello there", "role": "user"}

    def test_a_role_or_name_that_is_no_text_is_counted(self, file: Path) -> None:
        for lost, said in (
            ([("role", "it is not a text")], {"role": ["user"]}),
            ([("name", "it is not a text")], {"name": {"a": 1}}),
            ([], {"role": "user", "name": None}),
            ([], {"role": None, "sender": "user"}),
        ):
            (draft,) = drafts(CHAT, file, [{"content": "Hello there", "time": "2025-05-01T10:00:00Z", **said}])
            assert (draft.lost, draft.item is not None) == (lost, True), said

    def test_what_is_no_text_is_counted_and_does_not_break_the_chain(self, file: Path) -> None:
        found = drafts(
            CHAT,
            file,
            {
                "messages": [
                    {"role": "user", "content": "Look"},
                    {"role": "assistant", "content": None, "tool_calls": [{"id": "x"}]},
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]},
                    {
                        "role": "assistant",
                        "content": [{"type": "text", "text": "A cat"}, {"type": "image", "data": "x"}],
                    },
                ]
            },
        )
        look, *_silent, cat = found
        assert look.item
        assert cat.item
        assert [str(edge.to_topic_id) for edge in cat.item.edges] == [look.item.topic_id]
        counted = survey(CHAT, file)
        assert (counted.lines, counted.sorts["topic"], counted.sorts["link"]) == (4, {"brought": 2}, {"brought": 1})
        assert counted.losses == [
            "2 of 4: messages without text: not kept, a call of a tool or a picture, for instance.",
            "2 of 4: content: not kept, parts that are not text, such as pictures.",
            "2 of 4: time is missing; the time of the import is used.",
        ]

    def test_times_that_are_missing_or_out_of_order_keep_the_order_of_the_file(self, file: Path) -> None:
        found = drafts(
            CHAT,
            file,
            [
                {"role": "system", "content": "a"},
                {"role": "user", "content": "b", "ts": 1_746_093_600},
                {"role": "user", "content": "c"},
                {"role": "user", "content": "d", "ts": "2025-04-01T00:00:00"},
                {"role": "user", "content": "e", "ts": 1_746_093_600_000},
                {"role": "user", "content": "f", "ts": "not a time"},
                {"role": "user", "content": "g", "ts": "2031-01-01"},
            ],
        )
        ages = [draft.item.created_at for draft in found if draft.item and draft.item.created_at]
        assert len(ages) == 7
        assert ages == sorted(set(ages))
        assert ages[-1] - ages[0] < dt.timedelta(milliseconds=1)
        assert ages[0] == dt.datetime.fromtimestamp(1_746_093_600, tz=dt.UTC)
        said = [clause for draft in found for _name, clause in (*draft.notes, *draft.lost)]
        assert [
            sum(word in clause for clause in said) for word in ("first time", "message before is used", "order", "UTC")
        ] == [1, 3, 1, 1]

    def test_without_any_time_a_message_is_as_old_as_the_import(self, file: Path) -> None:
        found = drafts(CHAT, file, [{"role": "user", "content": text} for text in "abc"])
        assert [draft.item and draft.item.created_at for draft in found] == [None] * 3

    def test_conversations_are_kept_apart(self, file: Path) -> None:
        def said(text: str, **more: Any) -> dict[str, Any]:
            return {"role": "user", "content": text, **more}

        by_list = [{"messages": [said("Hi"), said("a"), said("ok")]}, {"messages": [said("Hi"), said("b"), said("ok")]}]
        found = drafts(CHAT, file, by_list)
        ids = [draft.item.topic_id for draft in found if draft.item]
        # Both begin with the same word, and part behind it.
        assert len(ids) == len(set(ids)) == 5
        assert [draft.lost for draft in found if draft.item is None] == [
            [("messages", "an earlier message of the file is the same or has the same id")]
        ]
        lines = "\n".join(json.dumps(each) for each in by_list)
        assert [draft.item and draft.item.topic_id for draft in drafts(CHAT, file, lines)] == [
            draft.item and draft.item.topic_id for draft in found
        ]
        by_name = drafts(CHAT, file, [said("a", thread_id=1), said("b", thread_id=2), said("c", thread_id=1)])
        first, second, third = (draft.item for draft in by_name)
        assert first is not None
        assert second is not None
        assert third is not None
        assert not second.edges
        assert [str(edge.to_topic_id) for edge in third.edges] == [first.topic_id]

    def test_a_longer_version_of_the_same_transcript_brings_what_is_new(self, file: Path) -> None:
        messages = [{"role": "user", "content": f"message {n}", "time": 1_746_093_600 + n} for n in range(5)]
        before = {draft.item.topic_id for draft in drafts(CHAT, file, messages[:3]) if draft.item}
        after = [draft.item.topic_id for draft in drafts(CHAT, file, messages) if draft.item]
        assert [topic_id in before for topic_id in after] == [True, True, True, False, False]

    @pytest.mark.parametrize(
        "entry", ["words", 5, {"memory": "of another system"}, {"role": "user", "content": "x\x00"}]
    )
    def test_what_is_no_message_is_bad(self, file: Path, entry: object) -> None:
        (draft,) = drafts(CHAT, file, [entry])
        assert draft.item is None
        assert draft.problem.endswith(".")


class TestFiles:
    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("hello", "at line 1, a value is expected"),
            ('[{"role": "user"}', "it is cut off"),
            ('{"results": [\n{"memory": "a"},\n{"memory" "b"}]}', "line 3"),
            ('[{"role": "user"},]', "a value is expected"),
            ('{"role": "user", "content": "cut o', "it is cut off"),
            ("[1 2]", "a comma or a closing bracket is missing"),
            ("1, 2", "comma is misplaced"),
            ('{"a" 1}', "colon"),
            ("[" * 5000, "nested too deeply"),
            ("[" + "9" * 5000 + "]", "digits"),
            ("[1e99999999999999999999]", "digits"),
            ('[{"memory": "a"},\n{"memory": NaN}]', "at line 2, a value is expected"),
            ('[{"memory": "\\ud83a \\ude00"}]', "surrogate"),
            ('[{"memory": "a"}]\n"cut o', "at line 2, it is cut off"),
        ],
    )
    def test_a_file_that_is_no_json_is_refused_with_the_line(self, file: Path, text: str, sentence: str) -> None:
        file.write_text(text)
        for source in (MEM0, CHAT):
            with pytest.raises(MemoryProblem) as refused:
                survey(source, file)
            assert sentence in refused.value.sentence

    def test_a_file_in_another_encoding_is_refused(self, file: Path) -> None:
        file.write_bytes('[{"role": "user", "content": "ü"}]'.encode("latin-1"))
        with pytest.raises(MemoryProblem, match="not UTF-8"):
            survey(CHAT, file)

    def test_entries_longer_than_a_block_are_read_whole_and_too_long_ones_refused(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stream, "BLOCK", 7)
        found = drafts(MEM0, file, {"results": [memory("wörds " * 200), memory("b", id=TWO)]})
        assert [draft.item is not None for draft in found] == [True, True]
        assert found[-1].offset <= file.stat().st_size
        monkeypatch.setattr(stream, "MAX_ENTRY_BYTES", 500)
        with pytest.raises(MemoryProblem, match="longer than 500"):
            survey(MEM0, file)

    def test_an_import_that_stopped_anywhere_goes_on_with_the_rest(self, file: Path) -> None:
        lists = [[{"role": "user", "content": f"{n}-{m}"} for m in range(3)] for n in range(3)]
        whole = drafts(CHAT, file, {"conversations": [{"messages": each} for each in lists]})
        for at, draft in enumerate(whole, start=1):
            rest = [
                each
                for batch in CHAT.batches(file, scope="/brought", now=NOW, done=draft.number)
                for each in batch.items
            ]
            assert rest == [each.item for each in whole[at:]]

    def test_what_is_there_or_was_erased_is_counted_and_nothing_links_to_what_is_not_there(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = drafts(CHAT, file, [{"role": "user", "content": text} for text in "abcd"])
        items = [draft.item for draft in found if draft.item]
        first, second, *_rest = map(item_id, items)
        monkeypatch.setattr(new_items, "ids_known", lambda _ids: ({first}, {second}))
        assert survey(CHAT, file).sorts["topic"] == {"there": 1, "erased": 1, "brought": 2}
        _counts, new = items_new(items)
        assert [len(each.edges) for each in new] == [0, 1]

    @pytest.mark.parametrize(
        ("text", "source"),
        [
            ('{"type": "memstate", "version": 1}\n', "memstate"),
            (json.dumps({"results": [memory()]}), "mem0"),
            (json.dumps([memory(role="user")]), "mem0"),
            ('[{"role": "user", "content": "x"}]', "chat"),
            ('{"messages": []}', "chat"),
            ("name;city\nMara;Bonn", None),
            ('{"a": 1}', None),
            ("", None),
        ],
    )
    def test_the_beginning_of_a_file_tells_what_wrote_it(self, file: Path, text: str, source: str | None) -> None:
        file.write_text(text)
        assert source_guess(file) == source


@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ("2025-05-01T10:00:00Z", "2025-05-01T10:00:00+00:00"),
        ("2025-05-01 10:00:00", "2025-05-01T10:00:00+00:00"),
        ("2025-05-01 10:00:00 UTC", "2025-05-01T10:00:00+00:00"),
        ("2025-05-01", "2025-05-01T00:00:00+00:00"),
        ("Thu, 01 May 2025 12:00:00 +0200", "2025-05-01T10:00:00+00:00"),
        (1_746_093_600, "2025-05-01T10:00:00+00:00"),
        (1_746_093_600_000, "2025-05-01T10:00:00+00:00"),
        ("1746093600.250000", "2025-05-01T10:00:00.250000+00:00"),
        (1_746_093_600_000_000_000, "2025-05-01T10:00:00+00:00"),
        (12.5, None),
        (0, None),
        (-5, None),
        (True, None),
        (None, None),
        ("", None),
        ("soon", None),
        ([], None),
        (10**40, None),
        ("9" * 30, None),
        ("0001-01-01", None),
    ],
)
def test_moments_are_read_as_other_systems_write_them(said: object, moment: str | None) -> None:
    found = time_parse(said)
    assert (found.at.isoformat() if found else None) == moment


KEYS = st.sampled_from(
    [
        "id",
        "memory",
        "metadata",
        "created_at",
        "updated_at",
        "user_id",
        "run_id",
        "categories",
        "immutable",
        "role",
        "content",
        "messages",
        "results",
        "relations",
        "time",
        "ts",
        "text",
        "parts",
        "type",
        "thread_id",
        "name",
        "mapping",
        "parent",
        "author",
        "chat_messages",
        "sender",
        "x",
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.datetimes().map(str)
    | st.sampled_from([ONE, "user", "human", "text"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=6),
    max_leaves=25,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(VALUES, max_size=5), lines=st.booleans(), cut=st.integers(0, 60))
def test_no_file_is_half_read(file: Path, values: list[Any], lines: bool, cut: int) -> None:
    text = "\n".join(map(json.dumps, values)) if lines else json.dumps(values)
    file.write_text(text[: len(text) - cut] if cut < 30 else text)
    for source in IMPORTERS.values():
        try:
            counted = survey(source, file)
        except MemoryProblem:
            continue
        found = list(source.drafts(file, scope="/brought", now=NOW))
        assert len(found) == counted.lines
        for draft in found:
            # Each entry is brought, or it is said why not.
            assert draft.item or draft.problem or draft.lost
            assert not (draft.item and draft.problem)
        items = [draft.item for draft in found if draft.item]
        assert counted.total("brought") == sum(1 + len(each.fields) + len(each.edges) for each in items)
        assert len({item_id(each) for each in items}) == len(items)
        batches = source.batches(file, scope="/brought", now=NOW, done=0)
        assert [each for batch in batches for each in batch.items] == items
