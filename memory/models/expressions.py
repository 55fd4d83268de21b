"""The formulas of ``memory.core`` as SQL, for statements that work on many rows at once.

``tests/properties/test_salience_equality.py`` and ``test_strategy_equality.py`` compare each with its
Python version.
"""

from memory.formulas.salience import FADE_FLOOR_LAG, LEAST_SALIENCE, MAX_HALVINGS, SECONDS_PER_DAY
from memory.formulas.strategies import (
    BOOST_MAX,
    BOOST_STEP,
    FACTOR_FLOOR,
    KIND_WEIGHT_ELSE,
    KIND_WEIGHTS,
    RELEVANCE_AGE,
    RELEVANCE_AGE_DAYS,
    RELEVANCE_FULL_USE,
    RELEVANCE_IDLE,
    RELEVANCE_IDLE_DAYS,
    RELEVANCE_KIND,
    RELEVANCE_USE,
)
from memory.models.topics import Rung


def rung_label_sql(rung: str) -> str:
    """Return the label of a rung; null for null."""
    labels = ", ".join(f"'{label}'" for label in Rung.labels)
    return f"(ARRAY[{labels}])[{rung} + 1]"


def epoch_sql(at: str) -> str:
    """Return a timestamp as seconds since 1970, as a double. Not by ``extract``, which computes a slower decimal
    number."""
    return f"date_part('epoch', {at})"


def reinforcement_share_sql(relevance: str, *, min_relevance: str) -> str:
    """Return the share of the bump that a retrieved topic gets, as ``reinforcement_share``."""
    return (
        f"(CASE WHEN {min_relevance} = 0 THEN 1 WHEN {relevance} < {min_relevance} THEN 0"
        f" ELSE coalesce({relevance}, 1) END)"
    )


def share_of_topic_sql(access: str, topic: str) -> str:
    """Return the share of the bump that a topic gets from the row ``access`` of the access log."""
    relevance = f"{access}.relevances[array_position({access}.topic_ids, {topic})]"
    return reinforcement_share_sql(relevance, min_relevance=f"{access}.min_relevance")


def decay_sql(seconds: str, half_life: str) -> str:
    """Return the factor ``2**(-seconds / half_life)``. Negative times count as 0, as in ``decayed``."""
    return f"power(2::float8, -least(greatest(0, {seconds}) / {half_life}, {MAX_HALVINGS}))"


def faded_sql(value: str, factor: str) -> str:
    """Return ``value`` times the decay ``factor``. Values too small to fade further become 0, as in ``decayed``."""
    return f"(CASE WHEN {value} < {LEAST_SALIENCE} THEN 0 ELSE {value} * {factor} END)"


def partition_idle_sql(scope: str, now: str) -> str:
    """Return the idle seconds before ``now`` of the partition of ``scope``, the id of a scope, as
    ``PartitionTime.idle``.

    For few rows only: this subquery reads one scope and all rows of activity.
    """
    at = epoch_sql(now)
    spans = _idle_spans_sql(f"greatest(0, least({at}, a.idle_spans[n + 1]) - a.idle_spans[n])")
    return f"coalesce({_partition_sql(scope, f'greatest(0, {at} - a.active_until) + {spans}')}, 0)"


def partition_end_sql(scope: str) -> str:
    """Return the end of the last active day of the partition of ``scope``, the id of a scope, in the time of its clock,
    or null. For few rows only."""
    return _partition_sql(scope, f"a.active_until - {_idle_spans_sql('a.idle_spans[n + 1] - a.idle_spans[n]')}")


def _idle_spans_sql(length: str) -> str:
    return f"(SELECT coalesce(sum({length}), 0) FROM generate_series(1, cardinality(a.idle_spans), 2) n)"


def _partition_sql(scope: str, value: str) -> str:
    """Return ``value`` of the row of activity ``a`` that covers ``scope``, the id of a scope."""
    return f"""(
        SELECT {value} FROM memory_scope place JOIN memory_partitionactivity a
          ON a.scope IN ('/', place.path) OR starts_with(place.path, a.scope || '/')
        WHERE place.id = {scope} ORDER BY length(a.scope) DESC LIMIT 1
    )"""


def skipped_sql(row: str, idle: str) -> str:
    """Return the seconds since the last reinforcement of ``row`` that do not count, as ``PartitionTime.skipped``.
    ``idle`` are the idle seconds of its partition until now."""
    return f"(CASE WHEN {row}.wall THEN 0 ELSE {idle} - {row}.idle_before END)"


