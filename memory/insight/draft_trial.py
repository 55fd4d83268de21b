"""The preview of a draft for the console and commands: what a run under the draft would do, compared with a run under
the policies in force, and which topics would be affected."""

import datetime as dt
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory.forgetting.run_text import why_words
from memory.insight.whatif import STEPS, Affected, StepCounts, WhatIf, affected_count, affected_page, whatif
from memory.models import Rung
from memory.policy.partition import ALL_TOPICS, TopicSubset
from memory.policy.read import draft_diff
from memory.policy.snapshot import Policies

# Previews and dry runs both show a manual run, so they agree. The soft limit does not apply to manual runs.
EVENT = "manual"
CLIMB = "climb"
# The words for each step: the verb with "a run would", the verb with "the draft", and the word after the topics.
_WORDS = {
    "archive": ("archive", "archives", ""),
    "detach": ("detach", "detaches", ""),
    "summarize": ("summarize", "summarizes", ""),
    CLIMB: ("move", "moves", " up"),
}

AFFECTED_COLUMNS = ("topic_id", "title", "kind", "scope", "action", "from_rung", "to_rung", "score", "why_words", "why")


@dataclass(frozen=True, slots=True)
class StepLine:
    """The counts of one step, today and for each projection. The step ``CLIMB`` counts the topics that move back up to
    any rung, so its ``rung`` is empty."""

    step: str
    rung: str
    now: int
    draft: int
    other: int
    gained: int
    lost: int
    later: list[dict[str, int]]

    @property
    def difference(self) -> int:
        """How many more topics the draft moves than the policies in force; negative for fewer."""
        return self.draft - self.now


@dataclass(frozen=True, slots=True)
class DraftPreview:
    """The preview of a draft for one scope. ``newly`` counts the topics on which only the draft acts, or acts in
    another way. ``affected`` are the first of these, and ``more`` says whether there are others. ``diff`` is the diff
    of the new version, ``other_diff`` that of the other draft."""

    scope: str
    found: WhatIf
    lines: list[StepLine]
    affected: list[dict[str, Any]]
    more: bool
    newly: int
    diff: list[dict[str, Any]]
    other_diff: list[dict[str, Any]]
    mode: str

    @property
    def bins(self) -> list[dict[str, Any]]:
        """The bins of the histogram that contain topics: from, to, and the counts of the rungs in order."""
        histogram = self.found.histogram
        counts = zip(*(histogram.rungs[rung.label] for rung in Rung), strict=True)
        spans = itertools.pairwise(histogram.edges)
        return [
            {"low": low, "high": high, "counts": each, "is_last": high == histogram.edges[-1]}
            for (low, high), each in zip(spans, counts, strict=True)
            if any(each)
        ]

    @property
    def sentence(self) -> str:
        """The preview in one short sentence, which screen readers announce when it changes."""
        lines = {line.step: line for line in self.lines}
        if self.mode == "off":
            return "The mode is off: nothing is forgotten here."
        if not self.diff:
            counts = [(step, lines[step].now) for step in _WORDS if lines[step].now]
            return f"A run now would {_listed(counts)}." if counts else "A run now would do nothing: no topic is due."
        changed = [(step, lines[step].difference) for step in _WORDS if lines[step].difference]
        if not changed:
            return "The draft moves as many topics as now." if self.newly else "The draft does the same as now."
        return f"The draft {_listed(changed, compared=True)} than now."


def draft_preview(
    scope: str,
    *,
    present: Policies,
    draft: Policies,
    now: dt.datetime,
    other: Policies | None = None,
    scale: str = "log",
    subset: TopicSubset = ALL_TOPICS,
    limit: int = 10,
) -> DraftPreview:
    """Return the preview of ``draft`` in ``scope``, a canonical path, compared with the policies in force. ``other`` is
    a second draft for comparison. Two statements."""
    # A linear scale ends not far above the thresholds. Otherwise the scores around them would share a few bins.
    highest = max(1.0, 4 * draft.knobs(scope).theta_summary) if scale == "linear" else None
    found = whatif(
        scope,
        present=present,
        draft=draft,
        other=other,
        now=now,
        event=EVENT,
        scale=scale,
        subset=subset,
        highest=highest,
    )
    affected, following = affected_list(scope, present=present, draft=draft, now=now, subset=subset, limit=limit)
    return DraftPreview(
        scope=scope,
        found=found,
        lines=_lines(found, now),
        affected=affected,
        more=following is not None,
        newly=len(affected) if following is None else max(found.newly, len(affected) + 1),
        diff=draft_diff(present, draft, scope=scope),
        other_diff=draft_diff(present, other, scope=scope) if other else [],
        mode=draft.knobs(scope).mode,
    )


def affected_list(
    scope: str,
    *,
    present: Policies,
    draft: Policies,
    now: dt.datetime,
    subset: TopicSubset = ALL_TOPICS,
    cursor: str | None = None,
    limit: int = 50,
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the topics on which a run would act only under ``draft``, or in another way, lowest score first, and the
    cursor of the next page. One statement. Raises ``ValueRefused`` for an invalid cursor."""
    rows, following = affected_page(
        scope,
        present=present,
        draft=draft,
        now=now,
        event=EVENT,
        cursor=cursor,
        limit=limit,
        only_new=True,
        subset=subset,
    )
    return [_affected_as_dict(row) for row in rows], following


def affected_total(
    scope: str, *, present: Policies, draft: Policies, now: dt.datetime, subset: TopicSubset = ALL_TOPICS, at_most: int
) -> int:
    """Return the number of topics of ``affected_list``, at most ``at_most`` + 1. One statement."""
    return affected_count(
        scope, present=present, draft=draft, now=now, event=EVENT, only_new=True, subset=subset, at_most=at_most
    )


def _affected_as_dict(row: Affected) -> dict[str, Any]:
    why = row.why
    return {
        "topic_id": row.topic_id,
        "title": row.title,
        "kind": row.kind,
        "scope": row.scope,
        "action": row.action,
        "from_rung": Rung(row.from_rung).label,
        "to_rung": Rung(row.to_rung).label,
        "score": row.score,
        "why_words": why_words(why, row.action),
        "why": why,
    }


def _lines(found: WhatIf, now: dt.datetime) -> list[StepLine]:
    down = [
        _line(
            name,
            Rung(rung).label,
            found.steps[name],
            found.other[name],
            [
                {
                    "days": (each.at - now).days,
                    "now": each.now[name],
                    "draft": each.draft[name],
                    "other": each.other[name],
                }
                for each in found.projections
            ],
        )
        for name, rung in STEPS.items()
    ]
    later = [{"days": (each.at - now).days, **each.climbs} for each in found.projections]
    return [*down, _line(CLIMB, "", found.climbs, found.other_climbs, later)]


def _line(name: str, rung: str, step: StepCounts, other: int, later: list[dict[str, int]]) -> StepLine:
    return StepLine(
        step=name,
        rung=rung,
        now=step.now,
        draft=step.draft,
        other=other,
        gained=step.gained,
        lost=step.lost,
        later=later,
    )


def _listed(counts: Sequence[tuple[str, int]], *, compared: bool = False) -> str:
    """Return steps with their counts as a list in words. With ``compared``, the counts are differences."""
    parts = []
    for index, (step, count) in enumerate(counts):
        of_run, of_draft, after = _WORDS[step]
        number = f"{abs(count):,}"
        if compared:
            number += " more" if count > 0 else " fewer"
        # Only the first part has the noun.
        noun = "" if index else " topic" if abs(count) == 1 else " topics"
        parts.append(f"{of_draft if compared else of_run} {number}{noun}{after}")
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last
