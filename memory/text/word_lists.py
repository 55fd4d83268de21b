"""Lists of words."""

from typing import Final


def wordset(text: str) -> frozenset[str]:
    """Return the words of ``text``, separated by white space."""
    return frozenset(text.split())


# Words that do not distinguish facts: function words, polite words, and words of requests to forget.
FUNCTION: Final = wordset(
    "well a an the this that these those there here some any all both each every either neither such same own other "
    "another i me my mine we us our ours you your yours he him his she her hers it its they them their theirs who "
    "whom whose which what when where why how whatever whichever nobody somebody everyone everybody anyone someone "
    "people thing things one ones am is are was were be been being do does did doing done have has had having will "
    "would shall should can could may might must ought let ll ve re d s t m not no nor never none cannot and or but "
    "if then else so as than because while whereas although though since until till unless whether of at by for with "
    "about against between into through during before after above below to from up down in out on off over under "
    "again further once upon within without via per very too also just only even still yet already now currently "
    "really quite rather almost anymore longer today please forget delete remove erase purge drop wipe release scrap "
    "get rid everything anything something nothing facts fact stored know known noted remember recorded regarding "
    "concerning mention mentions yes ok okay etc eg ie hey hi hello pls plz thx thanks cheers fyi completely entirely "
    "old former current latest previous earlier wrong right"
)
CALENDAR: Final = wordset(
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday spring summer autumn winter"
)