def counted_sql(row: str, *, at: str = "", idle: str = "", wall: str = "") -> str:
    """Return ``at`` as an epoch in the time of the clock of ``row``, as ``PartitionTime.counted``.

    ``idle`` are the idle seconds before ``at``. By default, both are those of the last reinforcement.
    """
    at, idle, wall = at or f"{row}.reinforced_at", idle or f"{row}.idle_before", wall or f"{row}.wall"
    return f"({epoch_sql(at)} - CASE WHEN {wall} THEN 0 ELSE {idle} END)"


def _elapsed_sql(row: str, now: str, skipped: str) -> str:
    return f"{epoch_sql(now)} - {epoch_sql(f'{row}.reinforced_at')} - {skipped}"


def salience_effective_sql(row: str, now: str, *, skipped: str) -> str:
    """Return the effective salience at ``now`` (a timestamp) of ``row``, an alias of Vitality or Field."""
    elapsed = _elapsed_sql(row, now, skipped)
    return faded_sql(f"{row}.salience", decay_sql(elapsed, f"{row}.half_life"))


def scope_of_sql(row: str) -> str:
    """Return the id of the scope of ``row``, which has a column with the id of its topic."""
    return f"(SELECT x.scope_id FROM memory_topic x WHERE x.id = {row}.topic_id)"


def salience_now_sql(row: str, now: str, *, scope: str) -> str:
    """Return the effective salience at ``now`` of ``row``, whose topic is in ``scope``, the id of a scope. For few
    rows."""
    return salience_effective_sql(row, now, skipped=skipped_sql(row, partition_idle_sql(scope, now)))


def fade_key_sql(salience: str, *, counted: str, half_life: str) -> str:
    """Return the fade key, as ``fade_key``; minus infinity for a salience of 0. ``counted`` is the time of the last
    reinforcement, as ``counted_sql``."""
    return (
        f"CASE WHEN {salience} <= 0 THEN '-Infinity'::float8 "
        f"ELSE {counted} + {half_life} * (ln({salience}) / ln(2::float8)) END"
    )


def fade_floor_sql(floor: str, *, fade: str, half_life: str) -> str:
    """Return the indexed floor after the key has changed to ``fade``, as ``fade_floor_after``."""
    # Equality is tested first, because minus infinity less minus infinity is an error in PostgreSQL.
    return (
        f"CASE WHEN {floor} = {fade} THEN {floor} "
        f"WHEN {floor} < {fade} AND {floor} >= {fade} - {FADE_FLOOR_LAG} * {half_life} THEN {floor} ELSE {fade} END"
    )


def number_sql(value: float) -> str:
    """Return a number, finite or not, as the literal of exactly this double."""
    return f"'{float(value)!r}'::float8"


def idle_sql(row: str, now: str, *, skipped: str = "0") -> str:
    """Return the seconds since the last retrieval of ``row``, or since its creation, as ``idle_seconds``."""
    since = f"coalesce({row}.last_retrieved_at, {row}.created_at)"
    return f"greatest(0, {epoch_sql(now)} - {epoch_sql(since)} - {skipped})"


def age_sql(row: str, now: str) -> str:
    """Return the seconds since the creation of ``row``."""
    return f"greatest(0, {epoch_sql(now)} - {epoch_sql(f'{row}.created_at')})"


def active_boost_sql(row: str) -> str:
    """Return the part of the active-forgetting score that use adds, as ``active_boost``."""
    count = f"ln(1::float8 + {row}.retrieval_count)"
    return f"least({number_sql(BOOST_MAX)}, {number_sql(BOOST_STEP)} * {count})"


def _active_age_sql(row: str, now: str, active_half_life: float, skipped: str) -> str:
    return f"(1::float8 - {idle_sql(row, now, skipped=skipped)} / {number_sql(2.0 * active_half_life)})"


def active_raw_sql(row: str, *, now: str, active_half_life: float, skipped: str = "0") -> str:
    """Return the score under active forgetting, without the floor, as ``active_raw``."""
    return f"least(1::float8, {_active_age_sql(row, now, active_half_life, skipped)} + {active_boost_sql(row)})"


def active_factor_sql(row: str, *, now: str, active_half_life: float, skipped: str = "0") -> str:
    """Return the published factor with its floor, as ``active_factor``."""
    age_part = f"greatest({number_sql(FACTOR_FLOOR)}, {_active_age_sql(row, now, active_half_life, skipped)})"
    return f"least(1::float8, {age_part} + {active_boost_sql(row)})"


