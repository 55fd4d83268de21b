"""Which of the first steps with a store have been taken. Read-only."""

from dataclasses import dataclass

from memory.models.statements import rows_read

# Only a key makes a real recall. The recalls of the demo have names of agents instead.
_RECALLED_SQL = "EXISTS (SELECT 1 FROM memory_accesslog WHERE kind = 'query' AND starts_with(actor, 'key:'))"
# Each EXISTS stops at its first row.
_STEPS_SQL = f"""
SELECT EXISTS (SELECT 1 FROM memory_topic),
       NOT EXISTS (SELECT 1 FROM memory_topicvector WHERE embedding IS NULL),
       EXISTS (SELECT 1 FROM memory_apikey WHERE last_used_at IS NOT NULL) OR {_RECALLED_SQL},
       {_RECALLED_SQL},
       EXISTS (SELECT 1 FROM memory_forgetrun WHERE event NOT IN ('by_hand', 'revise')),
       (SELECT prefix FROM memory_apikey WHERE role = 'agent' AND revoked_at IS NULL ORDER BY created_at LIMIT 1)
"""


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """Which steps have been taken. ``embedded``: all topics have vectors. ``key``: a key was used. ``recall``: a
    query was made with a key. ``run``: there is a run. ``prefix`` is the prefix of the oldest agent key that is not
    revoked, or None."""

    topics: bool
    embedded: bool
    key: bool
    recall: bool
    run: bool
    prefix: str | None

    @property
    def done(self) -> bool:
        """Whether the list of first steps is no longer needed."""
        return self.run


def first_steps() -> FirstSteps:
    """Return the steps taken in the whole store. One query."""
    return FirstSteps(*rows_read(_STEPS_SQL)[0])
