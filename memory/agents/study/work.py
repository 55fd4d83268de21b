"""The worker's part of a study.

A step is one dialogue with the model. If the turn ends or the model is rate limited during a dialogue, the writes so
far are stored with the rounds that they took, and the next dialogue of the step continues with the remaining rounds. So
every step ends, however slow the model is, as long as it answers once in a turn. If it does not, the study retries with
growing waits, and then fails.
"""

import datetime as dt
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

from django.conf import settings
from django.db import DatabaseError, transaction

from memory.agents.study.build_step import BuildStep
from memory.agents.study.ids import Phase, rounds_in
from memory.agents.study.link_step import LinkStep
from memory.agents.study.progress import warning_of
from memory.agents.study.queue import slot_acquired, study_lock, study_next, turn_acquire, turn_release
from memory.agents.study.step_results import (
    MOST_TRIES,
    StepResult,
    backoff,
    rejected_in_a_row,
    rejected_steps_drop,
    step_result,
)
from memory.agents.tools.loop import LoopEnd, tool_loop_run
from memory.agents.tools.tool import Toolbox, ToolCalled
from memory.core.callbacks import Clock, Enqueue
from memory.extraction.parts import parts_cut
from memory.extraction.store import source_text
from memory.jobs.resumable import JobFailed, Status, job_finish, job_hold, job_principal, job_step
from memory.llm.chat_request import mark_make
from memory.llm.dialogue import Message
from memory.models import StudyJob

# Shares of MEMSTATE_JOB_TIMEOUT, after which the worker is killed. They leave a fifth of it for writing.
TURN_SHARE, DIALOGUE_SHARE, ANSWER_SHARE = 0.2, 0.3, 0.6
# Most seconds after which a turn starts another step, and a dialogue another round.
MOST_TURN, MOST_DIALOGUE = 60.0, 90.0
ERASED = "The text was erased before the study finished."
CUT_DIFFERS = "Another version of MemState started this study and cut the text differently; send the text again."
# The worker sleeps through a wait this short. Upkeep, once a minute, enqueues the study after a longer one.
SHORT_WAIT = 15.0


class StudyStep(Protocol):
    """A step of either phase."""

    phase: Phase
    at: int
    to: int

    def empty(self) -> bool: ...
    def messages(self, mark: str) -> list[Message]: ...
    def toolbox(self) -> Toolbox: ...
    def prepare(self) -> None: ...
    def hold(self) -> bool: ...
    def store(self, *, now: dt.datetime) -> dict[str, int]: ...


StepRunner = Callable[[StudyJob, StudyStep], LoopEnd]


def turn_seconds() -> float:
    """Return the seconds within which a worker may start steps of a study."""
    return min(MOST_TURN, _timeout() * TURN_SHARE)


def study_work(
    job_id: uuid.UUID, *, clock: Clock, seconds: float, turn: int | None = None, enqueue: Enqueue | None = None
) -> StudyJob:
    """Do steps of a study until it is done or ``seconds`` have passed, and return it.

    Safe to call again after a kill at any time, and from several processes: only one works on a study. Returns at once
    if no slot is free, and before a longer wait, after which ``studies_stalled`` returns the study. After a turn the
    study that has waited longest is enqueued, which may be this one. ``turn`` is the number of the queue entry.
    """
    if turn_acquire(job_id, turn):
        try:
            slot_free = _turn(job_id, clock=clock, until=time.monotonic() + seconds)
        except Exception:
            with suppress(DatabaseError):
                _leave(clock=clock, enqueue=enqueue)
            raise
        if slot_free:
            _leave(clock=clock, enqueue=enqueue)
    return StudyJob.objects.get(pk=job_id)


def _turn(job_id: uuid.UUID, *, clock: Clock, until: float) -> bool:
    """Do steps until ``until``; return True if a slot was free."""
    more, first = True, True
    cuts: list[tuple[int, int]] = []
    with slot_acquired() as slot_free, study_lock(f"study:{job_id}") as free:
        try:
            # At least one step, so that a short turn makes progress too.
            while slot_free and free and more and (first or time.monotonic() < until):
                more, first = study_step(job_id, clock=clock, until=until, cuts=cuts), False
        except Exception:
            # The failure and the time of the retry are stored. After a broken connection upkeep enqueues the study.
            with suppress(DatabaseError):
                turn_release(job_id)
            raise
        if free:
            turn_release(job_id)
    return slot_free


def _leave(*, clock: Clock, enqueue: Enqueue | None) -> None:
    """Enqueue the next study. Called without the slot and the lock of this one, as the next worker may start at once;
    one that came before, after a resume, has returned without a step."""
    if enqueue is not None:
        study_next(now=clock(), enqueue=enqueue)


