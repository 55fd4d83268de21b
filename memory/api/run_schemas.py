"""Request and reply schemas of runs and previews."""

import datetime as dt
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AwareDatetime, Field, StringConstraints

from memory.api.schemas import Reason
from memory.core.replies import TypedDict, doc, one_of
from memory.core.requests import RequestModel
from memory.core.scopes import MAX_SCOPE_LENGTH
from memory.forgetting.run_list import ActionOut
from memory.models import ForgetRun

# Policies subtract up to a hundred years from a time. The limits leave room for this.
Moment = Annotated[
    AwareDatetime, Field(ge=dt.datetime(1970, 1, 1, tzinfo=dt.UTC), le=dt.datetime(9999, 1, 1, tzinfo=dt.UTC))
]
ScopeText = Annotated[str, StringConstraints(max_length=MAX_SCOPE_LENGTH)]
EventName = Literal["ingest_complete", "query_complete", "cron", "memory_pressure", "manual"]
# The events of all runs. Manual changes (``by_hand``) and merges of duplicates (``revise``) are runs too.
RunEventName = Literal["ingest_complete", "query_complete", "cron", "memory_pressure", "manual", "by_hand", "revise"]
StatusName = Literal["planned", "held", "applying", "done", "undone", "failed", "refused"]
StateName = Literal["planned", "applied", "skipped", "undone", "conflict"]


class RunRequest(RequestModel):
    """A run to plan. With ``now``, a dry run is planned for another time."""

    scope: ScopeText | None = None
    event: EventName = "cron"
    dry_run: bool = True
    now: Moment | None = None


class RunRefusal(Reason):
    """The reason, and whether to undo the change of policy that caused the run."""

    roll_back: bool = Field(
        default=False, description="Roll back the policies that are new since the previous run; 409 if there are none."
    )


class EventRequest(RequestModel):
    """An event for the reasoner."""

    event: Annotated[str, StringConstraints(max_length=50)] = "memory_pressure"
    scope: ScopeText | None = None


class EventReply(TypedDict):
    """A stored event. The worker handles it within about a second."""

    event: str
    scope: str
    accepted: bool


class RunOut(TypedDict):
    """A run. ``counts`` has the totals; ``results`` lists each topic, in order."""

    run_id: str
    scope: str
    event: str
    status: Annotated[str, one_of(ForgetRun.Status.values)]
    dry_run: bool
    policy_version: int
    policy_versions: dict[str, int]
    counts: dict[str, int]
    results: NotRequired[Annotated[list[str] | None, doc("Omitted in lists.")]]
    held_because: str | None
    gate: Annotated[
        str | None,
        doc("Which topics were not evaluated and why: too few live topics for this event, or forgetting is off."),
    ]
    failure: str | None
    planned: int
    applied: int
    skipped: int
    left_over: Annotated[int, doc("Due topics beyond max_topics_for_forget_scan.")]
    progress: Annotated[float, doc("Share of the planned actions that are done, 0 to 1.")]
    actor: str
    approved_by: str | None
    undone_by: str | None
    judged_at: dt.datetime
    created_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    undone_at: dt.datetime | None


class RunPage(TypedDict):
    """Runs, newest first."""

    items: list[RunOut]
    next: str | None


class ActionPage(TypedDict):
    """Actions, lowest score first."""

    items: list[ActionOut]
    next: str | None


class ConflictOut(TypedDict):
    """A topic that the undo skipped, and why."""

    topic_id: str
    why: str


class UndoReply(TypedDict):
    """The result of an undo. ``conflicts`` has at most 1,000 items."""

    run_id: str
    restored: int
    conflicts: list[ConflictOut]
    conflict_count: int


class PreviewRequest(RequestModel):
    """A complete draft of the policy of ``scope``, and the times to project to."""

    scope: ScopeText | None = None
    preset: Annotated[str, StringConstraints(max_length=50)] | None = None
    values: dict[str, Any] | None = Field(
        default=None, description="The whole set of values. Without values, preset and rules: the policy in force."
    )
    rules: list[Any] | None = Field(
        default=None, description="Rules of this scope, or names of included rule sets; if omitted, the rules stay."
    )
    at: list[Moment] | None = Field(default=None, max_length=12, description="Default: in 30 and 90 days.")
    event: EventName = "cron"
    scale: Literal["log", "linear"] = "log"
    only_new: bool = Field(default=False, description="List only topics that the policy in force would not touch.")
    cursor: Annotated[str, StringConstraints(max_length=300)] | None = None
    limit: int = Field(default=50, ge=1)


class StepOut(TypedDict):
    """The number of topics that a run would move to a rung, under the policy in force and under the draft."""

    now: int
    draft: int
    gained: int
    lost: int


class ProjectionOut(TypedDict):
    """What a run at that time would do if no topic is used until then."""

    at: dt.datetime
    rungs: Annotated[dict[str, int], doc("Under the draft.")]
    present: Annotated[dict[str, int], doc("Under the policy in force.")]


class HistogramOut(TypedDict):
    """Scores under the draft. ``edges`` has one entry more than each list of ``rungs``."""

    scale: Literal["log", "linear"]
    edges: list[float]
    rungs: dict[str, list[int]]


class AffectedOut(TypedDict):
    """A topic that a run under the draft would change. ``new`` is true if a run under the policy in force would not."""

    topic_id: str
    title: str
    topic_kind: str
    scope: str
    action: str
    from_rung: str
    to_rung: str
    score: float
    why: dict[str, Any]
    new: bool


class PreviewReply(TypedDict):
    """What a draft would do."""

    scope: str
    gate: Annotated[
        str,
        doc("Which topics scheduled runs skip at present and why: too few live topics. The counts do not consider it."),
    ]
    active: int
    held_because: Annotated[
        str | None, doc("Why a run under the draft would wait for approval: it would archive too many memories.")
    ]
    rungs: dict[str, StepOut]
    projections: list[ProjectionOut]
    histogram: HistogramOut
    affected: list[AffectedOut]
    next: str | None
