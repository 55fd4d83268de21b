"""Bad input: each kind has its own code and status, and nothing is written."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from memory.models import Topic
from tests.cast import Caller, Cast, code_of, store_rows

NEW = {"placement": "new_topic", "title": "Fine"}
UNKNOWN = str(uuid.UUID(int=0xABC))


@pytest.fixture
def nothing_written(agent: Caller) -> Iterator[None]:
    """Something is there already; afterwards, nothing more is, in any table."""
    agent.remember("Something", values={"a": "b"})
    before = store_rows()
    yield
    assert store_rows() == before


def new(**members: Any) -> dict[str, Any]:
    return {**NEW, **members}


def one_field(**members: Any) -> dict[str, Any]:
    return new(fields=[{"name": "n", "value": "v", **members}])


BODIES: dict[str, tuple[bytes, int, str]] = {
    "nothing": (b"", 422, "invalid-body"),
    "only spaces": (b"   ", 400, "invalid-json"),
    "cut off": (b'{"placement": "new_topic"', 400, "invalid-json"),
    "single quotes": (b"{'placement': 'new_topic'}", 400, "invalid-json"),
    "two documents": (b"{}{}", 400, "invalid-json"),
    "a byte order mark": (b"\xef\xbb\xbf{}", 400, "invalid-json"),
    "latin-1": (json.dumps(NEW)[:-2].encode() + b'\xe9"}', 400, "invalid-json"),
    "utf-16": (json.dumps(NEW).encode("utf-16"), 400, "invalid-json"),
    "NaN": (b'{"placement": "new_topic", "salience": NaN}', 422, "invalid-member"),
    "Infinity": (b'{"placement": "new_topic", "salience": Infinity}', 422, "invalid-member"),
    "minus Infinity": (b'{"placement": "new_topic", "salience": -Infinity}', 422, "invalid-member"),
    "1e999": (b'{"placement": "new_topic", "salience": 1e999}', 422, "invalid-member"),
    "an integer of 400 digits": (b'{"placement": "new_topic", "salience": 1' + b"0" * 400 + b"}", 422, "salience"),
    "an integer of 5000 digits": (
        b'{"placement": "new_topic", "salience": 1' + b"0" * 5000 + b"}",
        400,
        "invalid-json",
    ),
    "deep lists": (b"[" * 100_000, 400, "invalid-json"),
    "deep objects": (b'{"a":' * 33 + b"1" + b"}" * 33, 400, "invalid-json"),
    "depth behind a string of brackets": (b'["\\"]]]]]]", ' + b"[" * 32 + b"]" * 33, 400, "invalid-json"),
    "a NUL": (b'{"placement": "new_topic", "title": "a\\u0000b"}', 422, "invalid-member"),
    "a NUL in a name": (b'{"placement": "new_topic", "a\\u0000b": 1}', 422, "invalid-member"),
    "a raw NUL": (b'{"placement": "new_topic", "title": "a\x00b"}', 400, "invalid-json"),
    "half a surrogate pair": (b'{"placement": "new_topic", "title": "\\ud800"}', 422, "invalid-member"),
    "the other half": (b'{"placement": "new_topic", "summary": "x\\udc00y"}', 422, "invalid-member"),
    "surrogates as UTF-8": (b'{"placement": "new_topic", "title": "\xed\xa0\x80"}', 400, "invalid-json"),
    "a list": (b"[]", 422, "invalid-member"),
    "a number": (b"7", 422, "invalid-member"),
    "a text": (b'"new_topic"', 422, "invalid-member"),
    "true": (b"true", 422, "invalid-member"),
    "null": (b"null", 422, "invalid-member"),
    "5 MB": (json.dumps(new(title="x" * 5_000_000)).encode(), 413, "body-too-large"),
}


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize("route", ["/v1/ingest", "/v1/query"])
@pytest.mark.parametrize("case", BODIES)
def test_a_body_that_cannot_be_read_is_refused(agent: Caller, case: str, route: str):
    body, status, what = BODIES[case]
    if route == "/v1/query":
        body = body.replace(b'"placement": "new_topic"', b'"q": "x"').replace(b"salience", b"token_budget")
        body = body.replace(b'"title"', b'"scope"').replace(b'"summary"', b'"scope"')
        what = what.replace("salience", "token_budget")
    answer = agent.post(route, body=body)
    assert (answer.status, what in answer.about) == (status, True), answer.detail


@pytest.mark.usefixtures("nothing_written")
def test_a_batch_larger_than_its_limit_is_refused(agent: Caller, settings: Any):
    settings.MEMSTATE_MAX_BATCH_BYTES = 3_000_000
    answer = agent.post("/v1/ingest/batch", body=b"[" + b" " * 3_000_000 + b"]")
    assert (answer.status, answer.code) == (413, "body-too-large")


def test_a_deep_but_allowed_value_and_brackets_within_text_are_taken(agent: Caller):
    deep = json.loads("[" * 29 + "]" * 29)
    agent.ingest(title="[" * 500, fields=[{"name": "n", "value": deep, "field_type": "json"}])


INGESTS: dict[str, tuple[dict[str, Any], int, str]] = {
    "no placement": ({"title": "x"}, 422, "placement"),
    "an unknown placement": (new(placement="somewhere"), 422, "placement"),
    "a title that is a number": (new(title=7), 422, "title"),
    "a title that is null": (new(title=None), 422, "title"),
    "fields that are an object": (new(fields={"a": "b"}), 422, "fields"),
    "a field without a name": (new(fields=[{"value": "x"}]), 422, "fields.0.name"),
    "a field with an empty name": (one_field(name=""), 422, "fields.0.name"),
    "a number as text": (one_field(value=7), 422, "invalid-member"),
    "null as text": (one_field(value=None), 422, "invalid-member"),
    "an object as text": (one_field(value={"a": 1}), 422, "invalid-member"),
    "a boolean as int": (one_field(value=True, field_type="int"), 422, "invalid-member"),
    "a fraction as int": (one_field(value=1.5, field_type="int"), 422, "invalid-member"),
    "an object as list": (one_field(value={}, field_type="list"), 422, "invalid-member"),
    "a text as bool": (one_field(value="maybe", field_type="bool"), 422, "invalid-member"),
    "an unknown type": (one_field(field_type="money"), 422, "fields.0.field_type"),
    "a reference that is no UUID": (one_field(ref_topic_id="x"), 422, "fields.0.ref_topic_id"),
    "a reference to nothing": (one_field(ref_topic_id=UNKNOWN), 400, "not-found"),
    "an edge to nothing": (new(edges=[{"to_topic_id": UNKNOWN, "kind": "x"}]), 400, "not-found"),
    "an edge without a target": (new(edges=[{"kind": "x"}]), 422, "edges.0.to_topic_id"),
    "an edge with an empty kind": (new(edges=[{"to_topic_id": UNKNOWN, "kind": ""}]), 422, "edges.0.kind"),
    "an unknown topic": ({"placement": "extend_topic", "topic_id": UNKNOWN}, 400, "not-found"),
    "a topic_id that is a number": (new(topic_id=7), 422, "topic_id"),
    "a topic_id that is no UUID": (new(topic_id="x"), 422, "invalid-member"),
    "negative salience": (new(salience=-0.1), 422, "salience"),
    "too much salience": (new(salience=10.1), 422, "salience"),
    "salience as a word": (new(salience="high"), 422, "salience"),
    "salience that is null": (new(salience=None), 422, "salience"),
    "salience NaN as text": (new(salience="nan"), 422, "salience"),
    "salience Infinity as text": (new(salience="Infinity"), 422, "salience"),
    "salience 1e999 as text": (new(salience="1e999"), 422, "salience"),
    "10,000 characters of title": (new(title="x" * 10_000), 422, "title"),
    "10,000 characters of kind": (new(topic_kind="x" * 10_000), 422, "topic_kind"),
    "10,000 characters of category": (new(categories=["x" * 10_000]), 422, "categories.0"),
    "10,000 characters of scope": (new(scope="/" + "x" * 10_000), 422, "scope"),
    "10,000 characters of field name": (one_field(name="x" * 10_000), 422, "fields.0.name"),
    "10,000 characters of provenance": (one_field(provenance="x" * 10_000), 422, "fields.0.provenance"),
    "10,000 characters of edge kind": (
        new(edges=[{"to_topic_id": UNKNOWN, "kind": "x" * 10_000}]),
        422,
        "edges.0.kind",
    ),
    "10,000 characters of topic_id": (new(topic_id="x" * 10_000), 422, "topic_id"),
    "100,001 characters of value": (one_field(value="x" * 100_001), 422, "too-large"),
    "20,001 characters of summary": (new(summary="x" * 20_001), 422, "summary"),
    "201 fields": (new(fields=[{"name": f"n{n}"} for n in range(201)]), 422, "fields"),
    "51 categories": (new(categories=[f"c{n}" for n in range(51)]), 422, "categories"),
    "an empty category": (new(categories=[""]), 422, "categories.0"),
    "a scope with a space": (new(scope="/user/al ice"), 422, "invalid-scope"),
    "a scope that climbs": (new(scope="/user/../bob"), 422, "invalid-scope"),
    "a scope that is a list": (new(scope=["/"]), 422, "scope"),
    "valid_from without a zone": (new(valid_from="2026-01-01T00:00:00"), 422, "valid_from"),
    "valid_from as a word": (new(valid_from="yesterday"), 422, "valid_from"),
    "valid_from in the year 10000": (new(valid_from="10000-01-01T00:00:00Z"), 422, "valid_from"),
    "valid_from in the year 0": (new(valid_from="0000-01-01T00:00:00Z"), 422, "valid_from"),
    "valid_from at the very edge": (new(valid_from="9999-12-31T23:59:59-12:00"), 422, "valid_from"),
    "valid_from at the other edge": (new(valid_from="0001-01-01T00:00:00+14:00"), 422, "valid_from"),
    "valid_from as a huge number": (new(valid_from=10**30), 422, "valid_from"),
    "a topic without content": ({"placement": "new_topic", "categories": ["a"]}, 422, "missing-member"),
    "a topic of white space": (
        new(title=" ", summary="\n", fields=[{"name": "n", "value": "\t"}]),
        422,
        "missing-member",
    ),
    "created_at by an agent": (new(created_at="2020-01-01T00:00:00Z"), 403, "role-too-low"),
    "pinned as a word": (new(pinned="perhaps"), 422, "pinned"),
    "suggest_similar as a number": (new(suggest_similar=7), 422, "suggest_similar"),
}


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize("case", INGESTS)
def test_an_item_that_cannot_be_taken_is_refused(agent: Caller, case: str):
    item, status, what = INGESTS[case]
    answer = agent.post("/v1/ingest", item)
    assert (answer.status, what in answer.about) == (status, True), answer.detail
    assert "IngestItem" not in answer.text


@pytest.mark.usefixtures("nothing_written")
def test_created_at_in_the_future_is_refused(operator: Caller):
    answer = operator.post("/v1/ingest", new(created_at="2999-01-01T00:00:00Z"))
    assert (answer.status, answer.code) == (422, "invalid-member")


def test_created_at_in_the_distant_past_is_taken_from_operators(operator: Caller):
    topic_id = operator.remember(
        "Old", created_at="0001-01-03T00:00:00Z", last_used_at="0001-01-03T00:00:00Z", values={"a": "b"}
    )
    topic = operator.topic(topic_id)
    assert topic["created_at"].startswith("0001-01-03T00:00:00")
    assert topic["salience"] < 1e-6
    assert operator.found("Old") == [topic_id]


QUERIES: dict[str, tuple[dict[str, Any], str]] = {
    "no question": ({}, "missing-member"),
    "an empty question": ({"q": ""}, "invalid-member"),
    "a blank question": ({"q": " \n\t "}, "invalid-member"),
    "a question that is null": ({"q": None}, "q"),
    "a question that is a list": ({"q": ["x"]}, "q"),
    "a very long question": ({"q": "x" * 8001}, "q"),
    "top_k 0": ({"q": "x", "top_k": 0}, "top_k"),
    "top_k 10,000": ({"q": "x", "top_k": 10_000}, "top_k"),
    "top_k -1": ({"q": "x", "top_k": -1}, "top_k"),
    "top_k 1.5": ({"q": "x", "top_k": 1.5}, "top_k"),
    "top_k as a word": ({"q": "x", "top_k": "eight"}, "top_k"),
    "top_k huge": ({"q": "x", "top_k": 10**400}, "top_k"),
    "an unknown stage": ({"q": "x", "stages": ["psychic"]}, "stages.0"),
    "stages as a text": ({"q": "x", "stages": "semantic"}, "stages"),
    "topic_ids that are none": ({"q": "x", "topic_ids": ["x"]}, "topic_ids.0"),
    "201 topic_ids": ({"q": "x", "topic_ids": [UNKNOWN] * 201}, "topic_ids"),
    "an empty field name": ({"q": "x", "field_names": [""]}, "field_names.0"),
    "10,000 characters of field name": ({"q": "x", "field_names": ["x" * 10_000]}, "field_names.0"),
    "10,000 characters of kind": ({"q": "x", "kinds": ["x" * 10_000]}, "kinds.0"),
    "10,000 characters of category": ({"q": "x", "categories": ["x" * 10_000]}, "categories.0"),
    "10,000 characters of scope": ({"q": "x", "scope": "x" * 10_000}, "scope"),
    "a scope with a tab": ({"q": "x", "scope": "/a\tb"}, "invalid-scope"),
    "depth 4": ({"q": "x", "depth": 4}, "depth"),
    "depth -1": ({"q": "x", "depth": -1}, "depth"),
    "token_budget 0": ({"q": "x", "token_budget": 0}, "token_budget"),
    "as_of without a zone": ({"q": "x", "as_of": "2026-01-01T00:00:00"}, "as_of"),
    "as_of in the year 10000": ({"q": "x", "as_of": "10000-01-01T00:00:00Z"}, "as_of"),
    "as_of at the edge": ({"q": "x", "as_of": "0001-01-01T00:00:00+23:00"}, "as_of"),
    "explain as a word": ({"q": "x", "explain": "please"}, "explain"),
}


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize("case", QUERIES)
def test_a_question_that_cannot_be_asked_is_refused(agent: Caller, case: str):
    body, what = QUERIES[case]
    answer = agent.post("/v1/query", body)
    assert (answer.status, what in answer.about) == (422, True), answer.detail


ADDRESSES: dict[str, tuple[str, int, str]] = {
    "limit 0": ("/v1/topics?limit=0", 422, "limit"),
    "limit -1": ("/v1/topics?limit=-1", 422, "limit"),
    "limit 201": ("/v1/topics?limit=201", 422, "too-large"),
    "limit huge": ("/v1/topics?limit=" + "9" * 400, 422, "too-large"),
    "limit as a word": ("/v1/topics?limit=all", 422, "limit"),
    "an unknown rung": ("/v1/topics?rung=gone", 422, "rung"),
    "pinned as a word": ("/v1/topics?pinned=perhaps", 422, "pinned"),
    "a scope with a space": ("/v1/topics?scope=/a%20b", 422, "invalid-scope"),
    "a NUL in a text": ("/v1/topics?text=a%00b", 422, "text"),
    "a NUL in a kind": ("/v1/topics?kind=%00", 422, "kind"),
    "a NUL in a scope": ("/v1/topics?scope=/%00", 422, "scope"),
    "a NUL in a cursor": ("/v1/topics?cursor=%00", 422, "cursor"),
    "a NUL in stats": ("/v1/stats?scope=%00", 422, "scope"),
    "a cursor of one's own": ("/v1/topics?cursor=abc", 422, "invalid-cursor"),
    "a cursor that is JSON": ("/v1/topics?cursor=WzEsMl0=", 422, "invalid-cursor"),
    "a cursor with another moment": ("/v1/topics?cursor=WyJub3ciLCJ4Il0=", 422, "invalid-cursor"),
    "a cursor of brackets": ("/v1/topics?cursor=" + "W1tb" * 70, 422, "invalid-cursor"),
    "a cursor with an endless number": ("/v1/topics?cursor=WzFlOTk5LCAieCJd", 422, "invalid-cursor"),
    "a cursor before all": (
        "/v1/topics?cursor=WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzE0OjAwIiwgIjciXQ==",
        422,
        "invalid-cursor",
    ),
    "10,000 characters of cursor": ("/v1/topics?cursor=" + "x" * 10_000, 422, "cursor"),
    "10,000 characters of kind": ("/v1/topics?kind=" + "x" * 10_000, 422, "kind"),
    "10,000 characters of text": ("/v1/topics?text=" + "x" * 10_000, 422, "text"),
    "an unknown topic": (f"/v1/topics/{UNKNOWN}", 404, "not-found"),
    "a topic that is no UUID": ("/v1/topics/seven", 404, "address-not-found"),
    "history of an unknown topic": (f"/v1/topics/{UNKNOWN}/fields/a/history", 404, "not-found"),
    "an unknown address": ("/v1/nowhere", 404, "address-not-found"),
    "the root": ("/v1/", 404, "address-not-found"),
}


@pytest.mark.usefixtures("nothing_written")
@pytest.mark.parametrize("case", ADDRESSES)
def test_an_address_that_asks_for_the_impossible_is_refused(agent: Caller, case: str):
    path, status, what = ADDRESSES[case]
    answer = agent.get(path)
    assert (answer.status, what in answer.about) == (status, True), answer.detail


@pytest.mark.parametrize("name", ["nope", "a%00b", "a%0Ab", "%F0%9F%98%80", "x" * 10_000, "../..", "%ff%fe"])
def test_the_history_of_a_field_that_is_not_there_is_refused(agent: Caller, name: str):
    topic_id = agent.remember("Something", values={"a": "b"})
    answer = agent.get(f"/v1/topics/{topic_id}/fields/{name}/history")
    assert answer.status == (422 if "%00" in name else 404)
    assert answer.detail


@pytest.mark.parametrize("cursor", ["x", "-1", "1e3", "9999999999", "%D9%A3", "1.5"])
def test_a_history_cursor_of_ones_own_is_refused(agent: Caller, cursor: str):
    topic_id = agent.remember("Something", values={"a": "b"})
    answer = agent.get(f"/v1/topics/{topic_id}/fields/a/history?cursor={cursor}")
    assert answer.status == 422
    assert answer.code == "invalid-cursor"


PATCHES: list[tuple[Any, int, str]] = [
    ({"title": "x" * 10_000}, 422, "title"),
    ({"title": 7}, 422, "title"),
    ({"summary": "x" * 20_001}, 422, "summary"),
    ({"topic_kind": "x" * 10_000}, 422, "topic_kind"),
    ({"categories": "a"}, 422, "categories"),
    ({"categories": [""]}, 422, "categories.0"),
    ({"salience": 11}, 422, "salience"),
    ({"salience": -1}, 422, "salience"),
    ({"salience": 2}, 403, "role-too-low"),
    ([], 422, "invalid-member"),
    ("x", 422, "invalid-member"),
]


@pytest.mark.parametrize(("change", "status", "what"), PATCHES)
def test_an_edit_that_cannot_be_made_is_refused(agent: Caller, change: Any, status: int, what: str):
    topic_id = agent.remember("Something", values={"a": "b"})
    before, rows = agent.topic(topic_id), store_rows()
    answer = agent.patch(f"/v1/topics/{topic_id}", change)
    assert (answer.status, what in answer.about) == (status, True), answer.detail
    assert store_rows() == rows
    assert agent.topic(topic_id) == before | {"salience": pytest.approx(1.0, abs=1e-3)} | {
        "fields": [before["fields"][0] | {"salience": pytest.approx(1.0, abs=1e-3)}]
    }


@pytest.mark.parametrize("verb", ["pin", "unpin", "archive", "restore"])
def test_a_reason_has_its_limits(operator: Caller, verb: str):
    topic_id = operator.remember("Something")
    rows = store_rows()
    for body in ({"reason": "x" * 501}, {"reason": 7}, [1]):
        answer = operator.post(f"/v1/topics/{topic_id}/{verb}", body)
        assert (answer.status, answer.code) == (422, "invalid-member")
    assert store_rows() == rows


def test_the_longest_reason_is_taken(operator: Caller):
    topic_id = operator.remember("Something")
    assert operator.post(f"/v1/topics/{topic_id}/pin", {"reason": "x" * 500}).ok()["pin_reason"] == "x" * 500


# --- Hostile text that must simply work ------------------------------------------------------------------------------

HOSTILE = [
    "the",
    "!!!",
    "😀",
    "…",
    "'",
    "''",
    "\\",
    "\\'",
    "%",
    "_",
    ":",
    ":*",
    "&",
    "|",
    "!",
    "a & | b",
    "(",
    ")",
    "<->",
    "'; DROP TABLE memory_topic; --",
    "a:b*c",
    '"quoted',
    "* _ %",
    "\u200b",
    "\u202e",
    "\ufeff",
    "a\x1fb",
    "é\u0301",
    "ﬁ",
    "%s %(x)s {0}",
    "$1",
    "O'Brien\\",
    "x" * 8000,
    "the " * 2000,
    "word " * 1600,
    "%&|:'\\ xylophone",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:20]))
def test_any_text_can_be_kept_and_asked_for(agent: Caller, text: str):
    title = f"{text[:900]} kept"
    topic_id = agent.remember(title, values={"note": text})
    other = agent.remember("Something else entirely")
    assert agent.topic(topic_id)["fields"][0]["current"]["value"] == text
    found = agent.query(text)
    assert {candidate["topic_id"] for candidate in found["candidates"]} == {topic_id, other}
    assert agent.found(title, top_k=1) == [topic_id]
    agent.get("/v1/topics?" + _encoded(text=text[:1000])).ok()


@pytest.mark.parametrize("text", [text for text in HOSTILE if len(text) <= 200], ids=repr)
def test_any_text_can_be_a_name_a_kind_a_category_and_the_kind_of_an_edge(agent: Caller, text: str):
    target = agent.remember("Target")
    topic_id = agent.ingest(
        title="T",
        topic_kind=text,
        categories=[text],
        fields=[{"name": text, "value": "v"}],
        edges=[{"to_topic_id": target, "kind": text}],
    )["topic_id"]
    assert agent.found("T", kinds=[text], categories=[text]) == [topic_id]
    (bundle,) = agent.query("T", kinds=[text], field_names=[text])["candidates"]
    assert [entry["name"] for entry in bundle["fields"]] == [text]
    assert [link["kind"] for link in bundle["neighbors"]] == [text]
    listed = agent.get("/v1/topics?" + _encoded(kind=text)).ok()["items"]
    assert [item["topic_id"] for item in listed] == [topic_id]


@pytest.mark.parametrize("name", ["a/b", "a/history", "/", "ä ö", "a?b=c", "50%", "fields/x/history", "a\nb", "#1"])
def test_the_history_of_a_field_is_found_by_any_name(agent: Caller, name: str):
    topic_id = agent.remember("T", fields=[{"name": name, "value": "v"}])
    (revision,) = agent.get(f"/v1/topics/{topic_id}/fields/{_quoted(name)}/history").ok()["items"]
    assert revision["value"] == "v"


@pytest.mark.parametrize("scope", ["/a%b", "/a_b", "/a'b", "/a\\b", "/ü/😀", "/a:b", "/a*"])
def test_any_scope_without_white_space_is_a_scope_and_matches_only_itself(agent: Caller, scope: str):
    topic_id = agent.remember("T", scope=scope)
    agent.remember("T", scope="/axb")
    below = agent.remember("T", scope=scope + "/below")
    assert sorted(agent.found("T", scope=scope)) == sorted([topic_id, below])
    listed = agent.get("/v1/topics?" + _encoded(scope=scope)).ok()["items"]
    assert [item["topic_id"] for item in listed] == [below, topic_id]


def test_a_body_in_chunks_is_refused_with_a_sentence(http_cast: Cast):
    import http.client

    host = http_cast.agent.send.__closure__[0].cell_contents  # type: ignore[index]
    port = http_cast.agent.send.__closure__[1].cell_contents  # type: ignore[index]
    connection = http.client.HTTPConnection(host, port, timeout=30)
    headers = {"X-API-Key": http_cast.agent.secret or "", "Content-Type": "application/json"}
    connection.request("POST", "/v1/ingest", body=iter([b"{}"]), headers=headers, encode_chunked=True)
    reply = connection.getresponse()
    problem = json.loads(reply.read())
    assert code_of(problem) == "invalid-body"
    assert reply.status == problem["status"] == 400
    connection.close()
    assert Topic.objects.count() == 0


def _encoded(**members: str) -> str:
    from urllib.parse import urlencode

    return urlencode(members)


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
