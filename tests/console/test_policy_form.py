"""The draft of a policy as a form: texts in, the refusals of a save in place, and an address that says all of it."""

import datetime as dt

import pytest
from django.http import QueryDict
from django.template.loader import render_to_string

from memory.console.policy_form import DraftForm, draft_of, draft_query, preset_taken
from memory.core.policy_values import KNOBS, Knob
from memory.policy.effective import policies_current
from memory.policy.save import policy_save

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)


def form_of(query: str = "", scope: str = "/") -> DraftForm:
    return DraftForm(QueryDict(query), policies=policies_current(), scope=scope)


def saved(scope: str = "/", preset: str | None = None, **values: object) -> None:
    policy_save(scope, preset=preset, values=values, author="user:ann", reason="for a test", now=NOW)


def valid_text(knob: Knob) -> str:
    match knob.type:
        case "number" | "count":
            return str(max(1, round(knob.low)))
        case "switch":
            return "true"
        case "choice":
            return knob.choices[-1]
        case "text":
            return "5 4 * * *"
        case "words":
            return "note, passport"
        case "scopes":
            return "/a, /b"


def test_a_form_begins_with_what_is_set_and_tells_what_is_inherited() -> None:
    saved("/", half_life_days=20, exempt_kinds=[])
    saved("/team", theta_summary=0.5)
    form = form_of(scope="/team")

    assert form["theta_summary"].value() == "0.5"
    assert not form["half_life_days"].value()
    page = render_to_string("console/parts/policy_form.html", {"form": form})
    assert 'placeholder="20"' in page
    assert 'data-source="half_life_days">from /<' in page
    assert 'placeholder="0.12"' in page
    assert 'data-source="theta_detach">default<' in page
    assert form["base_version"].value() == "1"
    assert form_of()["exempt_kinds"].value() == ","


def test_values_of_a_preset_are_shown_before_it_is_saved() -> None:
    form = form_of("base_version=0&preset=relevance")

    assert form.is_valid()
    assert form.held["theta_summary"] == {"value": "0.2", "source": "preset relevance, /"}


def test_each_policy_value_can_be_drafted() -> None:
    for name in KNOBS:
        text = valid_text(KNOBS[name])
        others = "&theta_summary=1&theta_detach=1" if name == "forget_salience_threshold" else ""
        others = "&theta_summary=1" if name == "theta_detach" else others
        form = DraftForm(
            QueryDict(f"base_version=0{others}&{name}={text.replace(' ', '+')}"), policies=policies_current(), scope="/"
        )

        assert form.is_valid(), form.errors
        assert form.drafted is not None
        assert name in form.drafted.policies["/"].values
        assert draft_of(form)[1][name] == text


def test_an_invalid_policy_value_is_refused_at_its_field_and_kept() -> None:
    for name in (name for name, knob in KNOBS.items() if knob.type != "words"):
        wrong = "no scope" if KNOBS[name].type == "scopes" else "neither this nor that"
        form = DraftForm({"base_version": "0", name: wrong}, policies=policies_current(), scope="/")

        assert not form.is_valid()
        assert list(form.errors) == [name]
        assert form[name].value() == wrong
        assert form.drafted is None


def test_thresholds_that_cross_are_refused_at_the_upper_one() -> None:
    form = form_of("base_version=0&theta_summary=0.1&theta_detach=0.2")

    assert not form.is_valid()
    assert form.has_error("theta_summary", "invalid-policy")


def test_thresholds_that_cross_are_refused_at_the_one_that_was_changed() -> None:
    saved(preset="balanced")
    form = form_of("forget_salience_threshold=0.2")

    assert not form.is_valid()
    assert list(form.errors) == ["forget_salience_threshold"]
    assert form.has_error("forget_salience_threshold", "invalid-policy")


@pytest.mark.parametrize(
    "rules", ["[", "{}", '["no such set"]', '[{"name": "x"}]', "[" * 40, "[NaN]", '[{"name": "x", "action": "melt"}]']
)
def test_rules_that_cannot_be_read_are_refused_in_place(rules: str) -> None:
    form = DraftForm({"base_version": "0", "rules": rules}, policies=policies_current(), scope="/")

    assert not form.is_valid()
    assert list(form.errors) == ["rules"]


def test_rules_left_empty_stay_as_they_are_set_and_an_empty_list_takes_them_away() -> None:
    policy_save("/", preset=None, values={}, rules=["ttl_by_kind"], author="user:ann", reason="test", now=NOW)

    kept, gone = form_of("base_version=1"), form_of("base_version=1&rules=[]")
    assert kept.is_valid()
    assert gone.is_valid()
    assert kept.drafted is not None
    assert gone.drafted is not None
    assert kept.drafted.policies["/"].rules
    assert "/" not in gone.drafted.policies
    shown = DraftForm(None, policies=policies_current(), scope="/", rules_shown=True)
    assert "ttl_by_kind" not in shown["rules"].value()
    assert shown.is_valid()
    assert shown.drafted is not None
    assert shown.drafted.policies["/"].rules == kept.drafted.policies["/"].rules


def test_an_address_says_the_whole_draft_and_a_link_may_say_one_value() -> None:
    saved("/", half_life_days=20)
    form = form_of("forget_salience_threshold=0.1")
    assert form.is_valid()
    assert draft_of(form)[1] == {"half_life_days": "20", "forget_salience_threshold": "0.1"}

    again = DraftForm(dict(draft_query(form)), policies=policies_current(), scope="/")
    assert again.is_valid()
    assert draft_of(again) == draft_of(form)
    b = DraftForm(dict(draft_query(form, prefix="b")), policies=policies_current(), scope="/", prefix="b")
    assert b.is_valid()
    assert draft_of(b) == draft_of(form)


def test_a_preset_taken_replaces_what_belongs_to_the_design_and_nothing_else() -> None:
    form = form_of("base_version=0&preset=memstate&half_life_days=3&shadow_share=0.5")

    assert preset_taken(form) == {"preset": "memstate", "base_version": "0", "shadow_share": "0.5"}


def test_an_unknown_preset_is_refused_at_its_field() -> None:
    form = form_of("base_version=0&preset=magic")

    assert not form.is_valid()
    assert form.has_error("preset", "invalid-policy")
