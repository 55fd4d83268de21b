"""The ladder: on which rung a topic of some score belongs. Pure Python; ``memory/forgetting`` has the SQL.

Rungs are numbers, as in ``memory.models.Rung``: 0 active, 1 summarized, 2 detached, 3 archived.
"""

ACTIVE, SUMMARIZED, DETACHED, ARCHIVED = range(4)

# A topic climbs back only above a threshold times this, and steps down only below the threshold itself. So one whose
# score wavers around a threshold is not moved to and fro by every run.
CLIMB_MARGIN = 1.1


def rung_target(rung: int, score: float, *, archive_due: bool, theta_summary: float, theta_detach: float) -> int:
    """Return the rung where a topic that stands on ``rung`` belongs; ``theta_summary >= theta_detach``.

    ``archive_due`` is the judgement of the strategy. Archived topics stay: they return only by restore. Judging the
    result again with the same score changes nothing.
    """
    if archive_due or rung == ARCHIVED:
        return ARCHIVED
    above = ACTIVE if score > theta_summary * CLIMB_MARGIN else SUMMARIZED
    if rung == DETACHED:
        return above if score > theta_detach * CLIMB_MARGIN else DETACHED
    if score < theta_detach:
        return DETACHED
    if rung == SUMMARIZED:
        return above
    return SUMMARIZED if score < theta_summary else ACTIVE
