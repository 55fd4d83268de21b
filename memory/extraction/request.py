"""Handles one request to extract: checks, facts, duplicates, and storing if requested."""

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from django.conf import settings
from django.db import transaction

from memory.access.principal import Principal
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.extraction.known import Duplicate, known_facts_split
from memory.extraction.segments import GatheredFacts, method_of, note_of, segments_gather
from memory.extraction.store import FACT_KIND, SOURCE_KIND, facts_store, scope_wait, source_id_of

# A request waits for the model for at most this time. Rules extract the facts of the remaining segments.
MODEL_SECONDS = 45.0

Tick = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Extracted:
    """The facts of a text: all, the stored and the known ones. ``method`` is llm only if the model found all facts."""

    extracted: list[str]
    stored: list[uuid.UUID]
    skipped_duplicates: list[Duplicate]
    method: str
    methods: list[str]
    note: str
    warning: str = ""
    source_topic_id: uuid.UUID | None = None
    dropped: dict[str, int] = field(default_factory=dict)


def extract(
    content: str,
    *,
    scope: str | None,
    kind: str | None,
    store: bool,
    principal: Principal,
    now: dt.datetime,
    tick: Tick | None = None,
) -> Extracted:
    """Return the facts of ``content``. With ``store``, facts that are not known in ``scope`` become topics of ``kind``.

    Takes about two milliseconds per sentence, and at most ``MODEL_SECONDS`` for a model. Runs one call of the embedder
    and about ten queries for any number of facts, and two batches of ingest to store them. If the same text is sent
    again, nothing is stored. Raises ``NotAllowed`` for storing without an agent's key, ``ValueRefused`` for a text that
    is empty or longer than ``MEMSTATE_EXTRACT_MAX_CHARS``, ``NotVisible``, ``EmbeddingFailed``.
    """
    principal.require("agent" if store else "reader")
    path = principal.scope_chosen(scope)
    content, kind = content_checked(content), kind_checked(kind)
    gathered = segments_gather(content, seconds=MODEL_SECONDS, tick=tick)
    facts = [fact for fact, _how in gathered.facts]
    if not store or not facts:
        _new, known = known_facts_split(facts, scope=path, kind=kind, principal=principal) if facts else ([], [])
        return _extracted(gathered, [], known, None)
    with transaction.atomic():
        scope_wait(path)
        stored = facts_store(gathered.facts, content, scope=path, kind=kind, principal=principal, now=now)
    source = source_id_of(content, scope=path) if stored.topics else None
    return _extracted(gathered, stored.topics, stored.duplicates, source)


def content_checked(content: str) -> str:
    """Return the text to extract from. Raises ``ValueRefused``."""
    most = settings.MEMSTATE_EXTRACT_MAX_CHARS
    if len(content) > most:
        raise ValueRefused(
            f"The text has {len(content):,} characters; the limit for one extraction is {most:,}. Send it in parts.",
            code=ProblemCode.TEXT_TOO_LONG,
        )
    if not content.strip():
        raise ValueRefused("The text is empty.", code=ProblemCode.EMPTY_TEXT)
    return content


def kind_checked(kind: str | None) -> str:
    """Return the kind of the topics for facts. Raises ``ValueRefused`` for the kind of sources."""
    if kind == SOURCE_KIND:
        raise ValueRefused(
            f"{SOURCE_KIND!r} is reserved for the texts that facts are extracted from. Choose another kind.",
            code=ProblemCode.RESERVED_KIND,
        )
    return kind or FACT_KIND


def _extracted(
    gathered: GatheredFacts, stored: list[uuid.UUID], known: list[Duplicate], source: uuid.UUID | None
) -> Extracted:
    return Extracted(
        extracted=[fact.text for fact, _how in gathered.facts],
        stored=stored,
        skipped_duplicates=known,
        method=method_of(gathered.methods),
        methods=gathered.methods,
        note=note_of(gathered.methods),
        warning=gathered.warning,
        source_topic_id=source,
        dropped=dict(sorted(gathered.dropped.items())),
    )
