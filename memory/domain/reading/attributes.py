"""Attributes: what a sentence says of its subject, such as where somebody lives, whatever words it uses.

Two facts about the same subject and the same attribute are about the same thing: "Maria lives in Madrid" and "Maria's
home town is Madrid" share ``residence``. The names follow the properties of schema.org's Person, Organization and
Product where those have one.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from memory.domain.reading.grammar import words_tag

# Lemmas by attribute. A word may stand for several.
_LEXICON: Final[Mapping[str, str]] = {
    "residence": (
        "live reside residence home hometown dwell flat apartment house city town settle stay relocate "
        "move based move_in address inhabit village neighbourhood neighborhood move_to lodge"
    ),
    "address": "address street postcode zip",
    "employer": (
        "work employ employer employment job company join hire colleague firm employed workplace boss workplace office"
    ),
    "occupation": (
        "job profession occupation career title role position nurse doctor teacher engineer lawyer "
        "architect accountant plumber electrician designer developer manager analyst baker chef pilot "
        "journalist librarian carpenter dentist_of work promote become freelance"
    ),
    "birth": "born birthday birthdate birth bear dob bday birthplace",
    "age": "age aged old turn year_old",
    "marital": (
        "marry married spouse wife husband wed wedding divorce divorced single fiance fiancee engage "
        "engaged partner widow widowed girlfriend boyfriend date"
    ),
    "child": "child kid son daughter baby toddler twin offspring",
    "parent": "mother father mom mum dad parent mama papa",
    "sibling": "brother sister sibling",
    "pet": (
        "pet dog cat hamster parrot rabbit puppy kitten goldfish horse pony tortoise turtle ferret snake "
        "lizard budgie canary guinea_pig mouse rat gecko chinchilla hen goat"
    ),
    "phone": "phone telephone mobile cell cellphone tel landline call dial reach ring",
    "email": "email e-mail mail inbox mailbox",
    "handle": "handle username nickname login account",
    "password": "password passphrase passcode pin secret credential passwort",
    "code": "code combination door_code",
    "color": "color colour hue",
    "food": "food feed fodder dish eat eater eating meal cuisine lunch dinner breakfast snack dessert recipe",
    "drink": "drink beverage coffee tea beer wine",
    "allergy": "allergic allergy intolerant intolerance anaphylactic allergen react",
    "diet": "diet eat eater vegetarian vegan pescatarian keto halal kosher gluten-free omnivore meat carnivore",
    "hobby": "hobby pastime spare enjoy play collect hobbyist interest leisure",
    "sport": (
        "sport football soccer tennis basketball swim swimming marathon gym yoga climb climbing cycling hike ski chess"
    ),
    "music": "music instrument guitar piano violin band song singer album genre cello drum listen flute trumpet",
    "book": "book novel author read reading",
    "film": "film movie cinema series show director",
    "language": "language speak fluent tongue bilingual",
    "nationality": "nationality citizen citizenship passport national",
    "education": (
        "study student university college degree school graduate major phd master bachelor alma enrol "
        "enroll course diploma attend"
    ),
    "car": "car drive vehicle volvo toyota tesla bmw sedan suv truck motorbike ride van",
    "transport": "commute drive ride cycle walk bus train bike bicycle cycle tram subway metro",
    "health": (
        "health disease illness condition diagnose diagnosis diabetes asthma migraine surgery sick ill injury symptom"
    ),
    "medication": "medication medicine pill drug prescribe prescription dose dosage tablet insulin take mg",
    "doctor": "doctor dentist physician therapist gp optician surgeon paediatrician pediatrician vet",
    "blood": "blood",
    "height": "height tall cm",
    "weight": "weight weigh kg heavy",
    "size": "size shoe shirt wear",
    "religion": "religion religious church faith christian muslim hindu buddhist jewish atheist",
    "politics": "vote party political election",
    "salary": "salary earn pay wage income compensation remuneration",
    "price": "price cost costs priced worth fee rate charge subscription",
    "budget": "budget spend spending fund",
    "bank": "bank iban account",
    "date": "date day scheduled schedule appointment meeting when start begin take_place",
    "deadline": "deadline due ship release launch deliver delivery target submit submission hand_in",
    "status": "status state progress stage phase complete completed finish finished block blocked ongoing",
    "owner": "owner own belong maintain maintainer lead leader responsible charge head owned run_by maintainer manage",
    "manager": "manager boss supervisor report manage supervise",
    "ceo": "ceo chief president founder director chair chairman",
    "headquarters": "headquarters headquarter hq headquartered seat based located",
    "location": "location locate located where room floor desk kept stand site place",
    "version": "version release upgrade run pin",
    "port": "port listen",
    "host": "host server hosted run deploy deployed deployment region provider cloud hosting",
    "database": "database db postgres postgresql mysql mongodb sqlite store",
    "framework": "framework library stack write written language",
    "editor": "editor ide vim emacs vscode",
    "os": "os operating system linux windows macos ubuntu debian",
    "theme": "theme mode dark light",
    "unit": "unit celsius fahrenheit metric imperial",
    "timezone": "timezone zone utc",
    "currency": "currency euro dollar pound",
    "supplier": "supplier vendor supply purchase buy source",
    "flight": "flight fly airline airport plane",
    "hotel": "hotel hostel check-in booking book reservation",
    "vacation": "vacation holiday trip travel visit",
    "school_of_child": "kindergarten daycare nursery",
    "insurance": "insurance insure insured policy",
    "wifi": "wifi wi-fi wlan network router",
    "name": "name call called named",
    "preference": "prefer preference favorite favourite like love best_liked favor",
    "dislike": "dislike hate detest loathe",
    "fear": "fear afraid scared phobia",
    "goal": "goal aim plan want intend hope aspire",
    "subscription": "subscribe subscription plan tier membership member",
    "seat": "seat aisle window",
    "smoking": "smoke smoker cigarette vape",
    "contract": "contract agreement lease rent landlord tenant",
    "warranty": "warranty guarantee",
    "battery": "battery charge",
    "branch": "branch merge trunk",
    "license": "license licence licensed",
    "shift": "shift hour schedule working_hours",
}
_BY_LEMMA: Final[Mapping[str, frozenset[str]]] = {
    lemma: frozenset(name for name, words in _LEXICON.items() if lemma in words.split())
    for words in _LEXICON.values()
    for lemma in words.split()
}
# These say how somebody stands to a thing, not which thing: they tell attributes apart only where nothing else does.
WEAK: Final = frozenset(
    {"preference", "name", "date", "status", "location", "goal", "hobby", "host", "dislike", "owner"}
)
_CONTENT: Final = ("NN", "NP", "VV", "AJ", "UNC", "VH", "AV0", "AVP", "OR")
_PLAIN: Final = frozenset(
    {"have", "be", "do", "now", "also", "very", "currently", "new", "last", "still", "just", "use", "get"}
)


_PHRASES: Final = (
    (re.compile(r"\b(?:hand(?:ed)?|turn(?:ed)?|send|sent) in\b|\b(?:until|by) (?:the )?\d", re.IGNORECASE), "deadline"),
    (re.compile(r"\bmother tongue\b|\bnative (?:language|speaker)\b", re.IGNORECASE), "language"),
    (
        re.compile(r"\b(?:get|gets|go|goes|travel|travels|come|comes) to (?:work|school|the office)\b", re.IGNORECASE),
        "transport",
    ),
    (re.compile(r"\bon (?:call|duty)\b|\bduty\b", re.IGNORECASE), "duty"),
    (re.compile(r"\bcan(?:'t|not) stand\b", re.IGNORECASE), "dislike"),
)


@lru_cache(maxsize=8192)
def attributes_of(text: str, without: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the attributes that the words of one English sentence or phrase speak of, but for the lemmas in
    ``without``; none for many sentences."""
    found: set[str] = set()
    for word in words_tag(text):
        if word.lemma in without:
            continue
        for form in {word.lemma, word.text.casefold(), _singular(word.text.casefold())}:
            found |= _BY_LEMMA.get(form, frozenset())
    found |= {name for pattern, name in _PHRASES if pattern.search(text)}
    return frozenset(found)


