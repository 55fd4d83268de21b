"""The store for LangGraph against the whole application, over HTTP."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

from memory.models import ForgetAction, Topic
from memstate import MemState, NotAllowed
from memstate.langgraph import UNSEARCHED, MemStateStore
from tests.cast import secret_of

VALUE = {
    "text": "Mara drinks green tea.",
    "empty": "",
    "spaced": " two ",
    "count": 3,
    "share": 0.25,
    "done": False,
    "nothing": None,
    "tags": ["a", "b"],
    "deep": {"a": {"b": [1, None]}},
}

Maker = Callable[..., MemStateStore]


@pytest.fixture
def make_store(http_cast: Any, live_server: Any) -> Iterator[Maker]:
    made: list[MemStateStore] = []

    def make(role: str = "operator", **options: Any) -> MemStateStore:
        made.append(MemStateStore(live_server.url, secret_of(role), **options))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def operator(http_cast: Any, live_server: Any) -> Iterator[MemState]:
    with MemState(live_server.url, secret_of("operator")) as client:
        yield client


@pytest.fixture
def store(make_store: Maker) -> MemStateStore:
    return make_store()


def test_a_value_of_any_type_comes_back_unchanged(store: MemStateStore):
    store.put(("users", "mara"), "prefs", VALUE)
    item = store.get(("users", "mara"), "prefs")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (("users", "mara"), "prefs", VALUE)
    assert {name: type(each) for name, each in item.value.items()} == {name: type(each) for name, each in VALUE.items()}
    assert store.get(("users",), "prefs") is None
    assert store.get(("users", "mara"), "other") is None


def test_an_update_replaces_the_value_and_keeps_the_history(store: MemStateStore, operator: MemState):
    store.put(("a",), "k", {"city": "Berlin", "age": 41})
    before = store.get(("a",), "k")
    store.put(("a",), "k", {"city": "Lisbon", "job": "pilot"})
    after = store.get(("a",), "k")
    assert before is not None
    assert after is not None
    assert after.value == {"city": "Lisbon", "job": "pilot"}
    assert (after.created_at, after.updated_at > before.updated_at) == (before.created_at, True)
    (topic,) = Topic.objects.all()
    history = operator.field_history(str(topic.pk), "city")["items"]
    assert [each["value"] for each in history] == ["Lisbon", "Berlin"]
    store.put(("a",), "k", {"city": "Lisbon", "job": "pilot"})
    assert operator.field_history(str(topic.pk), "city")["items"] == history


def test_more_members_than_one_request_may_have(store: MemStateStore):
    value = {f"field {number}": number for number in range(450)}
    store.put(("a",), "wide", value)
    item = store.get(("a",), "wide")
    assert item is not None
    assert item.value == value
    store.put(("a",), "wide", {"field 0": 0})
    item = store.get(("a",), "wide")
    assert item is not None
    assert item.value == {"field 0": 0}


def test_a_deleted_item_can_be_put_again_and_the_old_one_is_only_released(store: MemStateStore):
    for number in range(3):
        store.put(("a",), "k", {"number": number})
        store.put(("a", "below"), "k", {"other": True})
        store.delete(("a",), "k")
        assert store.get(("a",), "k") is None
        store.delete(("a",), "k")
    store.put(("a",), "k", {"number": 9})
    item = store.get(("a",), "k")
    assert item is not None
    assert item.value == {"number": 9}
    assert Topic.objects.filter(released_at__isnull=False).count() == 3
    assert ForgetAction.objects.filter(action="released", state="applied").count() == 3


def test_an_agent_without_the_permission_to_forget_cannot_delete(make_store: Maker):
    store = make_store("agent")
    store.put(("a",), "k", {"number": 1})
    with pytest.raises(NotAllowed):
        store.delete(("a",), "k")
    assert store.get(("a",), "k") is not None


def test_search_by_filter_reads_all_pages_of_a_prefix(store: MemStateStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("memstate.langgraph.PAGE", 3)
    for number in range(8):
        color = "red" if number % 2 else "blue"
        store.put(("a", str(number % 3)), str(number), {"color": color, "number": number, "deep": {"x": number}})
    store.put(("other",), "9", {"color": "red", "number": 9})

    def keys(**options: Any) -> list[str]:
        return sorted(item.key for item in store.search(("a",), **options))

    assert keys() == [str(number) for number in range(8)]
    assert keys(filter={"color": "red"}) == ["1", "3", "5", "7"]
    assert keys(filter={"color": "Red"}) == []
    assert keys(filter={"number": 3}) == ["3"]
    assert keys(filter={"number": "3"}) == []
    assert keys(filter={"number": {"$gte": 3, "$lt": 6}, "color": {"$ne": "blue"}}) == ["3", "5"]
    assert keys(filter={"deep": {"x": 4}}) == ["4"]
    assert keys(filter={"color": {"$gt": 1}}) == []
    one, two = (store.search(("a",), limit=4, offset=offset) for offset in (0, 4))
    assert sorted(item.key for item in [*one, *two]) == [str(number) for number in range(8)]
    with pytest.raises(ValueError, match="near"):
        store.search(("a",), filter={"color": {"$near": 1}})


def test_search_by_a_question_ranks_what_answers_it(store: MemStateStore):
    store.put(("m",), "tea", {"text": "Mara drinks green tea every morning.", "by": "mara"})
    store.put(("m",), "bike", {"text": "The bicycle is in the cellar.", "by": "jonas"})
    store.put(("m",), "hidden", {"text": "Mara drinks green tea at night."}, index=False)
    found = store.search(("m",), query="green tea")
    assert found[0].key == "tea"
    assert found[0].score is not None
    assert "hidden" not in [item.key for item in found]
    assert [item.key for item in store.search(("m",), query="green tea", filter={"by": "jonas"})] == ["bike"]
    assert store.get(("m",), "hidden") is not None
    assert Topic.objects.get(title="hidden").categories == [UNSEARCHED]


def test_namespaces_are_listed_by_prefix_suffix_and_depth(store: MemStateStore, make_store: Maker):
    names = [("a", "x", "1"), ("a", "y", "1"), ("b", "x", "2"), ("odd / 50%", "ü\n")]
    for name in names:
        store.put(name, "k", {"v": 1})
    assert store.list_namespaces() == sorted(names)
    assert store.list_namespaces(prefix=("a",)) == names[:2]
    assert store.list_namespaces(prefix=("*", "x")) == [names[0], names[2]]
    assert store.list_namespaces(suffix=("1",), limit=1, offset=1) == [names[1]]
    assert store.list_namespaces(prefix=("a",), max_depth=1) == [("a",)]
    item = store.get(names[3], "k")
    assert item is not None
    assert item.namespace == names[3]
    below = make_store(scope="/a")
    assert below.list_namespaces() == [("x", "1"), ("y", "1")]
    assert below.get(("x", "1"), "k") is not None


def test_only_one_of_many_concurrent_puts_creates_the_item(make_store: Maker):
    stores = [make_store() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda pair: pair[1].put(("a",), "k", {"number": pair[0]}), enumerate(stores), timeout=60))
    assert Topic.objects.count() == 1


def test_an_archived_item_is_read_by_its_key_and_not_found_by_a_search(store: MemStateStore, operator: MemState):
    store.put(("a",), "k", {"text": "The key is under the pot."})
    (topic,) = Topic.objects.all()
    operator.request("POST", f"/v1/topics/{topic.pk}/archive", json={"reason": "old"})
    assert store.search(("a",)) == []
    item = store.get(("a",), "k")
    assert item is not None
    assert item.value == {"text": "The key is under the pot."}


def test_an_archived_item_that_is_put_again_is_found_again(store: MemStateStore, operator: MemState):
    store.put(("a",), "k", {"text": "The key is under the pot."})
    (topic,) = Topic.objects.all()
    operator.request("POST", f"/v1/topics/{topic.pk}/archive", json={"reason": "old"})
    store.put(("a",), "k", {"text": "The key is under the mat."})
    assert [item.value for item in store.search(("a",))] == [{"text": "The key is under the mat."}]


def test_white_space_belongs_to_a_key(store: MemStateStore):
    keys = ["x", " x", "x ", "x\t\n", "100%", "%20x", "ü / ß"]
    for number, key in enumerate(keys):
        store.put(("a",), key, {"number": number})
    for _ in range(2):
        assert {item.key: item.value["number"] for item in store.search(("a",))} == dict(
            zip(keys, range(7), strict=True)
        )
        for number, key in enumerate(keys):
            item = store.get(("a",), key)
            assert item is not None
            assert (item.key, item.value["number"]) == (key, number)
            store.delete(("a",), key)
            assert store.get(("a",), key) is None
            store.put(("a",), key, {"number": number})


def test_equal_numbers_are_equal_in_a_filter_and_a_question_may_be_long(store: MemStateStore):
    store.put(("a",), "one", {"v": 1, "text": "green tea"})
    store.put(("a",), "float", {"v": 1.0, "text": "black tea"})
    for wanted in (1, 1.0, {"$eq": 1}):
        assert len(store.search(("a",), filter={"v": wanted})) == 2
    assert len(store.search(("a",), query="tea " * 3000)) == 2


def test_a_time_to_live_is_refused(store: MemStateStore):
    with pytest.raises(NotImplementedError):
        store.put(("a",), "k", {"v": 1}, ttl=5)
    assert not Topic.objects.exists()


def test_operations_are_executed_in_their_order_also_asynchronously(make_store: Maker):
    ops = [
        PutOp(("a",), "k", {"v": 1}),
        GetOp(("a",), "k"),
        SearchOp(("a",)),
        ListNamespacesOp(),
        PutOp(("a",), "k", None),
        GetOp(("a",), "k"),
    ]

    async def run() -> list[Any]:
        store = make_store()
        try:
            return await store.abatch(ops)
        finally:
            await store.aclose()

    again = make_store()
    for _ in range(2):
        assert asyncio.run(again.aget(("nowhere",), "k")) is None
    for results in (make_store().batch(ops), asyncio.run(run())):
        assert results[0] is results[4] is results[5] is None
        assert results[1].value == results[2][0].value == {"v": 1}
        assert results[3] == [("a",)]
