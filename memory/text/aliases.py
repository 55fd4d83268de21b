"""Finds statements that two names belong to one person or thing."""

import re
from collections.abc import Container, Iterable
from functools import lru_cache
from typing import Final

from memory.text.folding import fold

# How many times aliases are followed: "Bob" is also "Robert", who is also "R. Miller".
ALIAS_ROUNDS: Final = 3

# A name: capitalised words, words in another script, a quotation, a handle, or a code with a digit.
_PARTICLE = r"(?:de|da|di|del|della|van|von|der|den|bin|ibn|al|el|la|le|of|the|und|y|do|dos)"
_UPPER = r"(?:[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’.-]{0,40}|[А-ЯЁЄІЇҐΑ-ΩΆ-Ώ][\w'’-]{0,40})"
_LETTER = "\u0370-\u1fff\u2c00-\u2dff\u3005\u3040-\ud7af\uf900-\ufaff"
_RUN = f"[{_LETTER}][{_LETTER}\u0300-\u036f・·'-]{{0,40}}"
_FOREIGN = f"{_RUN}(?: {_RUN}){{0,5}}"
_WORDS = rf"(?<![A-Za-z]){_UPPER}(?:\s(?:{_PARTICLE}\s){{0,2}}{_UPPER}){{0,5}}"
_THING = (
    "(?i:server|project|host|machine|service|node|cluster|database|repo|app|team|product|user|customer|device|printer)"
)
_CODE = r"(?:[@#][\w.-]{1,60}|(?<![\w.-])[A-Za-z][\w.-]{0,40}\d[\w.-]{0,40}|(?<![\w.+-])[\w.+-]{1,64}@[\w.-]{1,80}\w)"


def _name(number: int) -> str:
    return (
        rf"(?:[\"“„«'‘「『](?P<quoted{number}>[^\"”“»'’」』\n]{{1,80}})[\"”“»'’」』]"
        rf"|{_THING}\s+(?P<thing{number}>[a-z][\w.-]{{0,40}}\w)|(?P<plain{number}>{_WORDS}|{_CODE}|{_FOREIGN}))"
    )


# The words that may occur between a name and a phrase such as "also known as".
_OPEN = r"\s?[,;:(（\[–—-]{0,3}\s?(?:who|which|he|she|they|it)?\s?(?:is|was|are|were|'s)?\s?(?:an?|the)?\s?"
_WRITTEN = r"(?:written|spel(?:led|t)|transliterated|transcribed|romani[sz]ed|rendered)"
_SCRIPT = (
    r"in\s+(?:the\s+)?(?:Latin|Roman|Cyrillic|Greek|Arabic|Hebrew|Chinese|Japanese|Korean|Hangul|Kanji|Katakana|"
    r"Hiragana|Devanagari|Hindi|Thai|English|Russian|Ukrainian)(?:\s+(?:script|letters|alphabet|characters))?"
)
_CUES = (
    (
        r"(?:also|otherwise|better|formerly|previously|commonly|sometimes|internally|officially|locally|online|now)\s+"
        rf"(?:known|called|referred\s+to|listed|registered|goes|appears|named|{_WRITTEN})"
        rf"(?:\s+{_SCRIPT})?(?:\s+(?:as|by|under))?"
    ),
    r"known\s+(?:to\s+\w+(?:\s+\w+)?\s+)?as",
    r"a\.?\s?k\.?\s?a\.?,?|alias(?:es)?(?:\s+(?:is|for|of))?:?|=+|≡|⇔",
    r"same\s+(?:\w+\s+)?(?:as|like)|identical\s+(?:to|with)|one\s+and\s+the\s+same\s+as",
    r"(?:goes|went|going)\s+by(?:\s+the\s+(?:nick)?name(?:\s+of)?)?",
    r"nick-?named?:?(?:\s+(?:is|as))?|n[ée]e|born\s+as|renamed(?:\s+(?:to|as))?",
    r"another\s+name\s+(?:for|of)|short\s+(?:for|form\s+of)|abbreviated(?:\s+(?:as|to))?",
    r"(?:real|full|maiden|old|former|stage|pen|user|code)\s*name\s*(?:is|was|:)?",
    rf"{_WRITTEN}(?:\s+{_SCRIPT})?\s*(?:as|:)?|{_SCRIPT}\s*(?:as|is|(?:he|she|it)\s+is|:|=|,)?",
    r"(?:auch\s+)?(?:bekannt|genannt)(?:\s+(?:als|unter))?|también\s+conocid[oa]\s+como|dite?|detto",
    r"connue?\s+sous\s+le\s+nom\s+de|conhecid[oa]\s+como|он[а]?\s+же|также\s+извест\w+\s+как|латиницей:?",
    r"又名|又称|又稱|也叫|别名|別名|英文名(?:是|为)?|即|通称|こと|本名は|또는|별명은|영어\s*이름은",
)
_NOUNS = (
    r"(?:nick-?name|alias|code\s?name|user\s*name|handle|(?:real|full|Latin|old|former|other)\s+name|spelling|"
    r"transliteration|romani[sz]ation|transcription)"
)
_SAME = rf"{_name(1)}{_OPEN}(?:{'|'.join(_CUES)})\s*[:=]?\s*(?:the\s+)?(?:{_THING}\s+(?=[A-Z]))?{_name(2)}"
# "X and Y are the same person", "X's nickname is Y", "the Latin spelling of X is Y".
_BOTH = (
    rf"{_name(1)}\s+(?:and|und|y|et|e|и|と|和)\s+{_name(2)}\s+(?:are|is|were|sind|son|sont|это|は|是)\s+"
    r"(?:(?:one\s+and\s+)?the\s+same|one\s+(?:person|company|thing)|identical|ein\s+und\s+dieselbe|"
    r"la\s+misma|la\s+même|одно|同じ|同一)"
)
_POSSESSED = rf"{_name(1)}['’]s\s+{_NOUNS}\s+(?:is|was|:)\s+{_name(2)}"
_SPELLING = rf"{_NOUNS}\s+(?:of|for)\s+(?:the\s+name\s+)?{_name(1)}\s+(?:is|reads|:|=)\s+{_name(2)}"
_STATEMENTS = tuple(map(re.compile, (_SAME, _BOTH, _POSSESSED, _SPELLING)))
# "Samir (سمير)": the same name in two scripts.
_TWO_SCRIPTS = re.compile(
    rf"(?:({_WORDS})\s*[(（\[]\s*({_FOREIGN})|({_FOREIGN})\s*[(（\[]\s*({_UPPER}(?:\s{_UPPER}){{0,5}}))\s*[)）\]]"
)
_MAX_CHARS = 20_000
_SPACES = re.compile(r"\s{2,}")
# A cheap test: an ASCII text that does not match this pattern states no alias.
_SIGNS = re.compile(
    r"known|alias|a\.?\s?k\.?\s?a|same|going|goes|nick|name|nee|born|identical|short|abbrev|written|spel|trans|romani|"
    r"called|script|letters|alphabet|bekannt|conhecid|dite? |detto|=|\bin (?:latin|english)",
    re.IGNORECASE,
)