def study_step(
    job_id: uuid.UUID, *, clock: Clock, until: float, cuts: list[tuple[int, int]], speak: StepRunner | None = None
) -> bool:
    """Wait, or do the next step; return True if this turn has more to do. ``cuts`` are calculated once per turn.

    ``speak`` uses the tools of a step in place of the model. The caller holds the lock of the job. Raises what the
    store raises.
    """
    job = StudyJob.objects.get(pk=job_id)
    if job.status != Status.WORKING:
        return False
    if job.not_before is not None or job.phase == Phase.WAITING:
        wait = (job.not_before - clock()).total_seconds() if job.not_before is not None else 0.0
        if wait > 0:
            if wait > SHORT_WAIT or wait > until - time.monotonic():
                return False
            time.sleep(wait)
            return True
        # Upkeep does not enqueue it again.
        job.phase = Phase.LINKING if job.phase == Phase.WAITING else job.phase
        taken = StudyJob.objects.filter(pk=job_id, status=Status.WORKING)
        taken.update(not_before=None, moved_at=clock(), phase=job.phase)
    return job_step(
        StudyJob,
        job_id,
        lambda: _step(job, clock=clock, cuts=cuts, speak=speak or _model_run),
        clock=clock,
        gives_up=partial(_gives_up, clock=clock),
    )


def _gives_up(job: StudyJob, _failure: str, *, clock: Clock) -> bool:
    """Schedule the retry of a failed step; return True after too many tries."""
    job.tries += 1
    job.not_before = clock() + dt.timedelta(seconds=backoff(job.tries))
    return job.tries >= MOST_TRIES


def _step(job: StudyJob, *, clock: Clock, cuts: list[tuple[int, int]], speak: StepRunner) -> bool:
    principal = job_principal(job, now=clock())
    step: StudyStep
    if job.phase == Phase.BUILDING:
        content = source_text(job.source_id)
        if content is None:
            raise JobFailed(ERASED)
        if not cuts:
            cuts.extend(parts_cut(content, at_most=job.part_chars))
        if len(cuts) != job.segments:
            # An upgrade has changed the cutter. No part of the text may be left out silently.
            raise JobFailed(CUT_DIFFERS)
        step = BuildStep(job, content, cuts, principal=principal, now=clock())
    else:
        step = LinkStep(job, principal=principal, clock=clock)
    end = StepResult("empty", True) if step.empty() else step_result(speak(job, step), tries=job.tries)
    step.prepare()
    now = clock()
    with transaction.atomic():
        # Topics before the job: the order in which a purge locks them.
        exists = step.hold()
        held = job_hold(job)
        if not exists:
            # Erased during the step, so nothing of it may be stored.
            raise JobFailed(ERASED)
        job_principal(held, now=now)
        return _stored(held, step, end, now=now)


def _timeout() -> float:
    return float(str(settings.Q_CLUSTER["timeout"]))


def _model_run(job: StudyJob, step: StudyStep) -> LoopEnd:
    """Let the model do the step in the time there is. Locks and writes nothing."""
    mark, timeout = mark_make(), _timeout()
    dialogue = min(MOST_DIALOGUE, timeout * DIALOGUE_SHARE)
    until = time.monotonic() + dialogue
    used = False

    def tick(_called: ToolCalled) -> None:
        nonlocal used
        used = True

    def go_on() -> bool:
        # The time only counts after a call of a tool: a received answer is used, and one round is always made.
        nonlocal used
        if used and time.monotonic() >= until:
            return False
        used = False
        return StudyJob.objects.filter(pk=job.pk, status=Status.WORKING).exists()

    return tool_loop_run(
        step.messages(mark),
        step.toolbox(),
        mark=mark,
        purpose="study",
        model=job.model or None,
        go_on=go_on,
        tick=tick,
        most_rounds=settings.MEMSTATE_CHAT_CHUNK_PER_SEGMENT_TOOL_ROUNDS - rounds_in(job, job.phase, step.at),
        # The last answer of a dialogue gets the full time-out of an answer.
        seconds=min(dialogue + settings.MEMSTATE_LLM_TIMEOUT_SECONDS, timeout * ANSWER_SHARE),
    )


def _stored(job: StudyJob, step: StudyStep, end: StepResult, *, now: dt.datetime) -> bool:
    """Store the result of a step and the progress of the locked job; return True if the next step can start at once."""
    if end.whole or end.rounds:
        entry = {"phase": step.phase, "at": step.at, "to": step.to, "rounds": end.rounds, "ended": end.ended}
        counts = step.store(now=now)
        job.steps = [*job.steps, {**entry, **counts}]
        job.topics += counts.get("made", 0)
        job.links += counts.get("links", 0)
        job.merged += counts.get("merged", 0)
    job.moved_at, job.tries, job.failure = now, end.tries, ""
    if end.whole:
        _advance(job, step.to, now=now)
    job.warning = warning_of(job)
    failure = end.failure or (end.sentence if end.ended == "rejected" and rejected_in_a_row(job) else "")
    if failure:
        rejected_steps_drop(job)
        job.warning = warning_of(job)
        job_finish(job, Status.FAILED, now=now, failure=failure)
        return False
    if end.wait is not None:
        job.not_before, job.failure = now + dt.timedelta(seconds=end.wait), end.sentence
    if job.phase == Phase.LINKING and job.linked >= job.to_link:
        job_finish(job, Status.DONE, now=now)
        return False
    job.save()
    return True


def _advance(job: StudyJob, to: int, *, now: dt.datetime) -> None:
    if job.phase != Phase.BUILDING:
        job.linked = to
        return
    job.done = to
    if job.done >= job.segments:
        job.to_link = job.topics
        job.phase = Phase.WAITING if job.to_link else Phase.LINKING
        job.not_before = now + dt.timedelta(seconds=settings.MEMSTATE_STUDY_PHASE_DELAY_SECONDS)
