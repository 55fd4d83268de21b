"""One row of the scheduler's tables, read: which job it is, in words, and for which scope."""

import ast
from typing import Any

from django_q.models import Schedule

from memory.core.errors import NotVisible
from memory.core.problem_codes import ProblemCode
from memory.jobs.tasks import JOBS
from memory.policy.schedules import FUNCTION

MOST_MINUTES = 24 * 60
# As health sees it, the worker has gone missing if upkeep comes less often.
MOST_MINUTES_UPKEEP = 2
UPKEEP = "memory.jobs.tasks.upkeep"
# How many times a schedule still fires.
FOR_EVER, NEVER = -1, 0


def schedule_args(row: Schedule) -> tuple[Any, ...]:
    """Return the arguments of a schedule's job."""
    # As the scheduler reads them: a Python literal.
    read = ast.literal_eval(row.args) if row.args else ()
    return read if isinstance(read, tuple) else (read,)


def schedule_scope(row: Schedule) -> str:
    """Return the scope of the policy that a schedule follows, nothing if it follows none."""
    return str(schedule_args(row)[0]) if row.func == FUNCTION else ""


def schedule_title(row: Schedule) -> str:
    """Return what a schedule's job is called."""
    return JOBS[row.func].title if row.func in JOBS else str(row.name or row.func)


def minutes_at_most(row: Schedule) -> int:
    """Return how many minutes may lie between two times of a schedule."""
    return MOST_MINUTES_UPKEEP if row.func == UPKEEP else MOST_MINUTES


def last_line(result: object) -> str:
    """Return the last line of what a failed job left."""
    # The queue keeps the words of an exception, a colon, and its traceback.
    lines = [line.strip() for line in str(result or "").strip().splitlines() if line.strip()]
    return lines[-1][:500] if lines else "It left no word."


def schedule_not_found() -> NotVisible:
    """Return the refusal for a schedule that is not there."""
    return NotVisible(
        "There is no such schedule; it may have gone with its policy.", code=ProblemCode.SCHEDULE_NOT_FOUND
    )