def relevance_sql(row: str, *, now: str, skipped: str = "0") -> str:
    """Return the score under relevance, as ``relevance``."""
    age = f"{age_sql(row, now)} / {number_sql(SECONDS_PER_DAY)} / {number_sql(RELEVANCE_AGE_DAYS)}"
    idle = f"{idle_sql(row, now, skipped=skipped)} / {number_sql(SECONDS_PER_DAY)} / {number_sql(RELEVANCE_IDLE_DAYS)}"
    use = f"least({row}.retrieval_count / {number_sql(RELEVANCE_FULL_USE)}, 1::float8)"
    weights = " ".join(f"WHEN '{kind}' THEN {number_sql(weight)}" for kind, weight in KIND_WEIGHTS.items())
    kind = f"CASE {row}.kind {weights} ELSE {number_sql(KIND_WEIGHT_ELSE)} END"
    return (
        f"({number_sql(RELEVANCE_AGE)} / (1::float8 + {age}) + {number_sql(RELEVANCE_USE)} * {use} "
        f"+ {number_sql(RELEVANCE_IDLE)} / (1::float8 + {idle}) + {number_sql(RELEVANCE_KIND)} * {kind})"
    )


def score_sql(
    strategy: str, *, row: str, now: str, half_life: float, active_half_life: float, skipped: str = "0"
) -> str:
    """Return the score of ``row``, an alias of Vitality, at ``now`` (a timestamp), as ``score``.

    Half-lives are in seconds. They come from the policy and not from ``row.half_life``, because a draft is tried on
    rows that were written with another half-life. ``skipped`` are the seconds that do not count. Raises ``ValueError``
    for an unknown strategy.
    """
    match strategy:
        case "static":
            return f"{row}.salience"
        case "half_life":
            elapsed = _elapsed_sql(row, now, skipped)
            return faded_sql(f"{row}.salience", decay_sql(elapsed, number_sql(half_life)))
        case "active_forgetting":
            return active_raw_sql(row, now=now, active_half_life=active_half_life, skipped=skipped)
        case "relevance":
            return relevance_sql(row, now=now, skipped=skipped)
    raise ValueError(f"Strategy {strategy!r} does not exist.")


def archive_gate_sql(strategy: str, *, row: str, now: str, prune_after: float, skipped: str = "0") -> str:
    """Return the condition that ``row`` has gone unused for ``prune_after`` seconds, as ``archive_gate``."""
    match strategy:
        case "static" | "half_life" | "active_forgetting":
            elapsed = _elapsed_sql(row, now, skipped)
            return f"(greatest(0, {elapsed}) >= {number_sql(prune_after)})"
        case "relevance":
            return f"({idle_sql(row, now, skipped=skipped)} > {number_sql(prune_after)})"
    raise ValueError(f"Strategy {strategy!r} does not exist.")


def ranking_factor_sql(
    ranking_decay: str, *, row: str, now: str, half_life: float, active_half_life: float, skipped: str = "0"
) -> str:
    """Return the factor for the score of a candidate, as ``ranking_factor``. ``row`` is an alias of Vitality."""
    match ranking_decay:
        case "off":
            return "1::float8"
        case "active_forgetting":
            factor = active_factor_sql(row, now=now, active_half_life=active_half_life, skipped=skipped)
        case "half_life":
            left = decay_sql(idle_sql(row, now, skipped=skipped), number_sql(half_life))
            factor = f"greatest({number_sql(FACTOR_FLOOR)}, {left})"
        case _:
            raise ValueError(f"Ranking decay {ranking_decay!r} does not exist.")
    return f"(CASE WHEN {row}.pinned THEN 1::float8 ELSE {factor} END)"


def scope_within_sql(column: str, *, scope: str = "scope", below: str = "below") -> str:
    """Return the condition that ``column``, the id of a scope, is ``%(scope)s`` or below. ``%(below)s`` ends in a
    slash.

    The scopes are looked up once per statement, not once per row.
    """
    beyond = f"(left(%({below})s::text, -1) || '0')"
    within = path_within_sql("path", path=f"%({scope})s::text", below=f"%({below})s::text", beyond=beyond)
    return f"{column} = ANY(ARRAY(SELECT id FROM memory_scope WHERE {within}))"


def path_within_sql(column: str, *, path: str, below: str, beyond: str) -> str:
    """Return the condition that ``column``, the path of a scope, is ``path`` or lies between ``below`` and ``beyond``.

    For ``/a`` these are ``/a/`` and ``/a0``, because "0" is the character after "/". As a range, the prefix test can
    use the pattern index for any parameter. The comparison is by code point on every server.
    """
    return f"({column} = {path} OR ({column} ~>=~ {below} AND {column} ~<~ {beyond}))"


def written_sql(event: str) -> str:
    """Return the condition that an ``event`` of the journal wrote content of a topic."""
    return f"(starts_with({event}.action, 'ingest_') OR {event}.action IN ('edited', 'superseded'))"
