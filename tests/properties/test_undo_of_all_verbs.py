"""Whatever was done to the memories, undoing it from the last change to the first leads back to the store as it was."""

import datetime as dt
import json
import uuid
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from memory.forgetting.manual_actions import VERBS, topics_move, topics_plan
from memory.models import Field, ForgetRun, Topic
from tests.cast import Cast, principal_like
from tests.duplicates.shop import pair_make, pairs, settle
from tests.forgetting.shop import JOURNALS, NOON, dump, policy_put
from tests.generated import examples

FACTS = ("Nils lives in Bergen", "Nils works as a glazier")
# The journals of undo and of edits, and the pairs, whose decisions are compared without their times.
ONLY_GROW = (
    *JOURNALS,
    "memory_topicedit",
    "memory_apikey",
    "memory_forgetlisting",
    "memory_accesslog",
    "memory_duplicatepair",
)
# What a made topic refers to, and what refers to it.
MEMBERS = ("id", "topic_id", "source_id", "target_id", "field_id")

changes = st.one_of(
    st.tuples(st.sampled_from(["at once", "planned"]), st.sampled_from(sorted(VERBS)), st.integers(0, 9)),
    st.tuples(st.just("run"), st.just("manual"), st.just(0)),
    st.tuples(st.just("forget"), st.sampled_from(FACTS), st.just(0)),
    st.tuples(st.just("pair"), st.sampled_from(["merge", "keep", "supersede"]), st.integers(0, 1)),
)


class Store:
    """A small store in which each change finds something to do."""

    def __init__(self, cast: Cast) -> None:
        self.operator = cast.operator
        policy = {"strategy": "static", "prune_after_days": 0, "topic_count_soft_limit": 0, "max_archive_share": 1}
        policy |= {"compact": True, "keep_recent_revisions": 1, "duplicates_mode": "off"}
        stale = {"field": "kind", "op": "is", "value": "decision"}
        rule = {"name": "stale", "condition": stale, "action": "categorize", "category": "stale", "events": ["manual"]}
        policy_put(self.operator, rules=[rule], **policy)
        fields = [{"name": "note", "value": f"note {number}"} for number in range(4)]
        remember = cast.agent.remember
        near = [remember("Rain radar", topic_kind="observation", salience=0.01) for _each in range(3)]
        twins = [remember("The harbor opens at seven", fields=fields) for _each in range(2)]
        self.topics = [
            *near,
            *twins,
            remember("Nils lives in Bergen and works as a glazier."),
            *(remember(f"A lamp of {salience}", salience=salience, fields=fields) for salience in (0.2, 0.1)),
            remember("The bakery is sold", topic_kind="decision"),
            remember("Ida is allergic to nuts", pinned=True),
        ]
        pair_make(*twins)
        pair_make(self.topics[5], self.topics[6])
        settle()
        self.known = list(Topic.objects.values_list("pk", flat=True))

    def change(self, how: str, what: str, place: int) -> list[str]:
        """Make a change and let the worker answer it. Return the paths of the undos, the last change first."""
        known = list(ForgetRun.objects.values_list("pk", flat=True))
        given: dict[str, Any] = {"principal": principal_like("operator"), "now": timezone.now()}
        ids = [uuid.UUID(self.topics[place])]
        undos: list[str] = []
        match how:
            case "at once":
                topics_move(what, ids, seen_at=timezone.now(), reason="", **given)
            case "planned":
                plan, _left = topics_plan(what, ids, **given)
                if plan is not None:
                    self.operator.post(f"/v1/runs/{plan.pk}/apply", {}).ok()
            case "run":
                self.operator.post("/v1/runs", {"event": what, "dry_run": False}).ok()
            case "forget":
                self.operator.post("/v1/forget", {"query": what, "dry_run": False}).ok()
            case "pair":
                pair = pairs()[place]
                # The undo of a decision leads to an open pair.
                if pair["state"] == "open":
                    path = f"/v1/duplicates/{pair['id']}/"
                    decided = self.operator.post(f"{path}{what}", {})
                    assert decided.status in (200, 409)
                    undos = [f"{path}undo"] if what == "keep" and decided.status == 200 else []
        settle()
        made = ForgetRun.objects.exclude(pk__in=known).filter(status="done", applied__gt=0).order_by("-pk")
        return [f"/v1/runs/{each.pk}/undo" for each in made] + undos

    def rows(self) -> dict[str, set[str]]:
        """Return every row that a change must leave as it was, without those of topics that changes have made."""
        topics = Topic.objects.exclude(pk__in=self.known)
        made = {
            str(pk)
            for rows in (topics, Field.objects.filter(topic__in=topics))
            for pk in rows.values_list("pk", flat=True)
        }
        return {
            table: {line for line in lines if made.isdisjoint(map(str, map(json.loads(line).get, MEMBERS)))}
            for table, lines in dump(*ONLY_GROW).items()
        }


@pytest.mark.django_db
@pytest.mark.meaning
@given(made=st.lists(changes, min_size=1, max_size=7))
@examples(20)
def test_undoing_all_changes_leads_back_to_the_store_as_it_was(cast: Cast, monkeypatch: Any, made: Any) -> None:
    with transaction.atomic(), monkeypatch.context() as patch:
        moment = [NOON]
        patch.setattr(timezone, "now", lambda: moment[0])
        store = Store(cast)
        before, decisions = store.rows(), [(pair["id"], pair["state"]) for pair in pairs()]
        undos: list[str] = []
        for change in made:
            moment[0] += dt.timedelta(minutes=1)
            undos = store.change(*change) + undos
        for path in undos:
            moment[0] += dt.timedelta(minutes=1)
            reply = cast.operator.post(path, {"reason": "back"}).ok()
            assert not reply.get("conflicts"), (path, reply)
            settle()
        assert store.rows() == before
        assert [(pair["id"], pair["state"]) for pair in pairs()] == decisions
        assert not Topic.objects.exclude(pk__in=store.known).filter(released_at=None)
        transaction.set_rollback(True)
