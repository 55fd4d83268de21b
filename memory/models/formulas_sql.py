"""The formulas of ``memory.formulas`` as SQL, for statements that work on many rows at once.

``test_salience_equality.py`` and ``test_strategy_equality.py`` compare each formula with its Python version.
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
    """Return a timestamp as seconds since 1970, as a double. ``extract`` is not used, because it computes a decimal
    number, which is slower. The conversion to UTC makes the expression IMMUTABLE, which Citus requires in an UPDATE."""
    return f"date_part('epoch', ({at}) AT TIME ZONE 'UTC')"


def reinforcement_share_sql(relevance: str, *, min_relevance: str) -> str:
    """Return the share of the bump that a retrieved topic gets (``reinforcement_share``)."""
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
    """For the partition of ``scope`` (the id of a scope), return the idle seconds before ``now``. Formula:
    ``PartitionTime.idle``.

    Use this only for few rows: the subquery reads one scope and all rows of PartitionActivity.
    """
    at = epoch_sql(now)
    spans = _idle_spans_sql(f"greatest(0, least({at}, a.idle_spans[n + 1]) - a.idle_spans[n])")
    return f"coalesce({_partition_sql(scope, f'greatest(0, {at} - a.active_until) + {spans}')}, 0)"


def partition_end_sql(scope: str) -> str:
    """For the partition of ``scope`` (the id of a scope), return the end of its last active day minus its idle seconds,
    or null. Use this only for few rows."""
    return _partition_sql(scope, f"a.active_until - {_idle_spans_sql('a.idle_spans[n + 1] - a.idle_spans[n]')}")


def _idle_spans_sql(length: str) -> str:
    return f"(SELECT coalesce(sum({length}), 0) FROM generate_series(1, cardinality(a.idle_spans), 2) n)"


def _partition_sql(scope: str, value: str) -> str:
    """Return a subquery for the expression ``value``. In ``value``, the alias ``a`` is the row of PartitionActivity
    that covers ``scope`` (the id of a scope)."""
    return f"""(
        SELECT {value} FROM memory_scope place JOIN memory_partitionactivity a
          ON a.scope IN ('/', place.path) OR starts_with(place.path, a.scope || '/')
        WHERE place.id = {scope} ORDER BY length(a.scope) DESC LIMIT 1
    )"""


def skipped_sql(row: str, idle: str) -> str:
    """Return the idle seconds since the last reinforcement of ``row`` (``PartitionTime.skipped``). ``idle`` are all
    idle seconds of its partition until now."""
    return f"(CASE WHEN {row}.wall THEN 0 ELSE {idle} - {row}.idle_before END)"


def counted_sql(row: str, *, at: str = "", idle: str = "", wall: str = "") -> str:
    """Return ``at`` as an epoch, minus idle seconds unless the clock of ``row`` is ``wall``
    (``PartitionTime.counted``).

    ``idle`` are the idle seconds before ``at``. ``at`` and ``idle`` default to the values at the last reinforcement,
    and ``wall`` to the clock of ``row``.
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
    """Return the scope id of the topic whose id is in the column ``topic_id`` of ``row``."""
    return f"(SELECT x.scope_id FROM memory_topic x WHERE x.id = {row}.topic_id)"


def salience_now_sql(row: str, now: str, *, scope: str) -> str:
    """Return the effective salience of ``row`` at ``now``. ``scope`` is the id of its scope. Use it only for few
    rows."""
    return salience_effective_sql(row, now, skipped=skipped_sql(row, partition_idle_sql(scope, now)))


def fade_key_sql(salience: str, *, counted: str, half_life: str) -> str:
    """Return the fade key (``fade_key``). ``counted`` is ``counted_sql`` of the last reinforcement."""
    return (
        f"CASE WHEN {salience} <= 0 THEN '-Infinity'::float8 "
        f"ELSE {counted} + {half_life} * (ln({salience}) / ln(2::float8)) END"
    )


def fade_floor_sql(floor: str, *, fade: str, half_life: str) -> str:
    """Return the indexed floor after the key has changed to ``fade`` (``fade_floor_after``)."""
    # Equality is tested first, because both may be minus infinity.
    return (
        f"CASE WHEN {floor} = {fade} THEN {floor} "
        f"WHEN {floor} < {fade} AND {floor} >= {fade} - {FADE_FLOOR_LAG} * {half_life} THEN {floor} ELSE {fade} END"
    )


def number_sql(value: float) -> str:
    """Return the SQL literal of exactly this double, which may be infinite."""
    return f"'{float(value)!r}'::float8"


