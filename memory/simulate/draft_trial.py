"""The preview of a draft for the console: what a run would do under the draft and under the policies in force."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory.models import Rung
from memory.policy.read import draft_diff
from memory.policy.snapshot import Policies
from memory.simulate.whatif import CLIMB, STEPS, Trial, WhatIf, affected_page, whatif

# Previews and dry runs both show a manual run, so they agree. The soft limit does not apply to manual runs.
EVENT = "manual"
# The words for each step: the verb after "a run would", the verb after "the draft", and the word after the number.
_WORDS = {
    "archive": ("archive", "archives", ""),
    "detach": ("detach", "detaches", ""),
    "summarize": ("summarize", "summarizes", ""),
    CLIMB: ("move", "moves", " up"),
}

AFFECTED_COLUMNS = ("topic_id", "title", "kind", "scope", "action", "from_rung", "to_rung", "score", "why_words", "why")


@dataclass(frozen=True, slots=True)
class DraftPreview:
    """The preview of a draft. ``newly`` is the number of topics that the draft would change, but the policies in force
    would not change in the same way. ``affected`` are the first of these topics. ``diff`` and ``other_diff`` show how
    the draft and the other draft differ from the policies in force. ``gate``: see ``Trial``."""

    found: WhatIf
    affected: list[dict[str, Any]]
    newly: int
    diff: list[dict[str, Any]]
    other_diff: list[dict[str, Any]]
    mode: str
    gate: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The counts of each step, now and at the projected times. ``rung`` is empty for topics that move up."""
        today = self.found.today
        return [
            {
                "step": name,
                "rung": STEPS[name].label if name in STEPS else "",
                "counts": today.steps[name],
                "later": [
                    {"days": (each.at - today.at).days, "counts": each.steps[name]} for each in self.found.projections
                ],
            }
            for name in (*STEPS, CLIMB)
        ]

    @property
    def bins(self) -> list[dict[str, Any]]:
        """The bins of the histogram that contain topics, with their bounds and the counts of the rungs in order."""
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
        steps = self.found.today.steps
        if self.mode == "off":
            return "The mode is off: nothing is forgotten here."
        if not self.diff:
            counts = [(step, steps[step].now) for step in _WORDS if steps[step].now]
            return f"A run now would {_listed(counts)}." if counts else "A run now would do nothing: no memory is due."
        changed = [(step, steps[step].difference) for step in _WORDS if steps[step].difference]
        if not changed:
            same = "The draft moves as many memories as the present policy, but other ones."
            return same if self.newly else "The draft does the same as now."
        return f"The draft {_listed(changed, compared=True)} than now."


def draft_preview(trial: Trial, *, other: Policies | None = None, scale: str = "log", limit: int = 10) -> DraftPreview:
    """Return the preview of the draft in ``trial``, compared with the draft ``other``. At most ``limit`` topics are
    listed. Three SQL statements."""
    scope, knobs = trial.scope, trial.draft.knobs(trial.scope)
    # A linear scale ends close above the thresholds. Otherwise all scores near the thresholds would share a few bins.
    highest = max(1.0, 4 * knobs.theta_summary) if scale == "linear" else None
    found = whatif(trial, other=other, scale=scale, highest=highest)
    affected, following = affected_page(trial, only_new=True, limit=limit)
    return DraftPreview(
        found=found,
        affected=affected,
        newly=len(affected) if following is None else max(found.newly, len(affected) + 1),
        diff=draft_diff(trial.present, trial.draft, scope=scope),
        other_diff=draft_diff(trial.present, other, scope=scope) if other else [],
        mode=knobs.mode,
        gate=trial.gate,
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
        noun = "" if index else " memory" if abs(count) == 1 else " memories"
        parts.append(f"{of_draft if compared else of_run} {number}{noun}{after}")
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last
