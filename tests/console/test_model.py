"""The page Model: what leaves this machine, where to and for what, and whether the language model answers."""

import html
from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from memory.health import ALL_CHECKS, Finding, outside_check
from memory.llm.status import SENT
from tests.llm import server
from tests.llm.server import Model

PART = {"HX-Request": "true"}


def text_of(client: Client, address: str, **options: Any) -> str:
    reply = client.get(address, **options)
    assert reply.status_code == 200
    return html.unescape(reply.content.decode())


def got(client: Client) -> str:
    return text_of(client, "/model/")


def test_without_a_model_nothing_leaves_and_the_page_says_so(looker: Client) -> None:
    page = got(looker)
    assert "Nothing leaves this machine." in page
    assert "No model is configured" in page
    assert "MEMSTATE_LLM_MODEL" in page
    assert "/model/reach/" not in page


def test_every_purpose_is_reported_with_what_happens_without_a_model(looker: Client) -> None:
    page = got(looker)
    for line in SENT.values():
        for words in line:
            assert words in page


def test_a_model_elsewhere_is_reported_with_its_host_and_without_a_secret(looker: Client, settings: Any) -> None:
    settings.MEMSTATE_LLM_MODEL = "a-model"
    settings.MEMSTATE_LLM_BASE_URL = "https://user:hush@models.example:8443/v1?key=hush"
    settings.MEMSTATE_LLM_API_KEY = "hush-hush"
    page = got(looker)
    assert "Some texts leave this machine." in page
    assert "models.example:8443" in page
    assert "set (not shown)" in page
    assert "remote" in page
    assert "hush" not in page


def test_a_model_on_this_machine_takes_nothing_away(looker: Client, model: Model) -> None:
    page = got(looker)
    assert "Nothing leaves this machine." in page
    assert model.url.removeprefix("http://").removesuffix("/v1") in page
    assert "on this machine" in page
    # Looking at the page asks no one; that comes after it, by its own address.
    assert model.asked == []
    assert 'hx-get="/model/reach/"' in page


def test_a_remote_embedder_is_reported(looker: Client, settings: Any) -> None:
    settings.MEMSTATE_EMBEDDER = "openai"
    settings.MEMSTATE_EMBEDDING_MODEL = "an-embedder"
    settings.MEMSTATE_OPENAI_BASE_URL = "https://user:hush@vectors.example/v1"
    page = got(looker)
    assert "Some texts leave this machine." in page
    assert "Texts and questions go to vectors.example to become vectors." in page
    assert "an-embedder" in page
    assert "hush" not in page
    settings.MEMSTATE_OPENAI_BASE_URL = "http://localhost:11434/v1"
    assert "Nothing leaves this machine." in got(looker)
    settings.MEMSTATE_EMBEDDER = "somebody.elses.Embedder"
    assert "Some texts leave this machine." in got(looker)
    assert "somebody.elses.Embedder, which is not a part of MemState" in got(looker)


def test_whether_it_answers_is_asked_without_any_text(looker: Client, model: Model) -> None:
    part = text_of(looker, "/model/reach/", headers=PART)
    assert "can be reached" in part
    assert "<h1>" not in part
    (asked,) = model.asked
    assert (asked.method, asked.path, asked.body) == ("GET", "/v1/models", {})
    # Others who look within minutes are shown the same.
    assert "<h1>" in text_of(looker, "/model/reach/")
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("step", "said", "well"),
    [
        (server.failing(401), "(401)", False),
        (server.failing(500), "(500)", False),
        (server.failing(404), "it lists no models", True),
        (server.closing("before"), "broke", False),
        (server.redirecting(), "redirects", False),
        (server.Step({"data": [{"id": "another"}]}), "not among its models", False),
        (server.Step({"data": [{"id": "small:latest"}]}), "can be reached", True),
        (server.Step({"data": [{"id": "vendor/small"}]}), "can be reached", True),
        (server.Step({"data": []}), "can be reached", True),
        (server.Step({"no": "list"}), "can be reached", True),
        (server.Step(b"<html>"), "can be reached", True),
        (server.huge(), "too long", False),
    ],
)
def test_whatever_the_endpoint_says_is_reported_in_a_sentence(
    looker: Client, model: Model, step: server.Step, said: str, well: bool
) -> None:
    model.lists(step)
    page = text_of(looker, "/model/reach/")
    assert said in page
    assert (">yes<" in page) is well
    assert "a-secret-of-the-server" not in page


def test_a_slow_endpoint_is_given_up(looker: Client, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.llm.status.REACH_SECONDS", 0.2)
    model.lists(server.slow())
    assert ">no<" in text_of(looker, "/model/reach/")


def test_an_endpoint_that_is_away_is_a_finding_that_names_the_page(looker: Client, settings: Any, model: Model) -> None:
    settings.MEMSTATE_LLM_BASE_URL = "http://127.0.0.1:9/v1"
    cache.clear()
    page = text_of(looker, "/overview/health/")
    assert "cannot be reached. (127.0.0.1:9) Everything else works without it." in page
    assert 'href="/model/"' in page


def test_doctor_tells_of_it(db: None, model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        # No worker runs in a test.
        call_command("doctor")
    assert "The language model small at 127.0.0.1" in capsys.readouterr().out
    assert [asked.method for asked in model.asked] == ["GET"]


def test_none_is_no_illness(db: None, settings: Any) -> None:
    settings.MEMSTATE_LLM_MODEL = ""
    found = ALL_CHECKS["model"](timezone.now())
    assert found.ok
    assert outside_check() == (True, "Nothing leaves this machine.")


def test_the_home_leads_here(looker: Client) -> None:
    assert 'href="/model/"' in text_of(looker, "/")


def test_a_remote_embedder_is_not_asked_by_every_look_at_home(
    looker: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr("memory.health.embedder_check", lambda now: asked.append(now) or Finding(False, "It is away."))
    settings.MEMSTATE_EMBEDDER = "openai"
    settings.MEMSTATE_EMBEDDING_MODEL = "an-embedder"
    monkeypatch.setattr("memory.health._vectors_check_seldom", lambda _now: Finding(True, "Fine."))
    for _look in range(3):
        assert "It is away." in text_of(looker, "/overview/health/")
    assert len(asked) == 1
