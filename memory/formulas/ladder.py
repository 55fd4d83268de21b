"""The ladder: on which rung a topic of some score belongs. Pure Python; ``memory/forgetting`` has the SQL.

Rungs are numbers, as in ``memory.models.Rung``: 0 active, 1 summarized, 2 detached, 3 archived.
"""

import numpy as np

from memory.formulas.salience import Numbers

ACTIVE, SUMMARIZED, DETACHED, ARCHIVED = range(4)

# A topic climbs back only above a threshold times this, and steps down only below the threshold itself. So one whose
# score wavers around a threshold is not moved to and fro by every run.
CLIMB_MARGIN = 1.1


def rung_target(
    rung: Numbers, score: Numbers, *, archive_due: Numbers, theta_summary: float, theta_detach: float
) -> Numbers:
    """Return the rung where a topic that stands on ``rung`` belongs; ``theta_summary >= theta_detach``. Of arrays, each
    entry.

    ``archive_due`` is the judgement of the strategy. Archived topics stay: they return only by restore. Judging the
    result again with the same score changes nothing.
    """
    climbing = np.where(score > theta_summary * CLIMB_MARGIN, ACTIVE, SUMMARIZED)
    attached = np.where(score > theta_detach * CLIMB_MARGIN, climbing, DETACHED)
    upper = np.where(rung == SUMMARIZED, climbing, np.where(score < theta_summary, SUMMARIZED, ACTIVE))
    stays = np.where(rung == DETACHED, attached, np.where(score < theta_detach, DETACHED, upper))
    return np.where(archive_due | (rung == ARCHIVED), ARCHIVED, stays)[()]
