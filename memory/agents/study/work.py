"""The worker's part of a study: one step after the other, each stored in one transaction with the note that it is done.

So a killed worker loses the step it was at and repeats none. A step is one dialogue with the model. If that is cut
short, because the time of a turn is over or the model asks to wait, what it wrote so far is stored, with the rounds it
took; the next dialogue about the same step goes on with the rounds that are left. So a step comes to an end however
slow the model is, as long as it answers once in a turn; if it does not, the job waits longer and longer, and fails.
"""

import datetime as dt
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from django.conf import settings
from django.db import DatabaseError, transaction

from memory.access.impersonation import job_writer, owner_lost_access
from memory.agents.study.build_step import Part
from memory.agents.study.control import ERASED, Status, study_finish
from memory.agents.study.ids import Phase, rounds_in
from memory.agents.study.link_step import Placing
from memory.agents.study.progress import warning_of
from memory.agents.study.queue import alone, place_taken, study_next, turn_over, turn_taken
from memory.agents.study.step_results import MOST_TRIES, End, backoff, end_of, rejected_in_a_row, unwound
from memory.agents.tools.loop import LoopEnd, tool_loop_run
from memory.agents.tools.tool import Toolbox, ToolCalled
from memory.core.callbacks import Clock, Enqueue
from memory.core.errors import failure_sentence
from memory.extraction.parts import parts_cut
from memory.extraction.store import source_text
from memory.llm.chat_request import mark_make
from memory.llm.dialogue import Message
from memory.models import StudyJob

# Shares of MEMSTATE_JOB_TIMEOUT, after which the worker would be killed. Together they leave a fifth of it to write.
TURN_SHARE, DIALOGUE_SHARE, ANSWER_SHARE = 0.2, 0.3, 0.6
# No turn begins another step after so long, and no dialogue another round.
MOST_TURN, MOST_DIALOGUE = 60.0, 90.0
CUT_OTHERWISE = "It was begun by another version of MemState, which cut texts otherwise; send the text again."
# A wait this short is spent in the turn, with nothing held; upkeep, which comes each minute, ends a longer one.
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


Speak = Callable[[StudyJob, StudyStep], LoopEnd]


def turn_seconds() -> float:
    """Return for how long a worker may begin steps of a study."""
    return min(MOST_TURN, _timeout() * TURN_SHARE)


def study_work(
    job_id: uuid.UUID, *, clock: Clock, seconds: float, turn: int | None = None, enqueue: Enqueue | None = None
) -> StudyJob:
    """Study parts of a text, then place what came of it, until it is done or ``seconds`` have passed, and return it.

    Safe to call again after a kill at any moment. While one process is at a job, another one leaves it alone; if both
    should come through, whoever is second throws its work away. A wait of more than some seconds gives the worker back:
    ``studies_stalled`` tells when it is over. Where all places are taken it leaves at once, and is called later.
    At the end of a turn the study that has waited longest is handed over, which may be this one. ``turn`` is the number
    that the entry of the queue bears (``queue``).
    """
    if turn_taken(job_id, turn):
        try:
            placed = _turn(job_id, clock=clock, until=time.monotonic() + seconds)
        except Exception:
            with suppress(DatabaseError):
                _leave(clock=clock, enqueue=enqueue)
            raise
        if placed:
            _leave(clock=clock, enqueue=enqueue)
    return StudyJob.objects.get(pk=job_id)


def _turn(job_id: uuid.UUID, *, clock: Clock, until: float) -> bool:
    """Do steps until ``until``; tell whether there was a place to do them."""
    more, first = True, True
    cuts: list[tuple[int, int]] = []
    with place_taken() as placed, alone(f"study:{job_id}") as free:
        try:
            # One step at least, so that a turn that is too short comes forward too.
            while placed and free and more and (first or time.monotonic() < until):
                more, first = study_forward(job_id, clock=clock, until=until, cuts=cuts), False
        except Exception:
            # The failure is noted, and when to go on; a broken connection is a matter of upkeep.
            with suppress(DatabaseError):
                turn_over(job_id)
            raise
        if free:
            turn_over(job_id)
    return placed


def _leave(*, clock: Clock, enqueue: Enqueue | None) -> None:
    """Call the next. Once the place and the job are free: whoever takes it up may be there at once, and whoever came
    meanwhile, after a resume, was sent away."""
    if enqueue is not None:
        study_next(now=clock(), enqueue=enqueue)


