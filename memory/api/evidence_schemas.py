"""What the routes for why, regret and backtest take and answer, for OpenAPI."""

import datetime as dt
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import AwareDatetime, BaseModel, Field, StringConstraints

from memory.core.scopes import MAX_SCOPE_LENGTH
from memory.recall.replies import RungName

Source = Literal["run", "hand"]


class BacktestRequest(BaseModel, extra="forbid"):
    """A draft to replay. Without preset, values and rules, it is the policy in force."""

    scope: Annotated[str, StringConstraints(max_length=MAX_SCOPE_LENGTH)] | None = None
    preset: str | None = Field(default=None, max_length=50)
    values: dict[str, Any] | None = None
    rules: list[Any] | None = Field(default=None, description="Those that are set at the scope now, if left out.")
    start: AwareDatetime
    end: AwareDatetime
    step_days: float = Field(default=1.0, gt=0, le=366, allow_inf_nan=False, description="From one run to the next.")
    seed: int = Field(default=1, ge=0, le=2**31 - 1, description="Of the draws by lot.")


class BacktestOutcome(Schema):
    """What one way of forgetting had done; means over the draws for the lot."""

    archived: float
    used_afterwards: float = Field(description="Topics retrieved, looked up or restored after they were archived.")
    missed_retrievals: float = Field(description="Queries whose answer would have lacked at least one of them.")
    saved: float = Field(description="Share of all topic-days on which a topic was out of retrieval.")


class BacktestDay(Schema):
    """One run of the replay, for a chart."""

    at: dt.datetime
    topics: int
    archived: int = Field(description="Until then, this run included.")
    missed: int = Field(description="Queries until the next run that would have missed something.")
    missed_by_lot: float


class BacktestReply(Schema):
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
    archived_share: float = Field(description="Of the topics, at the end.")
    days: list[BacktestDay]
    sentence: str
    notes: list[str] = Field(description="What a replay cannot know.")


class WhyStanding(Schema):
    """Where a topic stands now."""

    rung: RungName
    released_at: dt.datetime | None
    merged_into: str | None
    pinned: bool
    pin_reason: str
    protected_because: list[str]
    salience: float = Field(description="As last written, at salience_at.")
    salience_at: dt.datetime
    score: float
    strategy: str
    policy: str = Field(description="The scope whose policy holds.")
    version: int


class WhyStep(Schema):
    """When a run would move the topic so far down, if nothing uses it; ``at`` is null for never."""

    rung: RungName | Literal["released"]
    at: dt.datetime | None
    due: bool
    rule: str | None
    threshold: str | None
    theta: float | None
    never_because: str


class WhyNext(Schema):
    """What the next run would make of it, and the steps after that."""

    now: str | None = Field(description="A rung, or released; null for a topic that runs skip.")
    steps: list[WhyStep]
    gate: str = Field(description="Why scheduled runs do nothing at present, if so.")


class WhyEvent(Schema):
    """One thing that happened to it; what is beyond the caller's scope is null."""

    at: dt.datetime
    by: Source
    what: str
    state: Literal["applied", "held", "skipped", "undone", "conflict"]
    run_id: str | None = None
    event: str | None = None
    actor: str | None
    approved_by: str | None = None
    judged_at: dt.datetime | None = None
    from_rung: RungName | None
    to_rung: RungName | None
    rule: str | None = None
    threshold: str | None = None
    theta: float | None = None
    score: float | None = None
    strategy: str | None = None
    policy: str | None = None
    version: int | None = None
    policy_author: str | None = None
    policy_reason: str | None = None
    undone_at: dt.datetime | None = None
    undone_by: str | None = None
    note: str = ""
    salience: float | None = None
    reason: str


class WhyUse(Schema):
    """One retrieval that reinforced it."""

    at: dt.datetime
    actor: str | None
    query: str | None


class WhyUses(Schema):
    """What reinforced it."""

    total: int
    last: list[WhyUse]


class WhyRescue(Schema):
    """What one more retrieval could have done against the run that archived it."""

    run_id: str
    run_at: dt.datetime
    possible: bool
    earliest_sufficient: dt.datetime | None
    latest: dt.datetime | None
    any_later_use: bool = Field(description="Whether any retrieval after its last use would have done.")
    bump: float


class RegretTopic(Schema):
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
    signals: list[Literal["looked_up", "restored", "shadow"]]
    looked_up: int
    looked_up_at: dt.datetime | None
    restored_at: dt.datetime | None
    shadow_hits: int
    shadow_at: dt.datetime | None
    shadow_rank: int | None


class WhyReply(Schema):
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


class RegretSignals(Schema):
    """How many archivings have each signal; one may have several."""

    looked_up: int
    restored: int
    shadow: int


class RegretCounts(Schema):
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
