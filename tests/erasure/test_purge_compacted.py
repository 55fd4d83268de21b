"""A purge of a source: nothing of it is left in the topic that was compacted from it, and the others stay."""

import uuid

import pytest
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.embedding.instant import InstantEmbedder
from memory.erasure.purge import topics_purge
from memory.erasure.verify import erasure_verify
from memory.forgetting.topic_state import COMPACTED
from memory.models import AuditEvent, ErasureReceipt, ForgetAction
from tests.cast import Caller, worker_turn
from tests.erasure.erasing import traces
from tests.forgetting.shop import policy_put, run, topics_make

NEEDLE = "Wyszynska"
TEXTS = {
    "Zofia Wyszynska moved into the flat above the bakery": "She likes the smell of fresh bread at dawn.",
    "The bakery got a second oven from Krakow": "It arrived on a lorry before sunrise.",
    "The bakery sells rye bread on Thursdays": "Farmers from the valley bring the flour.",
    "The bakery closes early in the winter": "Snow blocks the road behind the mill.",
}


@pytest.fixture(autouse=True)
def _near(monkeypatch: pytest.MonkeyPatch, operator: Caller) -> None:
    plain = InstantEmbedder.embed_passages
    monkeypatch.setattr(InstantEmbedder, "embed_passages", lambda self, texts: plain(self, ["same"] * len(texts)))
    policy_put(operator, compact=True, topic_count_soft_limit=0)


def compacted(operator: Caller) -> tuple[str, list[str]]:
    """Return a compacted topic and its sources; the first one is of the person."""
    sources = [topics_make(operator, 1, days=400, title=title, summary=got)[0] for title, got in TEXTS.items()]
    done = run(operator, dry_run=False)
    return str(ForgetAction.objects.get(run=done["run_id"], action=COMPACTED).topic_id), sources


def purge(topic_id: str) -> ErasureReceipt:
    return topics_purge([uuid.UUID(topic_id)], principal=SYSTEM, reason="asked", now=timezone.now())


def test_nothing_of_a_purged_source_is_left_in_the_summary(agent: Caller, operator: Caller) -> None:
    made, sources = compacted(operator)
    agent.query("bakery")
    worker_turn()
    assert traces(NEEDLE, "fresh bread at dawn")
    receipt = purge(sources[0])
    assert receipt.counts["memory_topic.summary"] == 1
    assert not traces(NEEDLE, "fresh bread at dawn")
    got = agent.topic(made)
    assert "oven" in got["summary"]
    assert got["title"].endswith("(and 2 more)")
    assert {link["topic_id"] for link in got["neighbors"]} == set(sources[1:])
    assert AuditEvent.objects.filter(action="summary_erased", topic_id=made).count() == 1
    worker_turn()
    assert agent.found("oven") == [made]
    assert erasure_verify().ok


def test_an_edited_one_keeps_nothing_either(operator: Caller) -> None:
    made, sources = compacted(operator)
    operator.patch(f"/v1/topics/{made}", {"summary": f"{NEEDLE} and her bakery", "reason": "shorter"}).ok()
    purge(sources[0])
    assert not traces(NEEDLE)
    for source in sources[1:]:
        purge(source)
    assert (operator.topic(made)["title"], operator.topic(made)["summary"]) == ("", "")


def test_a_compacted_topic_that_undo_released_is_rewritten_too(operator: Caller) -> None:
    made, sources = compacted(operator)
    action = ForgetAction.objects.get(topic=made)
    operator.post(f"/v1/runs/{action.run_id}/undo").ok()
    purge(sources[0])
    assert not traces(NEEDLE)


def test_a_link_alone_rewrites_nothing(agent: Caller, operator: Caller) -> None:
    gone = agent.remember("A fact")
    kept = agent.remember("The handbook", summary="All of it", edges=[{"to_topic_id": gone, "kind": "compacted_from"}])
    purge(gone)
    assert operator.topic(kept)["summary"] == "All of it"


def test_a_purge_of_the_compacted_topic_leaves_its_sources(operator: Caller) -> None:
    made, sources = compacted(operator)
    purge(made)
    assert [operator.topic(source)["title"] for source in sources] == list(TEXTS)
    why = operator.get(f"/v1/topics/{sources[0]}/why").ok()
    assert why["history"][0]["into"] is None
