"""What comes in is kept as it came: values of every type, scope paths, JSON."""

import datetime as dt
import json
import uuid
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import assume, given
from hypothesis import strategies as st

from memory.core.errors import MemoryProblem, RequestRefused, ValueRefused
from memory.core.field_values import FIELD_TYPES, value_as_text
from memory.core.json_limits import json_guarded
from memory.core.scopes import MAX_SCOPE_LENGTH, scope_normalize, scope_within
from memory.models.formulas_sql import scope_within_sql
from tests.cast import Caller, raises_code
from tests.generated import examples

# Text as PostgreSQL can hold it.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)

TYPED: dict[str, tuple[st.SearchStrategy[Any], Any]] = {
    "int": (st.integers(-(10**200), 10**200), int),
    "float": (st.floats(allow_nan=False, allow_infinity=False), float),
    "bool": (st.booleans(), lambda text: {"true": True, "false": False}[text]),
    "list": (st.lists(json_values, max_size=4), json.loads),
    "json": (json_values.filter(lambda value: not isinstance(value, str)), json.loads),
}
WRITTEN: dict[str, tuple[st.SearchStrategy[Any], Any]] = {
    "string": (texts, str),
    "date": (st.dates(), dt.date.fromisoformat),
    "datetime": (st.datetimes(timezones=st.sampled_from([dt.UTC])), dt.datetime.fromisoformat),
}


@pytest.mark.parametrize("field_type", TYPED)
def test_a_json_value_is_stored_as_text_that_reads_as_the_value(field_type: str) -> None:
    strategy, read = TYPED[field_type]

    @examples(100)
    @given(strategy)
    def check(value: Any) -> None:
        text = value_as_text(value, field_type=field_type, name="n")
        assert read(text) == value
        # Stored text is itself a value of the type, and stays as it is.
        assert value_as_text(text, field_type=field_type, name="n") == text

    check()


@pytest.mark.parametrize("field_type", WRITTEN)
def test_text_that_fits_its_type_is_stored_as_given(field_type: str) -> None:
    strategy, read = WRITTEN[field_type]

    @examples(100)
    @given(strategy)
    def check(value: Any) -> None:
        text = value if isinstance(value, str) else value.isoformat()
        assert value_as_text(text, field_type=field_type, name="n") == text
        assert read(text) == value

    check()


@examples(200)
@given(st.sampled_from(sorted(FIELD_TYPES)), st.one_of(texts, json_values))
def test_what_is_accepted_reads_as_its_type_and_the_rest_is_refused_by_name(field_type: str, value: Any) -> None:
    readers = {name: read for name, (_strategy, read) in {**TYPED, **WRITTEN}.items()} | {
        "bool": lambda text: {"true": True, "false": False}[text.lower()]
    }
    try:
        text = value_as_text(value, field_type=field_type, name="the name")
    except ValueRefused as problem:
        sentence = problem.sentence
    else:
        read = readers[field_type](text)
        assert isinstance(read, list) or field_type != "list"
        return
    assert "'the name'" in sentence
    assert field_type in sentence


@pytest.mark.django_db
def test_values_of_every_type_come_back_as_they_were_sent(agent: Caller) -> None:
    every = st.one_of(
        [strategy.map(lambda value, name=name: (name, value)) for name, (strategy, _read) in TYPED.items()]
        + [texts.map(lambda value: ("string", value))]
    )

    @examples(15)
    @given(st.lists(every, min_size=1, max_size=40), texts)
    def check(sent: list[tuple[str, Any]], title: str) -> None:
        with transaction.atomic():
            fields = [
                {"name": f"field {place}", "field_type": field_type, "value": value}
                for place, (field_type, value) in enumerate(sent)
            ]
            topic_id = agent.remember(title, fields=fields)
            topic = agent.topic(topic_id)
            assert topic["title"] == title.strip()
            came = {entry["name"]: (entry["field_type"], entry["current"]["value"]) for entry in topic["fields"]}
            assert len(came) == len(sent)
            for place, (field_type, value) in enumerate(sent):
                assert came[f"field {place}"] == (field_type, value_as_text(value, field_type=field_type, name="n"))
                if field_type != "string":
                    assert TYPED[field_type][1](came[f"field {place}"][1]) == value
            (bundle,) = agent.query("", stages=[], topic_ids=[topic_id])["candidates"]
            assert {e["name"]: (e["field_type"], e["current"]["value"]) for e in bundle["fields"]} == came
            transaction.set_rollback(True)

    check()


