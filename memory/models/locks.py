"""What a database says when others hold what somebody wants."""

from psycopg.errors import DeadlockDetected, LockNotAvailable


def lock_missed(problem: BaseException) -> bool:
    """Tell whether a statement failed because others held a lock for too long, or waited in a circle with it: the same
    may well succeed a moment later."""
    return isinstance(problem.__cause__, LockNotAvailable | DeadlockDetected)
