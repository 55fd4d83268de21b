"""What rooms are handed to call: the clock, and the door to the worker."""

import datetime as dt
import uuid
from collections.abc import Callable

# The time at this moment, for what takes long enough that one moment will not do.
Clock = Callable[[], dt.datetime]
# Asks the worker to go on with a job, by its id.
HandOver = Callable[[uuid.UUID], None]
