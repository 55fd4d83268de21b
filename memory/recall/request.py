"""The request schema of ``POST /v1/query``."""

import datetime as dt
import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from memory.core.requests import RequestModel
from memory.core.scopes import MAX_SCOPE_LENGTH
from memory.ingest.items import EARLIEST, LATEST, Category, Name, ShortText

MAX_TOP_K = 200
MAX_DEPTH = 3
# Members that do not determine which topics are returned, and members that the access log keeps in other columns.
_NOT_KEPT = frozenset({"q", "field_names", "include_cold", "include_detached", "depth"})
Stage = Literal["semantic", "structural", "temporal"]
QueryText = Annotated[str, StringConstraints(max_length=8000)]


class QueryRequest(RequestModel):
    """A question, and the wanted contents of the answer."""

    model_config = ConfigDict(frozen=True)

    q: QueryText = Field(description="May be empty without the semantic stage.")
    stages: list[Stage] = Field(
        default=["semantic", "structural", "temporal"], max_length=10, description="All if left out."
    )
    explain: bool = Field(
        default=False,
        description="Also returns the parts of scores, the milliseconds, and, with the temporal stage, histories.",
    )
    top_k: int = Field(default=8, ge=1, le=MAX_TOP_K)
    topic_ids: list[uuid.UUID] | None = Field(
        default=None,
        max_length=MAX_TOP_K,
        description="Without the semantic stage these are the answer, in this order.",
    )
    field_names: list[Name] | None = Field(
        default=None, max_length=200, description="Fields to return, detached ones included."
    )
    scope: str | None = Field(default=None, max_length=MAX_SCOPE_LENGTH, description="Where to search, and below.")
    kinds: list[ShortText] | None = Field(default=None, max_length=50, description="Any of them.")
    categories: list[Category] | None = Field(default=None, max_length=50, description="Any of them.")
    field_values: dict[Name, str] | None = Field(
        default=None,
        min_length=1,
        max_length=20,
        description="Only topics whose fields now have exactly these values, as text.",
    )
    include_archived: bool = Field(default=False, description="Reads the whole scope.")
    include_detached: bool = Field(default=False, description="Also returns detached fields.")
    include_cold: bool = Field(default=False, description="Cold revisions in histories.")
    as_of: AwareDatetime | None = Field(default=None, ge=EARLIEST, le=LATEST, description="Contents as known then.")
    created_after: AwareDatetime | None = Field(
        default=None, ge=EARLIEST, le=LATEST, description="Only topics created at this time or later."
    )
    created_before: AwareDatetime | None = Field(
        default=None, ge=EARLIEST, le=LATEST, description="Only topics created before this time."
    )
    asked_at: AwareDatetime | None = Field(
        default=None,
        ge=EARLIEST,
        le=LATEST,
        description='When the question was asked: "yesterday" is the day before. Now if left out, and never later.',
    )
    depth: int = Field(default=1, ge=0, le=MAX_DEPTH, description="How far neighbours are followed.")
    min_relevance: float | None = Field(
        default=None, ge=0, le=1, description="Leaves out topics whose relevance is below it."
    )
    token_budget: int | None = Field(default=None, ge=1, le=1_000_000, description="Keeps the best bundles that fit.")

    @model_validator(mode="after")
    def _question_is_there(self) -> "QueryRequest":
        if "semantic" in self.stages and not self.q.strip():
            raise ValueError("q is required when the semantic stage is used.")
        return self

    def members(self) -> dict[str, Any]:
        """Return the members that determine the answer, without the scope and without defaults, as JSON."""
        return self.model_dump(mode="json", exclude={"explain", "scope"}, exclude_defaults=True)


def members_digest(scope: str, members: Mapping[str, Any]) -> str:
    """Return a hash of a query in ``scope``, to recognise a repeated query."""
    return hashlib.sha256(json.dumps([scope, members], sort_keys=True).encode()).hexdigest()


def members_kept(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that the access log keeps as JSON. Together with the question and the scope, they determine
    which topics are returned."""
    kept = {name: value for name, value in members.items() if name not in _NOT_KEPT}
    if "field_values" in kept:
        # A purge masks short texts in members named ``value``.
        kept["field_values"] = [{"name": name, "value": value} for name, value in kept["field_values"].items()]
    return kept


def request_again(q: str, *, at: dt.datetime, scope: str, kept: Mapping[str, Any] | None) -> QueryRequest | None:
    """Rebuild the request of a row of the access log, made at the time ``at``, without neighbours. Return None if
    there is no question, or if a purge made the request invalid."""
    if not q.strip():
        return None
    members = {"asked_at": at, **(kept or {}), "q": q, "scope": scope, "depth": 0}
    if "field_values" in members:
        members["field_values"] = {pair["name"]: pair["value"] for pair in members["field_values"]}
    try:
        return QueryRequest(**members)
    except ValidationError:
        return None
