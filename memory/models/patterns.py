"""The last test of a pattern: the database compiles and tries it within a time limit."""

from collections.abc import Iterable

from django.db import DatabaseError, OperationalError, connection, transaction
from psycopg.errors import QueryCanceled

from memory.core.errors import ValueRefused
from memory.core.patterns import pattern_to_postgres
from memory.core.problem_codes import ProblemCode

# Short for a request, but long for a good pattern, which takes well under a millisecond.
TRIAL_MS = 250

# Long texts that make bad patterns slow: one letter, words, digits, and signs.
_TRIAL_SQL = """
SELECT count(*) FROM (VALUES (repeat('a', 2000) || '!'), (repeat('ab cd ', 400)), (repeat('0123456789', 200)),
                             (repeat('.-/ ', 500)), ('')) AS tried (text)
WHERE text ~* %s
"""


def pattern_try(pattern: str) -> None:
    """Let the database compile a pattern and match it against a few long texts, for a quarter of a second at most.

    Called when a rule is saved, after ``pattern_check`` has found no problem. Runs four SQL statements. The savepoint
    is always rolled back, and the time limit with it. Raises ``ValueRefused`` if the pattern is invalid or takes too
    long.
    """
    regex = pattern_to_postgres(pattern)
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(TRIAL_MS)])
                cursor.execute(_TRIAL_SQL, [regex])
            transaction.set_rollback(True)
    except OperationalError as problem:
        if not isinstance(problem.__cause__, QueryCanceled):
            raise
        raise ValueRefused(
            f"The pattern {pattern!r} takes too long to match; make it simpler.", code=ProblemCode.INVALID_PATTERN
        ) from None
    except DatabaseError as problem:
        reason = str(problem).splitlines()[0]
        raise ValueRefused(
            f"The database does not understand the pattern {pattern!r}: {reason}.", code=ProblemCode.INVALID_PATTERN
        ) from None


def patterns_try(patterns: Iterable[str]) -> None:
    """Try several patterns, each once; see ``pattern_try``."""
    for pattern in dict.fromkeys(patterns):
        pattern_try(pattern)
