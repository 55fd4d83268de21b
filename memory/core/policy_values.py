"""Policy values (knobs in the code): the type, bounds and default of each half-life, threshold, mode, limit and share.
The environment variable ``MEMSTATE_`` plus the name in capitals replaces a default."""

import dataclasses
import math
from typing import Literal, TypeVar

from memory.core.errors import ValueRefused, problems_within
from memory.core.nearest import nearest_hint
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_normalize

# The type of a value. Lists are tuples, so that ``Knobs`` can be hashed and compared.
KnobValue = float | int | bool | str | tuple[str, ...]
KnobType = Literal["number", "count", "switch", "choice", "text", "words", "scopes"]

TRUE_WORDS, FALSE_WORDS = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})
MAX_WORDS = 100
MAX_WORD_LENGTH = 200

# The half-life of rows without decay. Such rows need a half-life for their fade key. The value is so long that nothing
# decays, and so short that the key is finite.
NO_DECAY_SECONDS = 1e18


T = TypeVar("T")

_TYPES: dict[type, KnobType] = {bool: "switch", int: "count", float: "number", str: "text", tuple: "words"}


class PolicyValueRefused(ValueRefused):
    """A policy value has the wrong type or is out of bounds (422)."""

    code = ProblemCode.INVALID_POLICY


@dataclasses.dataclass(frozen=True, slots=True)
class Knob:
    """Description, type and bounds of a knob. ``group`` is the section of the policy editor that shows it."""

    meaning: str
    group: str
    type: KnobType
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()


def _knob(
    default: T,
    group: str,
    meaning: str,
    low: float = 0,
    high: float = 0,
    *,
    choices: tuple[str, ...] = (),
    kind: KnobType | None = None,
) -> T:
    kind = kind or ("choice" if choices else _TYPES[type(default)])
    value: T = dataclasses.field(default=default, metadata={"knob": Knob(meaning, group, kind, low, high, choices)})
    return value


STRATEGIES = ("half_life", "static", "active_forgetting", "relevance")


