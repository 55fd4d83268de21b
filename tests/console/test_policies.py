"""The pages about policies: read by everyone who is signed in, changed by operators, over HTTP from end to end."""

import json
import re
from collections.abc import Iterable
from html import unescape
from typing import Any

import pytest
from django.db.models import Max
from django.test import Client
from django.utils import timezone

from memory.access.principal import SYSTEM
from memory.console.rule_form import rule_form_of
from memory.core.policy_presets import PRESETS
from memory.forgetting.runs import run_start
from memory.models import PolicyVersion, Rekeying
from memory.policy.effective import policies_current
from memory.policy.read import policy_show
from memory.policy.save import policy_save
from memory.policy.shipped_rule_sets import SHIPPED_RULE_SETS
from tests.cast import Caller, Clock
from tests.console.people import body_of, codes_of, person, statements_of

pytestmark = pytest.mark.django_db

PIN = {
    "name": "keep decisions",
    "events": ["ingest_complete"],
    "condition": {"field": "kind", "op": "is", "value": "decision"},
    "action": "pin",
}


def saved(scope: str = "/", *, preset: str | None = None, rules: Any = None, reason: str = "because", **values: Any):
    return policy_save(
        scope, preset=preset, values=values, rules=rules, author="user:mara", reason=reason, now=timezone.now()
    )


def versions_made(scopes: Iterable[str]) -> None:
    """Store one more version of the policy of each of these scopes, without the work of a save."""
    numbers = dict(PolicyVersion.objects.values_list("scope").annotate(newest=Max("number")))
    made = []
    for scope in scopes:
        numbers[scope] = numbers.get(scope, 0) + 1
        made.append(
            PolicyVersion(
                scope=scope,
                number=numbers[scope],
                values={"mode": "off"},
                author="user:mara",
                reason="because",
                created_at=timezone.now(),
            )
        )
    PolicyVersion.objects.bulk_create(made)


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
    assert "Only defaults apply" in said
    assert "Set values" in said


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
    assert re.search(r"balanced 1 value automatic 0 Version 1 by mara, now small memory", said)
    assert re.search(r"/user 1 value , 1 rule needs approval 1 Version 1 by mara, now ask first", said)
    assert re.search(r"/user/mara 1 value off 1 Version 1", said)


def test_counts_come_after_the_list(looker: Client):
    html = body_of(looker.get("/policies/"))
    assert 'hx-get="?counts=1"' in html


def test_the_tree_is_paged_by_scope_and_no_policy_is_left_out(looker: Client):
    versions_made(f"/user/u{number:02}" for number in range(60))
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
    html = body_of(looker.get("/policies/at/?scope=/user"))
    assert re.search(r"Half-life in days</label> <span class=\"badge strong\">set here", html)
    assert 'name="half_life_days" value="7"' in html
    for name, held, source in (
        ("strategy", ">static (inherited)<", "preset memstate, /"),
        ("cron", 'placeholder="30 4 * * *"', "from /"),
        ("shadow_share", 'placeholder="0.1"', "environment"),
        ("max_archive_share", 'placeholder="0.2"', "default"),
    ):
        line = html.partition(f'data-source="{name}">')[2].partition('class="hint"')[0]
        assert line.startswith(f"{source}<")
        assert held in line
        assert line.count(source) == 1


def test_a_group_of_values_is_open_only_if_one_of_them_is_set_here(looker: Client):
    def opened_groups(scope: str) -> list[str]:
        html = body_of(looker.get(f"/policies/at/?scope={scope}"))
        return re.findall(r'<details class="knob-group" open>\s*<summary><strong>([^<]+)', html)

    # Most policies set something of the stages, so that is open in any case.
    assert opened_groups("/user") == ["Strategy and stages"]
    saved("/", preset="relevance", shadow_share=0.1)
    saved("/user", bm25_b=0.5)
    assert opened_groups("/user") == ["Strategy and stages", "Recall"]
    assert opened_groups("/user&half_life_days=3&mode=off") == ["Strategy and stages", "Runs", "Recall"]


