"""Summaries of old revisions: by the language model if one is configured, else from the revisions' own words.

What the model says is only a draft. It is checked, and whatever goes wrong, the extractive summary stands in: a run
never fails or writes nonsense because of a model, and waits for it no longer than it says.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.core.summary import DatedValue, date_words, values_summarize
from memory.llm.client import ModelProblem, complete_text, model_configured
from memory.text.folding import fold
from memory.text.identifiers import STRONG, identifiers_find

logger = logging.getLogger(__name__)

MAX_REPLY = 1200

_INSTRUCTIONS = (
    "You condense the past values of one field of a memory store. The data holds the values, oldest first, each with "
    "the date since when it held, and perhaps a summary of still older values. Reply with plain text of at most three "
    "sentences that tells what the values were and how they changed, with dates. Use no number, name or fact that is "
    "not in the data. Write in the language of the values."
)

# A decimal, a time or a version counts as one number; a thousands separator does not.
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_THOUSANDS = re.compile(r"^\d{1,3}(?:,\d{3})+$")
# A word within a sentence: something other than an end or an opening sign stands before the space.
_INNER_WORD = re.compile(r"(?<=[^\s.!?:…\"“„«(\[])\s+[\"“„«(\[]?([^\W\d_][\w'’-]*)")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
# The dates that are sent name months in short; a summary may write them out.
_MONTHS = frozenset(
    {
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
    }
)
# Where more of the words within sentences than this are large, as German writes its nouns, that tells no names.
_LARGE_BY_HABIT = 0.2


@dataclass(frozen=True, slots=True)
class Summary:
    """A text for a FieldSummary, and how it was made: ``llm`` or ``extractive``."""

    text: str
    method: str


class _Untrue(Exception):
    """The model's summary says something that cannot be right."""


def revisions_summarize(
    values: Sequence[DatedValue], *, earlier: str | None = None, ask_model: bool = True, within: float | None = None
) -> Summary:
    """Return what ``values``, oldest first, amount to; ``earlier`` is the summary of what came before them.

    Waits for a model up to ``within`` seconds, ``MEMSTATE_LLM_TIMEOUT_SECONDS`` if not given, so under locks
    ``ask_model`` has to be false. No queries; never raises because of the model.
    """
    if ask_model and model_configured():
        data = {"values": [{"since": date_words(value.at), "value": value.text} for value in values]} | (
            {"summary_of_older_values": earlier} if earlier else {}
        )
        try:
            text = complete_text(_INSTRUCTIONS, data, purpose="summary", within=within)
            return Summary(_checked(text, values, earlier), "llm")
        except ModelProblem:
            # Told and counted where it was asked.
            pass
        except _Untrue as problem:
            logger.info("The language model's summary was not used: %s", problem)
    return Summary(values_summarize(values, earlier=earlier), "extractive")


def _checked(reply: str, values: Sequence[DatedValue], earlier: str | None) -> str:
    """Return the reply as it may be stored; raise ``_Untrue`` if it may not. The reason repeats nothing of it."""
    text = " ".join(reply.split())
    said = [earlier or "", *(f"{value.text} ({date_words(value.at)})" for value in values)]
    if len(text) > MAX_REPLY:
        raise _Untrue(f"it has more than {MAX_REPLY:,} characters.")
    if len(text) > len(" ".join(said).strip()):
        raise _Untrue("it is longer than what it summarizes.")
    # The months of the dates as numbers too: "2026-03-14" is a fair way to tell "14 Mar 2026".
    known = {number for part in said for number in _numbers(part)} | {str(value.at.month) for value in values}
    if not known.issuperset(_numbers(text)):
        raise _Untrue("it tells a number that nobody wrote.")
    source = "\n".join(said)
    if not _identifiers(text) <= _identifiers(source):
        raise _Untrue("it tells an address, a code or another identifier that nobody wrote.")
    if _foreign_names(text, source):
        raise _Untrue("it tells a name that nobody wrote.")
    return text


def _numbers(text: str) -> Iterator[str]:
    for number in _NUMBER.findall(text):
        plain = number.replace(",", "") if _THOUSANDS.match(number) else number
        yield plain.lstrip("0") or "0"


def _identifiers(text: str) -> set[tuple[str, str]]:
    return {(found.kind, found.canonical) for found in identifiers_find(text) if found.kind in STRONG}


def _foreign_names(text: str, source: str) -> bool:
    """Tell whether a word within a sentence of ``text`` is written large and does not occur in ``source``.

    Nothing can be told where words are written large by habit, or in scripts that know no difference.
    """
    inner = _INNER_WORD.findall(text)
    large = [fold(word) for word in inner if word[0].isupper()]
    of_source = {word for word in _INNER_WORD.findall(source) if fold(word) not in _MONTHS}
    if not large or sum(word[0].isupper() for word in of_source) > max(3, len(of_source) * _LARGE_BY_HABIT):
        return False
    known = {fold(word) for word in _WORD.findall(source)} | _MONTHS
    # "Anna's" tells of Anna.
    return any(word not in known and re.sub(r"'s?$", "", word) not in known for word in large)
