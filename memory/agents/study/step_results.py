"""What the end of a dialogue means for its step: done, to be continued, to be retried later, or a failure of the
study."""

from dataclasses import dataclass

from memory.agents.study.ids import Ended, Phase
from memory.agents.tools.loop import LoopEnd
from memory.llm.wire import MOST_WAIT_SECONDS, ModelProblem, ModelUnusable, RateLimited, RequestRejected
from memory.models import StudyJob

# The study fails after so many failed tries in a row. With the waits between them they take about forty minutes.
MOST_TRIES = 9
FIRST_WAIT, MOST_BACKOFF = 15.0, 600.0
# If the model is rate limited for this long, the study fails. Longer rate limits are reported as this (``llm.wire``).
MOST_WAIT = MOST_WAIT_SECONDS
# If the endpoint rejects this many parts in a row, the parts are not the cause, and the study fails.
MOST_REJECTED = 3


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a dialogue. ``whole`` means that the step is done. ``wait`` is the number of seconds until a retry,
    because the model is unavailable for the reason in ``sentence``. ``failure`` is the reason if the study has
    failed."""

    ended: Ended
    whole: bool
    rounds: int = 0
    tries: int = 0
    wait: float | None = None
    sentence: str = ""
    failure: str = ""


def step_result(loop: LoopEnd, *, tries: int) -> StepResult:
    """Return the result of a dialogue. ``tries`` is the number of failed tries before this dialogue."""
    rounds = loop.rounds
    match loop.ended:
        case "done":
            return StepResult("done" if rounds else "nothing", True, rounds)
        case "rounds":
            return StepResult("rounds", True, rounds)
        case "time" if rounds:
            return StepResult("time", False, rounds)
    problem = loop.problem or ModelProblem("The language model did not answer in time.", kind="timeout")
    if isinstance(problem, RequestRejected):
        return StepResult("rejected", True, rounds, sentence=problem.sentence)
    if isinstance(problem, ModelUnusable):
        if problem.kind == "absent":
            # The endpoint does not have the requested model, so all other parts would fail, too.
            return StepResult("unavailable", False, rounds, failure=problem.sentence)
        return StepResult("refused" if problem.kind == "refused" else "unusable", True, rounds)
    if problem.kind == "timeout" and rounds:
        return StepResult("time", False, rounds)
    return _waiting(problem, rounds, tries=1 if rounds else tries + 1)


def backoff(tries: int) -> float:
    """Return the seconds to wait after this many failed tries in a row: 15, 30, 60 ... at most ten minutes."""
    return float(min(MOST_BACKOFF, FIRST_WAIT * 2.0 ** min(tries - 1, 30)))


def rejected_steps_drop(job: StudyJob) -> None:
    """Remove the rejected steps at the end of a failed study from its record, so that a resumed study repeats them."""
    while job.steps and job.steps[-1]["ended"] == "rejected" and not job.steps[-1]["rounds"]:
        last = job.steps[-1]
        if last["phase"] == Phase.BUILDING:
            job.done, job.phase, job.not_before, job.to_link = last["at"], Phase.BUILDING, None, 0
        else:
            job.linked = last["at"]
        job.steps = job.steps[:-1]


def rejected_in_a_row(job: StudyJob) -> bool:
    """Return True if the endpoint has rejected the last ``MOST_REJECTED`` steps."""
    last = job.steps[-MOST_REJECTED:]
    return len(last) == min(MOST_REJECTED, job.segments) and all(
        each["ended"] == "rejected" and not each["rounds"] for each in last
    )


def _waiting(problem: ModelProblem, rounds: int, *, tries: int) -> StepResult:
    limited = isinstance(problem, RateLimited)
    wait = (problem.wait if isinstance(problem, RateLimited) else None) or backoff(tries)
    failure = ""
    if problem.kind == "not_configured":
        failure = problem.sentence
    elif wait >= MOST_WAIT:
        failure = "The language model is rate-limiting requests for a day or longer."
    elif tries >= MOST_TRIES:
        failure = f"The language model was unavailable {tries} times in a row. {problem.sentence}"
    return StepResult("limited" if limited else "unavailable", False, rounds, tries, wait, problem.sentence, failure)
