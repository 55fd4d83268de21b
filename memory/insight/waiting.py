"""What waits for a person: held runs, undecided duplicates and failed jobs. Read-only."""

import datetime as dt
from dataclasses import dataclass

from django.db import connection

from memory.health import FAILURES_WITHIN

_WAITING_SQL = """
SELECT (SELECT count(*) FROM memory_forgetrun WHERE status = 'held'),
       (SELECT count(*) FROM memory_duplicatepair WHERE state = 'open'),
       (SELECT count(*) FROM django_q_task WHERE NOT success AND stopped >= %s)
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many runs are held, how many pairs of duplicates are undecided, and how many jobs failed within a day."""

    runs: int
    duplicates: int
    failures: int

    @property
    def any(self) -> bool:
        """Whether anything waits."""
        return bool(self.runs or self.duplicates or self.failures)


def waiting_counts(now: dt.datetime) -> Waiting:
    """Return what waits in the whole store. One query on small tables."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING_SQL, [now - FAILURES_WITHIN])
        return Waiting(*cursor.fetchone())
