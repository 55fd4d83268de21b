"""The ladder: computes the rung of a topic from its score. Pure Python; ``memory/forgetting/judge.py`` has the SQL.

Rungs are numbers, as in ``memory.models.Rung``: 0 active, 1 summarized, 2 detached, 3 archived.
"""

import numpy as np

from memory.formulas.salience import Numbers

ACTIVE, SUMMARIZED, DETACHED, ARCHIVED = range(4)

# A topic moves down if its score is below a threshold, and up again only if the score is above the threshold times this
# factor. So a topic whose score varies around a threshold is not moved back and forth.
CLIMB_MARGIN = 1.1


def rung_target(
    rung: Numbers, score: Numbers, *, archive_due: Numbers, theta_summary: float, theta_detach: float
) -> Numbers:
    """Return the rung to which a topic on ``rung`` moves. Also works on arrays. Requires ``theta_summary >=
    theta_detach``.

    ``archive_due`` says whether the strategy archives the topic. Archived topics stay archived until a restore. The
    function is idempotent for a constant score.
    """
    climbing = np.where(score > theta_summary * CLIMB_MARGIN, ACTIVE, SUMMARIZED)
    attached = np.where(score > theta_detach * CLIMB_MARGIN, climbing, DETACHED)
    upper = np.where(rung == SUMMARIZED, climbing, np.where(score < theta_summary, SUMMARIZED, ACTIVE))
    stays = np.where(rung == DETACHED, attached, np.where(score < theta_detach, DETACHED, upper))
    return np.where(archive_due | (rung == ARCHIVED), ARCHIVED, stays)[()]
