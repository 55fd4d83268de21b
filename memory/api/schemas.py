"""Schemas that several routes share."""

from typing import Annotated

from ninja import Schema
from pydantic import AwareDatetime, Field, StringConstraints

from memory.core.requests import RequestModel
from memory.ingest.items import Category, LongText, ShortText


class Problem(Schema):
    """An error according to RFC 9457. ``type`` identifies the problem, ``detail`` is a sentence to show."""

    type: str = Field(
        description="urn:memstate:problem: followed by a stable code, such as still-in-progress: another request with "
        "the same Idempotency-Key is running; sent again later, the request gets the reply of the first one. "
        "docs/errors.md lists all codes."
    )
    title: str
    status: int
    detail: str
    member: str | None = Field(
        default=None, description="The path of the wrong value in the request, such as rules[2].action, if it is known."
    )


# The following schemas are plain pydantic models, because Ninja's schemas read members as attributes, and a str has an
# attribute ``title``.


class TopicPatch(RequestModel):
    """Members to change. Omitted members do not change. ``salience`` needs an operator key."""

    elsewhere = {"pinned": "to pin or unpin a topic, use POST /v1/topics/{id}/pin or /unpin"}

    title: str | None = Field(default=None, max_length=1000)
    summary: LongText | None = None
    topic_kind: ShortText | None = None
    categories: list[Category] | None = Field(default=None, max_length=50)
    salience: float | None = Field(default=None, ge=0, le=10, allow_inf_nan=False)
    base_updated_at: AwareDatetime | None = Field(
        default=None, description="The updated_at of the version that was edited; if it has changed since, 409."
    )
    reason: LongText = ""


class Reason(RequestModel):
    """The reason for the journal."""

    reason: Annotated[str, StringConstraints(max_length=500)] = ""


def reason_of(payload: Reason | None) -> str:
    """Return the reason in the body of a request, or an empty text if there is no body."""
    return payload.reason if payload else ""
