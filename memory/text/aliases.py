"""Aliases: where a text itself says that two names are one."""

import re

# A name: words in capitals (with the small words that stand inside of names), a run of another script, something in
# quotes, a handle, or a code with a digit in it.
_PARTICLE = r"(?:de|da|di|del|della|van|von|der|den|bin|ibn|al|el|la|le|of|the|und|y|do|dos)"
_UPPER = r"(?:[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’.-]{0,40}|[А-ЯЁЄІЇҐΑ-ΩΆ-Ώ][\w'’-]{0,40})"
_LETTER = "\u0370-\u1fff\u2c00-\u2dff\u3005\u3040-\ud7af\uf900-\ufaff"
_FOREIGN = (
    f"[{_LETTER}][{_LETTER}\u0300-\u036f・·'-]{{0,40}}(?: [{_LETTER}][{_LETTER}\u0300-\u036f・·'-]{{0,40}}){{0,5}}"
)
_THING = (
    r"(?:[Ss]erver|[Pp]roject|[Hh]ost|[Mm]achine|[Ss]ervice|[Nn]ode|[Cc]luster|[Dd]atabase|[Rr]epo|"
    r"[Aa]pp|[Tt]eam|[Pp]roduct|[Uu]ser|"
    r"[Cc]ustomer|[Dd]evice|[Pp]rinter)"
)
_CODE = r"(?:[@#][\w.-]{1,60}|(?<![\w.-])[A-Za-z][\w.-]{0,40}\d[\w.-]{0,40}|(?<![\w.+-])[\w.+-]{1,64}@[\w.-]{1,80}\w)"
_QUOTED = r"[\"“„«'‘「『](?P<quoted{n}>[^\"”“»'’」』\n]{{1,80}})[\"”“»'’」』]"


def _name(number: int) -> str:
    quoted = _QUOTED.format(n=number)
    words = rf"(?<![A-Za-z]){_UPPER}(?:\s(?:{_PARTICLE}\s){{0,2}}{_UPPER}){{0,5}}"
    return (
        rf"(?:{quoted}|{_THING}\s+(?P<thing{number}>[a-z][\w.-]{{0,40}}\w)|(?P<plain{number}>{words}|"
        rf"{_CODE}|{_FOREIGN}))"
    )


