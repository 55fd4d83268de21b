"""The status of the language model: which texts are sent to it and when, and whether its endpoint can be reached."""

import hashlib
import json
from typing import NamedTuple

from django.conf import settings
from django.core.cache import cache

from memory.llm.chat_request import Purpose
from memory.llm.client import model_summary
from memory.llm.wire import ModelProblem, base_url, endpoint_ask

# The timeout of the check, in seconds.
REACH_SECONDS = 3.0
# The number of seconds for which the result of the check is cached: after a success, and after a failure.
WELL_FOR, UNWELL_FOR = 300, 60


class Sent(NamedTuple):
    """What is sent to a model for one purpose: the texts, the occasion, and what happens without a model."""

    what: str
    when: str
    without: str


# All purposes of requests to the model.
SENT: dict[Purpose, Sent] = {
    "summary": Sent("older values of a field and their summary", "a run summarizes a topic", "main sentences are kept"),
    "facts": Sent("the text, in parts", "facts are extracted from a text", "rules split the text"),
    "refine": Sent(
        "the request and the beginnings of up to 40 candidates", "a release or purge is put in words", "no change"
    ),
    "supersede": Sent(
        "both facts and the beginnings of up to 40 candidates", "a fact replaces another", "rules decide"
    ),
    "intent": Sent("the last messages, shortened", "a message may be a question or a fact", "it counts as a question"),
    "chat": Sent("the conversation and what the model looks up", "someone writes to the assistant", "no assistant"),
    "study": Sent("the text, in parts, and similar topics", "the assistant studies a long text", "no assistant"),
}


class Reach(NamedTuple):
    """Whether the model can be reached, and a sentence that says so. If no model is configured, ``ok`` is true."""

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
        names = _models_of(endpoint_ask("models", seconds=REACH_SECONDS))
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
    """Return a result of ``model_reach``. A success may be ``WELL_FOR`` seconds old, a failure ``UNWELL_FOR``."""
    asked = f"{base_url()} {settings.MEMSTATE_LLM_MODEL}"
    key = f"model-reach-{hashlib.sha256(asked.encode()).hexdigest()}"
    cached: tuple[bool, str] | None = cache.get(key)
    if cached is not None:
        return Reach(*cached)
    found = model_reach()
    cache.set(key, tuple(found), WELL_FOR if found.ok else UNWELL_FOR)
    return found


def _models_of(raw: bytes) -> list[str]:
    try:
        return [str(entry["id"]) for entry in json.loads(raw)["data"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