def test_rules_are_shown_in_words_in_their_order_with_where_they_come_from(looker: Client):
    saved(rules=[PIN])
    saved("/user", preset="graduated", rules=[{**PIN, "name": "mine", "enabled": False}])
    said = page(looker, f"{RULES}/user")
    names = ["mine off", "from 90 days only identity and decision preset graduated", "keep decisions from /"]
    places = [said.index(name) for name in names]
    assert places == sorted(places)
    assert "After an ingest: pin memories whose kind is decision." in said


def test_a_scope_without_a_policy_says_which_one_governs_it(looker: Client):
    saved("/user", half_life_days=7)
    said = page(looker, "/policies/at/?scope=/user/mara/food")
    assert "Nothing set here, inherits version 1 of /user" in said
    assert "No version yet" in page(looker, "/policies/versions/?scope=/user/mara/food")


def test_what_is_no_scope_is_refused(looker: Client):
    reply = looker.get("/policies/at/?scope=/a b")
    assert (reply.status_code, codes_of(reply)) == (400, ["invalid-scope"])


def test_the_next_run_is_reported_and_none_while_the_mode_is_off(looker: Client):
    saved(cron="0 5 * * *")
    assert re.search(r"Next run in \d+ (hour|minute)s?", page(looker, "/policies/at/"))
    saved("/user", mode="off")
    assert "none, the mode is off" in page(looker, "/policies/at/?scope=/user")


def test_a_half_life_on_its_way_shows_how_far_it_is(looker: Client):
    saved("/user", half_life_days=3)
    Rekeying.objects.update(total=2000, done=500, after="01890000-0000-7000-8000-000000000000")
    assert "500 of 2,000 memories" in page(looker, "/policies/at/?scope=/user")
    assert "New half-life: 500 of 2,000 memories" in page(looker, "/policies/")


def test_versions_are_paged_and_each_has_a_page_of_its_own(looker: Client):
    for number in range(1, 26):
        saved(half_life_days=number, reason=f"try {number}")
    html = body_of(looker.get("/policies/versions/"))
    assert "try 25" in html
    assert "try 5”" not in html
    older = page(looker, "/policies/versions/?cursor=6")
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
    assert "archive memories whose kind is tool_output and whose age is at least 7 days" in said


def test_each_preset_has_a_curve_of_its_own_formula(looker: Client):
    html = body_of(looker.get("/policies/presets/"))
    reached = {
        # 0.25, 0.12 and 0.05 are passed after 2, 3.06 and 4.32 half-lives of 30 days.
        "balanced": "summarized after 61 days, detached after 92 days, archived after 130 days",
        "memstate": "never falls below a threshold",
        "importance-decay": "archived after 130 days",
        # 1 - days / 360 is below 0.1.
        "active-forgetting": "archived after 324 days",
        # Not before it is unused for more than 90 days, although it is below 0.2 earlier.
        "relevance": "archived after 91 days",
        "graduated": "never falls below a threshold",
    }
    assert set(reached) == set(PRESETS)
    for name, said in reached.items():
        card = html.partition(f'id="preset-{name}"')[2].partition("</section>")[0]
        assert said in words(f"<main>{card}</main>")
        assert card.count("<path ") == said.count(" after ") + 1
        assert "style=" not in card


