"""The reply of a backtest with its members, which are also in the OpenAPI document."""

import datetime as dt
from typing import Annotated, Literal

from memory.core.replies import TypedDict, doc

Source = Literal["run", "hand"]
Signal = Literal["looked_up", "restored", "shadow"]


class BacktestOutcome(TypedDict):
    """The outcome of one way of forgetting; for random archiving, the mean over the draws."""

    archived: float
    used_afterwards: Annotated[float, doc("Topics retrieved, looked up or restored after they were archived.")]
    missed_retrievals: Annotated[float, doc("Queries whose answer would have lacked at least one archived topic.")]
    saved: Annotated[float, doc("Share of all topic-days on which a topic was archived.")]


class BacktestDay(TypedDict):
    """One run of the replay, for a chart."""

    at: dt.datetime
    topics: int
    archived: Annotated[int, doc("Archived up to and including this run.")]
    missed: Annotated[int, doc("Queries until the next run that would have lacked a topic.")]
    missed_by_lot: float


class BacktestNeeded(TypedDict):
    """A topic that the draft would have archived and that was used afterwards."""

    topic_id: str
    title: str
    scope: str
    uses: Annotated[int, doc("How often it was retrieved, looked up or restored while archived.")]
    at: Annotated[dt.datetime | None, doc("The first of its retrievals and lookups; null if it was only restored.")]
    query: Annotated[str, doc("The query of that retrieval; empty for a lookup, and for a query of a wider scope.")]


class BacktestReply(TypedDict):
    """The draft, compared with no forgetting and with archiving as many random topics on the same days."""

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
    archived_share: Annotated[float, doc("Share of the topics that are archived at the end.")]
    needed: Annotated[list[BacktestNeeded], doc("Of the topics that the draft archived, those used most afterwards.")]
    days: list[BacktestDay]
    sentence: str
    notes: Annotated[list[str], doc("Limits of the replay.")]
