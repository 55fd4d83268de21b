"""Title, scope and limits of a row of the scheduler's tables."""

import ast
from typing import Any

from django_q.models import Schedule

from memory.core.errors import NotVisible
from memory.jobs.tasks import TASKS
from memory.policy.schedules import FUNCTION

MAX_MINUTES = 24 * 60
# With longer intervals, the health check would report the worker as missing.
MAX_MINUTES_UPKEEP = 2
UPKEEP = "memory.jobs.tasks.upkeep"
# Values of ``Schedule.repeats``: repeat without end, or paused.
FOR_EVER, NEVER = -1, 0


def schedule_args(row: Schedule) -> tuple[Any, ...]:
    """Return the arguments of a schedule's job."""
    # The scheduler stores the arguments as a Python literal.
    read = ast.literal_eval(row.args) if row.args else ()
    return read if isinstance(read, tuple) else (read,)


def schedule_scope(row: Schedule) -> str:
    """Return the scope of the policy that a schedule follows; empty if it follows none."""
    return str(schedule_args(row)[0]) if row.func == FUNCTION else ""


def schedule_title(row: Schedule) -> str:
    """Return the title of a schedule's job."""
    return TASKS[row.func].title if row.func in TASKS else str(row.name or row.func)


def minutes_at_most(row: Schedule) -> int:
    """Return the largest allowed number of minutes between two runs of a schedule."""
    return MAX_MINUTES_UPKEEP if row.func == UPKEEP else MAX_MINUTES


def last_line(result: object) -> str:
    """Return the last line of the result of a failed job."""
    # The queue stores the message of an exception, a colon, and its traceback.
    lines = [line.strip() for line in str(result or "").strip().splitlines() if line.strip()]
    return lines[-1][:500] if lines else "No error message."


def schedule_not_found() -> NotVisible:
    """Return the problem for a schedule that does not exist."""
    return NotVisible("There is no such schedule; it may have been removed with its policy.")
