"""The pages about policies: read by everyone who is signed in, changed by operators, over HTTP from end to end."""

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.domain.presets import PRESETS
from memory.models import PolicyVersion, Rekeying
from memory.policy.effective import policies_current
from memory.policy.save import policy_save
from memory.policy.shown import policy_show
from tests.cast import Caller
from tests.console.people import body_of, statements_of

pytestmark = pytest.mark.django_db

PIN = {
    "name": "keep decisions", "events": ["ingest_complete"],
    "condition": {"field": "kind", "op": "is", "value": "decision"}, "action": "pin",
}  # fmt: skip


def saved(scope: str = "/", *, preset: str | None = None, rules: Any = None, reason: str = "because", **values: Any):
    return policy_save(
        scope, preset=preset, values=values, rules=rules, author="user:mara", reason=reason, now=timezone.now()
    )


def page(client: Client, address: str, *, status: int = 200) -> str:
    reply = client.get(address)
    assert reply.status_code == status, reply.content.decode()[:2000]
    return words(body_of(reply))


def words(html: str) -> str:
    """Return a page as its text, with single spaces."""
    main = html.partition("<main")[2].partition("</main>")[0]
    return " ".join(re.sub(r"<[^>]+>", " ", f"<main{main}").split())


# --- Reading ---------------------------------------------------------------------------------------------------------


def test_without_a_policy_the_tree_says_so_and_what_to_do(op: Client):
    said = page(op, "/policies/")
    assert "Only the defaults hold" in said
    assert "Set a policy" in said


def test_the_tree_shows_each_policy_with_what_it_sets_and_who_changed_it_last(looker: Client, agent: Caller):
    saved(preset="balanced", topic_count_soft_limit=200, reason="small memory")
    saved("/user", mode="review", rules=[PIN], reason="ask first")
    saved("/user/mara", mode="off")
    saved("/user-data", half_life_days=3)
    agent.remember("tea", scope="/user/mara/food")
    agent.remember("coffee", scope="/user/jonas")
    said = page(looker, "/policies/?counts=1")
    places = [said.index(f" {path} ") for path in ("/user", "/user/mara", "/user-data")]
    assert places == sorted(places)
    assert re.search(r"balanced 1 value by themselves 0 Version 1 by mara, now small memory", said)
    assert re.search(r"/user 1 value , 1 rule wait for approval 1 Version 1 by mara, now ask first", said)
    assert re.search(r"/user/mara 1 value off 1 Version 1", said)


def test_counts_come_after_the_list(looker: Client):
    html = body_of(looker.get("/policies/"))
    assert 'hx-get="?counts=1"' in html


def test_the_tree_is_paged_by_scope_and_no_policy_is_left_out(looker: Client):
    for number in range(60):
        saved(f"/user/u{number:02}", half_life_days=number + 1)
    html = body_of(looker.get("/policies/"))
    first = set(re.findall(r"scope=%2Fuser%2F(u\d\d)\"", html))
    cursor = re.search(r'rel="next" href="\?cursor=([^"]+)"', html)
    assert cursor is not None
    rest = set(re.findall(r"scope=%2Fuser%2F(u\d\d)\"", body_of(looker.get(f"/policies/?cursor={cursor[1]}"))))
    assert first | rest == {f"u{number:02}" for number in range(60)}
    assert not first & rest


def test_every_value_in_force_is_shown_with_its_source(looker: Client, settings: Any):
    settings.MEMSTATE_KNOBS = {"shadow_share": 0.1}
    saved(preset="memstate", cron="30 4 * * *")
    saved("/user", half_life_days=7)
    said = page(looker, "/policies/at/?scope=/user")
    assert re.search(r"half_life_days [a-z ]+ 7 set here", said)
    assert re.search(r"strategy [a-z ]+ static preset memstate, /", said)
    assert re.search(r"cron [a-zA-Z ,]+ 30 4 \* \* \* /", said)
    assert re.search(r"shadow_share [a-z ]+ 0\.1 environment", said)
    assert re.search(r"shadow_top_k [a-z ]+ 10 default", said)


def test_rules_are_shown_in_words_in_their_order_with_where_they_come_from(looker: Client):
    saved(rules=[PIN])
    saved("/user", preset="graduated", rules=[{**PIN, "name": "mine", "enabled": False}])
    said = page(looker, "/policies/at/?scope=/user")
    names = ["mine off", "from 90 days only identity and decision on preset graduated", "keep decisions on from /"]
    places = [said.index(name) for name in names]
    assert places == sorted(places)
    assert "After an ingest: pin topics whose kind is decision." in said


def test_a_scope_without_a_policy_says_which_one_governs_it(looker: Client):
    saved("/user", half_life_days=7)
    said = page(looker, "/policies/at/?scope=/user/mara/food")
    assert "Nothing is set here. What is in force comes from /user" in said
    assert "No version yet" in said


def test_what_is_no_scope_is_refused_in_a_sentence(looker: Client):
    assert "must not be" in page(looker, "/policies/at/?scope=/a b", status=400)


