"""What the lines of an export have to look like, made from the models as the lines themselves are."""

import datetime as dt
import math
from functools import cache
from typing import Annotated, Any, Literal

from django.contrib.postgres.fields import ArrayField
from django.db import models
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StrictInt, create_model

from memory.domain.knobs import NO_DECAY_SECONDS
from memory.ingest.items import EARLIEST, LATEST
from memory.models import Scope
from memory.transfer import shape
from memory.transfer.shape import ORDER, Rows

# Numbers of rows may be moved up by those of another store.
MAX_NUMBER = 2**53
# Within documents.
_TOO_GREAT = 10**1000
# As the database writes it; what is written otherwise would be another to whoever compares texts.
_ID = Annotated[str, Field(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")]


@cache
def line_models() -> dict[str, type[BaseModel]]:
    """Return, by sort, the model that a line of it has to fit, strictly."""
    revision, summary = _model("Revision", shape.REVISION), _model("Summary", shape.SUMMARY)
    field = _model("FieldLine", shape.FIELD, revisions=list[revision], summaries=list[summary])  # type: ignore[valid-type]
    vector, mention = _model("Vector", shape.VECTOR), _model("Mention", shape.MENTION)
    edit, vitality = _model("Edit", shape.EDIT), _model("Vitality", shape.VITALITY)
    version = _model("Version", shape.POLICY_VERSION)
    turn, write = _model("Turn", shape.TURN), _model("Write", shape.WRITE)
    return {
        "policy": _model("policy", None, scope=str, versions=_filled(version)),
        "topic": _model(
            "topic",
            shape.TOPIC,
            vitality=vitality,
            fields=list[field],  # type: ignore[valid-type]
            edits=list[edit],  # type: ignore[valid-type]
            looked=str | None,
            vector=vector | None,
            document=str | None,
            mention=mention | None,
        ),
        "history": _model("history", None, topic=_ID, field=_ID, revisions=_filled(revision)),
        "reference": _model("reference", None, topic=_ID, revision=_ID, to=_ID),
        "merged": _model("merged", None, topic=_ID, into=_ID),
        "conversation": _model(
            "conversation",
            shape.CONVERSATION,
            told=list[turn],  # type: ignore[valid-type]
            writes=list[write],  # type: ignore[valid-type]
        ),
        **{
            name: _model(name, rows)
            for name, rows in {
                "link": shape.LINK,
                "run": shape.RUN,
                "action": shape.ACTION,
                "pair": shape.PAIR,
                "access": shape.ACCESS,
                "shadow": shape.SHADOW,
                "watermark": shape.WATERMARK,
                "receipt": shape.RECEIPT,
                "audit": shape.AUDIT,
            }.items()
        },
    }


def _model(name: str, rows: Rows | None, **more: Any) -> type[BaseModel]:
    members: dict[str, Any] = {}
    # Lines have their type, parts of lines do not.
    if name in ORDER:
        members["type"] = (Literal[name], ...)
    for column in rows.columns if rows else ():
        sort = _type_of(column.field)
        members[column.member] = (sort | None if column.field.null else sort, ...)
    members |= {member: (sort, ...) for member, sort in more.items()}
    model: type[BaseModel] = create_model(name, __config__=ConfigDict(extra="forbid"), **members)
    return model


def _type_of(field: Any) -> Any:
    if field.related_model is not None:
        if field.related_model is Scope:
            return str
        return _type_of(field.related_model._meta.pk)
    if isinstance(field, ArrayField):
        return list[_type_of(field.base_field)]  # type: ignore[misc]
    if field.choices:
        return Literal[tuple(value for value, _label in field.choices)]
    if isinstance(field, models.DateTimeField):
        since = _CLOCKS[0] if field.name == "at" else EARLIEST
        until = LATEST if field.name in _AHEAD else _CLOCKS[1]
        return Annotated[AwareDatetime, Field(ge=since, le=until)]
    if isinstance(field, models.JSONField):
        shape_of = _DOCUMENTS.get(field.name, list[Any] if field.default is list else dict[str, Any])
        return Annotated[shape_of, AfterValidator(_document_check)]
    if field.name in _BOUNDS:
        least, most = _BOUNDS[field.name]
        return Annotated[float, Field(ge=least, le=most)]
    for kind, sort in _TYPES.items():
        if isinstance(field, kind):
            return Annotated[str, Field(max_length=field.max_length)] if sort is str and field.max_length else sort
    # Vectors, as the database writes them.
    return str


def _filled(model: type[BaseModel]) -> Any:
    return Annotated[list[model], Field(min_length=1)]  # type: ignore[valid-type]


# What fades, what is added to it, and the seconds in which it does. No policy allows for more, and who multiplies
# these has no number that is too great.
_BOUNDS = {"salience": (0, 1e6), "bump": (0, 1e6), "field_bump": (0, 1e6), "half_life": (1, NO_DECAY_SECONDS)}
# Documents that are gone through without a look; the others are objects or lists, as they are by default.
_DOCUMENTS: dict[str, Any] = {
    **dict.fromkeys(("counts", "policy_versions"), dict[str, int]),
    **dict.fromkeys(("content_hashes", "identifier_hashes"), list[str]),
    "topic_ids": list[_ID],
    **dict.fromkeys(("tool_log", "differences"), list[dict[str, Any]]),
}
# What the store dates by its clock lies in between; whoever reckons from there needs room before and behind. What
# somebody has dated himself may be older.
_CLOCKS = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(2999, 12, 31, tzinfo=dt.UTC)
# What may lie ahead: since when a value is true, and the moment that a dry run has asked about.
_AHEAD = frozenset({"valid_from", "judged_at"})


def _document_check(document: Any) -> Any:
    """Raise ``ValueError`` if a document holds a number that no program reads again."""
    ahead = [document]
    while ahead:
        value = ahead.pop()
        if isinstance(value, dict):
            ahead.extend(value.values())
        elif isinstance(value, list):
            ahead.extend(value)
        elif (isinstance(value, int) and abs(value) >= _TOO_GREAT) or (
            isinstance(value, float) and not math.isfinite(value)
        ):
            raise ValueError("holds a number that is too great, or none")
    return document


def _integer(least: int, most: int) -> Any:
    return Annotated[StrictInt, Field(ge=least, le=most)]


# What is more special comes first.
_TYPES: dict[type[Any], Any] = {
    models.UUIDField: _ID,
    models.BooleanField: bool,
    models.FloatField: Annotated[float, Field(allow_inf_nan=False)] | Literal["Infinity", "-Infinity"],
    models.PositiveBigIntegerField: _integer(0, MAX_NUMBER),
    models.PositiveSmallIntegerField: _integer(0, 2**15 - 1),
    # A half of what the column takes: counts go on.
    models.PositiveIntegerField: _integer(0, 2**30),
    models.BigAutoField: _integer(1, MAX_NUMBER),
    models.BigIntegerField: _integer(0, MAX_NUMBER),
    models.SmallIntegerField: _integer(-(2**15), 2**15 - 1),
    models.TextField: str,
    models.CharField: str,
}