def aliases_find(text: str) -> list[tuple[str, str]]:
    """Return the pairs of aliases that ``text`` states, as written: ``("Robert", "Bob")`` for "Robert, also known as
    Bob". Two similar names are not a pair unless the text says so. Linear in the length of the text."""
    # All repetitions in the patterns are bounded and spaces are collapsed. Therefore, matching takes linear time.
    text = text[:_MAX_CHARS]
    plain = text.isascii()
    if plain and not _SIGNS.search(text):
        return []
    text = _SPACES.sub(lambda match: "\n" if "\n" in match[0] else " ", text)
    found: list[tuple[str, str]] = []
    for match in () if plain else _TWO_SCRIPTS.finditer(text):
        one, other = (_trimmed(name) for name in match.groups() if name)
        if one.isascii() != other.isascii():
            found.append((one, other))
    for pattern in _STATEMENTS:
        for match in pattern.finditer(text):
            one, other = (_trimmed(match[f"quoted{at}"] or match[f"thing{at}"] or match[f"plain{at}"]) for at in (1, 2))
            if one and other and one.casefold() != other.casefold() and (one, other) not in found:
                found.append((one, other))
    return found


def aliases_of(name: str, texts: Iterable[str]) -> list[str]:
    """Return ``name`` and its aliases according to ``texts``."""
    known, texts = {fold(name): name}, list(texts)
    for _round in range(ALIAS_ROUNDS):
        before = len(known)
        aliases_add(known, known, texts)
        if len(known) == before:
            break
    return list(known.values())


def aliases_add(known: dict[str, str], among: Container[str], texts: Iterable[str]) -> None:
    """Add to ``known`` the aliases that ``texts`` state for the names in ``among``. ``known`` maps the folded form of a
    name to the name; ``among`` has folded forms."""
    for one, other in (pair for text in texts for pair in _pairs(text)):
        for this, that in ((one, other), (other, one)):
            if fold(this) in among:
                known.setdefault(fold(that), that)


_pairs = lru_cache(maxsize=2_048)(lambda text: tuple(aliases_find(text)))


def _trimmed(name: str) -> str:
    return re.sub(r"(?:'s|’s)?[\s.,;:'’-]*$", "", name.strip())
