"""Word lists of ``likeness``: fillers, prepositions, abbreviations and negations."""

from typing import Final

from memory.text.word_lists import wordset as _words


def _pairs(text: str) -> dict[str, str]:
    """Parse "short=long short=long" into a dict from each short form to its long form. A long form of several words is
    written with underscores."""
    return {short: long for short, _sign, long in (pair.partition("=") for pair in text.split())}


# Words that do not change the meaning.
FILLERS: Final = _words(
    "a an the this that these those is are am be 's 're 'm been being has have having do does of which who whom there "
    "here just really very quite actually basically simply also too please well so as already currently indeed "
    "certainly definitely clearly note notes noted fyi btw eg ie etc and but it its 'll"
)
# A pronoun counts as a difference only if the other text has another pronoun: "he" and "she".
SUBJECTS: Final = _words("i you he she we they me him us them")
# Prepositions of place and time. They are interchangeable, and words after them may move.
WEAK: Final = _words("in on at for of during within inside")
# Prepositions that give the next word a role, such as origin, destination, giver or receiver.
DIRECTED: Final = _words(
    "to from into onto with without before after until till since over under above below by against than between among "
    "via through instead except towards toward off out up down away behind beside versus because if unless while via "
    "about around per"
)
NEGATIONS: Final = _words(
    "not no never none nothing nobody nowhere neither nor without cannot hardly barely rarely seldom except nicht kein "
    "keine keinen keinem keiner keines nie niemals ohne weder pas jamais sans aucun aucune nunca ningun ninguna jamas "
    "tampoco mai senza nessun nessuno nao nem sem niet geen nooit zonder inte ingen aldrig utan ikke aldri uten ej ei "
    "nie nigdy bez нет не никогда без ні ani ne"
)
# Characters that are negations.
NEGATION_SIGNS: Final = frozenset("不没沒無无未別别非莫勿")

NUMBERS: Final = {
    **_pairs(
        "zero=0 one=1 two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 eleven=11 twelve=12 thirteen=13 "
        "fourteen=14 fifteen=15 sixteen=16 seventeen=17 eighteen=18 nineteen=19 twenty=20 thirty=30 forty=40 fifty=50 "
        "sixty=60 seventy=70 eighty=80 ninety=90 hundred=100 thousand=1000 once=1x twice=2x half=0.5 dozen=12"
    ),
    **_pairs(
        "first=1st second=2nd third=3rd fourth=4th fifth=5th sixth=6th seventh=7th eighth=8th ninth=9th tenth=10th"
    ),
}

WEEKDAYS: Final = _pairs(
    "monday=monday tuesday=tuesday wednesday=wednesday thursday=thursday friday=friday saturday=saturday sunday=sunday "
    "mon=monday tue=tuesday tues=tuesday wed=wednesday thu=thursday thur=thursday thurs=thursday fri=friday"
)
MONTHS: Final = _pairs(
    "january=1 february=2 march=3 april=4 may=5 june=6 july=7 august=8 september=9 october=10 november=11 december=12 "
    "jan=1 feb=2 mar=3 apr=4 jun=6 jul=7 aug=8 sep=9 sept=9 oct=10 nov=11 dec=12"
)
# Relative times. Two different words count as a difference, although the dates are unknown.
RELATIVE: Final = _words(
    "today tomorrow yesterday tonight weekly daily monthly yearly annually hourly morning noon afternoon evening night "
    "midnight weekend spring summer autumn winter am pm january february march april june july august september "
    "october november december"
)

# Spelling variants and unambiguous abbreviations.
SAME: Final = _pairs(
    "apt=apartment flat=apartment dr=doctor physician=doctor ave=avenue rd=road approx=approximately appt=appointment "
    "appts=appointment dept=department mgr=manager info=information mtg=meeting mtgs=meeting msg=message pls=please "
    "thx=thanks govt=government univ=university uni=university tel=phone telephone=phone bday=birthday mins=minute "
    "min=minute minutes=minute hr=hour hrs=hour hours=hour h=hour secs=second_of_time sec=second_of_time "
    "seconds=second_of_time temp=temperature config=configuration repo=repository db=database prod=production "
    "dev=development env=environment docs=documentation app=application apps=application applications=application "
    "k8s=kubernetes js=javascript py=python postgres=postgresql pg=postgresql vs=versus e-mail=email emails=email "
    "mum=mother mom=mother dad=father tv=television bike=bicycle photo=photograph pic=photograph pics=photograph "
    "photos=photograph photographs=photograph kids=child kid=child children=child purchase=buy purchases=buy "
    "film=movie films=movie movies=movie vacation=holiday vacations=holiday holidays=holiday auto=car automobile=car "
    "favorite=favourite color=colour colors=colour center=centre theater=theatre gray=grey organize=organise "
    "organizes=organise organization=organisation neighbor=neighbour neighbors=neighbour license=licence "
    "program=programme catalog=catalogue jewelry=jewellery tire=tyre aluminum=aluminium ok=okay yoghurt=yogurt "
    "gp=doctor kilometres=km kilometers=km kilometre=km kilometer=km kms=km metres=metre meters=metre meter=metre "
    "kilograms=kg kilogram=kg kilos=kg kilo=kg kgs=kg grams=gram percent=% pct=% dollars=$ dollar=$ usd=$ euros=€ "
    "euro=€ eur=€ pounds=£ gbp=£ til=until till=until toward=towards begins=start begin=start starts=start"
)

# Contractions. "'d" is not expanded, because it is ambiguous.
CONTRACTED: Final = _pairs(
    "can't=cannot won't=will_not shan't=shall_not ain't=is_not let's=let_us w/o=without w/=with b/c=because"
)

UNITS: Final = _words(
    "km m cm mm mi ft kg g mg lb lbs oz l ml h hr hrs min mins s sec secs ms kb mb gb tb khz mhz ghz v w kw kwh k % € "
    "$ £ x usd eur gbp am pm px pt"
)
