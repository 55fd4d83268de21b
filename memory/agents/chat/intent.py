"""The intent of a message: to ask something, to store something, or both.

The model decides, with the last messages as data. If the model fails, fixed rules decide. They recognize only clear
requests to store something. The worst effect of a wrong intent is that the model may use writing tools. No intent
allows forgetting.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from memory.llm.client import ModelProblem, complete_json

IntentName = Literal["query", "ingest", "both"]
Source = Literal["override", "model", "rule"]

# Short, because the client waits and the answer itself takes longer.
SECONDS = 8.0
# How many characters of all messages the model gets. Half of them are for the last message. The second number is used
# if the text is too long as JSON, because JSON may need six characters for one.
BUDGETS = (16_000, 4_000)

_INSTRUCTIONS = (
    "Somebody talks with the assistant of a memory store. The data holds the last turns of their conversation, the "
    "oldest first; what is long is cut in the middle. Say what the last message of the user wants. query: to know "
    "something, or anything else that needs no writing. ingest: to have something remembered, corrected or added, "
    "because the user asks for it or states something about themselves, people, plans or things that will matter "
    "later. both: to know something, and to have something remembered. The turns before only tell what the last "
    "message refers to. Where you are in doubt, say query."
)

# Parts of sentences. Each part is matched once, from its beginning, so that the time is linear for any text.
_PART = re.compile(r"[^.!?:;,\n]+")
# Orders to write, at the beginning of a part, politely or not.
_ORDER = re.compile(
    r"[^\S\n]*(?:(?:please|kindly|now|also|and|hey|ok(?:ay)?|bitte|(?:could|can|would|will) you(?: please)?|"
    r"i(?:'d| would) like you to|i want you to|k[öo]nntest du|kannst du)[^\S\n]+)*"
    r"(?:remember|memori[sz]e|note|take (?:a )?note|make (?:a )?note|write (?:this |that |it )?down|jot|save|store|"
    r"record|keep in mind|don'?t forget|do not forget|add|update|correct|"
    r"merk\w*|notier\w*|speicher\w*|vergiss nicht|schreib\w*|halte? fest)\b(?!\s*\?)",
    re.IGNORECASE,
)
# "Remember when we ..." and "do you remember" are questions.
_RECALL = re.compile(
    r"\b(?:do|did|can|could|would) (?:you|we|i) (?:still )?(?:remember|recall)\b|\bremember when\b", re.IGNORECASE
)
_QUESTION = re.compile(
    r"\?|^\s*(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|has|have|can|could|should|"
    r"tell me|show me|list|find|search|look up|explain|summari[sz]e|give me|compare|"
    r"wer|wen|wem|was|welche\w*|wann|wo|warum|wie|zeig\w*|nenn\w*|such\w*|erkl[äa]r\w*)\b",
    re.IGNORECASE,
)
# A statement of users about themselves.
_STATEMENT = re.compile(
    r"^\s*(?:(?:by the way|btw|fyi|also|and|actually|übrigens)[\s,:]+)*"
    r"(?:(?:i|we)(?:'m|'ve|'re| am| are| have| had| was| were| live| work| moved| like| love| hate| prefer| bought|"
    r" own| use)|my|our|ich (?:bin|habe|wohne|arbeite|mag)|wir (?:sind|haben|wohnen)|mein\w*|unser\w*)\b",
    re.IGNORECASE,
)


class Intent(NamedTuple):
    """The intent of a message, and what has decided it."""

    intent: IntentName
    source: Source

    @property
    def writes(self) -> bool:
        """Whether something may be written."""
        return self.intent != "query"


class _IntentAnswer(BaseModel):
    """The schema of the model's answer."""

    model_config = ConfigDict(extra="forbid")

    intent: IntentName


def intent_find(messages: Sequence[Mapping[str, str]], *, turns: int, within: float = SECONDS) -> Intent:
    """Return the intent of the last of ``messages`` (role and content). Only the last ``turns`` messages are used.

    The model is asked for at most ``within`` seconds. If the model fails, the fixed rules decide. No queries; raises
    nothing.
    """
    last = [each for each in messages if each["role"] != "system"][-turns:]
    for budget in BUDGETS:
        try:
            answer = complete_json(
                _INSTRUCTIONS,
                {"turns": _shortened(last, budget)},
                schema=_IntentAnswer,
                purpose="intent",
                within=within,
            )
        except ModelProblem as problem:
            if problem.kind != "too_long":
                break
        else:
            return Intent(answer.intent, "model")
    return Intent(intent_by_rule(last[-1]["content"] if last else ""), "rule")


def intent_by_rule(text: str) -> IntentName:
    """Return the clear intent of a message; ``query`` if in doubt. Linear time for any text."""
    text = cut_middle(text, BUDGETS[1])
    asks = bool(_QUESTION.search(text)) or bool(_RECALL.search(text))
    orders = _RECALL.sub("", text)
    if any(_ORDER.match(orders, part.start()) for part in _PART.finditer(orders)):
        return "both" if asks else "ingest"
    return "both" if _STATEMENT.search(text) and not asks else "query"


def cut_middle(text: str, most: int) -> str:
    """Return ``text``, without its middle if it is longer than ``most``. Requests are usually at the beginning or the
    end of a text."""
    if len(text) <= most:
        return text
    end = most // 3
    return f"{text[: most - end]}\n[…]\n{text[-end:]}"


def _shortened(messages: Sequence[Mapping[str, str]], budget: int) -> list[dict[str, str]]:
    """Return the messages, shortened to ``budget`` characters. Half of these are for the last message, the other half
    for all earlier messages."""
    half, last = budget // 2, len(messages) - 1
    share = half // max(1, last)
    return [
        {"role": each["role"], "content": cut_middle(each["content"], half if at == last else share)}
        for at, each in enumerate(messages)
    ]
