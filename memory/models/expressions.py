"""The formulas of ``memory.domain.salience`` as SQL, for statements that work on many rows at once.

``tests/properties/test_salience_equality.py`` proves each equal to its Python twin.
"""

from memory.domain.salience import FADE_FLOOR_LAG, LEAST_SALIENCE, MAX_HALVINGS


def epoch_sql(moment: str) -> str:
    """Return a timestamp as seconds since 1970, as a double."""
    return f"extract(epoch from {moment})::float8"


def decay_sql(seconds: str, half_life: str) -> str:
    """Return the factor ``2**(-seconds / half_life)``; negative times count as none, as in ``decayed``."""
    return f"power(2::float8, -least(greatest(0, {seconds}) / {half_life}, {MAX_HALVINGS}))"


def faded_sql(value: str, factor: str) -> str:
    """Return ``value`` times ``factor``, a decay; too little to fade further is nothing, as in ``decayed``."""
    return f"(CASE WHEN {value} < {LEAST_SALIENCE} THEN 0 ELSE {value} * {factor} END)"


def salience_effective_sql(row: str, now: str) -> str:
    """Return the effective salience at ``now`` (a timestamp) of ``row``, an alias of Vitality or Field."""
    elapsed = f"{epoch_sql(now)} - {epoch_sql(f'{row}.reinforced_at')}"
    return faded_sql(f"{row}.salience", decay_sql(elapsed, f"{row}.half_life"))


def fade_key_sql(salience: str, *, reinforced_at: str, half_life: str) -> str:
    """Return the fade key, as ``fade_key``: minus infinity for a salience of 0."""
    return (
        f"CASE WHEN {salience} <= 0 THEN '-Infinity'::float8 "
        f"ELSE {epoch_sql(reinforced_at)} + {half_life} * (ln({salience}) / ln(2::float8)) END"
    )


def fade_floor_sql(floor: str, *, fade: str, half_life: str) -> str:
    """Return the indexed floor after the key has become ``fade``, as ``fade_floor_after``."""
    # Minus infinity less minus infinity would be an error in PostgreSQL, so equality is asked first.
    return (
        f"CASE WHEN {floor} = {fade} THEN {floor} "
        f"WHEN {floor} < {fade} AND {floor} >= {fade} - {FADE_FLOOR_LAG} * {half_life} THEN {floor} ELSE {fade} END"
    )


def scope_within_sql(column: str, *, scope: str = "scope", below: str = "below") -> str:
    """Return the condition that ``column``, a scope's id, is ``%(scope)s`` or below it; ``%(below)s`` ends in a slash.

    The scopes are looked up once per statement, not once per row.
    """
    # "Begins with /a/" as a range, which the pattern index of the paths serves whatever the parameter is: after "/"
    # comes "0". The comparison is by code point on every server.
    beyond = f"left(%({below})s::text, -1) || '0'"
    paths = (
        f"SELECT id FROM memory_scope WHERE path = %({scope})s::text "
        f"OR (path ~>=~ %({below})s::text AND path ~<~ ({beyond}))"
    )
    return f"{column} = ANY(ARRAY({paths}))"