def study_forward(
    job_id: uuid.UUID, *, clock: Clock, until: float, cuts: list[tuple[int, int]], speak: Speak | None = None
) -> bool:
    """Wait, or do the next step; return whether this turn has more to do. ``cuts`` are found once a turn.

    ``speak`` uses the tools of a step in place of the model. Whoever calls this sees to it that nobody else is at the
    job. Raises what the store raises.
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
        # Taken up: upkeep need not hand it over again.
        job.phase = Phase.LINKING if job.phase == Phase.WAITING else job.phase
        taken = StudyJob.objects.filter(pk=job_id, status=Status.WORKING)
        taken.update(not_before=None, moved_at=clock(), phase=job.phase)
    try:
        return _step(job, clock=clock, cuts=cuts, speak=speak or _spoken)
    except Exception as problem:
        _failure_note(job_id, problem, now=clock())
        raise


def _step(job: StudyJob, *, clock: Clock, cuts: list[tuple[int, int]], speak: Speak) -> bool:
    principal = job_writer(job, now=clock())
    if principal is None:
        return _fail(job, owner_lost_access(job.actor), now=clock())
    step: StudyStep
    if job.phase == Phase.BUILDING:
        content = source_text(job.source_id)
        if content is None:
            return _fail(job, ERASED, now=clock())
        if not cuts:
            cuts.extend(parts_cut(content, at_most=job.part_chars))
        if len(cuts) != job.segments:
            # The cutter is another one since an upgrade. Nothing of the text may be left out in silence.
            return _fail(job, CUT_OTHERWISE, now=clock())
        step = Part(job, content, cuts, principal=principal, now=clock())
    else:
        step = Placing(job, principal=principal, clock=clock)
    end = End("empty", True) if step.empty() else end_of(speak(job, step), tries=job.tries)
    step.prepare()
    now = clock()
    with transaction.atomic():
        # Topics before the job, as a purge locks them.
        there = step.hold()
        held = StudyJob.objects.select_for_update().get(pk=job.pk)
        if held.status != Status.WORKING or (held.phase, len(held.told)) != (job.phase, len(job.told)):
            # Cancelled, or somebody else did it.
            return held.status == Status.WORKING
        if not there:
            # Erased while it was being read. What was read of it must not come back.
            study_finish(held, Status.FAILED, now=now, failure=ERASED)
            return False
        if job_writer(held, now=now) is None:
            study_finish(held, Status.FAILED, now=now, failure=owner_lost_access(held.actor))
            return False
        return _stored(held, step, end, now=now)


def _timeout() -> float:
    return float(str(settings.Q_CLUSTER["timeout"]))


def _spoken(job: StudyJob, step: StudyStep) -> LoopEnd:
    """Let the model do the step, as far as it comes; nothing is locked, and nothing written."""
    mark, timeout = mark_make(), _timeout()
    dialogue = min(MOST_DIALOGUE, timeout * DIALOGUE_SHARE)
    until = time.monotonic() + dialogue
    used = False

    def tick(_called: ToolCalled) -> None:
        nonlocal used
        used = True

    def go_on() -> bool:
        # Out of time is only who has just used tools: an answer that is there is not thrown away, and one round is made
        # however short the time.
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
        # The last answer of a dialogue gets all the time an answer may take.
        seconds=min(dialogue + settings.MEMSTATE_LLM_TIMEOUT_SECONDS, timeout * ANSWER_SHARE),
    )


def _stored(job: StudyJob, step: StudyStep, end: End, *, now: dt.datetime) -> bool:
    """Write what a step came to, and how far the locked job is by it; return whether it can go on at once."""
    if end.whole or end.rounds:
        entry = {"phase": step.phase, "at": step.at, "to": step.to, "rounds": end.rounds, "ended": end.ended}
        counts = step.store(now=now)
        job.told = [*job.told, {**entry, **counts}]
        job.topics += counts.get("made", 0)
        job.links += counts.get("links", 0)
        job.merged += counts.get("merged", 0)
    job.moved_at, job.tries, job.failure = now, end.tries, ""
    if end.whole:
        _advance(job, step.to, now=now)
    job.warning = warning_of(job)
    failure = end.failure or (end.sentence if end.ended == "rejected" and rejected_in_a_row(job) else "")
    if failure:
        unwound(job)
        job.warning = warning_of(job)
        study_finish(job, Status.FAILED, now=now, failure=failure)
        return False
    if end.wait is not None:
        job.not_before, job.failure = now + dt.timedelta(seconds=end.wait), end.sentence
    if job.phase == Phase.LINKING and job.linked >= job.to_link:
        study_finish(job, Status.DONE, now=now)
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


def _failure_note(job_id: uuid.UUID, problem: Exception, *, now: dt.datetime) -> None:
    """Note that a step broke; it is tried again after a while, and not for ever."""
    sentence = failure_sentence(problem)
    with transaction.atomic():
        job = StudyJob.objects.select_for_update().get(pk=job_id)
        if job.status != Status.WORKING:
            return
        job.tries, job.moved_at = job.tries + 1, now
        job.failure = f"The step failed: {sentence}"
        if job.tries >= MOST_TRIES:
            study_finish(job, Status.FAILED, now=now, failure=job.failure)
        else:
            job.not_before = now + dt.timedelta(seconds=backoff(job.tries))
            job.save()


def _fail(job: StudyJob, failure: str, *, now: dt.datetime) -> bool:
    with transaction.atomic():
        held = StudyJob.objects.select_for_update().get(pk=job.pk)
        if held.status == Status.WORKING:
            study_finish(held, Status.FAILED, now=now, failure=failure)
    return False