def attributes_shared(asked: str, said: str) -> float:
    """Return how well the attributes that ``asked`` speaks of go with those of ``said``, as ``attributes_agree``.

    A word that both have is about the same thing in both, and tells nothing of what is said of it: a dentist's name is
    not a dentist's number. It counts where the request has no other.
    """
    both = frozenset(lemmas_of(asked)) & frozenset(lemmas_of(said))
    own = attributes_of(asked, both)
    if not own:
        return attributes_agree(attributes_of(asked), attributes_of(said))
    theirs = attributes_of(said, both)
    if own & attributes_of(said) - WEAK:
        return 1.0
    return attributes_agree(own, theirs) if theirs else -0.5 if own - WEAK else 0.0


def attributes_agree(one: frozenset[str], other: frozenset[str]) -> float:
    """Return how well two sets of attributes go together: 1 for a shared strong one, 0.5 for a shared weak one, -1 for
    strong ones that differ, 0 where one of them says nothing."""
    if not one or not other:
        return 0.0
    shared = one & other
    if shared - WEAK:
        return 1.0
    if shared:
        # Both prefer something, and it is not the same kind of thing.
        return -0.5 if (one - WEAK) and (other - WEAK) else 0.5
    # A word may speak of more than the lexicon knows, so that what differs counts for less than what is shared.
    return -0.7 if (one - WEAK) and (other - WEAK) else -0.25


@lru_cache(maxsize=8192)
def lemmas_of(text: str) -> tuple[str, ...]:
    """Return the lemmas of the words that carry meaning, in their order."""
    return tuple(
        word.lemma
        for word in words_tag(text)
        if (word.tag.startswith(_CONTENT) or word.tag == "CRD")
        and word.lemma not in _PLAIN
        and any(map(str.isalnum, word.text))
    )


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 3 else word
