"""English verbs in the third person: "I live" becomes "Anna lives", "you're" becomes "Anna is"."""

import re

from memory.domain.reading.lists import wordset

ADVERBS = wordset(
    "also always never often still just really usually sometimes now even already only actually probably definitely "
    "recently currently totally kinda mostly rarely hardly both then finally truly ever almost currently certainly "
    "mainly normally generally simply clearly once again soon maybe perhaps absolutely honestly "
    "personally basically literally first later today sorta"
)
MODALS = wordset(
    "can could will would shall should may might must can't cannot couldn't won't wouldn't shouldn't mustn't "
    "mightn't "
    "gonna gotta wanna used better ought"
)
# Past forms that do not end in -ed, and forms that are the same in past and present.
PAST = wordset(
    "was were had did said went got made knew thought took saw came found gave told felt became left kept began "
    "brought held wrote stood heard meant met ran paid sat spoke led grew lost fell sent built understood drew broke "
    "spent rose drove bought wore chose ate drank sang swam slept taught caught fought sought sold won taken hid "
    "flew "
    "threw rode forgot forgave froze shook stole tore woke bit blew dealt dug fed fled hung laid lent lit rang shone "
    "shot sank slid stuck struck swore swept swung wept wound withdrew wasn't weren't hadn't didn't put cut hit set "
    "let read cost hurt quit shut spread beat bet burst cast split thrust rid dreamt learnt spelt spilt burnt leapt "
    "knelt overcame outgrew oversaw undertook befriended been done gone seen"
)
_NOT_PAST = wordset("need feed bleed breed speed seed succeed proceed exceed weed heed embed")
# What stands behind a subject and is no verb.
_NO_VERB = wordset(
    "and or but with who whom that which to of in on at for from by as than if when where why how not no the a an my "
    "your his her its our their this these those all too either neither so because while until since about"
)
_FORMS = {
    "am": "is", "are": "is", "aren't": "isn't", "were": "was", "weren't": "wasn't", "have": "has",
    "haven't": "hasn't", "do": "does", "don't": "doesn't", "go": "goes", "ain't": "isn't",
}  # fmt: skip
_PLURAL = {"am": "are"}
_WORD = re.compile(r"\s+([A-Za-z]+(?:['’][a-z]+)?)")
_PARTICIPLE = re.compile(
    r"\s+(?:\w+ly\s+|never\s+|always\s+|just\s+|already\s+)*(?:been|better|gone|done|seen|had|\w{2,}ed)\b"
)
_CONTRACTED = {"m": "is", "re": "is", "ve": "has", "ll": "will"}
_CONTRACTED_PLURAL = {"m": "are", "re": "are", "ve": "have", "ll": "will"}


def third_person(verb: str) -> str:
    """Return the form of a verb of the first or second person that goes with a name; past forms stay as they are."""
    low = verb.lower().replace("’", "'")
    if low in _FORMS:
        return _FORMS[low]
    if low in MODALS or low in PAST or low in _NO_VERB or "'" in low or not low.isascii():
        return verb
    if low.endswith("ed") and low not in _NOT_PAST:
        return verb
    if low.endswith("ing") and len(low) > 5:
        return verb
    if re.search(r"[^aeiou]y$", low):
        return verb[:-1] + "ies"
    if re.search(r"(?:s|x|z|ch|sh|o)$", low):
        return verb + "es"
    return verb + "s"


def contraction_open(ending: str, following: str, *, plural: bool = False) -> str:
    """Return what ``'m``, ``'re``, ``'ve``, ``'ll`` or ``'d`` stands for behind a name, with a space before it.

    ``following`` is the text behind it: "'d been" is "had been", "'d love" is "would love".
    """
    if ending == "d":
        return " had" if _PARTICIPLE.match(following) else " would"
    return " " + (_CONTRACTED_PLURAL if plural else _CONTRACTED)[ending]


def verb_agree(following: str, *, plural: bool = False) -> str:
    """Return the text behind a subject with its verb in the form that goes with a name, or with several.

    The verb is the first word that is no adverb. Where no word follows, or one that cannot be a verb, nothing changes.
    """
    at = 0
    while word := _WORD.match(following, at):
        low = word[1].lower()
        if low in ADVERBS or (low.endswith("ly") and low not in ("rely", "apply", "reply", "supply", "fly")):
            at = word.end()
            continue
        form = _PLURAL.get(low, word[1]) if plural else third_person(word[1])
        return following[: word.start(1)] + form + following[word.end() :]
    return following