segments = st.text(st.characters(exclude_categories=["Cs", "Z", "C"], exclude_characters="/"), min_size=1, max_size=12)
paths = st.lists(segments.filter(lambda segment: segment not in (".", "..")), max_size=6).map(
    lambda parts: "/".join(parts)
)
slashes = st.integers(1, 3).map("/".__mul__)


@examples(300)
@given(st.lists(segments.filter(lambda s: s not in (".", "..")), max_size=6), st.lists(slashes, min_size=8, max_size=8))
def test_however_a_scope_is_written_it_has_one_form(parts: list[str], between: list[str]) -> None:
    written = "".join(slash + part for slash, part in zip(between, [*parts, ""], strict=False))
    try:
        canonical = scope_normalize(written)
    except ValueRefused:
        # Some signs without width count as white space.
        assume(False)
    assert canonical == "/" + "/".join(parts)
    assert scope_normalize(canonical) == canonical
    assert scope_within(canonical, "/")
    assert scope_within(canonical, canonical)
    assert scope_within(scope_normalize(canonical + "/below"), canonical)
    assert not scope_within(canonical + "-beside", canonical) or canonical == "/"
    assert not scope_within("/", canonical) or canonical == "/"


@examples(200)
@given(st.text(max_size=MAX_SCOPE_LENGTH + 5))
def test_any_text_is_a_scope_or_refused(text: str) -> None:
    try:
        canonical = scope_normalize(text)
    except ValueRefused:
        return
    assert len(canonical) <= MAX_SCOPE_LENGTH + 1
    assert not set(canonical.split("/")) & {".", ".."}
    assert canonical.split() == [canonical]
    assert scope_normalize(canonical) == canonical


@pytest.mark.django_db
@examples(30)
@given(st.lists(st.tuples(paths, paths), min_size=1, max_size=40), st.booleans())
def test_below_a_scope_means_the_same_in_python_and_in_sql(pairs: list[tuple[str, str]], nest: bool) -> None:
    cases = []
    for one, other in pairs:
        try:
            path = scope_normalize(f"{other}/{one}" if nest else one)
            cases.append((path, scope_normalize(other)))
        except ValueRefused:
            continue
    with transaction.atomic(), connection.cursor() as cursor:
        found = []
        for path, prefix in cases:
            cursor.execute("INSERT INTO memory_scope (path) VALUES (%s) ON CONFLICT DO NOTHING", [path])
            cursor.execute(
                f"""SELECT {scope_within_sql("x.id")} OR %(scope)s = '/' FROM memory_scope x WHERE x.path = %(path)s""",
                {"scope": prefix, "below": prefix.rstrip("/") + "/", "path": path},
            )
            found.append(cursor.fetchone()[0])
        assert found == [scope_within(path, prefix) for path, prefix in cases]
        transaction.set_rollback(True)


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


@examples(300)
@given(json_values, st.integers(0, 8), st.booleans())
def test_json_within_the_limit_is_read_as_json_reads_it_and_deeper_json_is_refused(
    value: Any, limit: int, ascii_only: bool
) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    if depth_of(value) <= limit:
        assert json_guarded(raw, max_depth=limit) == value
    else:
        with raises_code(RequestRefused, "invalid-json"):
            json_guarded(raw, max_depth=limit)


@examples(200)
@given(json_values, st.sampled_from(["\x00", "\ud800", "\udfff"]), st.booleans())
def test_what_cannot_be_stored_is_refused_wherever_it_stands(value: Any, sign: str, as_name: bool) -> None:
    bad = {f"a{sign}b": value} if as_name else {"a": [value, f"{sign}!"]}
    with pytest.raises(ValueRefused):
        json_guarded(json.dumps(bad).encode(), max_depth=50)


@examples(300)
@given(st.binary(max_size=80))
def test_any_bytes_are_json_or_refused_with_a_sentence(raw: bytes) -> None:
    try:
        value = json_guarded(raw, max_depth=5)
    except MemoryProblem as problem:
        sentence = problem.sentence
    else:
        assert json.loads(raw) == value
        return
    assert sentence.endswith(".")


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e400", "[1, -1e999]"])
def test_numbers_that_are_not_finite_are_refused(constant: str) -> None:
    with pytest.raises(ValueRefused):
        json_guarded(constant.encode(), max_depth=5)


def test_ids_are_text_like_any_other() -> None:
    topic_id = uuid.uuid4()
    assert json_guarded(json.dumps(str(topic_id)).encode(), max_depth=1) == str(topic_id)