@dataclasses.dataclass(frozen=True, slots=True)
class Knobs:
    """The effective values for one scope."""

    # Strategy and ladder
    strategy: str = _knob("half_life", "ladder", "how the score of a memory is computed", choices=STRATEGIES)
    half_life_days: float = _knob(
        30.0, "ladder", "days in which an unused memory loses half of its salience", 0.001, 36_500
    )
    active_half_life_days: float = _knob(
        180.0, "ladder", "half-life of the active-forgetting factor in days", 0.001, 36_500
    )
    theta_summary: float = _knob(0.25, "ladder", "score below which older revisions are summarized", 0, 1000)
    theta_detach: float = _knob(0.12, "ladder", "score below which links and faded fields are detached", 0, 1000)
    forget_salience_threshold: float = _knob(0.05, "ladder", "score below which a memory is archived", 0, 1000)
    prune_after_days: float = _knob(30.0, "ladder", "days without use before a memory may be archived", 0, 36_500)
    archive_attenuation: float = _knob(0.5, "ladder", "factor that archiving applies to the salience", 0.01, 1)
    keep_recent_revisions: int = _knob(5, "ladder", "warm revisions that summarizing keeps in a field", 1, 10_000)
    compact: bool = _knob(
        False, "ladder", "whether similar memories that are due to be archived are combined into one memory"
    )
    compact_threshold: float = _knob(
        0.88, "ladder", "least cosine similarity of memories that are combined into one", 0.5, 1
    )
    exempt_scopes: tuple[str, ...] = _knob((), "ladder", "scopes in which nothing is ever forgotten", kind="scopes")
    exempt_kinds: tuple[str, ...] = _knob(
        ("identity", "active_decision"), "ladder", "kinds of memories that are never forgotten"
    )
    clock: str = _knob(
        "active",
        "ladder",
        "whether days without a recall or a write in the scope are left out (active) or count like others (wall)",
        choices=("active", "wall"),
    )
    # Runs
    mode: str = _knob(
        "auto",
        "runs",
        "whether runs apply by themselves, wait for approval, or are off",
        choices=("auto", "review", "off"),
    )
    cron: str = _knob("0 3 * * *", "runs", "when the scheduled run starts, in UTC")
    topic_count_soft_limit: int = _knob(
        500,
        "runs",
        "live memories, at and below the scope that sets it, below which only memory pressure and manual runs forget",
        0,
        1_000_000_000,
    )
    max_topics_for_forget_scan: int = _knob(10_000, "runs", "most memories that one run changes", 1, 1_000_000)
    max_archive_share: float = _knob(
        0.2, "runs", "share of the live memories above which a run waits for approval", 0, 1
    )
    agent_forget_share: float = _knob(
        0.05, "runs", "share of the live memories that keys which may forget may release in 24 hours", 0, 1
    )
    # Salience
    query_salience_bump: float = _knob(
        1.0, "salience", "added to the salience of each memory that a recall returns", 0, 10
    )
    query_field_salience_bump: float = _knob(
        1.0, "salience", "added to the salience of each field that a recall returns", 0, 10
    )
    reinforce_min_relevance: float = _knob(
        0.3,
        "salience",
        "least relevance at which a recall counts; it adds the bump times the relevance, with 0 the whole bump",
        0,
        1,
    )
    field_salience_max: float = _knob(
        10.0, "salience", "highest salience that use can give a memory or field", 0.1, 1000
    )
    reinforce_once_seconds: float = _knob(
        60.0, "salience", "seconds within which a repeated recall of the same key does not count again", 0, 86_400
    )
    max_field_history: int = _knob(500, "salience", "revisions of a field that stay warm", 1, 1_000_000)
    # Duplicates
    duplicates_mode: str = _knob(
        "review",
        "duplicates",
        "whether duplicate memories wait for review, are merged, or are not searched for",
        choices=("review", "auto", "off"),
    )
    duplicate_threshold: float = _knob(
        0.92, "duplicates", "cosine similarity from which two memories count as duplicates", 0.5, 1
    )
    supersedes_threshold: float = _knob(
        0.75, "duplicates", "cosine similarity from which a memory may be suggested as replacing another", 0.5, 1
    )
    # Token budgets
    token_budgets: bool = _knob(False, "tokens", "whether the token budgets raise memory pressure")
    token_budget_identity: int = _knob(50, "tokens", "tokens for memories of kind identity", 0, 1_000_000_000)
    token_budget_critical: int = _knob(200, "tokens", "tokens for pinned memories", 0, 1_000_000_000)
    token_budget_active: int = _knob(5_000, "tokens", "tokens for all other active memories", 0, 1_000_000_000)
    token_budget_historical: int = _knob(
        50_000, "tokens", "tokens for summarized and detached memories", 0, 1_000_000_000
    )
    # Regret
    shadow_share: float = _knob(0.02, "regret", "share of recalls that are also run on archived memories", 0, 1)
    shadow_top_k: int = _knob(10, "regret", "rank up to which an archived memory counts as missed", 1, 100)
    # Recall. docs/benchmarks.md has the reason for each default and what each part contributes.
    ranking_decay: str = _knob(
        "off",
        "recall",
        "whether the time since the last use lowers the rank",
        choices=("off", "active_forgetting", "half_life"),
    )
    recall_semantic_weight: float = _knob(1.0, "recall", "weight of similarity in meaning", 0, 100)
    recall_lexical_weight: float = _knob(1.0, "recall", "weight of shared words", 0, 100)
    recall_neighbor_share: float = _knob(
        0.5, "recall", "how much a word in a linked memory counts; squared for a memory two links away", 0, 1
    )
    recall_center: float = _knob(
        1.0, "recall", "share of the scope's mean vector that is subtracted from the question", 0, 1
    )
    recall_candidates: int = _knob(20, "recall", "candidates that each of the two searches collects", 10, 1000)
    recall_exact_below: int = _knob(
        2000, "recall", "number of live memories up to which a scope is searched exactly, without an index", 0, 100_000
    )
    bm25_k1: float = _knob(1.2, "recall", "how much repeating a word adds (k1 of BM25)", 0, 10)
    bm25_b: float = _knob(0.4, "recall", "how much long texts are penalized (b of BM25)", 0, 1)
    suggest_similar_above: float = _knob(
        0.92, "recall", "cosine similarity from which ingest suggests a similar memory", 0, 1
    )

    @property
    def half_life(self) -> float:
        """The half-life of salience in seconds; under ``static`` so long that nothing fades."""
        return NO_DECAY_SECONDS if self.strategy == "static" else self.half_life_days * 86_400.0

    @property
    def keys(self) -> tuple[float, bool]:
        """The half-life, and whether idle days count. The fade keys of topics depend on both."""
        return self.half_life, self.clock == "wall"

    @property
    def detach_below(self) -> float:
        """The score below which a topic is detached. If topics are archived at the same or a higher score, the value is
        0 and no topic is detached. Presets that only archive therefore set equal thresholds."""
        return self.theta_detach if self.theta_detach > self.forget_salience_threshold else 0.0

    @property
    def summarize_below(self) -> float:
        """The score below which a topic is summarized. If topics are archived at the same or a higher score, the value
        is 0 and no topic is summarized."""
        return self.theta_summary if self.theta_summary > self.forget_salience_threshold else 0.0

    @property
    def active_half_life(self) -> float:
        """The half-life of active forgetting in seconds."""
        return self.active_half_life_days * 86_400.0

    @property
    def prune_after(self) -> float:
        """Seconds without use before a topic may be archived."""
        return self.prune_after_days * 86_400.0


