"""Settings come from the environment, and what cannot be meant stops the program with a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memstate_site.env import SettingError, envbool, envfloat, envint, envlist, envpath, envsecret, envstr
from memstate_site.folder import CHECKOUT
from memstate_site.knobs import envknobs


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "  ")
    assert envstr("X", "default") == "default"
    assert envbool("X", True) is True
    assert envint("X", 7) == 7
    assert envlist("X", ["a"]) == ["a"]
    assert envsecret("X") is None


@pytest.mark.parametrize(("text", "value"), [("1", True), ("TRUE", True), ("on", True), ("no", False), ("0", False)])
def test_yes_and_no_are_understood_in_their_usual_spellings(
    monkeypatch: pytest.MonkeyPatch, text: str, value: bool
) -> None:
    monkeypatch.setenv("X", text)
    assert envbool("X", not value) is value


def test_a_word_that_is_neither_yes_nor_no_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "maybe")
    with pytest.raises(SettingError, match="X is 'maybe', but it must be true or false"):
        envbool("X", True)


@pytest.mark.parametrize("text", ["", "12", "-3"])
def test_whole_numbers_are_read(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("X", text)
    assert envint("X", 5) == (int(text) if text else 5)


@pytest.mark.parametrize("text", ["1.5", "many", "1e3", "0x10"])
def test_a_number_that_is_not_whole_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("X", text)
    with pytest.raises(SettingError, match="a whole number"):
        envint("X", 5)


def test_a_number_outside_its_bounds_is_refused_and_the_bound_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "70000")
    with pytest.raises(SettingError, match="at most 65535"):
        envint("X", 1, maximum=65535)
    monkeypatch.setenv("X", "-0.5")
    with pytest.raises(SettingError, match="at least 0"):
        envfloat("X", 1.0, minimum=0)


def test_nan_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "nan")
    with pytest.raises(SettingError, match="a number"):
        envfloat("X", 1.0, minimum=0)


def test_a_list_is_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", " a, b ,,c ")
    assert envlist("X") == ["a", "b", "c"]


def test_a_choice_outside_the_choices_is_refused_and_they_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "xml")
    with pytest.raises(SettingError, match="console, json"):
        envstr("X", "console", choices=("console", "json"))


def test_a_path_may_begin_with_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("X", "~/memory/../data")
    assert envpath("X", Path("/else")) == Path("/home/somebody/data")


def test_a_secret_may_stand_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("open sesame\n")
    monkeypatch.setenv("X_FILE", str(tmp_path / "secret"))
    assert envsecret("X") == "open sesame"


def test_a_secret_given_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "one")
    monkeypatch.setenv("X_FILE", "/two")
    with pytest.raises(SettingError, match="Set only one of them"):
        envsecret("X")


def test_a_missing_secret_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_FILE", "/nowhere/at/all")
    with pytest.raises(SettingError, match="/nowhere/at/all"):
        envsecret("X")


def test_a_secret_that_is_too_short_is_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "hunter2")
    with pytest.raises(SettingError) as refused:
        envsecret("X", minimum_length=8)
    assert "at least 8" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_knob_is_turned_by_its_variable_and_keeps_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMSTATE_CLOCK", raising=False)
    assert envknobs() == {}
    monkeypatch.setenv("MEMSTATE_HALF_LIFE_DAYS", "7.5")
    monkeypatch.setenv("MEMSTATE_MAX_FIELD_HISTORY", "20")
    assert envknobs() == {"half_life_days": 7.5, "max_field_history": 20}


def test_a_knob_beyond_its_bounds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTATE_HALF_LIFE_DAYS", "0")
    with pytest.raises(SettingError, match="MEMSTATE_HALF_LIFE_DAYS"):
        envknobs()


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("MEMSTATE_API_PORT", "eighty", "MEMSTATE_API_PORT is 'eighty', but it must be a whole number."),
        ("MEMSTATE_JOB_RETRY", "10", "MEMSTATE_JOB_RETRY is 10, but it must be more than MEMSTATE_JOB_TIMEOUT"),
    ],
)
def test_a_wrong_setting_stops_every_command_with_its_sentence(variable: str, value: str, sentence: str) -> None:
    result = subprocess.run(
        [sys.executable, CHECKOUT / "manage.py", "check"],
        env={**os.environ, variable: value},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
