"""Rules that answer an ingest: what they mark is marked when the reply comes."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from structlog.testing import capture_logs

from memory.forgetting import ingest_rules
from memory.models import AuditEvent, Topic, TopicEdit, Vitality
from memory.policy.save import policy_save
from memory.policy.shipped_rule_sets import SHIPPED_RULE_SETS
from tests.cast import Caller

ALLERGY = r"\ballerg(y|ic|ies)\b"


def matches(pattern: str, field: str = "text") -> dict[str, Any]:
    return {"field": field, "op": "matches", "value": pattern}


def kind(name: str) -> dict[str, Any]:
    return {"field": "kind", "op": "is", "value": name}


def has(category: str) -> dict[str, Any]:
    return {"field": "category", "op": "has", "value": category}


def rule(name: str, condition: dict[str, Any], action: str = "pin", **members: Any) -> dict[str, Any]:
    return {"name": name, "events": ["ingest_complete"], "condition": condition, "action": action, **members}


def categorize(name: str, category: str, condition: dict[str, Any]) -> dict[str, Any]:
    return rule(name, condition, "categorize", category=category)


def rules_set(*rules: dict[str, Any], scope: str = "/") -> None:
    policy_save(
        scope, preset=None, values={}, rules=rules, author="key:operator", reason="safety", now=dt.datetime.now(dt.UTC)
    )


def pinned(topic_id: str) -> str | None:
    """Return the reason for which a topic is pinned; None if it is not."""
    row = Vitality.objects.get(pk=topic_id)
    return row.pin_reason if row.pinned else None


def categories(topic_id: str) -> list[str]:
    return Topic.objects.get(pk=topic_id).categories


def test_a_topic_that_matches_is_pinned_when_the_reply_comes(agent: Caller) -> None:
    rules_set(rule("pin allergies", matches(ALLERGY)))
    topic_id = agent.remember("Ada", summary="Severely ALLERGIC to nuts", scope="/user/ada")
    assert agent.topic(topic_id)["pinned"] is True
    assert pinned(topic_id) == "rule pin allergies"
    event = AuditEvent.objects.get(topic_id=topic_id, action="pinned")
    assert event.actor == "rule pin allergies"
    assert event.scope == "/user/ada"
    assert (
        event.reason
        == f"on a write by key:agent, for topics whose title, summary or field matches the pattern {ALLERGY}"
    )
    assert (event.before, event.after["pinned"]) == ({"pinned": False}, True)
    assert (event.after["policy"], event.after["version"], event.after["rule_scope"]) == ("/", 1, "/")


@pytest.mark.parametrize(
    ("name", "value"), [("allergies", "penicillin"), ("health", "allergic to bees"), ("fact", "x " * 200 + "allergic")]
)
@pytest.mark.parametrize("placement", ["new_topic", "extend_topic", "version_field"])
def test_patterns_see_what_facts_are_made_of(agent: Caller, placement: str, name: str, value: str) -> None:
    topic_id = agent.ingest(title="Tom", fields=[{"name": name, "value": "nothing"}])["topic_id"]
    rules_set(*(rule.as_json() for rule in SHIPPED_RULE_SETS["auto_pin"]))
    fields = [{"name": name, "value": value}]
    if placement == "new_topic":
        topic_id = agent.ingest(title="Tom", fields=fields)["topic_id"]
    else:
        agent.ingest(placement, topic_id=topic_id, fields=fields)
    assert pinned(topic_id)


@pytest.mark.parametrize(
    ("op", "value", "holds"),
    [
        ("is", "Penicillin", True),
        ("is", "bees", False),
        ("contains", "cillin", True),
        ("contains", "nuts", False),
        ("matches", "^peni", True),
        ("matches", "^cillin", False),
        ("has", None, True),
    ],
)
def test_a_rule_may_ask_for_a_field_by_name(agent: Caller, op: str, value: str | None, holds: bool) -> None:
    asked = {"name": "allergies", "op": op} | ({} if value is None else {"value": value})
    rules_set(rule("by field", {"field": asked}))
    topic_id = agent.remember("Tom", values={"allergies": "penicillin"})
    other = agent.remember("Ann", values={"health": "penicillin"})
    assert (pinned(topic_id) is not None, pinned(other)) == (holds, None)


def test_a_topic_that_does_not_match_is_not_pinned(agent: Caller) -> None:
    rules_set(rule("pin allergies", matches(ALLERGY)))
    topic_id = agent.remember("Allergen labels", summary="On every package")
    assert agent.topic(topic_id)["pinned"] is False
    assert not AuditEvent.objects.filter(topic_id=topic_id, actor__startswith="rule").exists()


def test_what_was_pinned_by_an_operator_keeps_its_reason(operator: Caller) -> None:
    rules_set(rule("pin allergies", matches(ALLERGY)))
    topic_id = operator.remember("Allergy", pinned=True)
    assert pinned(topic_id) == "asked for on ingest"
    assert AuditEvent.objects.filter(topic_id=topic_id, action="pinned").count() == 0


def test_extending_a_topic_so_that_it_matches_pins_it(agent: Caller) -> None:
    rules_set(rule("pin the vital", {"all": [has("health"), matches("ada")]}))
    topic_id = agent.remember("Ada")
    assert pinned(topic_id) is None
    agent.ingest("extend_topic", topic_id=topic_id, categories=["health"])
    assert pinned(topic_id) == "rule pin the vital"
    agent.ingest("extend_topic", topic_id=topic_id, fields=[{"name": "note", "value": "again"}])
    assert AuditEvent.objects.filter(topic_id=topic_id, action="pinned").count() == 1


def test_a_topic_from_before_the_rule_is_pinned_with_its_next_revision(agent: Caller) -> None:
    topic_id = agent.remember("Allergy", values={"note": "a"})
    rules_set(rule("pin allergies", matches(ALLERGY)))
    agent.ingest("version_field", topic_id=topic_id, fields=[{"name": "note", "value": "b"}])
    assert pinned(topic_id) == "rule pin allergies"


@pytest.mark.parametrize("change", [{"summary": "is allergic to cats"}, {"title": "Allergies of Tom"}])
def test_an_edit_pins_and_categorizes_like_a_write(agent: Caller, change: dict[str, str]) -> None:
    rules_set(
        *(one.as_json() for one in SHIPPED_RULE_SETS["auto_pin"]), categorize("mark", "health", matches("allerg"))
    )
    topic_id = agent.remember("Tom")
    reply = agent.patch(f"/v1/topics/{topic_id}", change).ok()
    assert (reply["pinned"], reply["categories"]) == (True, ["health"])
    assert pinned(topic_id) == "rule pin allergies"
    event = AuditEvent.objects.get(topic_id=topic_id, action="pinned")
    assert (event.actor, event.before, event.after["pinned"]) == ("rule pin allergies", {"pinned": False}, True)
    edits = TopicEdit.objects.filter(topic_id=topic_id).order_by("at")
    assert [list(edit.before) for edit in edits] == [list(change), ["categories"]]


def test_an_edit_that_matches_no_rule_or_is_refused_pins_nothing(agent: Caller) -> None:
    rules_set(rule("pin allergies", matches(ALLERGY)))
    topic_id = agent.remember("Tom")
    agent.patch(f"/v1/topics/{topic_id}", {"summary": "likes cats"}).ok()
    assert agent.patch(f"/v1/topics/{topic_id}", {"summary": "allergic", "salience": 2}).status == 403
    assert pinned(topic_id) is None


def test_a_batch_is_judged_item_by_item(agent: Caller) -> None:
    rules_set(rule("pin allergies", matches(ALLERGY)), categorize("mark output", "output", kind("tool_output")))
    titles = ["Allergy", "Tea", "Output", "Allergic output", "Bad"]
    items: list[dict[str, Any]] = [
        {"placement": "new_topic", "title": title, "topic_kind": "tool_output" if "utput" in title else None}
        for title in titles
    ]
    items[4]["placement"] = "version_field"
    reply = agent.post("/v1/ingest/batch", items).ok()
    made = [Topic.objects.get(title=title).id for title in titles[:4]]
    assert "Bad" not in Topic.objects.values_list("title", flat=True), reply
    assert [pinned(str(topic_id)) is not None for topic_id in made] == [True, False, False, True]
    assert [categories(str(topic_id)) for topic_id in made] == [[], [], ["output"], ["output"]]


def test_a_batch_costs_as_many_statements_as_one_item(agent: Caller) -> None:
    rules_set(rule("pin allergies", matches(ALLERGY)), categorize("mark output", "output", kind("tool_output")))
    item = {"placement": "new_topic", "title": "Allergy", "topic_kind": "tool_output"}
    counts = []
    for size in (1, 40):
        agent.post("/v1/ingest/batch", [item] * size).ok()
        with CaptureQueriesContext(connection) as queries:
            agent.post("/v1/ingest/batch", [item] * size).ok()
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert Vitality.objects.filter(pinned=True).count() == 82


def test_where_no_rule_answers_an_ingest_nothing_is_asked(agent: Caller) -> None:
    def statements() -> int:
        agent.remember("Allergy")
        with CaptureQueriesContext(connection) as queries:
            agent.remember("Allergy")
        return len(queries)

    without = statements()
    # A rule for another event, one that is switched off, one for another scope, one that runs alone may act on.
    rules_set(
        rule("nightly", matches(ALLERGY), events=["cron"]),
        rule("off", matches(ALLERGY), enabled=False),
        rule("not here", matches(ALLERGY), "archive"),
        rule("unpin", matches(ALLERGY), "unpin"),
    )
    rules_set(rule("elsewhere", matches(ALLERGY)), scope="/user/ada")
    assert statements() == without
    assert not Vitality.objects.filter(pinned=True).exists()


def test_a_rule_holds_below_its_scope_and_not_beside_it(alice: Caller, stranger: Caller, agent: Caller) -> None:
    rules_set(rule("pin allergies", matches(ALLERGY)), scope="/user/alice")
    assert pinned(alice.remember("Allergy")) == "rule pin allergies"
    assert pinned(alice.remember("Allergy", scope="/user/alice/home/kitchen")) == "rule pin allergies"
    assert pinned(stranger.remember("Allergy")) is None
    assert pinned(agent.remember("Allergy", scope="/user/alicea")) is None


def test_a_rule_can_be_switched_off_below_under_the_same_name(alice: Caller, stranger: Caller) -> None:
    rules_set(rule("pin allergies", matches(ALLERGY)))
    rules_set(rule("pin allergies", matches(ALLERGY), enabled=False), scope="/user/alice")
    assert pinned(alice.remember("Allergy")) is None
    assert pinned(stranger.remember("Allergy")) == "rule pin allergies"


def test_one_batch_over_several_scopes_follows_the_rules_of_each(agent: Caller) -> None:
    rules_set(rule("root", matches("tea")))
    rules_set(rule("ours", matches("coffee")), scope="/team")
    made = {
        (title, scope): str(uuid.uuid4()) for title in ("tea", "coffee") for scope in ("/", "/team", "/team/x", "/y")
    }
    agent.post(
        "/v1/ingest/batch",
        [
            {"placement": "new_topic", "title": title, "scope": scope, "topic_id": topic_id}
            for (title, scope), topic_id in made.items()
        ],
    ).ok()
    found = {place: pinned(topic_id) for place, topic_id in made.items()}
    assert found == {
        (title, scope): "rule root" if title == "tea" else "rule ours" if scope.startswith("/team") else None
        for title, scope in made
    }


def test_a_rule_never_unpins_at_ingest_but_one_that_comes_first_keeps_from_pinning(
    agent: Caller, operator: Caller
) -> None:
    topic_id = operator.remember("Allergy", pinned=True)
    rules_set(rule("not tea", matches("tea"), "unpin"), rule("pin allergies", matches(ALLERGY)))
    agent.ingest("extend_topic", topic_id=topic_id, categories=["tea"])
    assert pinned(topic_id) == "asked for on ingest"
    assert pinned(agent.remember("Tea for an allergy")) is None
    assert pinned(agent.remember("Another allergy")) == "rule pin allergies"


def test_a_category_is_added_once_with_what_stood_before_kept_for_as_of(agent: Caller) -> None:
    rules_set(categorize("mark output", "output", kind("tool_output")))
    topic_id = agent.remember("Log", topic_kind="tool_output", categories=["z", "a"])
    assert agent.topic(topic_id)["categories"] == ["a", "output", "z"]
    edit = TopicEdit.objects.get(topic_id=topic_id)
    assert (edit.before, edit.actor) == ({"categories": ["a", "z"]}, "rule mark output")
    event = AuditEvent.objects.get(topic_id=topic_id, action="categorized")
    assert (event.actor, event.before, event.after["categories"]) == (
        "rule mark output",
        {"categories": ["a", "z"]},
        ["a", "output", "z"],
    )
    agent.ingest("extend_topic", topic_id=topic_id, fields=[{"name": "note", "value": "more"}])
    assert TopicEdit.objects.filter(topic_id=topic_id).count() == 1
    assert agent.found("Log", categories=["output"]) == [topic_id]


def test_edits_by_rules_and_by_hand_keep_their_order(agent: Caller, clock: Any) -> None:
    clock.stop()
    topic_id = agent.remember("Log", topic_kind="tool_output")
    agent.patch(f"/v1/topics/{topic_id}", {"title": "Protocol"}).ok()
    rules_set(categorize("mark", "output", kind("tool_output")), categorize("mark b", "b", has("output")))
    agent.ingest("extend_topic", topic_id=topic_id)
    assert categories(topic_id) == ["b", "output"]
    edits = TopicEdit.objects.filter(topic_id=topic_id).order_by("at")
    assert [list(edit.before) for edit in edits] == [["title"], ["categories"]]
    assert len({edit.at for edit in edits}) == 2


def test_rules_see_the_categories_that_rules_before_them_gave(agent: Caller) -> None:
    rules_set(
        categorize("sick", "health", matches("ill")),
        categorize("vital", "vital", has("health")),
        rule("keep", has("vital")),
        rule("not this", {"all": [{"not": has("health")}, matches("ill")]}),
    )
    topic_id = agent.remember("Ill")
    assert categories(topic_id) == ["health", "vital"]
    assert pinned(topic_id) == "rule keep"


def test_a_topic_that_is_full_of_categories_can_still_be_written_to(agent: Caller) -> None:
    rules_set(categorize("a", "a", matches("log")), categorize("b", "b", matches("log")))
    topic_id = agent.remember("Log", categories=[f"c{number}" for number in range(49)])
    assert len(categories(topic_id)) == 50
    agent.ingest("extend_topic", topic_id=topic_id, fields=[{"name": "note", "value": "more"}])


def test_conditions_on_age_score_and_use_are_judged_at_the_moment_of_the_ingest(
    agent: Caller, operator: Caller
) -> None:
    rules_set(
        rule("old", {"field": "age", "op": ">=", "value": "30d"}),
        rule(
            "present",
            {"all": [{"field": "score", "op": ">", "value": 1.5}, {"field": "retrievals", "op": "is", "value": 0}]},
        ),
    )
    long_ago = (dt.datetime.now(dt.UTC) - dt.timedelta(days=31)).isoformat()
    assert pinned(operator.remember("Old", created_at=long_ago)) == "rule old"
    assert pinned(agent.remember("Plain")) is None
    assert pinned(agent.remember("Salient", salience=2)) == "rule present"


def test_an_ingest_that_is_refused_leaves_nothing_of_its_rules(agent: Caller) -> None:
    rules_set(rule("pin all", matches(".")))
    assert agent.post("/v1/ingest", {"placement": "extend_topic", "topic_id": str(uuid.uuid4())}).status == 400
    assert not AuditEvent.objects.filter(actor="rule pin all").exists()


def test_the_packaged_patterns_pin_what_they_should(agent: Caller) -> None:
    rules_set(*(one.as_json() for one in SHIPPED_RULE_SETS["auto_pin"]))
    assert pinned(agent.remember("Carries an EpiPen")) == "rule pin allergies"
    assert pinned(agent.remember("Insulin at seven")) == "rule pin medical conditions"
    assert pinned(agent.remember("Tea at seven")) is None


def test_a_pattern_that_takes_too_long_is_skipped_and_journaled_and_the_ingest_succeeds(
    agent: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules_set(
        rule("slow", matches("slow")),
        rule("fast", matches("allergy")),
        categorize("mark", "marked", matches("allergy")),
    )
    compile_it = ingest_rules.predicate_sql

    def hanging(condition: Any, **members: Any) -> Any:
        compiled = compile_it(condition, **members)
        slow = condition.value == "slow"
        return type(compiled)(f"(pg_sleep(5) IS NULL OR {compiled.sql})" if slow else compiled.sql, True)

    monkeypatch.setattr(ingest_rules, "predicate_sql", hanging)
    monkeypatch.setattr(ingest_rules, "LIMIT_MS", 100)
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        limit = cursor.fetchone()
    with capture_logs() as logs:
        topic_id = agent.remember("Allergy and slow")
    assert pinned(topic_id) == "rule fast"
    assert categories(topic_id) == ["marked"]
    skipped = AuditEvent.objects.get(action="rule_skipped")
    assert (skipped.actor, skipped.scope, skipped.after) == ("rule slow", "/", {"topics": 1})
    assert "left to the next run: canceling statement due to statement timeout" in skipped.reason
    assert [(log["event"], log["rule"]) for log in logs if log["log_level"] == "warning"] == [("rule_skipped", "slow")]
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == limit


def test_the_time_limit_of_rules_does_not_outlive_them(agent: Caller) -> None:
    rules_set(rule("pin allergies", matches(ALLERGY)))
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '12345ms'")
    agent.remember("Allergy")
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("12345ms",)
