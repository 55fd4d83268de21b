"""What insight returns: the members of each reply, for the OpenAPI document and for those that build and read them."""

import datetime as dt
from typing import Annotated, Literal, NotRequired

from pydantic import Field

from memory.core.replies import TypedDict
from memory.recall.replies import RungName

Source = Literal["run", "hand"]
Signal = Literal["looked_up", "restored", "shadow"]


class BacktestOutcome(TypedDict):
    """What one way of forgetting had done; means over the draws for the lot."""

    archived: float
    used_afterwards: Annotated[
        float, Field(description="Topics retrieved, looked up or restored after they were archived.")
    ]
    missed_retrievals: Annotated[
        float, Field(description="Queries whose answer would have lacked at least one of them.")
    ]
    saved: Annotated[float, Field(description="Share of all topic-days on which a topic was out of retrieval.")]


class BacktestDay(TypedDict):
    """One run of the replay, for a chart."""

    at: dt.datetime
    topics: int
    archived: Annotated[int, Field(description="Until then, this run included.")]
    missed: Annotated[int, Field(description="Queries until the next run that would have missed something.")]
    missed_by_lot: float


class BacktestReply(TypedDict):
    """The draft beside no forgetting, and beside archiving as many topics on the same days by lot."""

    scope: str
    start: dt.datetime
    end: dt.datetime
    runs: int
    topics: int
    retrievals: int
    draft: BacktestOutcome
    no_forgetting: BacktestOutcome
    by_lot: BacktestOutcome
    released: int
    summarized: int
    detached: int
    restored: int
    archived_share: Annotated[float, Field(description="Of the topics, at the end.")]
    days: list[BacktestDay]
    sentence: str
    notes: Annotated[list[str], Field(description="What a replay cannot know.")]


class WhyStanding(TypedDict):
    """Where a topic stands now."""

    rung: RungName
    released_at: dt.datetime | None
    merged_into: str | None
    pinned: bool
    pin_reason: str
    protected_because: list[str]
    salience: Annotated[float, Field(description="As last written, at salience_at.")]
    salience_at: dt.datetime
    score: float
    strategy: str
    policy: Annotated[str, Field(description="The scope whose policy holds.")]
    version: int


class WhyStep(TypedDict):
    """When a run would move the topic so far down, if nothing uses it; ``at`` is null for never."""

    rung: RungName | Literal["released"]
    at: dt.datetime | None
    due: bool
    rule: str | None
    threshold: str | None
    theta: float | None
    never_because: str


class WhyNext(TypedDict):
    """What the next run would make of it, and the steps after that."""

    now: Annotated[str | None, Field(description="A rung, or released; null for a topic that runs skip.")]
    steps: list[WhyStep]
    gate: Annotated[str, Field(description="Why scheduled runs do nothing at present, if so.")]


class WhyEvent(TypedDict):
    """One thing that happened to it; what is beyond the caller's scope is null."""

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
    salience: NotRequired[float | None]
    reason: str


class WhyUse(TypedDict):
    """One retrieval that reinforced it."""

    at: dt.datetime
    actor: str | None
    query: str | None


class WhyUses(TypedDict):
    """What reinforced it."""

    total: int
    last: list[WhyUse]


class WhyRescue(TypedDict):
    """What one more retrieval could have done against the run that archived it."""

    run_id: str
    run_at: dt.datetime
    possible: bool
    earliest_sufficient: dt.datetime | None
    latest: dt.datetime | None
    any_later_use: Annotated[bool, Field(description="Whether any retrieval after its last use would have done.")]
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
    """The archivings of one version of a policy, or those by hand."""

    by: Source
    policy: str | None
    version: int | None
    author: str | None
    reason: str | None


class RegretOfRung(RegretCounts):
    """The archivings of topics that stood on one rung before."""

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
