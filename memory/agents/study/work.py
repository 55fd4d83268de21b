"""The work of a worker on a study.

A worker does steps of a study for a limited time, then another study gets the worker. A step is usually one dialogue
with the model. If the time is up or the model is rate limited during a dialogue, the writes so far are stored with the
number of rounds, and the next dialogue of the step continues with the remaining rounds. So every step ends, however
slow the model is, if the model answers at least once in each dialogue. If the model does not answer, the study retries
with growing waits and then fails.
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
from memory.agents.study.queue import queue_entry_take, slot_acquired, study_lock, study_next, worker_released
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

# Shares of MEMSTATE_JOB_TIMEOUT, after which the worker is killed. A fifth of this time remains for writing.
TURN_SHARE, DIALOGUE_SHARE, ANSWER_SHARE = 0.2, 0.3, 0.6
# After so many seconds, a worker starts no more steps, and a dialogue no more rounds.
MOST_TURN, MOST_DIALOGUE = 60.0, 90.0
ERASED = "The text was erased before the study finished."
CUT_DIFFERS = "Another version of MemState started this study and cut the text differently; send the text again."
# During a wait of at most so many seconds the worker sleeps. After a longer wait, upkeep enqueues the study again.
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
    def lock(self) -> bool: ...
    def store(self, *, now: dt.datetime) -> dict[str, int]: ...


StepRunner = Callable[[StudyJob, StudyStep], LoopEnd]


def turn_seconds() -> float:
    """Return for how many seconds a worker may start steps of a study."""
    return min(MOST_TURN, _timeout() * TURN_SHARE)


def study_work(
    job_id: uuid.UUID, *, clock: Clock, seconds: float, turn: int | None = None, enqueue: Enqueue | None = None
) -> StudyJob:
    """Do steps of a study until it is done or ``seconds`` have passed, and return the study.

    Safe to call again after a kill at any time, and from several processes: only one works on a study. Returns at once
    if no slot is free. If the study must wait for long, the function also returns; ``studies_stalled`` finds the study
    again when the wait is over. Afterwards the study that has waited longest is enqueued, which may be this one.
    ``turn`` is the number of the queue entry.
    """
    if queue_entry_take(job_id, turn):
        try:
            slot_free = _steps_do(job_id, clock=clock, until=time.monotonic() + seconds)
        except Exception:
            with suppress(DatabaseError):
                _next_enqueue(clock=clock, enqueue=enqueue)
            raise
        if slot_free:
            _next_enqueue(clock=clock, enqueue=enqueue)
    return StudyJob.objects.get(pk=job_id)


def _steps_do(job_id: uuid.UUID, *, clock: Clock, until: float) -> bool:
    """Do steps until ``until``. Return whether a slot was free."""
    more, first = True, True
    cuts: list[tuple[int, int]] = []
    with slot_acquired() as slot_free, study_lock(f"study:{job_id}") as free:
        try:
            # At least one step is done, so that there is progress even with very little time.
            while slot_free and free and more and (first or time.monotonic() < until):
                more, first = study_step(job_id, clock=clock, until=until, cuts=cuts), False
        except Exception:
            # The failure and the time of the retry are already stored. After a broken connection, upkeep enqueues the
            # study.
            with suppress(DatabaseError):
                worker_released(job_id)
            raise
        if free:
            worker_released(job_id)
    return slot_free


def _next_enqueue(*, clock: Clock, enqueue: Enqueue | None) -> None:
    """Enqueue the next study. Must be called after the slot and the lock of this study were released. Otherwise the
    next worker, which may start at once, could find both taken and return without a step."""
    if enqueue is not None:
        study_next(now=clock(), enqueue=enqueue)


def study_step(
    job_id: uuid.UUID, *, clock: Clock, until: float, cuts: list[tuple[int, int]], speak: StepRunner | None = None
) -> bool:
    """Wait for a short time, or do the next step. Return whether there is more to do now.

    ``cuts`` is filled with the parts of the text by the first call, for later calls. ``speak`` replaces the model: it
    uses the tools of a step. The caller has the lock of the study. Raises the errors of the store.
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
        # The wait is over. Without ``not_before``, upkeep does not enqueue the study a second time.
        job.phase = Phase.LINKING if job.phase == Phase.WAITING else job.phase
        taken = StudyJob.objects.filter(pk=job_id, status=Status.WORKING)
        taken.update(not_before=None, moved_at=clock(), phase=job.phase)
    return job_step(
        StudyJob,
        job_id,
        lambda: _step(job, clock=clock, cuts=cuts, speak=speak or _model_run),
        clock=clock,
        gives_up=partial(_retry_schedule, clock=clock),
    )


def _retry_schedule(job: StudyJob, _failure: str, *, clock: Clock) -> bool:
    """Schedule the retry of a failed step. Return True if there were too many tries already."""
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
            # An upgrade has changed how texts are cut, and no part of the text may be left out silently.
            raise JobFailed(CUT_DIFFERS)
        step = BuildStep(job, content, cuts, principal=principal, now=clock())
    else:
        step = LinkStep(job, principal=principal, clock=clock)
    end = StepResult("empty", True) if step.empty() else step_result(speak(job, step), tries=job.tries)
    step.prepare()
    now = clock()
    with transaction.atomic():
        # Like a purge, lock the topics before the job.
        exists = step.lock()
        locked = job_hold(job)
        if not exists:
            # The text was erased during the step, so nothing that was made of it may be stored.
            raise JobFailed(ERASED)
        job_principal(locked, now=now)
        return _result_store(locked, step, end, now=now)


def _timeout() -> float:
    return float(str(settings.Q_CLUSTER["timeout"]))


def _model_run(job: StudyJob, step: StudyStep) -> LoopEnd:
    """Let the model do the step in the available time. Locks and writes nothing."""
    mark, timeout = mark_make(), _timeout()
    dialogue = min(MOST_DIALOGUE, timeout * DIALOGUE_SHARE)
    until = time.monotonic() + dialogue
    used = False

    def tick(_called: ToolCalled) -> None:
        nonlocal used
        used = True

    def go_on() -> bool:
        # The time is checked only after a tool call, so that a received answer is always used and there is at least one
        # round.
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
        # The last answer of a dialogue gets the full time limit of an answer.
        seconds=min(dialogue + settings.MEMSTATE_LLM_TIMEOUT_SECONDS, timeout * ANSWER_SHARE),
    )


def _result_store(job: StudyJob, step: StudyStep, end: StepResult, *, now: dt.datetime) -> bool:
    """Store the result of a step and the progress of the locked job. Return whether the study continues."""
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
