"""What the end of a dialogue means for its step: the step is done, continued or retried later, or the study fails."""

from dataclasses import dataclass

from memory.agents.study.ids import Ended, Phase
from memory.agents.tools.loop import LoopEnd
from memory.llm.wire import MAX_WAIT_SECONDS, ModelProblem, ModelUnusable, RateLimited, RequestRejected
from memory.models import StudyJob

# The study fails after this many failed tries in a row. The waits between them are about forty minutes in total.
MAX_TRIES = 9
FIRST_WAIT, MAX_BACKOFF = 15.0, 600.0
# If the rate limit of the model lasts this long, the study fails. ``llm.wire`` reports longer limits as this value.
MAX_WAIT = MAX_WAIT_SECONDS
# If the endpoint rejects this many parts in a row, the parts cannot be the cause, so the study fails.
MAX_REJECTED = 3


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a dialogue. ``whole`` means that the step is done. If the model is unavailable, ``wait`` is the
    number of seconds until a retry, and ``sentence`` is the reason. If the study fails, ``failure`` is the reason."""

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
    """Return the seconds to wait after this number of failed tries in a row: 15, 30, 60, ..., at most 600."""
    return float(min(MAX_BACKOFF, FIRST_WAIT * 2.0 ** min(tries - 1, 30)))


def rejected_steps_drop(job: StudyJob) -> None:
    """Remove the rejected steps at the end of the record of a failed study, so that a resumed study repeats them."""
    while job.steps and job.steps[-1]["ended"] == "rejected" and not job.steps[-1]["rounds"]:
        last = job.steps[-1]
        if last["phase"] == Phase.BUILDING:
            job.done, job.phase, job.not_before, job.to_link = last["at"], Phase.BUILDING, None, 0
        else:
            job.linked = last["at"]
        job.steps = job.steps[:-1]


def rejected_in_a_row(job: StudyJob) -> bool:
    """Return whether the endpoint has rejected each of the last ``MAX_REJECTED`` steps. If the text has fewer parts,
    their number counts instead."""
    last = job.steps[-MAX_REJECTED:]
    return len(last) == min(MAX_REJECTED, job.segments) and all(
        each["ended"] == "rejected" and not each["rounds"] for each in last
    )


def _waiting(problem: ModelProblem, rounds: int, *, tries: int) -> StepResult:
    limited = isinstance(problem, RateLimited)
    wait = (problem.wait if isinstance(problem, RateLimited) else None) or backoff(tries)
    failure = ""
    if problem.kind == "not_configured":
        failure = problem.sentence
    elif wait >= MAX_WAIT:
        failure = "The language model is rate-limiting requests for a day or longer."
    elif tries >= MAX_TRIES:
        failure = f"The language model was unavailable {tries} times in a row. {problem.sentence}"
    return StepResult("limited" if limited else "unavailable", False, rounds, tries, wait, problem.sentence, failure)