def test_regret_is_drawn_over_time_with_the_versions_that_governed(looker: Client, operator: Caller, clock: Clock):
    # Who is signed in is so today.
    clock.forward(days=-32)
    saved(strategy="static", prune_after_days=0, topic_count_soft_limit=0)
    saved("/elsewhere", half_life_days=9)
    clock.forward(days=30)
    ids = [operator.remember(f"Topic {place}", scope="/user", salience=0.001) for place in range(4)]
    run_start("/", event="cron", dry_run=False, principal=SYSTEM, now=clock.now)
    clock.forward(days=1)
    operator.topic(ids[0])
    saved("/user", half_life_days=9, reason="never again")
    clock.forward(days=1)

    shown = "/policies/versions/?scope=/user"
    assert 'hx-get="?scope=%2Fuser&amp;regret=1"' in body_of(looker.get(shown))
    html = body_of(looker.get(f"{shown}&regret=1"))
    assert "4 memories that runs archived in the last 7 days, 1 was needed afterwards (25.0%)" in words(html)
    picture = html.partition('class="regret-chart"')[2].partition("</p>")[0]
    assert picture.count("4 archived, 1 regretted") == picture.count("<rect ") == 1
    # The scale ends at 50 %: from the day of the run on, the line is at a half of it.
    points = re.findall(r"[ML]([\d.]+),([\d.]+)", picture)
    assert [(float(x), float(y)) for x, y in points] == [(87.5, 50.0), (88.5, 50.0), (89.5, 50.0)]
    marks = re.findall(r"Version (\d+) of (\S+), .*?<line x1=\"([\d.]+)%", picture)
    assert [mark[:2] for mark in marks] == [("1", "/"), ("1", "/user")]
    assert float(marks[0][2]) < 70 < 97 < float(marks[1][2]) < 100
    assert "style=" not in picture
    assert "archived nothing here" in page(looker, "/policies/versions/?scope=/elsewhere&regret=1")
    assert "/policies/versions/?scope=%2Fuser#regret" in body_of(looker.get("/overview/regretted/?scope=/user"))


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
    assert "/ is rolled back to version 1, as version 3." in words(body_of(reply))
    newest = PolicyVersion.objects.get(scope="/", number=3)
    assert (newest.values, newest.author, newest.reason) == ({"half_life_days": 7}, "user:operator", "it was better")
    assert newest.rolled_back_to == 1


def test_a_rollback_decided_on_an_older_version_is_refused_and_the_reason_stays(op: Client):
    saved(half_life_days=7)
    saved(half_life_days=9)
    saved(half_life_days=11)
    reply = op.post("/policies/rollback/?scope=/&to=1", {"base_version": 2, "reason": "it was better"})
    assert (reply.status_code, codes_of(reply)) == (409, ["changed-meanwhile"])
    assert "it was better" in body_of(reply)
    assert policies_current().numbers["/"] == 3


def test_a_policy_can_be_emptied(op: Client):
    saved("/user", half_life_days=7, rules=[PIN])
    op.post("/policies/rollback/?scope=/user&to=0", {"base_version": 1, "reason": "inherit again"})
    assert policies_current().policies == {}
    assert "Scopes whose policy was cleared /user" in page(op, "/policies/")


def test_a_reader_sees_no_way_to_change_anything_and_may_not(looker: Client):
    saved(half_life_days=7)
    saved(half_life_days=9)
    for address in ("", "at/", "rules/", "versions/", "version/?number=1", "presets/"):
        html = body_of(looker.get(f"/policies/{address}"))
        assert 'id="save"' not in html, address
        assert "/policies/rollback/" not in html, address
    assert looker.get("/policies/rollback/?to=1").status_code == 403
    assert looker.post("/policies/rollback/?to=1", {"base_version": 2, "reason": "x"}).status_code == 403
    assert policies_current().numbers["/"] == 2


# --- Editing ---------------------------------------------------------------------------------------------------------

EDIT = "/policies/at/?scope="
RULES = "/policies/rules/?scope="
STEP = "/policies/rules/effect/?scope="
EFFECT = "/policies/edit/effect/?scope="
# What the browser adds while someone types.
TYPING = {"HX-Request": "true", "HX-Target": "policy-tried"}


def sent(html: str) -> dict[str, str]:
    """Return what a browser would send of the editor as it stands on a page."""
    form = html.partition('id="policy-editor"')[2].partition("</form>")[0]
    texts = {}
    for tag in re.findall(r"<input [^>]*>", form):
        attributes = dict(re.findall(r'([a-z-]+)="([^"]*)"', tag))
        texts[attributes["name"]] = unescape(attributes.get("value", ""))
    for name, inner in re.findall(r'<select name="([^"]+)".*?>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected', inner)
        texts[name] = unescape(chosen[1]) if chosen else ""
    for name, inner in re.findall(r'<textarea name="([^"]+)"[^>]*>\n?(.*?)</textarea>', form, re.DOTALL):
        texts[name] = unescape(inner)
    return {name: text for name, text in texts.items() if name != "csrfmiddlewaretoken"}


def opened(client: Client, scope: str = "/", more: str = "", tab: str = EDIT) -> dict[str, str]:
    """Return what the editor of ``scope`` would send if nothing were typed."""
    reply = client.get(f"{tab}{scope}{more}")
    assert reply.status_code == 200, body_of(reply)[:1000]
    return sent(body_of(reply))


