"""The output schemas of the tools."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from memory.extraction.replies import KnownFact


class _Result(BaseModel):
    # Later versions of a tool may return more members.
    model_config = ConfigDict(extra="allow")


class Linked(_Result):
    """A topic at the other end of a link."""

    topic_id: str
    kind: str
    direction: str = Field(description="out, or in for a link that comes from there.")
    title: str


class Found(_Result):
    """One topic of an answer."""

    topic_id: str
    title: str
    summary: str
    kind: str
    created_at: str = Field(description="When it was learned.")
    fields: dict[str, Any] = Field(description="The current value of each field, by its name.")
    linked: list[Linked]
    also: list[str] = Field(
        default_factory=list, description="Topics that say the same; they come last, or are left out."
    )


class QueryResult(_Result):
    """Topics that answer a question, best first."""

    topics: list[Found]


class TopicResult(Found):
    """One topic with all its members."""

    scope: str
    stands: str = Field(description="active, summarized, detached or archived.")
    categories: list[str]


class Revision(_Result):
    """One value of a field over time."""

    recorded_at: str
    why_changed: str | None = None
    provenance: str | None = None


class HistoryResult(_Result):
    """Values of a field, newest first."""

    field: str
    revisions: list[Revision]
    more: bool = Field(description="Whether there are older ones.")


class WhyResult(_Result):
    """The state of a topic and why it may be forgotten, in sentences."""

    topic_id: str
    sentences: list[str]


class WrittenResult(_Result):
    """What was written, and to which topic."""

    topic_id: str
    applied: list[str]
    similar_topic_ids: list[str] = Field(
        default_factory=list, description="Topics with the same title or a similar text."
    )


class Listing(_Result):
    """A topic of a list."""

    topic_id: str
    label: str = Field(description="Its title, else the beginning of its text.")
    kind: str
    scope: str
    stands: str = Field(description="active, summarized, detached, archived or released.")
    created_at: str


class SearchResult(_Result):
    """Topics that meet the conditions, newest first."""

    topics: list[Listing]
    next: str | None = Field(description="The cursor of the next page; null on the last one.")


class Superseded(_Result):
    """A topic in which a fact was replaced."""

    topic_id: str
    before: str
    after: str


class Meant(_Result):
    """A fact that may be meant."""

    topic_id: str
    text: str
    token: str = ""


class SupersedeResult(_Result):
    """The topic with the new text and what was replaced; or a question with candidates, and nothing was changed."""

    topic_id: str | None = None
    superseded: list[Superseded] = Field(default_factory=list)
    question: str = ""
    candidates: list[Meant] = Field(default_factory=list)


class ExtractResult(_Result):
    """The facts of a text."""

    facts: list[str]
    stored: list[str] = Field(description="Ids of the new topics.")
    known: list[KnownFact] = Field(description="Facts that were not stored again.")
    dropped: dict[str, int] = Field(description="How many sentences were left out, by reason.")
    note: str = Field(description="How the facts were found, and the limits of that method.")


class Listed(_Result):
    """A topic of a list to forget."""

    topic_id: str
    title: str
    why: str


class ForgetResult(_Result):
    """A list of topics to forget, or the result of its execution."""

    forgotten: bool = Field(description="False for a list: nothing was done yet.")
    count: int
    topics: list[Listed] = Field(description="The first 50 of them.")
    confirm: str | None = Field(description="Call forget with this value alone to do it; null if it cannot be done.")
    question: str = Field(description="What is unclear, or what was left out.")
    run_id: str | None = Field(description="The run with which an operator can undo it.")


RESULTS: dict[str, type[BaseModel]] = {
    "query": QueryResult,
    "topic": TopicResult,
    "history": HistoryResult,
    "search": SearchResult,
    "why": WhyResult,
    "new_topic": WrittenResult,
    "extend_topic": WrittenResult,
    "version_field": WrittenResult,
    "link": WrittenResult,
    "supersede": SupersedeResult,
    "extract": ExtractResult,
    "forget": ForgetResult,
}
