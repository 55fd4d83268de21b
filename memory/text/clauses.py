"""Splits an English sentence into independent facts, and rewrites a sentence without one of its facts. A sentence with
unclear grammar counts as one fact, because a wrong split would change its meaning."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory.text.grammar import NOMINAL, OPENING, SURE, Word, verb_place, words_tag

_JOINING = frozenset({"and", "but", "while", "whereas", "although", "though", "yet", "plus"})
# A sentence that does not match this pattern is one fact, and its grammar is not parsed.
_JOINTS = re.compile(rf"[,;]|\b(?:{'|'.join(sorted(_JOINING))})\b", re.IGNORECASE)
_ADVERBS = frozenset({"AV0"})
_REFERRING = frozenset({"he", "she", "they", "it", "this", "that", "these", "those"})
# Phrases such as "between Rome and Paris" and "both tea and coffee" are not divided.
_TOGETHER = re.compile(r"\b(?:between|both|either|neither)\b", re.IGNORECASE)
MAX_WORDS = 120
MAX_SUBJECT = 6
_PIECE = re.compile(r"[^;]+(?:;|$)")
_LABEL = re.compile(r"[^:;]{1,40}:\s")
_PRONOUN_FIRST = re.compile(r"(?:it|he|she|they)\b(?!['’])", re.IGNORECASE)
_PERSON = re.compile(r"(?:he|she|his|her)\b", re.IGNORECASE)
_POSSESSIVE_FIRST = re.compile(r"(?:its|his|her|their)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clause:
    """One fact of a sentence. ``text`` is understandable on its own. The span from ``start`` to ``end`` includes the
    conjunction before the fact. ``item`` is true if the fact contains one member of a divided list."""

    text: str
    start: int
    end: int
    item: bool = False


@lru_cache(maxsize=4096)
def clauses_split(sentence: str) -> tuple[Clause, ...]:
    """Return the facts of one sentence in order. A sentence that cannot be divided is returned as one fact."""
    whole = (Clause(sentence.strip(), 0, len(sentence)),)
    if parts := _semicolons(sentence):
        return parts
    if not _JOINTS.search(sentence):
        return whole
    words = words_tag(sentence)
    if not 4 <= len(words) <= MAX_WORDS:
        return whole
    verb = _first_verb(words)
    if verb is None or words[0].tag in ("PRP", "CJS"):
        # "In August we drove to Bled and camped there": the first words apply to the whole sentence.
        return whole
    cuts = _cuts(words, verb)
    if not cuts:
        return _list_members(sentence, words, verb) or whole
    return tuple(_clauses_joined(sentence, words, verb, cuts))


def _semicolons(sentence: str) -> tuple[Clause, ...]:
    """Divide at semicolons: "Server kiwi has 64 GB; it sits in rack 5.", "db-7: 16 CPUs; 3 disks." """
    pieces = _PIECE.findall(sentence)
    if len(pieces) < 2 or not all(len(piece.strip(" ;")) > 2 for piece in pieces):
        return ()
    label = _LABEL.match(sentence)
    subject = "" if label else subject_phrase(pieces[0])
    found: list[Clause] = []
    at = 0
    for piece in pieces:
        text = piece.strip().rstrip(";").rstrip()
        if found and label:
            text = f"{label[0]}{text}"
        elif found:
            text = pronoun_replaced(text, subject)
        found.append(Clause(_with_full_stop(text) if not label else text, at, at + len(piece)))
        at += len(piece)
    return tuple(found)


def subject_phrase(sentence: str) -> str:
    """Return the words before the first finite verb; empty if there is no finite verb, or if there are more than
    ``MAX_SUBJECT`` words."""
    words = words_tag(sentence[:400])
    verb = verb_place(words)
    phrase = "" if verb is None else sentence[: words[verb].start].strip()
    return phrase if len(phrase.split()) <= MAX_SUBJECT else ""


def pronoun_begins(text: str) -> bool:
    """Return whether ``text`` begins with a pronoun that ``pronoun_replaced`` replaces."""
    return bool(_POSSESSIVE_FIRST.match(text) or _PRONOUN_FIRST.match(text))


def pronoun_replaced(text: str, subject: str) -> str:
    """Return ``text`` with the pronoun at its beginning replaced by ``subject``, if there is one: "The Fiat's door" for
    "Its door". "He" after "Ivo's desk" is Ivo."""
    if not subject:
        return text
    if _PERSON.match(text):
        subject = re.split("['’]s ", subject)[0]
    if found := _POSSESSIVE_FIRST.match(text):
        return f"{subject}{'’' if subject.endswith('s') else '’s'}{text[found.end() :]}".replace("’", "'")
    found = _PRONOUN_FIRST.match(text)
    return f"{subject}{text[found.end() :]}" if found else text


def clause_removed(sentence: str, clauses: Sequence[Clause], removed: int) -> str:
    """Return ``sentence`` without the clause at index ``removed``; empty if there is no other clause."""
    rest = [clause for at, clause in enumerate(clauses) if at != removed]
    whole = any(clause.end - clause.start >= len(sentence) for clause in clauses)
    if len(rest) == 1 and rest[0].item and not whole:
        return rest[0].text
    if removed == 0 or whole or rest[0].item:
        return " ".join(_with_full_stop(clause.text) for clause in rest)
    # Later clauses may take their subject from the removed one, so each becomes a sentence of its own.
    left = sentence[: clauses[removed].start].strip().rstrip(" ,;")
    return " ".join([_with_full_stop(left), *(_with_full_stop(clause.text) for clause in clauses[removed + 1 :])])


def _with_full_stop(text: str) -> str:
    text = text.strip()
    return text if not text or text[-1] in ".!?…。！？" else f"{text}."


def _first_verb(words: Sequence[Word]) -> int | None:
    if words[0].tag == "VVB" and len(words) > 1 and words[1].tag in OPENING | {"NP0", "NN1", "NN2"}:
        # "Roast the peppers and peel them."
        return 0
    return verb_place(words)


@dataclass(frozen=True, slots=True)
class _Cut:
    """A place where a fact begins. Three members are indexes of words: ``joint`` of the conjunction or comma, ``first``
    of the first word of the fact, and ``start`` of its first word that is not an adverb. ``subject`` is "shared" if the
    fact has the subject of the previous fact, "verb" if it has both the subject and the verb of the previous fact, and
    "own" otherwise."""

    joint: int
    first: int
    start: int
    subject: str


def _cuts(words: Sequence[Word], verb: int) -> list[_Cut]:
    cuts: list[_Cut] = []
    at = verb + 1
    while at < len(words) - 1:
        word = words[at]
        joins = word.text.casefold() in _JOINING or word.text == ";"
        comma = word.text == ","
        if not joins and not comma:
            at += 1
            continue
        first = start = at + 1
        while start < len(words) and (
            words[start].text.casefold() in _JOINING or words[start].text == "," or words[start].tag in _ADVERBS
        ):
            joint = words[start].tag not in _ADVERBS or words[start].text.casefold() in _JOINING
            # Skip the conjunctions before the fact, but keep an adverb between two conjunctions.
            if joint and first == start:
                first = start + 1
            joins = joins or words[start].text.casefold() in _JOINING
            start += 1
        subject = _cut_subject(words, verb, start, certain=joins)
        if at == verb + 1 and subject == "shared":
            # In "compiles and tests our code", the object belongs to both verbs.
            subject = ""
        if subject and not _TOGETHER.search(" ".join(word.text for word in words[max(0, at - 4) : at])):
            cuts.append(_Cut(at, first, start, subject))
        at = max(start, at + 1)
    return cuts


def _cut_subject(words: Sequence[Word], verb: int, start: int, *, certain: bool) -> str:
    """Return the ``subject`` of a cut at ``start``; empty if no fact begins there."""
    if start >= len(words):
        return ""
    first = words[start]
    if first.tag in SURE and first.tag != "VVD":
        return "shared"
    if first.tag == "VVB" and words[verb].tag in ("VVB", "VBB", "VHB") and certain:
        return "shared"
    if first.tag in ("VVD", "VVN"):
        passive = [word for word in words[verb + 1 : verb + 4] if word.tag == "VVN"]
        # In "was born in Ulm, studied in Jena", only the first verb is passive.
        auxiliary = words[verb].tag[:2] in ("VB", "VH") and bool(passive) and passive[0].text != "born"
        certain = certain or (bool(passive) and passive[0].text == "born")
        if auxiliary and certain:
            return "verb"
        return "shared" if certain or first.tag == "VVD" else ""
    if (
        first.tag == "PNP"
        and first.text.casefold() in _REFERRING
        and not (first.text.casefold() in ("he", "she") and words[0].tag == "NP0")
    ):
        # "they are his favourite dish" is not understandable on its own.
        return ""
    listed = first.tag == "DPS" and words[start - 1].text == ","
    return "own" if _own_subject(words, start) and (certain or listed) else ""


def _own_subject(words: Sequence[Word], start: int) -> bool:
    for at in range(start, min(start + 8, len(words))):
        word = words[at]
        if word.tag in SURE or (at > start and _finite_verb_at(words, at)):
            return at > start
        if word.tag not in NOMINAL | OPENING | {"PNP", "PRF", "AV0"}:
            return False
    return False


def _finite_verb_at(words: Sequence[Word], at: int) -> bool:
    return words[at].tag in SURE or (words[at].tag == "VVB" and words[at - 1].tag in ("NN2", "PNP"))


def _clauses_joined(sentence: str, words: Sequence[Word], verb: int, cuts: Sequence[_Cut]) -> list[Clause]:
    subject = sentence[: words[verb].start].strip()
    joined = sentence[: words[verb].end].strip()
    owner = subject if words[0].tag == "NP0" else ""
    bounds = [0, *(words[cut.joint].start for cut in cuts), len(sentence)]
    clauses = [Clause(_with_full_stop(sentence[: bounds[1]].rstrip(" ,;")), 0, bounds[1])]
    for number, cut in enumerate(cuts):
        start, end = bounds[number + 1], bounds[number + 2]
        adverbs = sentence[words[cut.first].start : words[cut.start].start]
        text = sentence[words[cut.start].start : end].strip().rstrip(",;").strip()
        if cut.subject == "shared":
            text = f"{subject} {adverbs}{text}"
        elif cut.subject == "verb":
            text = f"{joined} {adverbs}{text}"
        else:
            text = _capital(adverbs + pronoun_replaced(text, owner))
            # Later clauses continue with this subject: "and Ben works at Acme and plays chess".
            verb = next(at for at in range(cut.start + 1, len(words)) if _finite_verb_at(words, at))
            subject = sentence[words[cut.start].start : words[verb].start].strip()
            subject = _capital(pronoun_replaced(subject, owner))
            joined = f"{subject} {words[verb].text}"
        clauses.append(Clause(_with_full_stop(text), start, end))
    return clauses


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _list_members(sentence: str, words: Sequence[Word], verb: int) -> tuple[Clause, ...]:
    """Divide a list into one fact for each member: "Anna likes tea, coffee and milk." """
    joint = next((at for at, word in enumerate(words) if word.text.casefold() == "and"), 0)
    if joint < verb or _TOGETHER.search(sentence):
        return ()
    end = len(words) - 1 if words[-1].tag == "PUN" else len(words)
    bounds = [at for at in range(verb + 1, end) if words[at].text.casefold() in (",", "and")]
    plain = NOMINAL | OPENING | {"VVN"}
    first = bounds[0] if bounds else end
    while first > verb + 1 and words[first - 1].tag in plain and words[first - 1].text != ",":
        first -= 1
    starts = [first, *(at + 1 for at in bounds)]
    spans = [(start, stop) for start, stop in zip(starts, [*bounds, end], strict=True) if start < stop]
    if len(spans) < 2 or any(stop - start > MAX_SUBJECT for start, stop in spans):
        return ()
    for start, stop in spans[1:]:
        # "a kitchen on floor 3" is one member. In "tea and coffee in the morning", the end may belong to both members.
        placed = plain | {"PRP", "PRF"} if words[start].tag in OPENING | {"CRD"} else plain
        if any(word.tag not in placed for word in words[start:stop]):
            return ()
    prefix, tail = sentence[: words[first].start], sentence[words[end - 1].end :]
    clauses = []
    for number, (start, stop) in enumerate(spans):
        item = sentence[words[start].start : words[stop - 1].end]
        begins = words[start].start if number == 0 else words[start - 1].start
        clauses.append(Clause(f"{prefix}{item}{tail}".strip(), begins, words[stop - 1].end, item=True))
    return tuple(clauses)
