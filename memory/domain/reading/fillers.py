"""What sentences say without stating anything: greetings, thanks, applause, "oh well" in front of a statement."""

import re

from memory.domain.reading.lists import wordset

_OPENER = re.compile(
    r"^(?:(?:oh|ah|aw+|wow|whoa|yeah|yep|yes|yup|no|nope|nah|well|hey|hi|hello|hiya|thanks|thank you|thx|totally|"
    r"definitely|"
    r"absolutely|exactly|haha+|lol|ok|okay|sure|cool|great|awesome|nice|sweet|right|anyway|anyways|btw|by the way|"
    r"hmm+|"
    r"congrats|congratulations|good morning|good evening|of course|agreed|true|indeed|for sure|got it|so|and|but|"
    r"plus|"
    r"also|honestly|actually|basically|you know|i mean|guess what|as i said)"
    r"(?:\s+(?:so much|a lot|again|guys|everyone|all|there|man|dude))?\s*(?:[,!.…:–—-]+\s+|(?<=so|nd|ut|us)\s+))+",
    re.IGNORECASE,
)
# Statements of a request to remember: what is to be remembered is the fact.
_REMEMBER = re.compile(
    r"^(?:please\s+|just\s+)*(?:remember|note|keep in mind|don['’]t forget|bear in mind|for the record|fyi|nb|"
    r"reminder)"
    r"(?:\s+that\b|\s*[,:–—-])\s*",
    re.IGNORECASE,
)
_THANKS = re.compile(r"(?:thanks|thank you|thx)\b[^.!?]*\b(?:for|to)\b", re.IGNORECASE)
_GOOD = (
    r"(?:(?:so|really|very|super|pretty|truly|such|just|absolutely|totally)\s+)*(?:glad|happy|great|good|nice|"
    r"awesome|cool|"
    r"lovely|amazing|wonderful|fantastic|proud|sweet|beautiful|incredible|inspiring|impressive|excited|stoked|"
    r"sorry|tough|"
    r"cute|fun|neat|gorgeous|perfect|stunning|adorable|special|powerful|important|true|rough|scary)"
)
_PRAISE = re.compile(
    rf"(?:wow|oh|aw+|yeah|hey|no way|congrats|congratulations|that['’]s|it['’]s|sounds like|looks like|i['’]m|i am|"
    rf"glad|i bet|"
    rf"i can see|love seeing|i love how|it sounds|keep|hope|i hope|good luck|thank|way to go|can['’]t wait to hear|"
    rf"no wonder|"
    rf"{_GOOD})\b[\s,!.:–—-]*(?:{_GOOD}\b|to\b|that\b|you\b|your\b|how\b|news\b|job\b|like\b|seeing\b|up\b|on\b|"
    rf"it\b)",
    re.IGNORECASE,
)
_PRAISE_OF_THAT = re.compile(
    rf"(?:(?:wow|oh|aw+|yeah)[\s,!]+)?(?:that|it|this|those|these|they|that \w+|those \w+|the \w+)\s?(?:['’]s|"
    rf"['’]re|is|are|was|"
    rf"were|looks?|sounds?|must (?:be|have been|have felt)|seems?)\s+(?:like\s+)?(?:(?:a|an|"
    rf"such)\s+)*{_GOOD}(?:\s+\w+)?[.!…]*$",
    re.IGNORECASE,
)
_YOU = re.compile(r"\b(?:you|your|you['’]\w+)\b", re.IGNORECASE)
_LEFT_OUT = re.compile(
    r"(?:just\s+)?(?:(?P<going>gonna|looking forward|working on|working at|trying|planning|thinking|hoping|"
    r"heading|moving)|"
    r"(?P<been>been)|went|had|got|can['’]t|couldn['’]t|haven['’]t|won['’]t|didn['’]t|started|finished|moved|"
    r"bought|saw|"
    r"met|made|took|found|joined|tried|spent|signed|booked|adopted|loved|used to|decided|hope|wish)\b(?!['’])",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w'’]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# A sentence made of these alone states nothing.
_EMPTY = wordset(
    "a an the and or but so then that this it its these those there here he she they we you i me my your our us them "
    "is are was were be been being am do does did have has had will would can could should must may might 's 'm 're "
    "'ve 'll 'd not to of for in on at with about as if how what when like just really very too also still even only "
    "pretty quite totally definitely absolutely certainly always ever again now more most much lot lots all any some "
    "such of course sure yes yeah yep yup no nope nah ok okay oh ah aw aww wow whoa hey hi hello hiya bye goodbye "
    "see soon later talk ttyl cya welcome thanks thank thx please sorry congrats congratulations cheers good great "
    "nice cool awesome amazing wonderful fantastic lovely beautiful sweet neat fun funny interesting incredible "
    "brilliant excellent perfect super exciting excited inspiring impressive special happy glad proud agree agreed "
    "right true exactly indeed well fine bad sad tough hard glad hear hearing heard know think guess bet sounds "
    "sound "
    "sounded looks look looking feels feel feeling seems seem must means mean love loved like liked hope hoping luck "
    "let lets let's tell say said saying ask asking share sharing take care keep up go going gonna get got wait "
    "waiting "
    "way thing things stuff job work working one time day today morning evening night everyone everybody guys "
    "man dude "
    "haha hahaha lol hmm btw anyway morning support appreciate appreciated kind best blast same here's there's "
    "that's "
    "it's i'm you're we're he's she's they're i'll you'll we'll i've you've i'd you'd don't can't won't doesn't "
    "didn't "
    "isn't wasn't idea point absolutely forward noted understood could couldn't imagine believe wish"
)


def openers_strip(text: str) -> str:
    """Return a sentence without "Oh, well," and "Remember that" in front; all of it if nothing else is left."""
    for pattern in (_OPENER, _REMEMBER):
        rest = pattern.sub("", text, count=1)
        if _WORD.search(rest):
            text = rest
    return text


def vocatives_strip(text: str, speakers: frozenset[str]) -> str:
    """Return what somebody said without the names that it is addressed to, short forms too: "Thanks, Mel!" """
    forms = {
        name.split()[0][:length]
        for name in speakers
        if not name.startswith("the ")
        for length in range(3, len(name.split()[0]) + 1)
    }
    if not forms:
        return text
    names = "|".join(sorted(map(re.escape, forms), key=len, reverse=True))
    # In front, behind an opener or not; and at the end.
    front = re.compile(rf"^((?:[\w']+\s?){{0,2}}?[,!]?\s*)\b(?:{names})\s*[,!.]\s+", re.IGNORECASE)
    back = re.compile(
        rf"(?:,|^((?:hey|hi|hello|thanks|bye|yep|yeah|wow|congrats)))\s*(?:{names})\s*(?=[.!?…]*$)", re.IGNORECASE
    )
    found = front.match(text)
    if found and (not found[1].strip() or openers_strip(f"{found[1].strip(' ,!')}, x") == "x"):
        text = (f"{found[1].strip(' ,')}, " if found[1].strip() else "") + text[found.end() :]
    return back.sub(r"\1", text)


def subject_restore(text: str) -> str:
    """Return what somebody said with the "I" that people leave out: "Gonna move", "Went to Rome", "Can't wait"."""
    found = _LEFT_OUT.match(text)
    if not found:
        return text
    verb = text[0].lower() + text[1:]
    if found["going"]:
        return f"I am {verb}"
    return f"I have {verb}" if found["been"] else f"I {verb}"


def comments_only(text: str) -> bool:
    """Tell whether somebody in a conversation only applauds what another has said: "Glad you like it", "That sounds
    great!", "Thanks for asking"."""
    return bool(_THANKS.match(text) or _PRAISE_OF_THAT.match(text) or (_PRAISE.match(text) and _YOU.search(text)))


def states_nothing(text: str, *, spoken: bool) -> bool:
    """Tell whether a sentence consists of greetings, applause and the like. ``spoken`` is stricter: in a conversation
    most short sentences are about the conversation."""
    if _UNSPACED.search(text):
        return len(_UNSPACED.findall(text)) < (4 if spoken else 2)
    words = [word.lower().replace("’", "'") for word in _WORD.findall(text)]
    if any(any(sign.isdigit() for sign in word) for word in words):
        return False
    telling = [word for word in words if word not in _EMPTY]
    return not telling if spoken else not telling and len(words) < 6
