"""The items of ingest: the request schemas of the API and of ``manage.py ingest``."""

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, ConfigDict, Field, StringConstraints, model_validator

from memory.core.field_values import value_as_text
from memory.core.requests import RequestModel
from memory.core.scopes import MAX_SCOPE_LENGTH

Placement = Literal["new_topic", "extend_topic", "version_field"]
FieldType = Literal["string", "int", "float", "bool", "date", "datetime", "list", "json"]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Category = Annotated[str, StringConstraints(min_length=1, max_length=200)]
ShortText = Annotated[str, StringConstraints(max_length=200)]
LongText = Annotated[str, StringConstraints(max_length=20_000)]

# Dates outside these years are refused as mistakes.
EARLIEST = dt.datetime(1, 1, 2, tzinfo=dt.UTC)
LATEST = dt.datetime(9999, 12, 30, tzinfo=dt.UTC)


def _default_drop(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


class IngestField(RequestModel):
    """A value for a named field."""

    model_config = ConfigDict(frozen=True)

    name: Name
    value: Any = Field(default="", description="Text, or for types other than string also a JSON value of that type.")
    field_type: FieldType = Field(
        default="string",
        description="If left out, an existing field keeps its type, which the value must fit; a new one is a string.",
        # A default in the schema would mean that a field without ``field_type`` becomes a string.
        json_schema_extra=_default_drop,
    )
    ref_topic_id: uuid.UUID | None = Field(
        default=None,
        description="The topic that the value refers to. If left out, the reference is kept; null removes it.",
    )
    why_changed: LongText | None = None
    impact_expected: LongText | None = None
    provenance: ShortText = "api"

    @model_validator(mode="after")
    def _value_fits_type(self) -> "IngestField":
        if not self.keeps_type or isinstance(self.value, str):
            self._text(self.field_type)
        return self

    def typed(self, present: str | None) -> tuple[str, str]:
        """Return (stored value, type). ``present`` is the type of the existing field; it is kept unless the request
        names a type. Raises ``ValueRefused`` if the value does not fit."""
        field_type = present if present is not None and self.keeps_type else self.field_type
        return self._text(field_type), field_type

    @property
    def keeps_type(self) -> bool:
        """Whether the request left ``field_type`` out."""
        return "field_type" not in self.model_fields_set

    @property
    def keeps_reference(self) -> bool:
        """Whether the request left ``ref_topic_id`` out."""
        return "ref_topic_id" not in self.model_fields_set

    def _text(self, field_type: str) -> str:
        return value_as_text(self.value, field_type=field_type, name=self.name)


class EmptyField(IngestField):
    """Empties a field of any type; the field keeps its type. In a request, an empty value would be a mistake."""

    def _text(self, field_type: str) -> str:
        return ""


class IngestEdge(RequestModel):
    """A link from the topic to another."""

    model_config = ConfigDict(frozen=True)

    to_topic_id: uuid.UUID
    kind: Name = "related"


class IngestItem(RequestModel):
    """One observation and where it belongs."""

    model_config = ConfigDict(frozen=True)

    placement: Placement
    topic_id: str | None = Field(
        default=None,
        max_length=100,
        description="Required, except for new_topic: then it is the id of the new topic, a UUID.",
    )
    title: str = Field(default="", max_length=1000, description="Used by new_topic.")
    summary: LongText | None = Field(default=None, description="Used by new_topic.")
    topic_kind: ShortText | None = None
    salience: float = Field(default=1.0, ge=0, le=10, allow_inf_nan=False, description="Of what the item creates.")
    fields: list[IngestField] = Field(
        default_factory=list,
        max_length=200,
        description="At most 200; a topic holds 500; without field_type, the type stays.",
    )
    empty_fields: list[Name] = Field(
        default_factory=list,
        max_length=200,
        description="Used by extend_topic: fields that get an empty value. Their history stays.",
    )
    edges: list[IngestEdge] = Field(default_factory=list, max_length=500, description="Links; at most 500.")
    suggest_similar: bool = Field(
        default=False,
        description="Fills similar_topic_ids with at most 5 topics of the scope with the same title or a similar text.",
    )
    scope: str | None = Field(default=None, max_length=MAX_SCOPE_LENGTH, description="Of a new topic.")
    categories: list[Category] = Field(
        default_factory=list, max_length=50, description="Added to the topic, which holds 50."
    )
    valid_from: AwareDatetime | None = Field(
        default=None, ge=EARLIEST, le=LATEST, description="Since when the values are true; now if left out."
    )
    pinned: bool = False
    created_at: AwareDatetime | None = Field(
        default=None, ge=EARLIEST, le=LATEST, description="Operator keys: the time in the past at which it was learned."
    )
    last_used_at: AwareDatetime | None = Field(
        default=None,
        ge=EARLIEST,
        le=LATEST,
        description="Operator keys, with created_at: the time of the last use, from which salience fades. Without it, "
        "the memory counts as used when it arrives.",
    )


class RestoringItem(IngestItem):
    """Writes former values again. They become current, although they are valid since earlier. Undo uses it."""
