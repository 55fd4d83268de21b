"""The intent of a message: to ask something, to store something, or both.

The model decides from the last messages. If the model fails, rules recognize clear requests to store something.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from memory.llm.client import complete_json
from memory.llm.wire import ModelProblem

IntentName = Literal["query", "ingest", "both"]
Source = Literal["override", "model", "rule"]

# The time limit for the model. It is short because the client waits, and the answer itself takes time, too.
SECONDS = 8.0
# Two limits of the number of characters that the model gets in total. Half of them are for the last message. If the
# request is too long with the first limit, the second limit is used.
BUDGETS = (16_000, 4_000)

_INSTRUCTIONS = """
You are a classifier for the assistant of a memory store.
Task: classify what the last message of the user asks for. The data has the last turns of the conversation, oldest
first; long turns are shortened in the middle.
Classes:
- query: the user wants to know something, or anything else that writes nothing.
- ingest: the user wants something remembered, corrected or added. Examples: the user asks for it, or states a fact
  about themselves, other people, plans or things that will matter later.
- both: the user wants to know something and wants something remembered.
Rules:
- Use the earlier turns only to understand what the last message refers to.
- If you are not sure, answer query.
Example: for the last message "I moved to Porto. Do you know a good bakery there?", the class is both.
""".strip()

# A part of a sentence. ``_ORDER`` is matched only at the beginning of each part, so the time is linear for any text.
_PART = re.compile(r"[^.!?:;,\n]+")
# An order to write something, with or without a polite form.
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
    """The intent of a message, and what determined it."""

    intent: IntentName
    source: Source

    @property
    def writes(self) -> bool:
        """Whether something may be written."""
        return self.intent != "query"


class _IntentAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    intent: IntentName


def intent_find(messages: Sequence[Mapping[str, str]], *, turns: int, within: float = SECONDS) -> Intent:
    """Return the intent of the last message. Each message has the keys ``role`` and ``content``.

    Messages of the role ``system`` are ignored. Of the others, only the last ``turns`` are used. Waits for the model
    for at most ``within`` seconds, and again if the messages were too long. No queries; raises nothing.
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
    """Return the intent of a message by rules; ``query`` if in doubt. Linear time for any text."""
    text = cut_middle(text, BUDGETS[1])
    asks = bool(_QUESTION.search(text)) or bool(_RECALL.search(text))
    orders = _RECALL.sub("", text)
    if any(_ORDER.match(orders, part.start()) for part in _PART.finditer(orders)):
        return "both" if asks else "ingest"
    return "both" if _STATEMENT.search(text) and not asks else "query"


def cut_middle(text: str, most: int) -> str:
    """Return ``text``, without its middle if it has more than ``most`` characters."""
    if len(text) <= most:
        return text
    end = most // 3
    return f"{text[: most - end]}\n[…]\n{text[-end:]}"


def _shortened(messages: Sequence[Mapping[str, str]], budget: int) -> list[dict[str, str]]:
    """Return the messages, cut to ``budget`` characters in total: half for the last message, half for the others."""
    half, last = budget // 2, len(messages) - 1
    share = half // max(1, last)
    return [
        {"role": each["role"], "content": cut_middle(each["content"], half if at == last else share)}
        for at, each in enumerate(messages)
    ]