def test_an_edit_becomes_a_version_with_author_reason_and_diff(op: Client):
    saved("/user", preset="balanced", half_life_days=7, rules=[PIN])
    draft = opened(op, "/user")
    assert draft["half_life_days"] == "7"
    reply = op.post(f"{EDIT}/user", {**draft, "theta_summary": "0.5", "reason": "more summaries"}, follow=True)
    assert "Saved: version 2 of /user is in force." in words(body_of(reply))
    version = PolicyVersion.objects.get(scope="/user", number=2)
    # What was not touched stays as it is set.
    assert (version.preset, version.values) == ("balanced", {"half_life_days": 7.0, "theta_summary": 0.5})
    assert [rule["name"] for rule in version.rules] == ["keep decisions"]
    assert (version.author, version.reason) == ("user:operator", "more summaries")
    assert version.diff == [{"name": "theta_summary", "before": None, "after": 0.5}]


def test_what_was_not_changed_makes_no_version(op: Client):
    saved("/user", preset="balanced", half_life_days=0.3, exempt_kinds=[], token_budgets=True, rules=[PIN])
    reply = op.post(f"{EDIT}/user", {**opened(op, "/user"), "reason": "none"}, follow=True)
    assert "so no new version was created" in body_of(reply)
    assert policies_current().numbers["/user"] == 1


def test_a_scope_gets_its_first_policy_and_can_be_emptied_again(op: Client):
    draft = opened(op, "/new")
    assert draft["base_version"] == "0"
    op.post(f"{EDIT}/new", {**draft, "mode": "review", "rules": json.dumps([PIN]), "reason": "careful"})
    assert policies_current().knobs("/new").mode == "review"
    op.post(f"{EDIT}/new", {**opened(op, "/new"), "mode": "", "rules": "[]", "reason": "no longer"})
    assert policies_current().policies == {}
    assert policies_current().numbers["/new"] == 2


REFUSED = [
    ("cron", "daily at three", "invalid-policy"),
    ("cron", "0 0 30 2 *", "invalid-policy"),
    ("theta_detach", "5000", "invalid-policy"),
    ("half_life_days", "soon", "invalid-policy"),
    ("max_archive_share", "7", "invalid-policy"),
    ("mode", "sometimes", "invalid-policy"),
    ("exempt_scopes", "/a b", "invalid-scope"),
    ("preset", "fancy", "invalid-policy"),
    ("rules", "[{", "invalid-json"),
    ("rules", json.dumps([{**PIN, "colour": "red"}]), "invalid-rule"),
    ("rules", json.dumps([PIN, PIN]), "invalid-rule"),
]


@pytest.mark.parametrize(("name", "text", "code"), REFUSED)
def test_what_makes_no_sense_is_refused_in_place_and_what_was_typed_stays(op: Client, name: str, text: str, code: str):
    saved(half_life_days=7)
    tab = RULES if name == "rules" else EDIT
    draft = opened(op, tab=tab)
    typed = {**draft, name: text, "topic_count_soft_limit": "123", "reason": "to try"}
    reply = op.post(f"{tab}/", typed)
    html = body_of(reply)
    assert reply.status_code == 422
    # Beside its field.
    errors = " ".join(re.findall(r'<ul class="errorlist" id="[^"]*">(.*?)</ul>', html, re.DOTALL))
    assert f'data-code="{code}"' in errors
    kept = sent(html)
    assert (kept["topic_count_soft_limit"], kept["reason"]) == ("123", "to try")
    if name not in ("mode", "preset"):
        assert kept[name] == text
    assert policies_current().numbers["/"] == 1


def test_a_save_without_a_reason_is_refused_and_what_was_typed_stays(op: Client):
    reply = op.post(f"{EDIT}/", {**opened(op), "half_life_days": "7", "reason": " "})
    assert reply.status_code == 422
    assert "This field is required" in body_of(reply)
    assert sent(body_of(reply))["half_life_days"] == "7"
    assert policies_current().numbers == {}


