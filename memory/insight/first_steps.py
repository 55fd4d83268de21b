"""Which of the first steps with a store have been taken. Read-only."""

from dataclasses import dataclass

from django.db import connection

# Each part stops at its first row.
_STEPS_SQL = """
SELECT EXISTS (SELECT 1 FROM memory_topic),
       NOT EXISTS (SELECT 1 FROM memory_topicvector WHERE embedding IS NULL),
       EXISTS (SELECT 1 FROM memory_apikey WHERE last_used_at IS NOT NULL)
           OR EXISTS (SELECT 1 FROM memory_accesslog WHERE kind = 'query'),
       EXISTS (SELECT 1 FROM memory_accesslog WHERE kind = 'query'),
       EXISTS (SELECT 1 FROM memory_forgetrun WHERE dry_run),
       (SELECT prefix FROM memory_apikey WHERE role = 'agent' AND revoked_at IS NULL ORDER BY created_at LIMIT 1)
"""


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """Which steps have been taken: there are topics, all have vectors (``embedded``), a key was used or there was a
    query (``key``), there was a query (``recall``) and a dry run. ``prefix`` is the prefix of the oldest agent key that
    is not revoked, or None."""

    topics: bool
    embedded: bool
    key: bool
    recall: bool
    dry_run: bool
    prefix: str | None

    @property
    def done(self) -> bool:
        """Whether the list of first steps is no longer needed."""
        return self.topics and self.key and self.recall and self.dry_run


def first_steps() -> FirstSteps:
    """Return the steps taken in the whole store. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_STEPS_SQL)
        return FirstSteps(*cursor.fetchone())
