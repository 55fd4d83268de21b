"""What waits for a person: held runs, undecided duplicates and failed jobs. Read-only."""

import datetime as dt
from dataclasses import dataclass

from memory.health import FAILURES_WITHIN, failures_open
from memory.models.statements import rows_read

_WAITING_SQL = """
SELECT (SELECT count(*) FROM memory_forgetrun WHERE status = 'held'),
       (SELECT count(*) FROM memory_duplicatepair WHERE state = 'open'),
       (SELECT count(*) FROM ({failures}) x)
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many runs are held, how many pairs of duplicates are undecided, and how many jobs failed within a
    day and were not retried since."""

    runs: int
    duplicates: int
    failures: int

    @property
    def any(self) -> bool:
        """Whether anything waits."""
        return bool(self.runs or self.duplicates or self.failures)


def waiting_counts(now: dt.datetime) -> Waiting:
    """Return what waits in the whole store. One query on small tables."""
    failures, parameters = failures_open(since=now - FAILURES_WITHIN).order_by().values("pk").query.sql_with_params()
    return Waiting(*rows_read(_WAITING_SQL.format(failures=failures), parameters)[0])
