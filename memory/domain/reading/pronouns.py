"""Pronouns put into words, where the text leaves no choice: "She works there" after "Anna lives in Oslo".

In a transcript "I" is who speaks, and with two speakers "you" is the other. "He" and "she" are the one person that was
named shortly before and fits. Where two would fit, or nobody, the pronoun stays: nothing is guessed. English only;
other languages pass through unchanged.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memory.domain.reading.agreement import contraction_open, verb_agree
from memory.domain.reading.lists import wordset
from memory.domain.reading.persons import Person, gender_of, persons_find, thing_at_start

# So many statements back an antecedent is looked for.
REACH = 3

_FIRST = re.compile(r"(?<![\w'’])(?:I(?:['’](?P<short>m|ve|ll|d))?|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself)(?![\w'’-])(?!\.\w)")
_SECOND = re.compile(r"(?<![\w'’])(?:[Yy]ou(?:['’](?P<short>re|ve|ll|d))?|[Yy]our|[Yy]ours|[Yy]ourself)(?![\w'’-])")
_ROMAN = re.compile(r"\b(?:World War|Part|Chapter|Phase|Type|Class|Act)\s+$")
# "You" as anybody: what holds for people in general.
_ANYBODY = re.compile(
    r"\b(?:when|whenever|if|once|where|wherever|until|unless|than|things?|way|like)\s+you\b|\byou\s+(?:can|could|"
    r"know|need|"
    r"never|get|have to|gotta|must|should|just)\b|\bmake you\b|\byourself\b",
    re.IGNORECASE,
)
_OBJECT_BEFORE = re.compile(
    r"\b(?:help|helps|helped|tell|told|with|to|for|of|about|on|from|and|than|see|saw|thank|let|make|makes|made|"
    r"give|gave|"
    r"send|sent|show|showed|ask|asked|call|called|join|teach|wish|support|at|by|like|around|behind|beside|miss|"
    r"meet|met|"
    r"visit|invite|invited|join|remind|reminds|inspire|inspires|between|without|after|before|bring|brings|near)\s+$",
    re.IGNORECASE,
)
_INVERTED = re.compile(
    r"\b(?:do|does|did|don't|didn't|am|was|are|were|have|will|would|can|could|should)\s+$", re.IGNORECASE
)
# "Tom and I live here", and not "I met Tom and I like him".
_JOINED = re.compile(
    r"(?:^|[,;:]\s*|\b(?:that|when|because|if|so|but|where)\s+)(?:(?:[Mm]y|[Oo]ur|[Tt]he)\s+)?"
    r"(?:[A-Z][\w-]*(?:\s[A-Z][\w-]*)?|\w+er|kids|family|wife|husband)\s+(?:and|or)\s+$"
)
_THIRD = re.compile(
    r"(?<![\w'’-])(?P<word>[Hh]e|[Ss]he|[Hh]im|[Hh]is|[Hh]er|[Hh]ers|[Hh]imself|[Hh]erself)(?P<short>['’](?:s|ll|"
    r"d))?(?![\w'’-])"
)
_THEY = re.compile(r"(?<![\w'’-])(?P<word>[Tt]hey|[Tt]hem|[Tt]heir|[Tt]heirs)(?P<short>['’](?:re|ve|ll|d))?(?![\w'’-])")
_IT = re.compile(r"^(?P<word>It|Its)(?P<short>['’](?:s|ll|d))?(?![\w'’-])")
_NO_NOUN = re.compile(
    r"\s*(?:$|[^\w\s]|(?:to|in|on|at|for|from|with|and|or|but|as|by|that|if|when|because|is|was|a|an|the|very|so|too|"
    r"yesterday|today|tomorrow|there|here|last|again|every|about|up|down|out|off|who|while|after|before)\b)",
    re.IGNORECASE,
)
_AGAIN = {
    "f": {"i": "she", "me": "her", "my": "her", "mine": "hers"},
    "m": {"i": "he", "me": "him", "my": "his", "mine": "his"},
}
_BEGINS = re.compile(r"\W*(?:it|its|this|that|these|those|they|them|their|he|she|his|her|him)\b", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”|«[^»]*»')
_POSSESSIVE = wordset("my your his its their mine yours hers theirs")
_NOT_THIRD = re.compile(
    r"\b(?:everyone|everybody|somebody|someone|anyone|anybody|nobody|each|person|who)\b", re.IGNORECASE
)


@dataclass(slots=True)
class Context:
    """What was said before: the persons of the last statements, newest last, and what the last one was about."""

    speakers: frozenset[str] = frozenset()
    said: list[list[Person]] = field(default_factory=list)
    thing: str = ""

    def remember(self, text: str) -> None:
        """Take in a statement, resolved as far as it could be."""
        self.said = [*self.said[-(REACH - 1) :], persons_find(text)]
        if not (self.thing and text.startswith(self.thing)):
            self.thing = thing_at_start(text)


def pronouns_resolve(text: str, *, context: Context, speaker: str | None = None) -> str:
    """Return one statement with its pronouns replaced where there is one answer, and take it into ``context``.

    ``speaker`` is who says it in a transcript; ``context.speakers`` are all who speak there. A pronoun whose antecedent
    stands in the same statement before it stays. Linear in the length of the statement.
    """
    if speaker:
        text = _spoken(text, speaker, context.speakers)
    text = _third(text, context, speaker)
    text = _several(text, context)
    text = _it(text, context)
    context.remember(text)
    return text


def unresolved(text: str, *, spoken: bool) -> bool:
    """Tell whether a statement begins with a pronoun that stands for something said before it.

    ``spoken`` counts "I", "you" and "we" too, which in a transcript depend on who speaks.
    """
    begins = re.match(
        r"(?:[^\w]*)(?:it|its|this|that|these|those|they|them|their|he|she|his|her|him)\b", text, re.IGNORECASE
    )
    if begins and not re.match(r"\W*(?:this|that|these|those|his|her|their|its)\s+\w+\s", text, re.IGNORECASE):
        return True
    return spoken and bool(re.search(r"(?<![\w'’])(?:I|[Ww]e|[Oo]ur|[Uu]s|[Yy]ou|[Yy]our)(?![\w-])", text))


def _spoken(text: str, speaker: str, speakers: frozenset[str]) -> str:
    quoted = [found.span() for found in _QUOTED.finditer(text) if found.span() != (0, len(text))]
    others = speakers - {speaker}
    text = _replace(text, _FIRST, speaker, quoted, again=_again(text, speaker, others))
    if len(others) == 1 and not _ANYBODY.search(text):
        quoted = [found.span() for found in _QUOTED.finditer(text) if found.span() != (0, len(text))]
        text = _replace(text, _SECOND, next(iter(others)), quoted)
    return text


def _replace(
    text: str,
    pattern: re.Pattern[str],
    name: str,
    quoted: Sequence[tuple[int, int]],
    *,
    again: Mapping[str, str] | None = None,
) -> str:
    done, rest, told = "", text, False
    offset = 0
    while found := pattern.search(rest):
        at = offset + found.start()
        before = done + rest[: found.start()]
        if any(start <= at < end for start, end in quoted) or _ROMAN.search(before):
            done, offset, rest = before + found.group(), offset + found.end(), rest[found.end() :]
            continue
        put, after = _put(found, name, before, rest[found.end() :], again=again if told else None)
        told = True
        offset += found.end()
        done, rest = before + put, after
    return done + rest


def _put(
    found: re.Match[str], name: str, before: str, after: str, *, again: Mapping[str, str] | None
) -> tuple[str, str]:
    """Return what stands for a pronoun of the first or second person, and the text behind it, its verb in agreement."""
    word = found.group().lower().split("'")[0].split("’")[0]
    if not before.strip():
        name = name[0].upper() + name[1:]
    if again and word in again:
        name = again[word]
        if word in ("me", "my", "mine"):
            return name, after
    elif word in _POSSESSIVE:
        return possessive(name), after
    if word == "you" and re.match(r"\s+(?:two|both|guys|all|three|folks)\b", after):
        return found.group(), after
    if word in ("me", "myself", "yourself"):
        return (name if word == "me" else _self(name)), after
    joined = bool(re.search(r"\b(?:and|or)\s+$", before)) and not re.search(r"[,;.]\s*(?:and|or)\s+$", before)
    plural = joined and bool(_JOINED.search(before))
    if found["short"]:
        return name + contraction_open(found["short"], after, plural=plural), after
    if word == "you" and _OBJECT_BEFORE.search(before):
        return name, after
    if _INVERTED.search(before):
        return name, after
    return name, verb_agree(after, plural=plural)


def _again(text: str, speaker: str, others: frozenset[str]) -> Mapping[str, str] | None:
    """Return how somebody is meant who was named in the same statement: "Anna likes her job". None if another might be
    taken for the one who is meant, or nothing is known of the name."""
    gender = gender_of(speaker)
    if not gender or any(_fits(person, gender) for person in persons_find(text)):
        return None
    if _SECOND.search(text) and any(gender_of(other) in ("", gender) for other in others):
        return None
    return _AGAIN[gender]


def possessive(name: str) -> str:
    """Return the possessive of a name."""
    return f"{name}'" if name.endswith("s") and not name[0].islower() and len(name) > 3 else f"{name}'s"


def _self(name: str) -> str:
    return {"f": "herself", "m": "himself"}.get(gender_of(name), "themself")


def _third(text: str, context: Context, speaker: str | None) -> str:
    if _NOT_THIRD.search(text):
        return text
    for gender in "fm":
        # What comes later in the statement refers to the same one as the first.
        found = next((each for each in _THIRD.finditer(text) if _gender(each["word"]) == gender), None)
        if found is None or any(_fits(person, gender) for person in persons_find(text[: found.start()])):
            continue
        who = _antecedent(context, gender, speaker)
        if who is not None:
            text = _named(text, found, who.name)
    return text


def _gender(word: str) -> str:
    return "f" if word.lower().startswith(("she", "her")) else "m"


def _named(text: str, found: re.Match[str], name: str) -> str:
    word, after = found["word"].lower(), text[found.end() :]
    if word.endswith("self"):
        return text
    if found.start() == 0:
        name = name[0].upper() + name[1:]
    own = word in _POSSESSIVE or (word == "her" and not _NO_NOUN.match(after))
    put = possessive(name) if own else name
    if found["short"]:
        put += _short(found["short"], after)
    return text[: found.start()] + put + after


def _short(short: str, after: str) -> str:
    if short[1:] == "s":
        return " has" if re.match(r"\s+(?:been|had|got|gone|\w+ed)\b", after) else " is"
    return contraction_open(short[1:], after)


def _fits(person: Person, gender: str) -> bool:
    return not person.several and person.gender in ("", gender)


def _antecedent(context: Context, gender: str, speaker: str | None) -> Person | None:
    """Return the one person of the last statements that fits; None if nobody or more than one does."""
    talking = context.speakers if len(context.speakers) <= 2 else frozenset({speaker})
    fitting: list[Person] = []
    for persons in reversed(context.said):
        for person in persons:
            # Who speaks is "I" or "you".
            if not _fits(person, gender) or any(name and person.name.split()[0] in name.split() for name in talking):
                continue
            if not any(person.same(known) for known in fitting):
                fitting.append(person)
    known = [person for person in fitting if person.sure]
    if len(fitting) != 1 and (len(known) != 1 or known[0].gender != gender):
        return None
    one = fitting[0] if len(fitting) == 1 else known[0]
    return one if one.told else None


def _several(text: str, context: Context) -> str:
    found = _THEY.match(text)
    if not found:
        return text
    fitting = [
        person for persons in context.said[-2:] for person in persons
        if person.several and not any(name in person.name for name in context.speakers)
    ]  # fmt: skip
    if len({person.name for person in fitting}) != 1:
        return text
    name = fitting[0].name
    put = possessive(name) if found["word"].lower() in _POSSESSIVE else name
    if found["short"]:
        put += contraction_open(found["short"][1:], text[found.end() :], plural=True)
    return text[: found.start()] + put + text[found.end() :]


def _it(text: str, context: Context) -> str:
    found = _IT.match(text)
    if not found or not context.thing:
        return text
    put = possessive(context.thing) if found["word"] == "Its" else context.thing
    if found["short"]:
        put += _short(found["short"], text[found.end() :])
    return put + text[found.end() :]
