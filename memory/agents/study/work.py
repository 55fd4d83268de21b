"""Does the steps of a study in a worker.

A worker does steps of a study for a limited time; then another study gets the worker. A step is usually one dialogue
with the model. If a dialogue is interrupted, its writes and its number of rounds are stored. The next dialogue of the
step continues with the remaining rounds. If the model does not answer, the study retries after increasing waits, and
finally fails.
"""

import datetime as dt
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from django.conf import settings
from django.db import DatabaseError, transaction

from memory.agents.study.build_step import BuildStep
from memory.agents.study.ids import Phase, rounds_in
from memory.agents.study.link_step import LinkStep
from memory.agents.study.progress import warning_of
from memory.agents.study.queue import queue_entry_take, slot_acquired, study_lock, study_next, worker_released
from memory.agents.study.step import StudyStep
from memory.agents.study.step_results import (
    MAX_TRIES,
    StepResult,
    backoff,
    rejected_in_a_row,
    rejected_steps_drop,
    step_result,
)
from memory.agents.tools.loop import LoopEnd, tool_loop_run
from memory.agents.tools.tool import ToolCalled
from memory.core.callbacks import Clock, Enqueue
from memory.extraction.parts import parts_cut
from memory.extraction.store import source_text
from memory.jobs.resumable import JobCancelled, JobFailed, Status, job_finish, job_hold, job_principal, job_step
from memory.llm.chat_request import mark_make
from memory.models import StudyJob

# Shares of MEMSTATE_JOB_TIMEOUT. A worker is killed after this time, so a fifth of it is left for writing.
TURN_SHARE, DIALOGUE_SHARE, ANSWER_SHARE = 0.2, 0.3, 0.6
# The upper limits, in seconds, of the time in which a worker starts steps, and in which a dialogue starts rounds.
MAX_TURN, MAX_DIALOGUE = 60.0, 90.0
ERASED = "The text was erased before the study finished."
CUT_DIFFERS = "Another version of MemState started this study and cut the text differently; send the text again."
# A worker sleeps during a wait of at most this number of seconds. If a wait is longer, upkeep enqueues the study later.
SHORT_WAIT = 15.0

StepRunner = Callable[[StudyJob, StudyStep], LoopEnd]


def turn_seconds() -> float:
    """Return the number of seconds in which a worker may start steps of a study."""
    return min(MAX_TURN, _timeout() * TURN_SHARE)


def study_work(
    job_id: uuid.UUID, *, clock: Clock, seconds: float, turn: int | None = None, enqueue: Enqueue | None = None
) -> StudyJob:
    """Do steps of a study until it is done, must wait for long, or ``seconds`` have passed. Return the study.

    Can be called again after a kill, and by several processes. Only one of them works on the study. Does nothing if no
    slot is free. Before it returns, it enqueues the study that has waited longest, unless no slot was free. ``turn`` is
    the number of the queue entry that calls this function. A call without a number is always valid.
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
    """Do steps until the monotonic clock reaches ``until``. Return whether a slot was free."""
    more, first = True, True
    cuts: list[tuple[int, int]] = []
    with slot_acquired() as slot_free, study_lock(f"study:{job_id}") as free:
        try:
            # At least one step is done, so that there is progress even if the time is very short.
            while slot_free and free and more and (first or time.monotonic() < until):
                more, first = study_step(job_id, clock=clock, until=until, cuts=cuts), False
        finally:
            if free:
                # If the connection is broken, upkeep enqueues the study later.
                with suppress(DatabaseError):
                    worker_released(job_id)
    return slot_free


def _next_enqueue(*, clock: Clock, enqueue: Enqueue | None) -> None:
    """Enqueue the study that has waited longest. The caller must have released its slot and the lock of its study,
    because the next worker may start at once."""
    if enqueue is not None:
        study_next(now=clock(), enqueue=enqueue)


def study_step(
    job_id: uuid.UUID, *, clock: Clock, until: float, cuts: list[tuple[int, int]], speak: StepRunner | None = None
) -> bool:
    """If a short wait is due, sleep; otherwise do the next step. Return whether there is more to do now.

    ``cuts`` are the positions of the parts of the text; the first call fills the empty list. ``speak`` replaces the
    model: it calls the tools of the step. The caller must hold the lock of the study. Raises database errors.
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
        # Clear ``not_before``, so that upkeep does not enqueue the study a second time.
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
    """Schedule the retry of a failed step. Return whether the tries are used up."""
    job.tries += 1
    job.not_before = clock() + dt.timedelta(seconds=backoff(job.tries))
    return job.tries >= MAX_TRIES


def _step(job: StudyJob, *, clock: Clock, cuts: list[tuple[int, int]], speak: StepRunner) -> bool:
    principal = job_principal(job, now=clock())
    step: StudyStep
    if job.phase == Phase.BUILDING:
        content = source_text(job.source_id)
        if content is None:
            raise JobCancelled(ERASED)
        if not cuts:
            cuts.extend(parts_cut(content, at_most=job.part_chars))
        if len(cuts) != job.segments:
            # This version of MemState cuts texts differently. Continuing could leave out text without an error.
            raise JobFailed(CUT_DIFFERS)
        step = BuildStep(job, content, cuts, principal=principal, now=clock())
    else:
        step = LinkStep(job, principal=principal, clock=clock)
    end = StepResult("empty", True) if step.empty() else step_result(speak(job, step), tries=job.tries)
    step.prepare()
    now = clock()
    with transaction.atomic():
        # Lock the topics before the job. A purge uses the same order.
        exists = step.lock()
        locked = job_hold(job)
        if not exists:
            # The text was erased during the step, so nothing that the model made from the text may be stored.
            raise JobCancelled(ERASED)
        job_principal(locked, now=now)
        return _result_store(locked, step, end, now=now)


def _timeout() -> float:
    return float(str(settings.Q_CLUSTER["timeout"]))


def _model_run(job: StudyJob, step: StudyStep) -> LoopEnd:
    """Let the model do the step in the available time. Takes no locks and writes nothing."""
    mark, timeout = mark_make(), _timeout()
    dialogue = min(MAX_DIALOGUE, timeout * DIALOGUE_SHARE)
    until = time.monotonic() + dialogue
    used = False

    def tick(_called: ToolCalled) -> None:
        nonlocal used
        used = True

    def go_on() -> bool:
        # The time is checked only after a tool call. So every answer that has arrived is used, and each dialogue makes
        # at least one round.
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
        # A request that is sent just before the dialogue ends still gets its full time limit.
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
