"""Handles one request to extract: checks, facts, duplicates, and storing if requested."""

import datetime as dt
import uuid
from collections.abc import Callable

from django.conf import settings
from django.db import transaction

from memory.access.principal import Principal
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.extraction.known import known_facts_split
from memory.extraction.replies import ExtractReply
from memory.extraction.segments import method_of, note_of, segments_gather
from memory.extraction.store import FACT_KIND, SOURCE_KIND, facts_store, scope_wait, source_id_of

# A request waits for the model for at most this time. Rules extract the facts of the remaining segments.
MODEL_SECONDS = 45.0

Tick = Callable[[int, int], None]


def extract(
    content: str,
    *,
    scope: str | None,
    kind: str | None,
    store: bool,
    principal: Principal,
    now: dt.datetime,
    tick: Tick | None = None,
) -> ExtractReply:
    """Return the facts of ``content``. With ``store``, facts that are not known in ``scope`` become topics of ``kind``.

    Takes about two milliseconds per sentence, and at most ``MODEL_SECONDS`` for a model. One call of the embedder and
    about ten queries. With ``store``, also two batches of ingest. Raises ``NotAllowed``, ``NotVisible``,
    ``EmbeddingFailed``, and ``ValueRefused`` for a text that is empty or longer than ``MEMSTATE_EXTRACT_MAX_CHARS``.
    """
    principal.require("agent" if store else "reader")
    path = principal.scope_chosen(scope)
    content_check(content, most=settings.MEMSTATE_EXTRACT_MAX_CHARS)
    kind = kind_checked(kind)
    gathered = segments_gather(content, seconds=MODEL_SECONDS, tick=tick)
    facts = [fact for fact, _how in gathered.facts]
    topics: list[uuid.UUID] = []
    if store and facts:
        with transaction.atomic():
            scope_wait(path)
            topics, known = facts_store(gathered.facts, content, scope=path, kind=kind, principal=principal, now=now)
    else:
        _new, known = known_facts_split(facts, scope=path, kind=kind, principal=principal)
    return {
        "extracted": [fact.text for fact in facts],
        "stored": [str(topic_id) for topic_id in topics],
        "skipped_duplicates": [{"text": fact.text, "topic_id": str(topic_id)} for fact, topic_id in known],
        "method": method_of(gathered.methods),
        "methods": gathered.methods,
        "note": note_of(gathered.methods),
        "warning": gathered.warning or None,
        "source_topic_id": str(source_id_of(content, scope=path)) if topics else None,
        "dropped": dict(sorted(gathered.dropped.items())),
    }


def content_check(content: str, *, most: int) -> None:
    """Raise ``ValueRefused`` if a text is empty or has more than ``most`` characters."""
    if len(content) > most:
        raise ValueRefused(
            f"The text has {len(content):,} characters; the limit is {most:,}. Send it in parts.",
            code=ProblemCode.TOO_LARGE,
        )
    if not content.strip():
        raise ValueRefused("The text is empty.", code=ProblemCode.MISSING_MEMBER)


def kind_checked(kind: str | None) -> str:
    """Return the kind of the topics for facts. Raises ``ValueRefused`` for the kind of sources."""
    if kind == SOURCE_KIND:
        raise ValueRefused(
            f"{SOURCE_KIND!r} is reserved for the texts that facts are extracted from. Choose another kind.",
            member="topic_kind",
        )
    return kind or FACT_KIND