def test_the_effect_of_a_draft_is_reported_and_nothing_is_saved(agent: Caller, clock: Clock):
    for number in range(3):
        agent.remember(f"tea {number}", scope="/user")
    clock.forward(days=60)
    op = person("operator")
    saved(half_life_days=3650)
    draft = {**opened(op), "half_life_days": "10"}
    reply = op.post(f"{EFFECT}/", draft, headers=TYPING)
    html = body_of(reply)
    said = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    assert "<main" not in html
    assert "A run today would archive 3 more memories than under the policy in force." in said
    assert "Today summarized 0 0 ±0 detached 0 0 ±0 archived 0 3 +3" in said
    assert re.search(r"half_life_days 3,650 → becomes 10", said)
    # Without script the same button gives the whole page, with what was typed.
    whole = op.post(f"{EFFECT}/", {**draft, "reason": "so far"})
    assert "A run today would archive 3 more memories than under the policy in force." in words(body_of(whole))
    assert sent(body_of(whole)) | {"reason": "so far", "half_life_days": "10"} == sent(body_of(whole))
    assert policies_current().numbers["/"] == 1


def test_a_refused_draft_says_so_while_it_is_typed(op: Client):
    reply = op.post(f"{EFFECT}/", {**opened(op), "cron": "often"}, headers=TYPING)
    assert reply.status_code == 200
    assert "This draft cannot be saved:" in body_of(reply)
    assert "invalid-policy" in codes_of(reply)


def test_a_preset_loaded_as_draft_and_saved_is_the_preset(op: Client):
    saved("/user", half_life_days=7, cron="0 5 * * *")
    for preset in PRESETS:
        draft = opened(op, "/user", f"&preset={preset}")
        op.post(f"{EDIT}/user", {**draft, "reason": f"try {preset}"})
        shown = policy_show("/user")
        assert shown["preset"] == preset
        got = {name: shown["effective"][name]["value"] for name in PRESETS[preset].values}
        assert got == {
            name: list(value) if isinstance(value, tuple) else value for name, value in PRESETS[preset].values.items()
        }
        # What is the operator's own and belongs to no design stays.
        assert shown["values"] == {"cron": "0 5 * * *"}


def test_values_that_go_before_a_preset_are_named_and_can_be_given_up(op: Client):
    typed = {**opened(op, "/user"), "half_life_days": "7", "cron": "0 5 * * *", "preset": "relevance"}
    html = body_of(op.post(f"{EFFECT}/user", typed))
    assert "Overrides preset relevance: Half-life in days" in words(html)
    given_up = sent(body_of(op.post(f"{EFFECT}/user", {**typed, "preset_taken": "yes"})))
    assert (given_up["half_life_days"], given_up["cron"], given_up["preset"]) == ("", "0 5 * * *", "relevance")


def test_a_shipped_set_is_added_and_single_rules_are_switched_moved_and_removed(op: Client):
    saved(rules=[PIN])
    draft = opened(op, "/user", "&add=ttl_by_kind", tab=RULES)
    assert json.loads(draft["rules"])[0]["name"] == "session_state lives 24h"
    # A rule from above is switched off by one of its name here.
    draft = sent(body_of(op.post(f"{STEP}/user", {**draft, "switch": "keep decisions"})))
    draft = sent(body_of(op.post(f"{STEP}/user", {**draft, "switch": "tool_output lives 7d"})))
    draft = sent(body_of(op.post(f"{STEP}/user", {**draft, "drop": "decision lives 365d"})))
    draft = sent(body_of(op.post(f"{STEP}/user", {**draft, "add": "yes", "set": "scope_and_age"})))
    draft = sent(body_of(op.post(f"{STEP}/user", {**draft, "up": "keep decisions"})))
    draft = sent(body_of(op.post(f"{STEP}/user", {**draft, "down": "session_state lives 24h"})))
    op.post(f"{RULES}/user", {**draft, "reason": "rules"})
    assert [(rule.name, rule.enabled) for rule in policies_current().policies["/user"].rules] == [
        ("tool_output lives 7d", False),
        ("session_state lives 24h", True),
        ("project_status lives 30d", True),
        ("keep decisions", False),
        ("preference lives 730d", True),
        ("old projects after 30 days", True),
    ]
    assert policies_current().effective("/").rules.rules[0].enabled


def test_a_link_opens_a_draft_with_one_rule_switched(op: Client):
    saved(rules=[PIN])
    draft = opened(op, "/", "&switch=keep decisions", tab=RULES)
    assert json.loads(draft["rules"])[0]["enabled"] is False
    assert op.get(f"{RULES}/&switch=nothing like it").status_code == 400


