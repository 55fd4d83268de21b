"""The status of the language model: which texts are sent to it and when, and whether its endpoint answers."""

import hashlib
import json
from typing import NamedTuple

from django.conf import settings
from django.core.cache import cache

from memory.llm.client import Purpose, model_summary
from memory.llm.wire import ModelProblem, base_url, models_ask

# The timeout of the check, in seconds.
REACH_SECONDS = 3.0
# For how many seconds the result of the check is cached: after a success, and after a failure.
WELL_FOR, UNWELL_FOR = 300, 60


class Sent(NamedTuple):
    """Texts that are sent to a model for one purpose: what and when, and what happens without a model."""

    what: str
    when: str
    without: str


# All purposes of requests to the model.
SENT: dict[Purpose, Sent] = {
    "summary": Sent(
        "The older values of a field with their dates, and the summary before them",
        "a run summarizes or detaches a topic",
        "the sentences with the most different words are kept",
    ),
    "facts": Sent(
        "The text to extract from, a few thousand characters at a time",
        "facts are extracted from a text",
        "rules divide the text into sentences and clauses",
    ),
    "refine": Sent(
        "The words of the request, and the beginnings of up to 40 texts that it may mean",
        "a release or purge is requested in the user's own words",
        "the list stays as it was found",
    ),
    "supersede": Sent(
        "The old fact, the new fact, and the beginnings of up to 40 texts that may state the old one",
        "a new fact replaces an old one",
        "attribute and subject of the facts decide",
    ),
    "intent": Sent(
        "The last messages of a conversation with the assistant, shortened if they are long",
        "a message to the assistant does not state its intent",
        "a rule treats messages without a clear command as questions",
    ),
    "chat": Sent(
        "The conversation, and the topics that the model requests: titles, values, links and ids",
        "a user writes to the assistant",
        "the assistant is not available",
    ),
    "study": Sent(
        "A long text, a few thousand characters at a time, then the topics made from it and similar topics",
        "a user gives the assistant a long text to remember",
        "the assistant is not available",
    ),
}


class Reach(NamedTuple):
    """Whether the model can be reached, with a sentence. ``ok`` is also true if no model is configured."""

    ok: bool
    sentence: str


def model_reach() -> Reach:
    """Check the endpoint by requesting its list of models. No text of the store is sent.

    Takes at most ``REACH_SECONDS``. No queries; raises nothing.
    """
    summary = model_summary()
    if not summary.configured:
        return Reach(True, summary.sentence)
    try:
        names = _models_of(models_ask(seconds=REACH_SECONDS))
    except ModelProblem as problem:
        if problem.kind == "absent":
            # Some endpoints do not list their models.
            return Reach(True, f"The endpoint of the language model at {summary.address} answers; it lists no models.")
        return Reach(False, f"{problem.sentence} ({summary.address}) Everything else works without it.")
    # Endpoints may add a tag after a name, or a vendor before it.
    if names and not any(
        name == summary.model or name.startswith(f"{summary.model}:") or name.endswith(f"/{summary.model}")
        for name in names
    ):
        return Reach(
            False,
            f"The endpoint at {summary.address} answers, but {summary.model} is not among its models. "
            "Everything else works without it.",
        )
    return Reach(True, f"The language model {summary.model} at {summary.address} can be reached.")


def model_reach_lately() -> Reach:
    """Return the result of ``model_reach``, which is cached for some minutes."""
    asked = f"{base_url()} {settings.MEMSTATE_LLM_MODEL}"
    key = f"model-reach-{hashlib.sha256(asked.encode()).hexdigest()}"
    cached: tuple[bool, str] | None = cache.get(key)
    if cached is not None:
        return Reach(*cached)
    found = model_reach()
    cache.set(key, tuple(found), WELL_FOR if found.ok else UNWELL_FOR)
    return found


def _models_of(raw: bytes) -> list[str]:
    """Return the names in an endpoint's list of models. If the reply is malformed, return an empty list."""
    try:
        return [str(entry["id"]) for entry in json.loads(raw)["data"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
