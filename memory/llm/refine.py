"""The language model chooses which of a few found texts a request means. Without a model the list stays unchanged.

The model sees numbers instead of ids, so it can choose only among the given texts. A person still sees the shortened
list before it is executed. Pass only texts that were found by meaning. A malicious text could persuade the model not to
choose it, and a text with the requested identifier must not be hidden in this way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from memory.llm.client import ModelProblem, Purpose, complete_json, model_configured

# Longer lists would not fit in one request.
MOST_CANDIDATES = 40
# The number of characters sent of each text and of the request.
MOST_CHARACTERS = 600
# The time limit is short, because a person waits for the list.
SECONDS = 8.0

_FORGET = (
    "Somebody asks a memory store to forget something. The data holds their request and a few stored texts, each with "
    "a number. Choose the numbers of the texts that the request means: those about the very person, thing or fact that "
    "it names. A text that only shares a word, a place, a date or another attribute with it is not meant. If the "
    "request fits two different persons, things or facts equally well, choose them all and say that you are unsure. If "
    "it fits none, choose none."
)
_SUPERSEDE = (
    "Somebody tells a memory store that something has changed. The data holds what they ask to be replaced (old), the "
    "fact that is true from now on (new), and a few stored texts, each with a number. Choose the numbers of the texts "
    "that state, about the same person or thing, the value that the new fact replaces. A text that stays true beside "
    "the new fact is not meant. If two texts about different persons or things fit equally well, choose them all and "
    "say that you are unsure. If none fits, choose none."
)


@dataclass(frozen=True, slots=True)
class Refined:
    """The ids that the model has chosen, in the order of the candidates, and whether the model was unsure."""

    chosen: tuple[str, ...]
    unsure: bool


class _Choice(BaseModel):
    """The schema of the model's reply."""

    model_config = ConfigDict(extra="forbid")

    chosen: list[int] = Field(max_length=MOST_CANDIDATES, description="numbers of the texts that are meant")
    unsure: bool = Field(description="true if the texts leave open which of them is meant")


def matches_refine(request: str, candidates: Sequence[tuple[str, str]], *, within: float = SECONDS) -> Refined | None:
    """Return which of ``candidates``, pairs of an id and a text, ``request`` asks to forget.

    Return None without a model, without candidates, with more than ``MOST_CANDIDATES``, and after any failure; the
    caller then keeps the whole list. Takes at most ``within`` seconds. No queries; raises nothing.
    """
    return _refined(_FORGET, {"request": request[:MOST_CHARACTERS]}, candidates, purpose="refine", within=within)


def supersede_refine(
    old_query: str, new_text: str, candidates: Sequence[tuple[str, str]], *, within: float = SECONDS
) -> Refined | None:
    """Return which ``candidates`` state the fact that ``new_text`` replaces. ``old_query`` describes this fact.
    Otherwise like ``matches_refine``."""
    asked = {"old": old_query[:MOST_CHARACTERS], "new": new_text[:MOST_CHARACTERS]}
    return _refined(_SUPERSEDE, asked, candidates, purpose="supersede", within=within)


def _refined(
    instructions: str, asked: dict[str, str], candidates: Sequence[tuple[str, str]], *, purpose: Purpose, within: float
) -> Refined | None:
    if not model_configured() or not 0 < len(candidates) <= MOST_CANDIDATES:
        return None
    texts = [
        {"number": number, "text": text[:MOST_CHARACTERS]} for number, (_id, text) in enumerate(candidates, start=1)
    ]
    try:
        reply = complete_json(instructions, {**asked, "texts": texts}, schema=_Choice, purpose=purpose, within=within)
    except ModelProblem:
        # ``call_counted`` has logged the failure.
        return None
    chosen = set(reply.chosen)
    if not chosen <= set(range(1, len(candidates) + 1)):
        # A reply with unknown numbers is not reliable.
        return None
    return Refined(
        tuple(key for number, (key, _text) in enumerate(candidates, start=1) if number in chosen), reply.unsure
    )
