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
from itertools import count, takewhile
from typing import Any

from django.conf import settings
from django.db import DatabaseError, transaction

from memory.agents.study.control import queue_entry_take, slot_acquired, study_lock, study_next, worker_released
from memory.agents.study.progress import Ended, Phase, entries_of, total, warning_of
from memory.agents.study.steps import BuildStep, LinkStep
from memory.agents.tools.loop import LoopEnd, tool_loop_run
from memory.core.callbacks import Clock, Enqueue
from memory.extraction.parts import parts_cut
from memory.extraction.store import source_text
from memory.llm.chat_request import mark_make
from memory.llm.wire import MAX_WAIT_SECONDS, ModelProblem, ModelUnusable, RateLimited, RequestRejected
from memory.models import StudyJob
from memory.resumable import JobCancelled, JobFailed, Status, job_finish, job_hold, job_principal, job_step

# Shares of MEMSTATE_JOB_TIMEOUT. A worker is killed after this time, so a fifth of it is left for writing.
TURN_SHARE, DIALOGUE_SHARE, ANSWER_SHARE = 0.2, 0.3, 0.6
# The upper limits, in seconds, of the time in which a worker starts steps, and in which a dialogue starts rounds.
MAX_TURN, MAX_DIALOGUE = 60.0, 90.0
ERASED = "The text was erased before the study finished."
CUT_DIFFERS = "Another version of MemState started this study and cut the text differently; send the text again."
# A worker sleeps during a wait of at most this number of seconds. If a wait is longer, upkeep enqueues the study later.
SHORT_WAIT = 15.0

# The study fails after this many failed tries in a row. The waits between them are about forty minutes in total.
MAX_TRIES = 9
FIRST_WAIT, MAX_BACKOFF = 15.0, 600.0
# If the endpoint rejects this many parts in a row, the parts cannot be the cause, so the study fails.
MAX_REJECTED = 3
# After these ends, the step is continued by another dialogue.
_UNFINISHED = ("time", "limited", "unavailable")

StepRunner = Callable[[StudyJob, BuildStep | LinkStep], LoopEnd]


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
        slot_free = False
        try:
            with slot_acquired() as slot_free, study_lock(f"study:{job_id}") as free:
                if free:
                    _steps_do(job_id, more=slot_free, clock=clock, until=time.monotonic() + seconds)
        finally:
            # The slot and the lock are released before, because the next worker may start at once. If the connection is
            # broken, upkeep enqueues the next study later.
            if slot_free and enqueue is not None:
                with suppress(DatabaseError):
                    study_next(now=clock(), enqueue=enqueue)
    return StudyJob.objects.get(pk=job_id)


def _steps_do(job_id: uuid.UUID, *, more: bool, clock: Clock, until: float) -> None:
    """If there is ``more`` to do, do steps until the monotonic clock reaches ``until``, but at least one step. So there
    is progress even if the time is very short."""
    cuts: list[tuple[int, int]] = []
    try:
        while more:
            more = study_step(job_id, clock=clock, until=until, cuts=cuts) and time.monotonic() < until
    finally:
        with suppress(DatabaseError):
            worker_released(job_id)


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
    if job.phase == Phase.BUILDING:
        content = source_text(job.source_id)
        if content is None:
            raise JobCancelled(ERASED)
        if not cuts:
            cuts.extend(parts_cut(content, at_most=job.part_chars))
        if len(cuts) != job.segments:
            # This version of MemState cuts texts differently. Continuing could leave out text without an error.
            raise JobFailed(CUT_DIFFERS)
        step: BuildStep | LinkStep = BuildStep(job, content, cuts, principal=principal, now=clock())
    else:
        step = LinkStep(job, principal=principal, clock=clock)
    loop = LoopEnd() if step.empty else speak(job, step)
    step.prepare()
    now = clock()
    with transaction.atomic():
        # Lock the topics before the job. A purge uses the same order.
        exists = step.lock(loop.log)
        locked = job_hold(job)
        if not exists:
            # The text was erased during the step, so nothing that the model made from the text may be stored.
            raise JobCancelled(ERASED)
        job_principal(locked, now=now)
        return _result_store(locked, step, loop, now=now)


def _timeout() -> float:
    return float(str(settings.Q_CLUSTER["timeout"]))