KNOBS: dict[str, Knob] = {field.name: field.metadata["knob"] for field in dataclasses.fields(Knobs)}

# The labels of the knobs in the console.
KNOB_LABELS: dict[str, str] = {
    "strategy": "Strategy",
    "half_life_days": "Half-life in days",
    "active_half_life_days": "Active half-life in days",
    "theta_summary": "Summarize below",
    "theta_detach": "Detach below",
    "forget_salience_threshold": "Archive below",
    "prune_after_days": "Archive after days unused",
    "archive_attenuation": "Salience kept by archiving",
    "keep_recent_revisions": "Revisions that summarizing keeps",
    "compact": "Compact similar memories",
    "compact_threshold": "Similarity to compact",
    "exempt_scopes": "Exempt scopes",
    "exempt_kinds": "Exempt kinds",
    "clock": "Days that count",
    "mode": "Runs",
    "cron": "Schedule",
    "topic_count_soft_limit": "Soft limit of memories",
    "max_topics_for_forget_scan": "Most memories per run",
    "max_archive_share": "Share that needs approval",
    "agent_forget_share": "Share that agents may release",
    "query_salience_bump": "Bump of a recalled memory",
    "query_field_salience_bump": "Bump of a recalled field",
    "reinforce_min_relevance": "Least relevance that counts as use",
    "field_salience_max": "Highest salience",
    "reinforce_once_seconds": "Seconds that count as one use",
    "max_field_history": "Warm revisions of a field",
    "duplicates_mode": "Duplicates",
    "duplicate_threshold": "Similarity of duplicates",
    "supersedes_threshold": "Similarity of replacements",
    "token_budgets": "Use token budgets",
    "token_budget_identity": "Tokens: identity",
    "token_budget_critical": "Tokens: pinned",
    "token_budget_active": "Tokens: active",
    "token_budget_historical": "Tokens: summarized, detached",
    "shadow_share": "Share of shadow searches",
    "shadow_top_k": "Rank of a missed memory",
    "ranking_decay": "Ranking by time since use",
    "recall_semantic_weight": "Weight of meaning",
    "recall_lexical_weight": "Weight of words",
    "recall_neighbor_share": "Share of linked memories",
    "recall_center": "Centering",
    "recall_candidates": "Candidates per search",
    "recall_exact_below": "Exact search up to memories",
    "bm25_k1": "Weight of repeated words",
    "bm25_b": "Penalty of long texts",
    "suggest_similar_above": "Similarity of suggestions",
}

# The thresholds of the ladder, from the first step to the last.
THRESHOLDS = ("theta_summary", "theta_detach", "forget_salience_threshold")

# A threshold outside these bounds is accepted with a warning.
DUPLICATE_THRESHOLD_USUAL = (0.85, 0.95)

# Other names that are accepted for a knob.
KNOB_ALIASES = {"theta_archive": "forget_salience_threshold"}