def test_the_next_run_is_told_and_none_while_the_mode_is_off(looker: Client):
    saved(cron="0 5 * * *")
    assert re.search(r"Next run in \d+ (hour|minute)s?", page(looker, "/policies/at/"))
    saved("/user", mode="off")
    assert "none, the mode is off" in page(looker, "/policies/at/?scope=/user")


def test_a_half_life_on_its_way_shows_how_far_it_is(looker: Client):
    saved("/user", half_life_days=3)
    Rekeying.objects.update(total=2000, done=500, after="01890000-0000-7000-8000-000000000000")
    assert "500 of 2,000 topics" in page(looker, "/policies/at/?scope=/user")
    assert "New half-life: 500 of 2,000 topics" in page(looker, "/policies/")


def test_versions_are_paged_and_each_has_a_page_of_its_own(looker: Client):
    for number in range(1, 26):
        saved(half_life_days=number, reason=f"try {number}")
    html = body_of(looker.get("/policies/at/"))
    assert "try 25" in html
    assert "try 5”" not in html
    older = page(looker, "/policies/at/?cursor=6")
    assert "“try 5”" in older
    version = page(looker, "/policies/version/?scope=/&number=7")
    assert "“try 7”" in version
    assert re.search(r"half_life_days 6 → becomes 7", version)
    assert "no version 99" in page(looker, "/policies/version/?scope=/&number=99", status=404)


def test_presets_tell_what_they_would_change_here(looker: Client):
    saved(half_life_days=7)
    said = page(looker, "/policies/presets/")
    for name in PRESETS:
        assert name in said
    assert re.search(r"half_life_days 7 → becomes 30", said)
    assert "ttl_by_kind" in said
    assert "archive topics whose kind is tool_output and whose age is at least 7 days" in said


# --- Going back ------------------------------------------------------------------------------------------------------


def test_a_rollback_shows_what_it_would_do_and_then_does_it_with_a_reason(op: Client, agent: Caller):
    agent.remember("tea", scope="/user")
    saved(half_life_days=7, reason="first")
    saved(half_life_days=9, mode="review", reason="second")
    said = page(op, "/policies/rollback/?scope=/&to=1")
    assert re.search(r"half_life_days 9 → becomes 7", said)
    assert "2 changes to version 2" in said
    refused = op.post("/policies/rollback/?scope=/&to=1", {"base_version": 2, "reason": ""})
    assert refused.status_code == 422
    assert policies_current().numbers["/"] == 2
    reply = op.post("/policies/rollback/?scope=/&to=1", {"base_version": 2, "reason": "it was better"}, follow=True)
    assert "/ is back to version 1, as version 3." in words(body_of(reply))
    newest = PolicyVersion.objects.get(scope="/", number=3)
    assert (newest.values, newest.author, newest.reason) == ({"half_life_days": 7}, "user:operator", "it was better")
    assert newest.rolled_back_to == 1


def test_a_rollback_decided_on_an_older_version_is_refused_and_the_reason_stays(op: Client):
    saved(half_life_days=7)
    saved(half_life_days=9)
    saved(half_life_days=11)
    reply = op.post("/policies/rollback/?scope=/&to=1", {"base_version": 2, "reason": "it was better"})
    assert reply.status_code == 409
    assert "is at version 3 by now" in body_of(reply)
    assert "it was better" in body_of(reply)
    assert policies_current().numbers["/"] == 3


def test_a_policy_can_be_emptied(op: Client):
    saved("/user", half_life_days=7, rules=[PIN])
    op.post("/policies/rollback/?scope=/user&to=0", {"base_version": 1, "reason": "inherit again"})
    assert policies_current().policies == {}
    assert "Scopes whose policy was emptied /user" in page(op, "/policies/")


def test_a_reader_sees_no_way_to_change_anything_and_may_not(looker: Client):
    saved(half_life_days=7)
    saved(half_life_days=9)
    for address in ("/policies/", "/policies/at/", "/policies/version/?number=1", "/policies/presets/"):
        html = body_of(looker.get(address))
        assert "/policies/edit/" not in html, address
        assert "/policies/rollback/" not in html, address
    assert looker.get("/policies/rollback/?to=1").status_code == 403
    assert looker.post("/policies/rollback/?to=1", {"base_version": 2, "reason": "x"}).status_code == 403
    assert policies_current().numbers["/"] == 2


# --- Cost ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["/policies/", "/policies/?counts=1", "/policies/at/", "/policies/version/?number=1", "/policies/presets/"],
)
def test_a_page_costs_as_many_statements_for_200_policies_and_versions_as_for_10(looker: Client, address: str):
    now = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)

    def versions(first: int, last: int) -> None:
        PolicyVersion.objects.bulk_create(
            PolicyVersion(
                scope=scope, number=number, values={"mode": "off"}, author="a", reason="b", created_at=now
            )
            for count in range(first, last)
            for scope, number in ((f"/s{count}", 1), ("/", count + 1))
        )  # fmt: skip

    versions(0, 10)
    body_of(looker.get(address))
    few = statements_of(lambda: looker.get(address))
    versions(10, 200)
    body_of(looker.get(address))
    assert statements_of(lambda: looker.get(address)) == few