def idle_sql(row: str, now: str, *, skipped: str = "0") -> str:
    """Return the seconds since the last retrieval of ``row``, or since its creation (``idle_seconds``)."""
    since = f"coalesce({row}.last_retrieved_at, {row}.created_at)"
    return f"greatest(0, {epoch_sql(now)} - {epoch_sql(since)} - {skipped})"


def age_sql(row: str, now: str) -> str:
    """Return the seconds since the creation of ``row``."""
    return f"greatest(0, {epoch_sql(now)} - {epoch_sql(f'{row}.created_at')})"


def active_boost_sql(row: str) -> str:
    """Return what retrievals add to the score under active forgetting (``active_boost``)."""
    count = f"ln(1::float8 + {row}.retrieval_count)"
    return f"least({number_sql(BOOST_MAX)}, {number_sql(BOOST_STEP)} * {count})"


def _active_age_sql(row: str, now: str, active_half_life: float, skipped: str) -> str:
    return f"(1::float8 - {idle_sql(row, now, skipped=skipped)} / {number_sql(2.0 * active_half_life)})"


def active_raw_sql(row: str, *, now: str, active_half_life: float, skipped: str = "0") -> str:
    """Return the score under active forgetting, without the floor (``active_raw``)."""
    return f"least(1::float8, {_active_age_sql(row, now, active_half_life, skipped)} + {active_boost_sql(row)})"


def active_factor_sql(row: str, *, now: str, active_half_life: float, skipped: str = "0") -> str:
    """Return the factor of active forgetting, with its floor (``active_factor``)."""
    age_part = f"greatest({number_sql(FACTOR_FLOOR)}, {_active_age_sql(row, now, active_half_life, skipped)})"
    return f"least(1::float8, {age_part} + {active_boost_sql(row)})"


def relevance_sql(row: str, *, now: str, skipped: str = "0") -> str:
    """Return the score of the strategy ``relevance``."""
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
    """Return the score of ``row``, an alias of Vitality, at ``now`` (a timestamp).

    Half-lives are in seconds. They come from the policy and not from ``row.half_life``, because a draft is tried on
    rows that were written with another half-life. ``skipped`` are the idle seconds since the last reinforcement. Raises
    ``ValueError`` for an unknown strategy.
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
    """Return the condition that ``row`` was not used for ``prune_after`` seconds (``archive_gate``)."""
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
    """Return the factor for the score of a candidate (``ranking_factor``). ``row`` is an alias of Vitality."""
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
    """Return the condition that ``column``, a scope id, is at or below ``%(scope)s``. The parameter ``%(below)s`` is
    the same path with a slash at the end.

    The scopes are looked up once per SQL statement, not once per row.
    """
    beyond = f"(left(%({below})s::text, -1) || '0')"
    within = path_within_sql("path", path=f"%({scope})s::text", below=f"%({below})s::text", beyond=beyond)
    return f"{column} = ANY(ARRAY(SELECT id FROM memory_scope WHERE {within}))"


def path_within_sql(column: str, *, path: str, below: str, beyond: str) -> str:
    """Return the condition that ``column``, the path of a scope, is ``path`` or lies between ``below`` and ``beyond``.

    For the path ``/a``, ``below`` is ``/a/`` and ``beyond`` is ``/a0``, because "0" is the character after "/". Unlike
    a test of the prefix, a range can use the pattern index for any parameter. The operators compare by code point on
    every server.
    """
    return f"({column} = {path} OR ({column} ~>=~ {below} AND {column} ~<~ {beyond}))"


def person_sql(actor: str) -> str:
    """Return the condition that an ``actor`` of a journal is a person, at the console or at a terminal."""
    return f"(starts_with({actor}, 'user:') OR {actor} = 'terminal')"


def automatic_sql(actor: str) -> str:
    """Return the condition that an ``actor`` of a journal is MemState itself, or one of its rules."""
    return f"({actor} = 'system' OR starts_with({actor}, 'rule '))"


def agent_sql(actor: str) -> str:
    """Return the condition that an ``actor`` of a journal is an agent: neither a person nor MemState itself. Not all
    agents have a key, for example those of the demo."""
    return f"(NOT {person_sql(actor)} AND NOT {automatic_sql(actor)})"


def written_sql(event: str) -> str:
    """Return the condition that an ``event`` of the journal wrote content of a topic."""
    return f"(starts_with({event}.action, 'ingest_') OR {event}.action IN ('edited', 'superseded'))"