def test_a_step_that_makes_no_sense_loses_nothing(op: Client):
    typed = {**opened(op, tab=RULES), "rules": "[{", "cron": "0 5 * * *", "switch": "tea", "reason": "so far"}
    reply = op.post(f"{STEP}/", typed)
    assert reply.status_code == 422
    kept = sent(body_of(reply))
    assert (kept["rules"], kept["cron"], kept["reason"]) == ("[{", "0 5 * * *", "so far")


# --- The form of a rule ----------------------------------------------------------------------------------------------


def rows(*rows: tuple[str, ...]) -> dict[str, list[str]]:
    """Return rows of a condition as a form sends them: level, not, what, op and value of each."""
    names = ("level", "negated", "what", "op", "value")
    said = {f"row-{name}": [row[at] for row in rows] for at, name in enumerate(names)}
    return {**said, "row-name": [row[5] if len(row) > 5 else "" for row in rows]}


def ruled(**said: Any) -> dict[str, Any]:
    """Return the form of a new rule as it is sent."""
    plain = {"editing": "", "enabled": "yes", "name": "old output", "action": "archive", "match": "all"}
    return {f"rule-{name}": value for name, value in {**plain, "events": ["cron", "manual"], **said}.items()}


def test_a_rule_is_added_by_choosing_from_lists_and_saved_with_the_draft(op: Client):
    saved("/user", half_life_days=7, rules=[PIN])
    draft = opened(op, "/user", tab=RULES)
    html = body_of(op.post(f"{STEP}/user", {**draft, "new": "yes"}))
    assert 'name="rule-name"' in html
    condition = rows(
        ("0", "", "kind", "in", "tool_output, session_state"),
        ("0", "not", "any", "is", ""),
        ("1", "", "idle", "<", "30d"),
        ("1", "", "retrievals", ">", "3"),
        ("1", "not", "field", "contains", "open", "state"),
        ("0", "", "score", "<=", "0.5"),
        ("0", "", "", "is", ""),
    )
    typed = {**draft, **ruled(), **condition, "apply": "yes"}
    draft = sent(body_of(op.post(f"{STEP}/user", typed)))
    op.post(f"{RULES}/user", {**draft, "reason": "a rule"})
    version = PolicyVersion.objects.get(scope="/user", number=2)
    assert version.values == {"half_life_days": 7}
    assert [rule["name"] for rule in version.rules] == ["keep decisions", "old output"]
    assert version.rules[1] == {
        "name": "old output",
        "action": "archive",
        "events": ["cron", "manual"],
        "enabled": True,
        "condition": {
            "all": [
                {"field": "kind", "op": "in", "value": ["tool_output", "session_state"]},
                {
                    "not": {
                        "any": [
                            {"field": "idle", "op": "<", "value": "30d"},
                            {"field": "retrievals", "op": ">", "value": 3},
                            {"not": {"field": {"name": "state", "op": "contains", "value": "open"}}},
                        ]
                    }
                },
                {"field": "score", "op": "<=", "value": 0.5},
            ]
        },
    }


def test_a_rule_is_changed_in_its_place_also_by_saving_while_its_form_is_open(op: Client):
    saved(rules=[PIN, {**PIN, "name": "second"}])
    draft = opened(op, tab=RULES)
    html = body_of(op.post(f"{STEP}/", {**draft, "edit": "keep decisions"}))
    assert 'name="rule-editing" value="keep decisions"' in html
    assert 'value="decision"' in html
    typed = ruled(editing="keep decisions", name="keep choices", action="pin", events=["ingest_complete"])
    op.post(f"{RULES}/", {**draft, **typed, **rows(("0", "", "kind", "is", "choice")), "save": "yes", "reason": "r"})
    first, second = policies_current().policies["/"].rules
    assert (first.name, first.condition) == ("keep choices", {"field": "kind", "op": "is", "value": "choice"})
    assert second.name == "second"