# Strategies have different scales of scores, so each published design has its own thresholds. Under a strategy, these
# values replace the defaults of ``Knobs``.
STRATEGY_DEFAULTS: dict[str, dict[str, float]] = {
    "half_life": {},
    "static": {"prune_after_days": 0.0},
    "active_forgetting": {"forget_salience_threshold": 0.1, "prune_after_days": 0.0},
    "relevance": {
        "theta_summary": 0.35,
        "theta_detach": 0.25,
        "forget_salience_threshold": 0.2,
        "prune_after_days": 90.0,
    },
}


def knobs_warnings(knobs: "Knobs") -> list[str]:
    """Return one sentence for each value that is accepted but unwise."""
    low, high = DUPLICATE_THRESHOLD_USUAL
    found = []
    if knobs.duplicates_mode != "off" and knobs.duplicate_threshold < low:
        found.append(
            f"duplicate_threshold is {knobs.duplicate_threshold:g}: below {low:g}, memories about the same thing "
            "count as duplicates even if they say something different."
        )
    if knobs.duplicates_mode != "off" and knobs.duplicate_threshold > high:
        found.append(
            f"duplicate_threshold is {knobs.duplicate_threshold:g}: above {high:g}, most duplicates in other words are "
            "not found."
        )
    return found


def knob_parse(name: str, value: object) -> KnobValue:
    """Return ``value`` converted to the type of the knob ``name``; text from forms and the terminal is parsed. Raises
    ``ValueRefused`` for an unknown knob, a wrong type, or a value out of bounds."""
    if name not in KNOBS:
        raise knob_unknown(name)
    knob = KNOBS[name]
    with problems_within(name):
        match knob.type:
            case "number" | "count":
                return _number_parse(name, knob, value)
            case "switch":
                return _switch_parse(name, value)
            case "choice":
                if value not in knob.choices:
                    raise PolicyValueRefused(
                        f"{name} must be one of {', '.join(knob.choices)}; {_quoted(value)} is not."
                    )
                return str(value)
            case "text":
                if not isinstance(value, str) or len(value) > MAX_WORD_LENGTH or "\x00" in value:
                    raise PolicyValueRefused(f"{name} must be a text of at most {MAX_WORD_LENGTH} characters.")
                return value.strip()
            case "words" | "scopes":
                return _words_parse(name, knob, value)


def knob_unknown(name: str) -> ValueRefused:
    """Return the problem of an unknown knob."""
    hint = nearest_hint(name, KNOBS, noun="values")
    return ValueRefused(
        f"The policy value {_quoted(name)} does not exist; {hint}.", code=ProblemCode.INVALID_POLICY, member=name
    )


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_WORD_LENGTH else text[:MAX_WORD_LENGTH] + "…"


def _number_parse(name: str, knob: Knob, value: object) -> float | int:
    whole = knob.type == "count"
    try:
        number = math.nan if isinstance(value, bool) else float(str(value))
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (whole and number != int(number)):
        raise PolicyValueRefused(f"{name} must be a {'whole ' if whole else ''}number; {_quoted(value)} is not.")
    if not knob.low <= number <= knob.high:
        raise PolicyValueRefused(f"{name} must be between {knob.low:g} and {knob.high:g}, not {number:g}.")
    return int(number) if whole else number


def _switch_parse(name: str, value: object) -> bool:
    text = str(value).strip().lower() if isinstance(value, (bool, str)) else ""
    if text not in TRUE_WORDS | FALSE_WORDS:
        raise PolicyValueRefused(f"{name} must be true or false; {_quoted(value)} is neither.")
    return text in TRUE_WORDS


def _words_parse(name: str, knob: Knob, value: object) -> tuple[str, ...]:
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, (list, tuple)) or not all(isinstance(word, str) for word in given):
        raise PolicyValueRefused(f"{name} must be a list of texts; {_quoted(value)} is not.")
    words = tuple(dict.fromkeys(word.strip() for word in given if word.strip()))
    if len(words) > MAX_WORDS or any(len(word) > MAX_WORD_LENGTH or "\x00" in word for word in words):
        raise PolicyValueRefused(f"{name} takes at most {MAX_WORDS} entries of at most {MAX_WORD_LENGTH} characters.")
    return tuple(scope_normalize(word) for word in words) if knob.type == "scopes" else words
