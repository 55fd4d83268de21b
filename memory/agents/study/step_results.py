"""What the end of a dialogue means for the study: the step is done, goes on, waits, or the study has failed."""

from dataclasses import dataclass

from memory.agents.study.ids import Ended, Phase
from memory.agents.tools.loop import LoopEnd
from memory.llm.wire import MOST_WAIT_SECONDS, ModelProblem, ModelUnusable, RateLimited, RequestRejected
from memory.models import StudyJob

# In a row, without one answer in between; with the waits below, for some forty minutes.
MOST_TRIES = 9
FIRST_WAIT, MOST_BACKOFF = 15.0, 600.0
# An endpoint that asks for a day is not waited for. More is never asked for: what goes beyond is cut (``llm.wire``).
MOST_WAIT = MOST_WAIT_SECONDS
# So many parts in a row that the endpoint does not take are no matter of the parts.
MOST_REJECTED = 3


@dataclass(frozen=True, slots=True)
class End:
    """``whole``: the step is done. ``wait``: seconds until it may go on, because the model is of no help at present,
    as ``sentence`` says. ``failure``: the study has failed."""

    ended: Ended
    whole: bool
    rounds: int = 0
    tries: int = 0
    wait: float | None = None
    sentence: str = ""
    failure: str = ""


def end_of(loop: LoopEnd, *, tries: int) -> End:
    """Return what the end of a dialogue means. ``tries`` counts how often the model was of no help before it."""
    rounds = loop.rounds
    match loop.ended:
        case "done":
            return End("done" if rounds else "nothing", True, rounds)
        case "rounds":
            return End("rounds", True, rounds)
        case "time" if rounds:
            return End("time", False, rounds)
    problem = loop.problem or ModelProblem("The language model did not answer in time.", kind="timeout")
    if isinstance(problem, RequestRejected):
        return End("rejected", True, rounds, sentence=problem.sentence)
    if isinstance(problem, ModelUnusable):
        if problem.kind == "absent":
            # A model that was named, and that the endpoint does not know: no matter of this part.
            return End("unavailable", False, rounds, failure=problem.sentence)
        return End("refused" if problem.kind == "refused" else "unusable", True, rounds)
    if problem.kind == "timeout" and rounds:
        return End("time", False, rounds)
    return _waiting(problem, rounds, tries=1 if rounds else tries + 1)


def backoff(tries: int) -> float:
    """Return how many seconds to wait after so many tries in a row: 15, 30, 60 ... ten minutes at most."""
    return float(min(MOST_BACKOFF, FIRST_WAIT * 2.0 ** min(tries - 1, 30)))


def unwound(job: StudyJob) -> None:
    """Take parts off a failed study that the endpoint did not take, so that it begins with them when it is resumed."""
    while job.steps and job.steps[-1]["ended"] == "rejected" and not job.steps[-1]["rounds"]:
        last = job.steps[-1]
        if last["phase"] == Phase.BUILDING:
            job.done, job.phase, job.not_before, job.to_link = last["at"], Phase.BUILDING, None, 0
        else:
            job.linked = last["at"]
        job.steps = job.steps[:-1]


def rejected_in_a_row(job: StudyJob) -> bool:
    """Tell whether the endpoint has not taken anything for so many steps that it will not take the next one either."""
    last = job.steps[-MOST_REJECTED:]
    return len(last) == min(MOST_REJECTED, job.segments) and all(
        each["ended"] == "rejected" and not each["rounds"] for each in last
    )


def _waiting(problem: ModelProblem, rounds: int, *, tries: int) -> End:
    limited = isinstance(problem, RateLimited)
    wait = (problem.wait if isinstance(problem, RateLimited) else None) or backoff(tries)
    failure = ""
    if problem.kind == "not_configured":
        failure = problem.sentence
    elif wait >= MOST_WAIT:
        failure = "The language model is rate-limiting requests for a day or longer."
    elif tries >= MOST_TRIES:
        failure = f"The language model was of no help {tries} times in a row. {problem.sentence}"
    return End("limited" if limited else "unavailable", False, rounds, tries, wait, problem.sentence, failure)
