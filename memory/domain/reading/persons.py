"""Whom a text mentions, as far as pronouns can stand for them: people by name, and "my sister".

Names are told from places and companies by what is known (common given names, titles) and by where they stand; what
stays unclear is said to be unclear, so that nothing is built on it.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

from memory.domain.reading.lists import wordset

_FEMALE = (
    "alice amanda amelia amy ana andrea angela anita ann anna anne annika anya astrid audrey barbara beatrice bella "
    "beth betty brenda camille carla carmen carol caroline catherine cecilia charlotte chloe christina christine "
    "claire "
    "clara daniela debbie deborah diana donna dorothy elena eleanor elif elisa elise eliza elizabeth ella ellen elsa "
    "emily emma erica erika esther eva evelyn fatima fiona frida gabriela gina gloria grace greta hanna hannah "
    "heather "
    "heidi helen helena hilda ida ines ingrid irene isabel isabella jackie jane janet jasmine jennifer jenny jessica "
    "joan joanna jodie josephine julia juliet karen karin kate katherine kathryn katie katrin kim kirsten "
    "kristin laura "
    "laila layla lea leila lena lena leonie linda lisa liz lotte louise lucia lucy luise lydia maja mara margaret "
    "maria marie marina marta martha mary maya megan mei melanie melissa mia michelle mila miriam molly monica nadia "
    "nadine nancy naomi natalia natalie natasha nicole nina nora olga olivia pamela patricia paula penelope petra "
    "priya rachel rebecca rita rosa rose ruth sabine sally samantha sandra sara sarah sharon silvia sofia sonia "
    "sophia "
    "sophie stella stephanie susan suzanne sylvia tamara tanya teresa tina ulrike ursula valentina vanessa vera "
    "veronica victoria virginia wendy yasmin yuki yvonne zoe aisha deb jolene joanne"
)
_MALE = (
    "aaron abdul adam adrian ahmed alan albert alejandro alexander alfred ali anders andre andreas andrew anthony "
    "antonio arne arthur ben benjamin bernd bill björn bjorn bob boris brian bruno calvin carl carlos charles chris "
    "christian christoph christopher claude colin craig daniel dave david dennis diego dirk dmitri dominic donald "
    "douglas eduardo edward emil enrique eric erik ethan evan felix fernando francesco frank frederick fritz gabriel "
    "gary gavin george georg gerald giovanni greg gregory guillermo gustav hans harold harry hassan heinrich henrik "
    "henry hiroshi hugo ian igor ivan jack jacob jakob jake james jan jason javier jeff jeffrey jens jeremy jim joe "
    "johan johannes john jonas jonathan jorge jose joseph josh joshua juan jürgen karl keith ken kenneth kevin klaus "
    "kurt lars lee leo leon leonard liam louis lucas luigi luis lukas luke magnus marc marcel marco mario mark "
    "markus "
    "martin mateo matt matteo matthew max michael miguel mike mohamed mohammed muhammad nate nathan nicholas "
    "nick niels "
    "nils noah norman olaf ole oliver omar oscar otto pablo patrick paul pavel pedro peter phil philip pierre rafael "
    "rainer raj ralph ray raymond ricardo richard rob robert roberto roger roland ronald ryan sam samir samuel scott "
    "sean sebastian sergei simon stefan stephen steve steven stuart sven ted theo thomas tim timothy tobias todd tom "
    "tony ulrich victor viktor vincent vladimir walter wei werner wilhelm will william wolfgang yusuf zach pål"
)
GENDERS = dict.fromkeys(_FEMALE.split(), "f") | dict.fromkeys(_MALE.split(), "m")
_KIN = dict.fromkeys(
    wordset(
        "mother mom mum mommy sister daughter wife girlfriend aunt grandmother grandma niece granddaughter "
        "stepmother stepsister bride fiancée landlady"
    ),
    "f",
)
_KIN |= dict.fromkeys(
    wordset(
        "father dad daddy brother son husband boyfriend uncle grandfather grandpa nephew grandson stepfather "
        "stepbrother groom fiancé landlord"
    ),
    "m",
)
_KIN |= dict.fromkeys(
    wordset(
        "boss friend partner colleague neighbor neighbour cousin manager roommate flatmate teacher doctor therapist "
        "coach mentor assistant lawyer dentist child baby fiancee spouse coworker teammate tutor trainer"
    ),
    "",
)
_SEVERAL = (
    "kids children parents grandparents sisters brothers daughters sons friends cousins twins neighbors colleagues"
)
_TITLES = {"mr": "m", "mrs": "f", "ms": "f", "miss": "f", "sir": "m", "herr": "m", "frau": "f", "dr": "", "prof": ""}
# What begins with a capital letter and is no name.
NO_NAME = wordset(
    "i i'm i've i'd i'll he she it we they you the a an this that these those there here his her its our their "
    "my your "
    "in on at after before when while if but and so then also however what who whose where why how no yes not "
    "for from "
    "with by to of as or nor yet since until because although though last next every each some any all many most "
    "both "
    "few several one two three four five six seven eight nine ten once today tomorrow yesterday now later recently "
    "currently monday tuesday wednesday thursday friday saturday sunday january february march april may june july "
    "august september october november december please remember note thanks thank hello hi hey wow yeah yep ok okay "
    "well oh great good nice cool awesome sure maybe perhaps actually definitely absolutely totally just only even "
    "still never always often sometimes usually english german french spanish italian norwegian swedish american "
    "british chinese japanese russian christmas easter halloween thanksgiving ignore let do don't does did is "
    "are was "
    "were will would can could should have has had be being been get go going gonna congrats congratulations "
    "sounds looks feels glad happy sorry love had having taking working according during despite instead"
)
_NAME = re.compile(
    r"(?<![\w@./-])(?:(?P<title>Mr|Mrs|Ms|Miss|Dr|Prof|Sir|Herr|Frau)\.?\s+)?"
    r"(?P<name>[^\W\d_a-z][\w’'-]*(?:\s+(?:[A-Z]\.|(?:van|von|de|der|da|di|bin|al|la)\s+(?=[A-Z])|"
    r"[^\W\d_a-z][\w’'-]*))*)"
)
_RELATION = re.compile(
    rf"\b(?P<whose>[Mm]y|[Hh]is|[Hh]er|[Tt]heir|[Oo]ur|[A-Z][\w-]*['’]s)\s+(?:\w+\s+)?"
    rf"(?P<kin>{'|'.join(sorted(_KIN, key=len, reverse=True))})\b(?!['’]s)"
)
_RELATIONS = re.compile(rf"\b(?:[Mm]y|[A-Z][\w-]*['’]s)\s+(?:\w+\s+)?(?:{'|'.join(_SEVERAL.split())})\b(?!['’])")
_SOMEBODY = re.compile(r"\b(?:[Aa]|[Tt]he)\s+(?:\w+\s+)?(?P<who>woman|man|girl|boy|lady|guy)\b")
_PLACED = re.compile(r"\b(?:in|at|near|from|to|for|of|on|the|via|through|into|around|using|a|an)\s+$", re.IGNORECASE)
_WITH = re.compile(
    r"\b(?:with|and|met|meets|called|calls|named|married|marries|saw|told|asked|loves|likes|knows|visited|helped|by|"
    r"friend|sister|brother|mother|father|wife|husband|son|daughter|boss|colleague|cousin|partner)\s+$"
)
# What people do, and places and companies hardly.
_ACTS = re.compile(
    r"\s+(?:\w+ly\s+|also\s+|never\s+|always\s+)?(?:says|said|lives|lived|likes|loves|loved|hates|hated|wants|wanted|"
    r"moved|went|plays|played|studies|studied|knows|knew|thinks|speaks|spoke|prefers|told|asked|met|married|teaches|taught|"
    r"works|worked|enjoys|eats|drinks|drives|was born|is married|is allergic|is vegan|is \w+ years)\b"
)
_ORGANISATION = re.compile(
    r"\b(?:Inc|Ltd|Corp|GmbH|AG|AS|University|College|School|Street|Road|Avenue|Park|Hospital|Bank|Hotel|Airport|"
    r"Company|Foundation|Institute|Museum|Club|Team|Center|Centre)\b"
)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody, or several. ``gender`` is f, m or empty; ``sure`` says that this is a person beyond doubt."""

    name: str
    start: int
    end: int
    gender: str = ""
    sure: bool = True
    several: bool = False
    # Whether the name says who it is anywhere else: "her mother" does not.
    told: bool = True

    def same(self, other: "Person") -> bool:
        """Tell whether two mentions are one: the same name, or a part of it."""
        one, two = self.name.split(), other.name.split()
        return self.several == other.several and (self.name == other.name or one[0] == two[0] or one[-1] == two[-1])


