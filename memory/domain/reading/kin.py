"""Kin: "Maria's sister lives in Rome" names Maria and is about somebody else."""

import re
from functools import lru_cache
from typing import Final

from memory.domain.reading.folding import fold
from memory.domain.reading.grammar import FINITE, words_tag

_ENGLISH: Final = """
wife husband son daughter child kid brother sister sibling twin mother father mom mum dad parent
grandmother grandfather grandma grandpa granny uncle aunt cousin nephew niece boyfriend girlfriend partner
spouse fiance fiancee friend colleague coworker boss manager assistant neighbour neighbor roommate flatmate
landlord tenant teacher student dog cat pet horse team family company stepson stepdaughter godson
goddaughter in-law ex widow secretary intern deputy successor predecessor
"""
_ELSEWHERE: Final = """
сестра сестры сестре брат брата мать мама отец папа сын сына дочь дочери муж мужа жена жены друг подруга
бабушка дедушка начальник schwester bruder mutter vater sohn tochter frau mann freund freundin chef hermana
hermano madre padre hijo hija esposa marido amigo amiga jefe soeur sœur frere mere pere fils fille femme
mari ami amie irma irmao mae pai filho filha sorella fratello moglie marito αδερφη αδερφος μητερα πατερας
γιος κορη أخت أخ والدة والد ابن ابنة زوجة زوج אחות אח אמא אבא בן בת
"""
_UNSPACED: Final = re.compile(
    "姐姐|妹妹|哥哥|弟弟|妈妈|爸爸|母亲|父亲|儿子|女儿|妻子|丈夫|朋友|姉|妹|兄|弟|母|父|息子|娘|妻|夫|友人|누나|언니|오빠|여동생|남동생|동생|어머니|아버지|아들|딸|아내|남편|친구"
)
_KIN: Final = frozenset((*_ENGLISH.split(), *(fold(word) for word in _ELSEWHERE.split())))


@lru_cache(maxsize=8192)
def kin_of(text: str) -> frozenset[str]:
    """Return the words of kin, friendship and work in the subject of a sentence; in a phrase without a verb, all."""
    words = words_tag(text)
    verb = next((at for at, word in enumerate(words) if word.tag in FINITE and at > 0), len(words))
    found = {fold(word.text) for word in words[:verb]} & _KIN
    singular = {fold(word.text).removesuffix("s") for word in words[:verb]} & _KIN
    if not text.isascii():
        found |= {fold(word) for word in re.findall(r"[^\W_]+", text)} & _KIN | set(_UNSPACED.findall(text))
    return frozenset(found | singular)
