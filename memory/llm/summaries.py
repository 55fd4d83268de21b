"""Summaries of old revisions and of compacted topics, by the language model or by extraction.

The model's text is checked. If there is no model, if it fails, or if its text fails the check, the summary is
extractive.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.core.summary import DatedValue, date_words, texts_summarize, values_summarize
from memory.llm.chat_request import model_configured
from memory.llm.client import complete_text
from memory.llm.wire import ModelProblem
from memory.text.folding import fold
from memory.text.keys import keys_certain, keys_missing, keys_of
from memory.text.word_lists import wordset

logger = logging.getLogger(__name__)

MAX_REPLY = 1200

_INSTRUCTIONS = """
You summarize the history of one field in a memory store.
Task: summarize the values in the data. They are sorted from oldest to newest; each has the date from which it was
valid. The data may also have a summary of still older values.
Rules:
- Say which values the field had and how they changed, with dates.
- Use only numbers, names and facts from the data.
- Write in the language of the values.
Output: plain text, at most three sentences.
Example: "The office was in Oslo from March 2021. It moved to Bergen in May 2024."
""".strip()

_INSTRUCTIONS_FOR_TOPICS = """
You merge several entries of a memory store into one summary.
Task: summarize the entries in the data. They are sorted from oldest to newest; each has its date.
Rules:
- Say what the entries have in common, and what is different in each of them.
- Use only numbers, names and facts from the data.
- Write in the language of the entries.
Output: plain text, at most four sentences.
Example: "The weekly meetings were about the budget. On 3 May it was approved; on 10 May travel was cut."
""".strip()

# A decimal number, a time or a version counts as one number. Thousands separators are removed.
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_THOUSANDS = re.compile(r"^\d{1,3}(?:,\d{3})+$")
# A word within a sentence. The space before the word follows neither the end of a sentence nor an opening bracket.
_INNER_WORD = re.compile(r"(?<=[^\s.!?:…\"“„«(\[])\s+[\"“„«(\[]?([^\W\d_][\w'’-]*)")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
# The data contains short names of months. A summary may contain their full names.
_MONTHS = wordset(
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec"
)
# If more than this share of the words within sentences has a capital, as in German, capitals do not mark names.
_CAPITALS_COMMON = 0.2


@dataclass(frozen=True, slots=True)
class Summary:
    """A text for a FieldSummary, and its method: ``llm`` or ``extractive``."""

    text: str
    method: str


class _Untrue(Exception):
    """The model's summary contains something that is not in the data."""


def revisions_summarize(
    values: Sequence[DatedValue], *, earlier: str | None = None, ask_model: bool = True, within: float | None = None
) -> Summary:
    """Return the summary of ``values`` (oldest first). ``earlier`` is the summary of still older values.

    Waits for the model for at most ``within`` seconds (default ``MEMSTATE_LLM_TIMEOUT_SECONDS``), so ``ask_model`` must
    be False while rows are locked. No queries. If the model fails, the summary is extractive.
    """
    data: dict[str, Any] = {"values": [{"since": date_words(value.at), "value": value.text} for value in values]}
    if earlier:
        data["summary_of_older_values"] = earlier
    by_model = _ask(_INSTRUCTIONS, data, values, earlier, within) if ask_model else None
    return by_model or Summary(values_summarize(values, earlier=earlier), "extractive")


def topics_summarize(texts: Sequence[DatedValue], *, ask_model: bool, within: float | None = None) -> Summary:
    """Return the summary of the texts of several topics, oldest first. Otherwise like ``revisions_summarize``."""
    data = {"entries": [{"date": date_words(text.at), "entry": text.text} for text in texts]}
    by_model = _ask(_INSTRUCTIONS_FOR_TOPICS, data, texts, None, within) if ask_model else None
    return by_model or Summary(texts_summarize(texts), "extractive")


def _ask(
    instructions: str, data: Mapping[str, Any], values: Sequence[DatedValue], earlier: str | None, within: float | None
) -> Summary | None:
    if not model_configured():
        return None
    try:
        text = complete_text(instructions, data, purpose="summary", within=within)
        return Summary(_checked(text, values, earlier), "llm")
    except ModelProblem:
        # ``call_counted`` has logged the failure.
        pass
    except _Untrue as problem:
        logger.info("The language model's summary was not used: %s", problem)
    return None


def _checked(reply: str, values: Sequence[DatedValue], earlier: str | None) -> str:
    """Return the reply on one line. Raises ``_Untrue``, without any text of the reply, if the reply fails the check."""
    text = " ".join(reply.split())
    sources = [earlier or "", *(f"{value.text} ({date_words(value.at)})" for value in values)]
    if len(text) > MAX_REPLY:
        raise _Untrue(f"it has more than {MAX_REPLY:,} characters.")
    if len(text) > len(" ".join(sources).strip()):
        raise _Untrue("it is longer than its source.")
    # The number of the month also counts as known, because the reply may write "14 Mar 2026" as "2026-03-14".
    known = {number for part in sources for number in _numbers(part)} | {str(value.at.month) for value in values}
    if not known.issuperset(_numbers(text)):
        raise _Untrue("it has a number that is not in the source.")
    source = "\n".join(sources)
    if keys_missing(text, known=keys_of(source), certain=keys_certain(source)):
        raise _Untrue("it has an address, a code or another identifier that is not in the source.")
    if _foreign_names(text, source):
        raise _Untrue("it has a name that is not in the source.")
    return text


def _numbers(text: str) -> Iterator[str]:
    for number in _NUMBER.findall(text):
        plain = number.replace(",", "") if _THOUSANDS.match(number) else number
        yield plain.lstrip("0") or "0"


def _foreign_names(text: str, source: str) -> bool:
    """Return whether ``text`` has a name that is not in ``source``. A capitalized word within a sentence counts as a
    name. Always False if capitals do not mark names in ``source``."""
    inner = _INNER_WORD.findall(text)
    large = [fold(word) for word in inner if word[0].isupper()]
    of_source = {word for word in _INNER_WORD.findall(source) if fold(word) not in _MONTHS}
    if not large or sum(word[0].isupper() for word in of_source) > max(3, len(of_source) * _CAPITALS_COMMON):
        return False
    known = {fold(word) for word in _WORD.findall(source)} | _MONTHS
    # "Anna's" contains the name Anna.
    return any(word not in known and re.sub(r"'s?$", "", word) not in known for word in large)