def persons_find(text: str) -> list[Person]:
    """Return who is mentioned in ``text``, in the order of mention, several who are named together as one more."""
    found = [*_named(text), *_related(text)]
    found.sort(key=lambda person: (person.start, -person.end))
    for one, two in pairwise(found):
        if text[one.end : two.start] == " and " and one.sure and two.sure and not one.several and not two.several:
            found.append(Person(text[one.start : two.end], one.start, two.end, several=True))
    return found


def gender_of(name: str) -> str:
    """Return f or m for a common given name or a title in front, empty for others."""
    words = name.lower().replace(".", "").split()
    return next(
        (GENDERS.get(word) or _TITLES.get(word, "") for word in words[:2] if word in GENDERS or word in _TITLES), ""
    )


def thing_at_start(text: str) -> str:
    """Return the name that ``text`` begins with, if it is surely no person's; else an empty text."""
    found = _NAME.match(text.lstrip())
    if not found or found["title"]:
        return ""
    name = found["name"].strip()
    if name.split()[0].lower() in NO_NAME or any(word.lower() in GENDERS for word in name.split()):
        return ""
    rest = text.lstrip()[found.end() :]
    kind = re.match(r"\s+(?:is|was)\s+(?:an?|the|our|my)\s+(?:[\w-]+\s+){0,3}?([\w-]+)", rest)
    things = (
        "company app tool project city town village country band team product system service database store "
        "restaurant school bank startup firm website platform game book film movie server machine brand shop"
    )
    said = re.match(r"\s+(?:is|was)\b[^.;,]*", rest)
    if _ORGANISATION.search(name) or (kind and said and set(re.findall(r"[\w-]+", said[0])) & set(things.split())):
        return name
    return ""


