"""A scope that is searched exactly and the same scope searched through the indexes give the same answer."""

import uuid
from typing import Any

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from tests.cast import Caller, worker_turn
from tests.generated import examples
from tests.waits import turns_until_done

pytestmark = pytest.mark.django_db

WORDS = ["harbor", "bakery", "lantern", "orchard", "violin", "glacier", "tunnel", "saffron"]
phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
topics = st.lists(
    st.fixed_dictionaries(
        {
            "title": phrases,
            "summary": phrases,
            "scope": st.sampled_from(["/", "/user", "/user/alice", "/team"]),
            "topic_kind": st.sampled_from(["finding", "note"]),
        }
    ),
    min_size=2,
    max_size=30,
)
links = st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=20)
filters = st.sampled_from([{}, {"scope": "/user"}, {"kinds": ["note"]}, {"include_archived": True}])


@examples(15)
@given(
    items=topics,
    pairs=links,
    question=phrases,
    more=filters,
    archived=st.sets(st.integers(0, 29), max_size=5),
    top_k=st.sampled_from([3, 40]),
)
def test_exact_search_and_index_find_the_same_topics_with_the_same_scores(
    operator: Caller,
    settings: Any,
    items: list[dict[str, Any]],
    pairs: list[tuple[int, int]],
    question: str,
    more: dict[str, Any],
    archived: set[int],
    top_k: int,
) -> None:
    with transaction.atomic():
        ids = [str(uuid.UUID(int=number + 1)) for number in range(len(items))]
        batch: list[dict[str, Any]] = [
            {"placement": "new_topic", "topic_id": topic_id, **item} for topic_id, item in zip(ids, items, strict=True)
        ]
        for here, there in pairs:
            if max(here, there) < len(ids) and here != there:
                edge = {"to_topic_id": ids[there], "kind": "near"}
                batch.append({"placement": "extend_topic", "topic_id": ids[here], "edges": [edge]})
        assert operator.post("/v1/ingest/batch", batch).ok()["refused"] == 0
        for place in archived:
            if place < len(ids):
                operator.post(f"/v1/topics/{ids[place]}/archive", {}).ok()
        turns_until_done(worker_turn, "counted")

        def scored() -> dict[str, float]:
            reply = operator.query(question, top_k=top_k, **more)
            return {found["topic_id"]: found["score"] for found in reply["candidates"]}

        settings.MEMSTATE_KNOBS = {"recall_exact_below": 100_000}
        exactly = scored()
        settings.MEMSTATE_KNOBS = {"recall_exact_below": 0}
        by_index = scored()
        if not more:
            # Only the whole store has the same word counts in both ways: a part of it is weighed by its own.
            assert by_index == pytest.approx(exactly, abs=1e-5)
        elif top_k == 40:
            # The index may pass a few by where a filter leaves little, the more so among rows that were rolled back.
            assert set(by_index) <= set(exactly)
            assert len(by_index) >= len(exactly) / 2
        settings.MEMSTATE_KNOBS = {}
        transaction.set_rollback(True)