WRONG = [
    ({"name": ""}, ("0", "", "kind", "is", "x"), "invalid-rule"),
    ({"name": "keep decisions"}, ("0", "", "kind", "is", "x"), "invalid-rule"),
    ({"action": "melt"}, ("0", "", "kind", "is", "x"), "invalid-rule"),
    ({"action": "categorize"}, ("0", "", "kind", "is", "x"), "invalid-rule"),
    ({"events": []}, ("0", "", "kind", "is", "x"), "invalid-rule"),
    ({}, ("0", "", "age", "is", "7d"), "invalid-rule"),
    ({}, ("0", "", "age", ">", "a week"), "invalid-member"),
    ({}, ("0", "", "retrievals", ">", "some"), "invalid-rule"),
    ({}, ("0", "", "colour", "is", "red"), "invalid-rule"),
    ({}, ("0", "", "text", "matches", "(?=a)"), "invalid-pattern"),
    ({}, ("0", "", "any", "is", ""), "invalid-rule"),
    ({}, ("0", "", "", "is", ""), "invalid-rule"),
    ({}, ("0", "", "category", "has", "late"), None),
]


@pytest.mark.parametrize(("said", "row", "code"), WRONG)
def test_a_rule_that_makes_no_sense_is_refused_in_place_and_nothing_is_changed(
    op: Client, said: dict[str, Any], row: tuple[str, ...], code: str | None
):
    saved(rules=[PIN])
    draft = opened(op, tab=RULES)
    typed = {**draft, **ruled(**said), **rows(row), "reason": "so far"}
    for address, button in ((STEP, "apply"), (RULES, "save")):
        if code is None and button == "save":
            continue
        reply = op.post(f"{address}/", {**typed, button: "yes"})
        html = body_of(reply)
        if code is None:
            assert reply.status_code == 200
            continue
        assert (reply.status_code, codes_of(reply)[:1]) == (422, [code])
        kept = sent(html)
        assert (kept["reason"], kept["rules"]) == ("so far", draft["rules"])
        assert kept["row-value"] == row[4]
    assert policies_current().numbers["/"] == 1


def test_the_wrong_row_of_several_is_the_one_that_is_marked(op: Client):
    draft = opened(op, tab=RULES)
    said = rows(("0", "", "kind", "is", "x"), ("0", "not", "all", "is", ""), ("1", "", "age", ">", "soon"))
    html = body_of(op.post(f"{STEP}/", {**draft, **ruled(), **said, "apply": "yes"}))
    marked = [row for row in html.split('class="rule-row"')[1:] if "errorlist" in row.partition("</li>\n")[0]]
    assert len(marked) == 1
    assert 'value="soon"' in marked[0]


def test_rows_are_added_and_removed_and_an_open_form_can_be_left(op: Client):
    draft = {**opened(op, tab=RULES), **ruled()}
    said = rows(("0", "", "any", "is", ""), ("1", "", "kind", "is", "x"))
    html = body_of(op.post(f"{STEP}/", {**draft, **said, "row_add": "yes"}))
    assert re.findall(r'class="rule-row" data-level="(\d)"', html) == ["0", "1", "1"]
    html = body_of(op.post(f"{STEP}/", {**draft, **said, "row_drop": "0"}))
    assert re.findall(r'class="rule-row" data-level="(\d)"', html) == ["1"]
    assert 'class="rule-row"' not in body_of(op.post(f"{STEP}/", {**draft, **said, "cancel": "yes"}))


@pytest.mark.parametrize("name", SHIPPED_RULE_SETS)
def test_the_form_of_a_shipped_rule_says_that_rule(name: str):
    for rule in SHIPPED_RULE_SETS[name]:
        assert rule_form_of(rule).rule("/") == rule.as_json()


# --- Two operators ---------------------------------------------------------------------------------------------------


def test_the_second_of_two_operators_is_reported_and_nothing_typed_is_lost(op: Client, administrator: Client):
    saved(half_life_days=7, cron="0 5 * * *")
    mine, theirs = opened(op), opened(administrator)
    administrator.post(f"{EDIT}/", {**theirs, "half_life_days": "9", "mode": "review", "reason": "they were first"})
    typed = {**mine, "theta_summary": "0.5", "cron": "0 6 * * *", "rules": json.dumps([PIN]), "reason": "mine"}
    reply = op.post(f"{EDIT}/", typed)
    html = body_of(reply)
    assert (reply.status_code, codes_of(reply)) == (409, ["changed-meanwhile"])
    assert "user:administrator" in html
    assert re.search(r"half_life_days 7 → becomes 9 Runs mode inherited → becomes review", words(html))
    assert "they were first" in html
    kept = sent(html)
    assert {name: kept[name] for name in typed} == typed
    assert policies_current().numbers["/"] == 2


