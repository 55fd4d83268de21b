"""The request schema of ``POST /v1/query``."""

import hashlib
import json
import uuid
from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field, StringConstraints, model_validator

from memory.core.requests import RequestModel
from memory.core.scopes import MAX_SCOPE_LENGTH
from memory.ingest.items import EARLIEST, LATEST, Category, Name, ShortText

MAX_TOP_K = 200
MAX_DEPTH = 3
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
        default=False, description="Parts of scores, milliseconds, and histories with the temporal stage."
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
    include_archived: bool = Field(default=False, description="Reads the whole scope.")
    include_cold: bool = Field(default=False, description="Cold revisions in histories.")
    as_of: AwareDatetime | None = Field(default=None, ge=EARLIEST, le=LATEST, description="Contents as known then.")
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

    def digest(self, scope: str) -> str:
        """Return a hash of this query in ``scope``, to recognise a repeated query."""
        members = self.model_dump(mode="json", exclude={"explain", "scope"})
        return hashlib.sha256(json.dumps([scope, members], sort_keys=True).encode()).hexdigest()