def _model_run(job: StudyJob, step: BuildStep | LinkStep) -> LoopEnd:
    """Let the model do the step in the available time. Takes no locks and writes nothing."""
    mark, timeout = mark_make(), _timeout()
    dialogue = min(MAX_DIALOGUE, timeout * DIALOGUE_SHARE)
    until = time.monotonic() + dialogue
    checks = count()

    def go_on() -> bool:
        # The loop asks before and after each request. The time is checked only before a request, except for the first.
        # So every answer that has arrived is used, and each dialogue makes at least one round.
        check = next(checks)
        if check and check % 2 == 0 and time.monotonic() >= until:
            return False
        return StudyJob.objects.filter(pk=job.pk, status=Status.WORKING).exists()

    return tool_loop_run(
        step.messages(mark),
        step.toolbox(),
        mark=mark,
        purpose="study",
        model=job.model or None,
        go_on=go_on,
        most_rounds=settings.MEMSTATE_CHAT_CHUNK_PER_SEGMENT_TOOL_ROUNDS
        - total(entries_of(job, job.phase, step.at), "rounds"),
        # A request that is sent just before the dialogue ends still gets its full time limit.
        seconds=min(dialogue + settings.MEMSTATE_LLM_TIMEOUT_SECONDS, timeout * ANSWER_SHARE),
    )


def _ended(loop: LoopEnd, problem: ModelProblem) -> Ended:
    """Return how a dialogue ended. ``problem`` is the reason if the model did not answer."""
    if loop.ended == "rounds":
        return "rounds"
    if loop.ended == "done":
        return "done" if loop.rounds else "nothing"
    if isinstance(problem, RequestRejected):
        return "rejected"
    if isinstance(problem, ModelUnusable) and problem.kind != "absent":
        return "refused" if problem.kind == "refused" else "unusable"
    if problem.kind == "timeout" and loop.rounds:
        return "time"
    return "limited" if isinstance(problem, RateLimited) else "unavailable"


def _result_store(job: StudyJob, step: BuildStep | LinkStep, loop: LoopEnd, *, now: dt.datetime) -> bool:
    """Store the result of a step and the progress of the locked job. Return whether the study continues."""
    problem = loop.problem or ModelProblem("The language model did not answer in time.", kind="timeout")
    ended: Ended = "empty" if step.empty else _ended(loop, problem)
    finished, failure = ended not in _UNFINISHED, ""
    if finished or loop.rounds:
        entry = {"phase": step.phase, "at": step.at, "to": step.to, "rounds": loop.rounds, "ended": ended}
        counts = step.store(now=now)
        job.steps = [*job.steps, {**entry, **counts}]
        job.topics += counts.get("made", 0)
        job.links += counts.get("links", 0)
        job.merged += counts.get("merged", 0)
        job.tries = 0
    job.moved_at, job.failure = now, ""
    if finished and step.phase == Phase.LINKING:
        job.linked = step.to
    elif finished:
        job.done = step.to
        if job.done >= job.segments:
            job.to_link = job.topics
            job.phase = Phase.WAITING if job.to_link else Phase.LINKING
            job.not_before = now + dt.timedelta(seconds=settings.MEMSTATE_STUDY_PHASE_DELAY_SECONDS)
    if ended == "rejected" and len(_rejected(job)) >= min(MAX_REJECTED, job.segments):
        failure = problem.sentence
    elif ended in ("limited", "unavailable"):
        failure = _wait(job, problem, now=now)
    if failure:
        _rejected_drop(job)
    job.warning = warning_of(job)
    if failure:
        job_finish(job, Status.FAILED, now=now, failure=failure)
        return False
    if job.phase == Phase.LINKING and job.linked >= job.to_link:
        job_finish(job, Status.DONE, now=now)
        return False
    job.save()
    return True


def _wait(job: StudyJob, problem: ModelProblem, *, now: dt.datetime) -> str:
    """Let the study wait until the next try. Return the reason if it fails instead; otherwise an empty text."""
    job.tries, job.failure = job.tries + 1, problem.sentence
    wait = (problem.wait if isinstance(problem, RateLimited) else None) or backoff(job.tries)
    job.not_before = now + dt.timedelta(seconds=wait)
    if isinstance(problem, ModelUnusable) or problem.kind == "not_configured":
        # The endpoint does not have the requested model, or there is none. So all other parts would fail, too.
        return problem.sentence
    if wait >= MAX_WAIT_SECONDS:
        return "The language model is rate-limiting requests for a day or longer."
    if job.tries >= MAX_TRIES:
        return f"The language model was unavailable {job.tries} times in a row. {problem.sentence}"
    return ""


def backoff(tries: int) -> float:
    """Return the seconds to wait after this number of failed tries in a row: 15, 30, 60, ..., at most 600."""
    return float(min(MAX_BACKOFF, FIRST_WAIT * 2.0 ** min(tries - 1, 30)))


def _rejected(job: StudyJob) -> list[dict[str, Any]]:
    """Return the rejected steps at the end of the record, the last one first."""
    return list(takewhile(lambda each: each["ended"] == "rejected" and not each["rounds"], reversed(job.steps)))


def _rejected_drop(job: StudyJob) -> None:
    """Remove the rejected steps at the end of the record of a failed study, so that a resumed study repeats them."""
    for last in _rejected(job):
        job.steps = job.steps[:-1]
        if last["phase"] == Phase.BUILDING:
            job.done, job.phase, job.not_before, job.to_link = last["at"], Phase.BUILDING, None, 0
        else:
            job.linked = last["at"]