def test_a_draft_may_be_kept_as_it_is_and_so_takes_back_what_changed(op: Client):
    saved(half_life_days=7)
    mine = opened(op)
    saved(half_life_days=9)
    kept = sent(body_of(op.post(f"{EFFECT}/", {**mine, "mode": "off", "keep": "yes"})))
    assert (kept["half_life_days"], kept["base_version"]) == ("7", "2")
    op.post(f"{EDIT}/", {**kept, "reason": "seven was right"})
    assert PolicyVersion.objects.get(number=3).values == {"half_life_days": 7.0, "mode": "off"}


def test_a_draft_whose_version_is_no_longer_the_newest_says_so_while_it_is_typed(op: Client):
    saved(half_life_days=7)
    mine = opened(op)
    saved(half_life_days=9)
    reply = op.post(f"{EFFECT}/", mine, headers=TYPING)
    assert "Version 2 was saved in the meantime" in body_of(reply)


def test_the_address_of_a_step_leads_back_to_the_editor(op: Client):
    assert op.get(f"{EFFECT}/user").headers["Location"] == "/policies/at/?scope=%2Fuser"
    assert op.get(f"{STEP}/user").headers["Location"] == "/policies/rules/?scope=%2Fuser"


def test_the_address_of_the_old_editor_leads_to_the_tab_that_has_what_it_asks_for(op: Client):
    assert op.get("/policies/edit/?scope=/a&half_life_days=3").headers["Location"] == (
        "/policies/at/?scope=%2Fa&half_life_days=3"
    )
    assert op.get("/policies/edit/?scope=/a&add=auto_pin").headers["Location"].startswith("/policies/rules/?scope=%2Fa")


def test_a_reader_may_try_a_draft_and_not_save_it(looker: Client):
    for tab, step in ((EDIT, EFFECT), (RULES, STEP)):
        assert looker.get(f"{tab}/").status_code == 200
        assert looker.post(f"{step}/", {"base_version": "0", "mode": "off"}).status_code == 200
        assert looker.post(f"{tab}/", {"base_version": "0", "mode": "off", "reason": "x"}).status_code == 403
    assert policies_current().numbers == {}


# --- Cost ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "/policies/",
        "/policies/?counts=1",
        "/policies/at/",
        "/policies/rules/",
        "/policies/versions/",
        "/policies/versions/?regret=1",
        "/policies/version/?number=1",
        "/policies/presets/",
    ],
)
def test_a_page_costs_as_many_statements_for_200_policies_and_versions_as_for_10(looker: Client, address: str):
    versions_made([*(f"/s{number}" for number in range(10)), *["/"] * 10])
    body_of(looker.get(address))
    few = statements_of(lambda: looker.get(address))
    versions_made([*(f"/s{number}" for number in range(10, 200)), *["/"] * 190])
    body_of(looker.get(address))
    assert statements_of(lambda: looker.get(address)) == few


def test_the_editor_costs_as_many_statements_for_200_versions_as_for_10(op: Client):
    versions_made(["/"] * 10)
    draft = {**opened(op), "half_life_days": "3"}
    few = statements_of(lambda: op.post(f"{EFFECT}/", draft, headers=TYPING))
    versions_made(["/"] * 190)
    draft = {**opened(op), "half_life_days": "3"}
    assert statements_of(lambda: op.post(f"{EFFECT}/", draft, headers=TYPING)) == few


@pytest.mark.parametrize("base", ["x", "NaN", "1.0", "-1", "9" * 40])
def test_a_draft_on_no_version_is_refused_with_a_sentence(op: Client, base: str) -> None:
    replies = [
        op.get("/policies/at/", {"base_version": base}),
        op.post("/policies/at/", {"base_version": base, "reason": "x"}),
        op.post("/policies/edit/effect/", {"base_version": base, "keep": "1"}),
    ]
    for reply in replies:
        assert (reply.status_code, codes_of(reply)) == (400, ["invalid-member"])
