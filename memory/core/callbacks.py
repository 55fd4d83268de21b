"""Types of the callables that functions receive as arguments: the clock, and the function that enqueues a job."""

import datetime as dt
import uuid
from collections.abc import Callable

# Returns the current time, for work that takes longer than a single ``now`` is valid.
Clock = Callable[[], dt.datetime]
# Enqueues a job for the worker, by its id.
Enqueue = Callable[[uuid.UUID], None]
