"""Lets the language model choose the texts to which a request refers, among a few texts that were found. Without a
model, the list of texts stays unchanged.

The model sees numbers instead of ids, so it can choose only among the given texts. Callers must pass only texts that
were found by meaning. They must always keep texts that were found by an identifier, because a malicious text could
persuade the model to leave such a text out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from memory.llm.chat_request import Purpose, model_configured
from memory.llm.client import complete_json
from memory.llm.wire import ModelProblem

# The maximum number of texts in one request. Longer lists would not fit.
MAX_CANDIDATES = 40
# The request and each text are cut to this number of characters.
MAX_CHARACTERS = 600
# The time limit is short, because a person waits for the list.
SECONDS = 8.0

_FORGET = """
You select entries of a memory store.
Task: a user asks the store to forget something. The data has this request and some stored texts, each with a number.
Select the numbers of the texts that the request asks to forget.
Rules:
- Select a text if it is about the person, thing or fact that the request names.
- Do not select a text that only shares a word, a place, a date or another attribute with it.
- If the request fits two different persons, things or facts equally well, select all of them and set unsure to true.
- If no text fits, select none.
Example: for the request "forget my old address", the text "My address was 5 Mill Lane" is selected, and "The post
office is in Mill Lane" is not.
""".strip()
_SUPERSEDE = """
You select entries of a memory store.
Task: a user tells the store that a fact has changed. The data has a description of the old fact (old), the fact that is
now true (new), and some stored texts, each with a number. Select the numbers of the texts that state the old fact.
Rules:
- Select a text if it gives the value that the new fact replaces, for the same person or thing.
- Do not select a text that remains true together with the new fact.
- If texts about two different persons or things fit equally well, select all of them and set unsure to true.
- If no text fits, select none.
Example: for the new fact "Mara lives in Lisbon", the text "Mara lives in Berlin" is selected, and "Mara was born in
Berlin" is not.
""".strip()


@dataclass(frozen=True, slots=True)
class Refined:
    """The ids that the model has chosen, in the order of the candidates."""

    chosen: tuple[str, ...]
    unsure: bool


class _Choice(BaseModel):
    model_config = ConfigDict(extra="forbid")

    chosen: list[int] = Field(max_length=MAX_CANDIDATES, description="numbers of the texts that are meant")
    unsure: bool = Field(description="true if the texts leave open which of them is meant")


def matches_refine(request: str, candidates: Sequence[tuple[str, str]], *, within: float = SECONDS) -> Refined | None:
    """Return the candidates that ``request`` asks to forget. ``candidates`` are pairs of an id and a text.

    Return None if there is no model, no candidate or more than ``MAX_CANDIDATES``, or if the request fails. Takes at
    most ``within`` seconds. No queries; raises nothing.
    """
    return _refined(_FORGET, {"request": request[:MAX_CHARACTERS]}, candidates, purpose="refine", within=within)


def supersede_refine(
    old_query: str, new_text: str, candidates: Sequence[tuple[str, str]], *, within: float = SECONDS
) -> Refined | None:
    """Return the candidates that state the fact that ``new_text`` replaces. ``old_query`` describes the replaced fact.
    Otherwise like ``matches_refine``."""
    asked = {"old": old_query[:MAX_CHARACTERS], "new": new_text[:MAX_CHARACTERS]}
    return _refined(_SUPERSEDE, asked, candidates, purpose="supersede", within=within)


def _refined(
    instructions: str, asked: dict[str, str], candidates: Sequence[tuple[str, str]], *, purpose: Purpose, within: float
) -> Refined | None:
    if not model_configured() or not 0 < len(candidates) <= MAX_CANDIDATES:
        return None
    texts = [
        {"number": number, "text": text[:MAX_CHARACTERS]} for number, (_id, text) in enumerate(candidates, start=1)
    ]
    try:
        reply = complete_json(instructions, {**asked, "texts": texts}, schema=_Choice, purpose=purpose, within=within)
    except ModelProblem:
        # ``call_counted`` has logged the failure.
        return None
    chosen = set(reply.chosen)
    if not chosen <= set(range(1, len(candidates) + 1)):
        # A reply with a number that was not sent is not reliable.
        return None
    return Refined(
        tuple(key for number, (key, _text) in enumerate(candidates, start=1) if number in chosen), reply.unsure
    )
