"""The members of the replies of extraction, for the OpenAPI document and the functions that build replies."""

import datetime as dt
from typing import Annotated, NotRequired

from memory.core.replies import TypedDict, doc, one_of


class KnownFact(TypedDict):
    """A fact that was already known, and the topic that contains it."""

    text: str
    topic_id: str


class ExtractReply(TypedDict):
    """The facts of a text."""

    extracted: Annotated[list[str], doc("Each a self-contained sentence of at most 500 characters.")]
    stored: Annotated[list[str], doc("Ids of the new topics, in the order of their facts.")]
    skipped_duplicates: list[KnownFact]
    method: Annotated[
        Annotated[str, one_of(("llm", "extractive"))], doc("llm only if a language model extracted everything.")
    ]
    methods: Annotated[list[Annotated[str, one_of(("llm", "extractive"))]], doc("One for each part of the text.")]
    note: Annotated[str, doc("How the facts were found, and the limits of that method.")]
    warning: NotRequired[str | None]
    source_topic_id: NotRequired[Annotated[str | None, doc("The topic that stores the text; no query returns it.")]]
    dropped: Annotated[dict[str, int], doc("The numbers of omitted sentences by type and of wrong facts by fault.")]


class ExtractAccepted(TypedDict):
    """The text is stored, and the worker extracts its facts."""

    job_id: str
    status: str
    segments: int
    source_topic_id: str | None


class ExtractionOut(ExtractReply):
    """An extraction in the background, and its facts so far."""

    job_id: str
    status: Annotated[str, one_of(("working", "done", "cancelled", "failed"))]
    scope: str
    kind: str
    segments: int
    done: int
    progress: Annotated[float, doc("Share of the segments that are stored, 0 to 1.")]
    actor: str
    failure: str | None
    created_at: dt.datetime
    finished_at: dt.datetime | None
