"""What people are shown of the language model: what it is sent and for what, and whether its endpoint answers."""

import hashlib
import json
from typing import NamedTuple

from django.conf import settings
from django.core.cache import cache

from memory.llm.client import Purpose, model_summary
from memory.llm.wire import ModelProblem, base_url, models_ask

# A look at the endpoint is a small question; who asks is not kept waiting.
REACH_SECONDS = 3.0
# What was found is told again for so long to those who ask all the time.
WELL_FOR, UNWELL_FOR = 300, 60


class Sent(NamedTuple):
    """One kind of text that a model is sent: which, on what occasion, and what happens without a model."""

    what: str
    when: str
    without: str


# Every purpose that anything is asked for; there is no other way to the model.
SENT: dict[Purpose, Sent] = {
    "summary": Sent(
        "The older values of a field with their dates, and the summary before them",
        "a run summarizes or detaches a topic",
        "the most telling of their own sentences are kept",
    ),
    "facts": Sent(
        "The text that is given to extraction, a few thousand characters at a time",
        "somebody extracts facts from a text",
        "rules take the text apart into sentences and clauses",
    ),
    "refine": Sent(
        "The words of the request, and the beginnings of up to 40 texts that it may mean",
        "somebody asks to release or purge something in their own words",
        "the list stands as it was found",
    ),
    "supersede": Sent(
        "What was, what is true now, and the beginnings of up to 40 texts that may say what was",
        "somebody says that something has changed",
        "the attribute and its subject decide",
    ),
    "intent": Sent(
        "The last messages of a conversation with the assistant, cut where they are long",
        "somebody writes to the assistant and does not say what they want",
        "a rule takes what is no plain order for a question",
    ),
    "chat": Sent(
        "The conversation, and whatever topics the model asks for: titles, values, links and ids",
        "somebody writes to the assistant",
        "there is no assistant, and it says so",
    ),
    "study": Sent(
        "A long text, a few thousand characters at a time, then the topics made of it and those that resemble them",
        "somebody gives the assistant a long text to remember",
        "there is no assistant, and it says so",
    ),
}


class Reach(NamedTuple):
    """Whether the model can be asked, in a sentence. Without a model all is well."""

    ok: bool
    sentence: str


def model_reach() -> Reach:
    """Ask the endpoint for its list of models, and nothing else: no text of the store is sent for this.

    Takes ``REACH_SECONDS`` at most. No queries; raises nothing.
    """
    told = model_summary()
    if not told.configured:
        return Reach(True, told.sentence)
    try:
        names = _names(models_ask(seconds=REACH_SECONDS))
    except ModelProblem as problem:
        if problem.kind == "absent":
            # Some endpoints answer questions and list nothing.
            return Reach(True, f"The endpoint of the language model at {told.address} answers; it lists no models.")
        return Reach(False, f"{problem.sentence} ({told.address}) Meanwhile everything works without it.")
    # Endpoints put a tag behind a name, or a vendor before it.
    if names and not any(
        name == told.model or name.startswith(f"{told.model}:") or name.endswith(f"/{told.model}") for name in names
    ):
        return Reach(
            False,
            f"The endpoint at {told.address} answers, but {told.model} is not among its models. "
            "Meanwhile everything works without it.",
        )
    return Reach(True, f"The language model {told.model} at {told.address} can be reached.")


def model_reach_lately() -> Reach:
    """Return what ``model_reach`` found in the last minutes, or look."""
    asked = f"{base_url()} {settings.MEMSTATE_LLM_MODEL}"
    key = f"model-reach-{hashlib.sha256(asked.encode()).hexdigest()}"
    kept: tuple[bool, str] | None = cache.get(key)
    if kept is not None:
        return Reach(*kept)
    found = model_reach()
    cache.set(key, tuple(found), WELL_FOR if found.ok else UNWELL_FOR)
    return found


def _names(raw: bytes) -> list[str]:
    """Return the names that an endpoint lists; none where its list cannot be read."""
    try:
        return [str(entry["id"]) for entry in json.loads(raw)["data"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