# What may stand between a name and the words that say it is another's, and after them before the other name.
_OPEN = r"\s?[,;:(（\[–—-]{0,3}\s?(?:who|which|he|she|they|it)?\s?(?:is|was|are|were|'s)?\s?(?:an?|the)?\s?"
_CUES = (
    (
        r"also\s+(?:known|called|referred\s+to|written|spelled|spelt|listed|registered|goes|appears|"
        r"named)(?:\s+by|\s+as|\s+under|\s+in\s+\w+(?:\s+(?:script|letters))?(?:\s+as)?)?"
    ),
    (
        r"(?:otherwise|better|formerly|previously|commonly|sometimes|internally|officially|locally|online|"
        r"professionally|now)\s+(?:known|called|referred\s+to|named)(?:\s+as)?"
    ),
    r"(?:is\s+)?known\s+(?:to\s+\w+(?:\s+\w+)?\s+)?as",
    r"a\.?\s?k\.?\s?a\.?,?",
    r"alias(?:es)?(?:\s+(?:is|for|of))?:?",
    (
        r"(?:the\s+)?same\s+(?:(?:person|company|thing|project|man|woman|city|place|customer|client|user|"
        r"one|entity|product|server|machine|account|team|animal|dog|cat)\s+)?(?:as|like)"
    ),
    r"(?:goes|went|going)\s+by(?:\s+the\s+(?:nick)?name(?:\s+of)?)?",
    r"nick-?named?:?(?:\s+(?:is|as))?",
    r"n[ée]e",
    r"born\s+as",
    r"identical\s+(?:to|with)",
    r"one\s+and\s+the\s+same\s+as",
    r"another\s+name\s+(?:for|of)",
    r"short\s+(?:for|form\s+of)",
    r"(?:real|full|maiden|old|former|stage|pen|user|code)\s*name\s*(?:is|was|:)?",
    r"abbreviated(?:\s+(?:as|to))?",
    r"renamed(?:\s+(?:to|as))?",
    (
        r"(?:written|spelled|spelt|transliterated|transcribed|romani[sz]ed|"
        r"rendered)(?:\s+in\s+\w+(?:\s+(?:script|letters|alphabet|characters))?)?\s*(?:as|:)?"
    ),
    (
        r"in\s+(?:the\s+)?(?:Latin|Roman|Cyrillic|Greek|Arabic|Hebrew|Chinese|Japanese|Korean|Hangul|"
        r"Kanji|Katakana|Hiragana|Devanagari|Hindi|Thai|English|Russian|Ukrainian|Georgian|"
        r"Armenian)(?:\s+(?:script|letters|alphabet|characters|writing|spelling))?\s*(?:as|is|he\s+is|"
        r"she\s+is|it\s+is|:|=|,)?"
    ),
    r"(?:auch\s+)?(?:bekannt|genannt)(?:\s+(?:als|unter))?",
    r"también\s+conocid[oa]\s+como",
    r"connue?\s+sous\s+le\s+nom\s+de",
    r"conhecid[oa]\s+como",
    r"dit(?:e)?",
    r"detto",
    r"он\s+же",
    r"она\s+же",
    r"также\s+извест\w+\s+как",
    r"латиницей:?",
    r"по-английски:?",
    r"又名|又称|又稱|也叫|别名|別名|英文名(?:是|为)?|即|通称|こと|本名は|또는|별명은|영어\s*이름은",
)
_SAME = re.compile(rf"{_name(1)}{_OPEN}(?:{'|'.join(_CUES)})\s*[:=]?\s*(?:the\s+)?(?:{_THING}\s+(?=[A-Z]))?{_name(2)}")
# "X and Y are the same person", "X = Y", "X's nickname is Y", "the Latin spelling of X is Y".
_BOTH = re.compile(
    rf"{_name(1)}\s+(?:and|und|y|et|e|и|と|和)\s+{_name(2)}\s+(?:are|is|were|sind|son|sont|это|は|是)\s+"
    r"(?:(?:one\s+and\s+)?the\s+same|one\s+(?:person|company|thing)|identical|ein\s+und\s+dieselbe|"
    r"la\s+misma|la\s+même|одно|同じ|同一)"
)
_EQUALS = re.compile(rf"{_name(1)}\s*(?:=|==|≡|⇔)\s*{_name(2)}")
_POSSESSED = re.compile(
    rf"{_name(1)}(?:'s|’s)\s+(?:(?:\w+\s+)?(?:nickname|alias|codename|code\s+name|user\s*name|handle|"
    rf"real\s+name|full\s+name|Latin\s+name|old\s+name|former\s+name|other\s+name))\s+(?:is|was|"
    rf":)\s+{_name(2)}"
)
_SPELLING = re.compile(
    rf"(?:name|spelling|form|transliteration|romani[sz]ation|transcription)\s+(?:of|"
    rf"for)\s+(?:the\s+name\s+)?{_name(1)}\s+(?:is|reads|:|=)\s+{_name(2)}"
)
# "Samir (سمير)": the same name in two scripts.
_TWO_SCRIPTS = re.compile(
    rf"(?P<plain1>(?<![A-Za-z]){_UPPER}(?:\s(?:{_PARTICLE}\s){{0,2}}{_UPPER}){{0,5}})\s*[(（\[]\s*(?P<plain2>{_FOREIGN})\s*[)）\]]|"
    rf"(?P<plain3>{_FOREIGN})\s*[(（\[]\s*(?P<plain4>[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’-]{{0,40}}(?:\s[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’-]{{0,40}}){{0,5}})\s*[)）\]]"
)
_MOST_CHARS = 20_000
_SPACES = re.compile(r"\s{2,}")
# Without one of these a text states no alias: a cheap look, to save the costly ones.
_SIGNS = (
    "known",
    "alias",
    "aka",
    "a.k",
    "same",
    "goes by",
    "going by",
    "nick",
    "name",
    "née",
    "nee",
    "born as",
    "identical",
    "short for",
    "abbrev",
    "written",
    "spel",
    "trans",
    "romani",
    "called",
    "script",
    "letters",
    "alphabet",
    "bekannt",
    "genannt",
    "conocid",
    "connu",
    "conhecid",
    " dit",
    "detto",
    "он же",
    "она же",
    "извест",
    "латиниц",
    "по-англ",
    "又",
    "也叫",
    "别名",
    "別名",
    "英文",
    "即",
    "通称",
    "こと",
    "本名",
    "또는",
    "별명",
    "이름",
    "=",
    " in latin",
    " in english",
    " in cyrillic",
    " in greek",
    " in arabic",
    " in chinese",
    " in japanese",
    " in korean",
    " in russian",
    " in hebrew",
    " in hindi",
    " in thai",
)
# The patterns, each with what it does not match without.
_STATEMENTS = (
    (_SAME, ("",)),
    (_BOTH, ("same", "one", "identical", "dieselbe", "misma", "même", "одно", "同")),
    (_EQUALS, ("=", "≡", "⇔")),
    (_POSSESSED, ("'s", "’s")),
    (_SPELLING, ("of", "for")),
)
_PLAIN_SIGNS = tuple(sign for sign in _SIGNS if sign.isascii())


def aliases_find(text: str) -> list[tuple[str, str]]:
    """Return the pairs of names that ``text`` says are one, as written: ``("Robert", "Bob")`` for "Robert, also known
    as Bob". Only where the text states it; two names that merely look alike are no pair. Linear in the text."""
    # Every repeat in the patterns is bounded, and one space stands between words: no text takes them long.
    text = text[:_MOST_CHARS]
    # Of what is space, only the common one can be printed.
    if "  " in text or not text.isprintable():
        text = _SPACES.sub(lambda match: "\n" if "\n" in match[0] else " ", text)
    found: list[tuple[str, str]] = []
    plain = text.isascii()
    if not plain:
        for match in _TWO_SCRIPTS.finditer(text):
            one, other = (_trimmed(name) for name in match.groups() if name)
            if one.isascii() != other.isascii():
                found.append((one, other))
    lowered = text.lower()
    if not any(map(lowered.__contains__, _PLAIN_SIGNS if plain else _SIGNS)):
        return found
    for pattern, needed in _STATEMENTS:
        for match in pattern.finditer(text) if any(map(text.__contains__, needed)) else ():
            one, other = (_trimmed(match[f"quoted{at}"] or match[f"thing{at}"] or match[f"plain{at}"]) for at in (1, 2))
            if one and other and one.casefold() != other.casefold() and (one, other) not in found:
                found.append((one, other))
    return found


def _trimmed(name: str) -> str:
    return re.sub(r"(?:'s|’s)?[\s.,;:'’-]*$", "", name.strip())
