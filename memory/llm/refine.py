"""Which of a few stored texts a command means, as the language model sees it. Optional: without it the list stands.

The model can only choose among what it is given. It sees numbers in place of ids, so it can neither add a topic nor
name one that it was not shown. What it drops is dropped from a list that somebody still reads before it is executed.
Give it only what was found by meaning: a text can ask a model to be passed over, and what holds the very identifier
that was asked for must not depend on that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from memory.llm.client import ModelProblem, Purpose, complete_json, model_configured

# A longer list is no question for a model, and would not fit.
MOST_CANDIDATES = 40
# So much of each text is sent, and of a request.
MOST_CHARACTERS = 600
# Somebody waits for the list.
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
    """The ids that the model takes to be meant, in the order in which they were given, and whether it was sure."""

    chosen: tuple[str, ...]
    unsure: bool


class _Choice(BaseModel):
    """What the model may say."""

    model_config = ConfigDict(extra="forbid")

    chosen: list[int] = Field(max_length=MOST_CANDIDATES, description="numbers of the texts that are meant")
    unsure: bool = Field(description="true if the texts leave open which of them is meant")


def matches_refine(request: str, candidates: Sequence[tuple[str, str]], *, within: float = SECONDS) -> Refined | None:
    """Return which of ``candidates``, pairs of an id and a text, ``request`` asks to forget; None if nobody can say.

    None without a model, with no candidate or more than ``MOST_CANDIDATES``, and after any failure; the list then
    stands as it was found. Takes ``within`` seconds at most. No queries; raises nothing.
    """
    return _refined(_FORGET, {"request": request[:MOST_CHARACTERS]}, candidates, purpose="refine", within=within)


def supersede_refine(
    old_query: str, new_text: str, candidates: Sequence[tuple[str, str]], *, within: float = SECONDS
) -> Refined | None:
    """Return which of ``candidates`` state what ``new_text`` replaces, asked for as ``old_query``; else as above."""
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
        said = complete_json(instructions, {**asked, "texts": texts}, schema=_Choice, purpose=purpose, within=within)
    except ModelProblem:
        # Told and counted where it was asked.
        return None
    chosen = set(said.chosen)
    if not chosen <= set(range(1, len(candidates) + 1)):
        # Whoever names what it was not shown has not read the rest with care either.
        return None
    return Refined(
        tuple(key for number, (key, _text) in enumerate(candidates, start=1) if number in chosen), said.unsure
    )
