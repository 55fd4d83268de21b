"""Texts about runs: their event, status, result, and reasons for actions."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from memory.core.scopes import scope_within
from memory.forgetting.manual_runs import BY_HAND
from memory.forgetting.undo import UNDONE_MERGES, Undone
from memory.models import ForgetRun

# The most reasons for which an undo skipped topics that its sentence names. The page of the run lists all.
REASONS_TOLD = 3

# The label of the runs that an event starts.
EVENT_WORDS = {
    "cron": "Scheduled run",
    "memory_pressure": "Run under memory pressure",
    "manual": "Manual run",
    "ingest_complete": "Run after an ingest",
    "query_complete": "Run after a recall",
    "by_hand": "Manual change",
    "revise": "Automatic merge of duplicates",
}

# The verb of an action before and after the action is applied.
_VERBS = {
    "archived": ("archive", "archived"),
    "detached": ("detach", "detached"),
    "summarized": ("summarize", "summarized"),
    "folded": ("summarize again", "summarized again"),
    "restored": ("move up", "moved up"),
    "released": ("release", "released"),
    "pinned": ("pin", "pinned"),
    "unpinned": ("unpin", "unpinned"),
    "categorized": ("categorize", "categorized"),
    "compacted": ("compact groups", "compacted groups"),
    "kept_part": ("keep a part of", "kept a part of"),
    "merged": ("merge", "merged"),
    "took_in": ("take in another", "took in another"),
    "superseded": ("supersede", "superseded"),
    "superseding": ("supersede another", "supersedes another"),
    UNDONE_MERGES: ("undo", "undone"),
}

_THRESHOLDS = {
    "theta_summary": "threshold for summaries",
    "theta_detach": "threshold for detaching",
    "forget_salience_threshold": "threshold for archiving",
}


def event_words(event: str) -> str:
    """Return the label of the runs that an event starts."""
    return EVENT_WORDS.get(event, f"Run on {event.replace('_', ' ')}")


def run_status(run: ForgetRun) -> str:
    """Return the status of a run, or ``replaced`` for a held run that a new plan replaced."""
    replaced = run.status == ForgetRun.Status.FAILED and run.held_because and run.started_at is None
    return "replaced" if replaced else str(run.status)


def counts_sentences(counts: Mapping[str, int], *, done: bool, by_hand: bool = False) -> str:
    """Return counts of actions as ``archived 41, detached 3``, or for a plan ``archive 41, detach 3``. A manual change
    restores topics from the archive; other runs move them up."""
    verbs = _VERBS | ({"restored": ("restore", "restored")} if by_hand else {})
    return ", ".join(f"{verbs.get(name, (name, name))[done]} {times:,}" for name, times in _ordered(counts) if times)


def run_sentence(run: ForgetRun, *, undone: Undone | None = None) -> str:
    """Return the result or present state of a run as a sentence. ``undone`` is the outcome of its undo."""
    status = run_status(run)
    gate = f" {run.gate}" if run.gate else ""
    if status == "planned":
        return f"{_plan(run)}{gate}" if run.planned else f"Nothing to do. {run.gate or 'No memory is due.'}"
    if status == "held":
        return f"Waits for approval. {_plan(run)}{gate}"
    if status == "applying":
        return f"Applying: {run.applied + run.skipped:,} of {_topics(run.planned)} done."
    if status == "replaced":
        return "The run was held, and planned again before it was approved. Nothing was changed."
    if status == "refused":
        return "Nothing was changed."
    if status == "undone":
        return undo_sentence(undone) if undone else f"{_done(run)}; undone since."
    if status == "failed":
        return f"Failed after {run.applied + run.skipped:,} of {_topics(run.planned)}."
    if not run.planned:
        return f"Nothing was done. {run.gate or 'No memory was due.'}"
    return f"{_done(run)}{_of_live(run, 'were')}.{_skipped(run)}{gate}"


def undo_sentence(undone: Undone) -> str:
    """Return what topics became by an undo, how many it skipped, and the most frequent reasons, as sentences."""
    parts = []
    for effect, times in undone.effects.items():
        topics = _topics(times)
        back = f"became {effect} again" if effect else f"got {'its' if times == 1 else 'their'} former values back"
        parts.append(f"{topics} {back}.")
    if undone.made:
        was = "was" if undone.made == 1 else "were"
        parts.append(f"{_topics(undone.made)} that the run had made {was} released.")
    done = f"Undone: {' '.join(parts)}" if parts else "Nothing was undone."
    left = undone.conflict_count
    if not left:
        return done
    since = f"{_topics(left)} {'has changed since and was' if left == 1 else 'have changed since and were'} skipped"
    whys = [why for why, _times in Counter(why for _topic, why in undone.conflicts).most_common(REASONS_TOLD)]
    return f"{done} {since}{': ' if whys else '.'}{' '.join(whys)}"


def run_policy(run: ForgetRun) -> tuple[str, int] | None:
    """Return the path and the version of the policy in force at the scope of a run; None for the defaults."""
    above = [path for path in run.policy_versions if scope_within(run.scope, path)]
    nearest = max(above, key=len, default=None)
    return None if nearest is None else (nearest, int(run.policy_versions[nearest]))


def run_took(run: ForgetRun) -> str:
    """Return how long a run took: "at once" for less than a second, an empty text if the run has not finished."""
    if run.started_at is None or run.finished_at is None:
        return ""
    seconds = (run.finished_at - run.started_at).total_seconds()
    if seconds < 1:
        return "at once"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def state_words(state: str) -> str:
    """Return the label of the state of an action."""
    return {"conflict": "changed since", "applied": "done"}.get(state, state)


def why_words(why: Mapping[str, Any], action: str) -> str:
    """Return why a run acts on a topic, as a sentence without the score."""
    if why.get("by") == "revise":
        return why.get("reason") or "It was a duplicate."
    if why.get("by") == "hand":
        return f"Manual: {why['reason']}" if why.get("reason") else "Manual."
    if action == "folded":
        return "Its fields have new revisions."
    if why.get("rule"):
        return f"Rule {why['rule']!r} matches."
    if why.get("threshold"):
        side = "above" if action == "restored" else "below"
        name = _THRESHOLDS.get(why["threshold"], why["threshold"])
        return f"{_capital(side)} the {name}, {why['theta']:g}."
    return "The policy requires it."


def _ordered(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    order = {name: position for position, name in enumerate(_VERBS)}
    return sorted(counts.items(), key=lambda each: order.get(each[0], len(order)))


def _plan(run: ForgetRun) -> str:
    would = counts_sentences(run.counts, done=False, by_hand=run.event == BY_HAND) or "change nothing"
    more = f" {run.left_over:,} more are due and will be in the next runs." if run.left_over else ""
    return f"It would {would}{_of_live(run, 'are')}.{more}"


def _done(run: ForgetRun) -> str:
    return _capital(counts_sentences(run.counts, done=True, by_hand=run.event == BY_HAND) or "changed nothing")


def _skipped(run: ForgetRun) -> str:
    if not run.skipped:
        return ""
    return f" {_topics(run.skipped)} had changed after the plan and {'was' if run.skipped == 1 else 'were'} skipped."


def _of_live(run: ForgetRun, was: str) -> str:
    return f"; {run.active:,} {was} live" if run.active else ""


def _topics(count: int) -> str:
    return f"{count:,} {'memory' if count == 1 else 'memories'}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