def _named(text: str) -> list[Person]:
    found = []
    for match in _NAME.finditer(text):
        words, start = match["name"].split(), match.start("name")
        begins = not re.search(r"[^\W_]", text[: match.start()])
        while words and words[0].lower().replace("’", "'") in NO_NAME:
            start = text.index(words[0], start) + len(words[0])
            words = words[1:]
        if not words:
            continue
        start = text.index(words[0], start)
        end = match.end()
        name = text[start:end]
        if name.endswith(("'s", "’s")):
            name, end = name[:-2], end - 2
        title = (match["title"] or "").lower()
        gender = _TITLES.get(title) or gender_of(name)
        sure = bool(title) or words[0].lower().removesuffix("'s").removesuffix("’s") in GENDERS
        if not sure and not _maybe(text, name, start, end, begins=begins):
            continue
        if title:
            name, start = text[match.start() : end], match.start()
        found.append(Person(name, start, end, gender, sure))
    return found


def _maybe(text: str, name: str, start: int, end: int, *, begins: bool) -> bool:
    """Tell whether a name that nobody knows may be a person's, by where it stands."""
    before, after = text[:start], text[end:]
    if _ORGANISATION.search(name) or name.isupper() or _PLACED.search(before):
        return False
    return bool(_WITH.search(before)) or ((begins or before.rstrip()[-1:] in ",;.!?") and bool(_ACTS.match(after)))


def _related(text: str) -> list[Person]:
    found = []
    for match in _RELATION.finditer(text):
        named = re.match(r",?\s+(?:[A-Z])", text[match.end() :])
        if named is None:
            told = match["whose"].lower() not in ("his", "her", "their", "our")
            found.append(Person(match.group(), match.start(), match.end(), _KIN[match["kin"]], told=told))
    for match in _SOMEBODY.finditer(text):
        gender = "f" if match["who"] in ("woman", "girl", "lady") else "m"
        found.append(Person(f"the {match['who']}", match.start(), match.end(), gender))
    several = (Person(match.group(), match.start(), match.end(), several=True) for match in _RELATIONS.finditer(text))
    return [*found, *several]
