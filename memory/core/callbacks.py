"""Types of the callables that functions receive as arguments: the clock, and the function that enqueues a job."""

import datetime as dt
import uuid
from collections.abc import Callable

# Returns the current time. Used where work takes so long that one value of ``now`` would become wrong.
Clock = Callable[[], dt.datetime]
# Enqueues a job for the worker, by its id.
Enqueue = Callable[[uuid.UUID], None]
