"""Request schemas of forgetting on request."""

import uuid
from typing import Annotated

from pydantic import Field, StringConstraints

from memory.api.run_schemas import ScopeText
from memory.api.schemas import Problem
from memory.core.requests import RequestModel
from memory.erasure.replies import CandidateOut, Verb
from memory.ingest.items import Category, LongText, ShortText

Request = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
Age = Annotated[str, StringConstraints(max_length=50), Field(description="Age since creation: 30d, 2w, 6m, 1y, 24h.")]
Categories = Annotated[list[Category], Field(max_length=50, description="Any of them.")]


class FilterIn(RequestModel):
    """Conditions that all topics must meet. Omitted members do not filter."""

    scope: ScopeText | None = None
    older_than: Age | None = None
    categories: Categories | None = None
    kinds: list[ShortText] | None = Field(default=None, max_length=50)
    ids: list[uuid.UUID] | None = Field(default=None, max_length=10_000)


class ForgetRequest(RequestModel):
    """A request to forget. ``token`` executes exactly the list that a dry run returned. ``scope``, ``older_than`` and
    ``categories`` are a short form of ``filter``."""

    verb: Verb = "release"
    query: Request | None = Field(default=None, description="What to forget, in words.")
    filter: FilterIn | None = None
    scope: ScopeText | None = None
    older_than: Age | None = None
    categories: Categories | None = None
    reason: LongText = ""
    dry_run: bool = Field(
        default=True, description="With false, the topics are listed and the list is executed at once."
    )
    token: Annotated[str, StringConstraints(max_length=100)] | None = Field(
        default=None, description="Of a list: executes exactly that list."
    )


class SupersedeRequest(RequestModel):
    """A fact and the text that replaces it."""

    old_query: Request
    new_text: Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
    scope: ScopeText | None = None
    reason: LongText = ""
    token: Annotated[str, StringConstraints(max_length=500)] | None = Field(
        default=None, description="The token of a candidate from a 409, which chooses that fact."
    )


class AmbiguousProblem(Problem):
    """Facts about different subjects match equally well. Send the token of the one that is meant."""

    candidates: list[CandidateOut] = []
