"""The replies about why and regret with their members, which are also in the OpenAPI document."""

import datetime as dt
from typing import Annotated, Literal, NotRequired

from pydantic import Field

from memory.core.replies import TypedDict, doc
from memory.recall.replies import RungName

Source = Literal["run", "hand"]
Signal = Literal["looked_up", "restored", "shadow"]


class WhyStanding(TypedDict):
    """The present state of a topic."""

    rung: RungName
    released_at: dt.datetime | None
    merged_into: str | None
    pinned: bool
    pin_reason: str
    protected_because: list[str]
    salience: Annotated[float, doc("As stored at salience_at.")]
    salience_at: dt.datetime
    score: float
    strategy: str
    clock: Annotated[str, doc("active: idle days do not count; wall: they do.")]
    policy: Annotated[str, doc("The scope whose policy governs the topic.")]
    version: int


class WhyStep(TypedDict):
    """When a run would move an unused topic to this rung; ``at`` is null for never."""

    rung: RungName | Literal["released"]
    at: dt.datetime | None
    due: bool
    rule: str | None
    threshold: str | None
    theta: float | None
    never_because: str


class WhyNext(TypedDict):
    """The rung after the next run, and the later steps."""

    now: Annotated[str | None, doc("A rung, or released; null for a topic that runs skip.")]
    may_compact: Annotated[bool, doc("Whether it would be compacted instead if enough due topics are similar.")]
    steps: list[WhyStep]
    gate: Annotated[str, doc("Why scheduled runs skip the topic at present: a pause, a soft limit; or empty.")]


class WhyEvent(TypedDict):
    """One event in the history of the topic; members outside the caller's scope are null."""

    at: dt.datetime
    by: Source
    what: str
    state: Literal["applied", "held", "skipped", "undone", "conflict"]
    run_id: NotRequired[str | None]
    event: NotRequired[str | None]
    actor: str | None
    approved_by: NotRequired[str | None]
    judged_at: NotRequired[dt.datetime | None]
    from_rung: RungName | None
    to_rung: RungName | None
    rule: NotRequired[str | None]
    threshold: NotRequired[str | None]
    theta: NotRequired[float | None]
    score: NotRequired[float | None]
    strategy: NotRequired[str | None]
    policy: NotRequired[str | None]
    version: NotRequired[int | None]
    policy_author: NotRequired[str | None]
    policy_reason: NotRequired[str | None]
    undone_at: NotRequired[dt.datetime | None]
    undone_by: NotRequired[str | None]
    note: NotRequired[Annotated[str, Field(default="")]]
    into: NotRequired[Annotated[str | None, Field(description="The topic that it was compacted into.")]]
    sources: NotRequired[Annotated[int | None, Field(description="How many topics it was made of.")]]
    salience: NotRequired[float | None]
    reason: str


class WhyUse(TypedDict):
    """A retrieval that reinforced the topic."""

    at: dt.datetime
    actor: str | None
    query: str | None


class WhyUses(TypedDict):
    """The retrievals that reinforced the topic."""

    total: int
    last: list[WhyUse]


class WhyReturned(TypedDict):
    """The queries among the latest ones that returned the topic but did not reinforce it. ``too_weak`` counts those to
    which it was not relevant enough; the others repeat an earlier query. ``all`` says whether all queries since the
    creation of the topic were looked at."""

    total: int
    too_weak: int
    last_at: dt.datetime | None
    best_relevance: float | None
    needed_relevance: float | None
    all: bool


class WhyRescue(TypedDict):
    """Whether one more retrieval would have kept the topic from the run that archived it."""

    run_id: str
    run_at: dt.datetime
    possible: bool
    earliest_sufficient: dt.datetime | None
    latest: dt.datetime | None
    any_later_use: Annotated[bool, doc("Any retrieval after the last use would have been enough.")]
    bump: float


class RegretTopic(TypedDict):
    """An archiving that was regretted, with its signals."""

    topic_id: str
    title: str
    topic_kind: str
    scope: str
    rung: RungName
    archived_at: dt.datetime
    by: Source
    run_id: str | None
    policy: str | None
    version: int | None
    from_rung: RungName | None
    signals: list[Signal]
    looked_up: int
    looked_up_at: dt.datetime | None
    restored_at: dt.datetime | None
    shadow_hits: int
    shadow_at: dt.datetime | None
    shadow_rank: int | None


class WhyReply(TypedDict):
    """The why-card of a topic."""

    topic_id: str
    title: str
    topic_kind: str
    scope: str
    standing: WhyStanding
    next: WhyNext
    history: list[WhyEvent]
    reinforced: WhyUses
    returned: WhyReturned
    rescue: WhyRescue | None
    regret: list[RegretTopic]
    sentences: list[str]


class RegretSignals(TypedDict):
    """How many archivings have each signal; one may have several."""

    looked_up: int
    restored: int
    shadow: int


class RegretCounts(TypedDict):
    """How many archivings there were, and how many of them were regretted."""

    archived: int
    regretted: int
    rate: float
    signals: RegretSignals


class RegretOfVersion(RegretCounts):
    """The archivings under one version of a policy, or the manual ones."""

    by: Source
    policy: str | None
    version: int | None
    author: str | None
    reason: str | None


class RegretOfRung(RegretCounts):
    """The archivings of topics from one rung."""

    rung: RungName | None


class RegretReply(RegretCounts):
    """Regret of a scope and everything below it."""

    scope: str
    since: dt.datetime | None
    until: dt.datetime | None
    by_version: list[RegretOfVersion]
    by_rung: list[RegretOfRung]
    topics: list[RegretTopic]
    sentence: str
