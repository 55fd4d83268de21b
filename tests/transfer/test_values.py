"""Odd values: whatever the store can hold stands in the file, and comes out of it as it went in."""

import datetime as dt
import json
import uuid
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.models import AccessLog, AuditEvent, Field, ForgetAction, ForgetRun, Revision, Scope, Topic, Vitality
from memory.transfer import shape
from tests.properties.conftest import examples
from tests.transfer.shop import brought, emptied, exported

pytestmark = pytest.mark.django_db

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=40)


def moments(first: int, last: int) -> st.SearchStrategy[dt.datetime]:
    """Return the moments from a year to the end of another."""
    return st.datetimes(
        dt.datetime(first, 1, 2),  # noqa: DTZ001
        dt.datetime(last, 12, 30),  # noqa: DTZ001
        timezones=st.just(dt.UTC),
    )


NUMBER = st.floats(allow_nan=False, width=64)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ROW = st.fixed_dictionaries(
    {
        "text": TEXT,
        "long": TEXT.map(lambda text: text * 50),
        "at": moments(1970, 2999),
        "past": moments(1, 2999),
        "true": moments(1, 9999),
        "number": NUMBER,
        "use": st.floats(0, 1e6),
        "counts": st.dictionaries(TEXT, st.integers(), max_size=3),
        "json": st.dictionaries(TEXT, JSON, max_size=3),
        "list": st.lists(TEXT, max_size=3),
    }
)
ODDEST: dict[str, Any] = {
    "text": '"\\u0000\\',
    "long": "\r\n\u2028\u2029\x7f\x1f\ufeff\U0010ffff",
    "use": 5e-324,
    "at": dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    "past": dt.datetime(1, 1, 2, tzinfo=dt.UTC),
    "true": dt.datetime(9999, 12, 30, tzinfo=dt.UTC),
    "number": float("-inf"),
    "json": {"": [1e-320, 1.5e300, 10**40, -0.0, "\U0001f9ed"]},
    "counts": {"": -(10**40)},
    "list": ["{", "NULL", '"', "\\", ""],
}


@examples(6)
@given(rows=st.lists(ROW, min_size=1, max_size=15))
@example(rows=[ODDEST])
def test_odd_values_come_out_as_they_went_in(rows: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    emptied()
    scope = Scope.objects.create(path="/odd")
    for number, row in enumerate(rows):
        topic = Topic.objects.create(
            id=uuid.UUID(int=number),
            scope=scope,
            kind=row["text"],
            title=row["text"],
            summary=row["long"],
            categories=row["list"],
            provenance=row["text"],
            created_at=row["past"],
            updated_at=row["at"],
        )
        fading = {
            "salience": row["use"],
            "reinforced_at": row["past"],
            "half_life": 1e18,
            "fade": row["number"],
            "fade_floor": row["number"],
        }
        Vitality.objects.create(
            topic=topic, scope=scope, kind=topic.kind, created_at=row["past"], pin_reason=row["text"], **fading
        )
        field = Field.objects.create(
            id=uuid.UUID(int=number), topic=topic, name=row["text"], created_at=row["past"], last_seq=1, **fading
        )
        Revision.objects.create(
            id=uuid.UUID(int=number),
            field=field,
            seq=1,
            value=row["long"],
            why_changed=row["text"],
            valid_from=row["true"],
            recorded_at=row["past"],
        )
        run = ForgetRun.objects.create(
            id=uuid.UUID(int=number),
            scope="/odd",
            event="cron",
            status="done",
            actor=row["text"],
            policy_version=0,
            judged_at=row["true"],
            created_at=row["at"],
            counts=row["counts"],
        )
        ForgetAction.objects.create(
            run=run,
            place=1,
            topic=topic,
            action="archived",
            from_rung=0,
            to_rung=3,
            changes=row["json"],
            before=row["json"],
            after=row["json"],
            note=row["long"],
        )
        AccessLog.objects.create(
            at=row["at"],
            actor=row["text"],
            scope="/odd",
            query=row["long"],
            query_hash="x",
            topic_ids=[topic.pk],
            bump=row["use"],
            field_bump=0.1,
        )
        AuditEvent.objects.create(
            at=row["at"],
            actor=row["text"],
            action="edited",
            topic_id=topic.pk,
            scope="/odd",
            before=row["json"],
            after=row["json"],
            reason=row["long"],
        )
    before = exported()
    # Each line is a line, and JSON for everybody.
    assert [json.loads(line)["type"] for line in before.decode().split("\n")[:-1]][-1] == "end"
    emptied()
    brought(before, tmp_path_factory.mktemp("odd"))
    assert exported() == before


def test_every_table_and_column_is_in_the_file_or_is_left_out_with_a_reason() -> None:
    from django.apps import apps

    told = {each.model: each for each in vars(shape).values() if isinstance(each, shape.Rows)}
    for model in apps.get_app_config("memory").get_models():
        named = model.__name__
        assert (model in told) != (named in shape.LEFT_OUT), (
            f"{named} is a new table: say in memory/transfer/shape.py how it stands in an export, or why not."
        )
        if model not in told:
            continue
        rows = told[model]
        columns = {field.name for field in model._meta.concrete_fields}
        assert {column.field.name for column in rows.columns} | rows.without.keys() == columns, named
        assert not [name for name, reason in rows.without.items() if len(reason) < 10], named
