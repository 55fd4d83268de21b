"""Types of the callables that rooms receive: the clock, and what enqueues a job."""

import datetime as dt
import uuid
from collections.abc import Callable

# Returns the current time. For work that takes so long that a single ``now`` will not do.
Clock = Callable[[], dt.datetime]
# Enqueues a job for the worker, by its id.
Enqueue = Callable[[uuid.UUID], None]
