"""Facts of an invented office and household, their near-duplicates, and facts that only look like them.

A near-duplicate says the same: other case and punctuation, words moved, filler words, abbreviations, other ways to
write a number, a time or a date, a slip of the pen. A paraphrase says it in other words. A look-alike differs in a
number, a date, a name, or in that it says no.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass


def _words(text: str, mark: str | None = None) -> list[str]:
    return text.split(mark)


FIRST = _words(
    "Anna Bruno Carla Dmitri Elena Farid Greta Hassan Ingrid Jonas Katya Lars Marta Nadia Oskar Priya Quentin Rosa "
    "Sven Tamara Umar Vera Wiktor Ximena Yusuf Zofia Amir Bianca Chiara Diego Esther Felix Gloria Hugo Irene Jakub "
    "Klara Luca Mona Nils"
)
LAST = _words(
    "Aalto Berger Castillo Dubois Eriksen Fischer Garcia Haas Ivanov Jansen Kowalski Lindqvist Moreau Novak Okafor "
    "Petrov Quiroga Rossi Sato Tanaka Ueda Vasquez Weber Xu Yilmaz Zhang Almeida Brandt Costa Dietrich"
)
CITIES = _words(
    "Oslo Bergen Lisbon Porto Vienna Graz Prague Brno Warsaw Gdansk Madrid Valencia Rome Turin Athens Patras Dublin "
    "Cork Zurich Basel Lyon Nantes Ghent Bruges Malmo Uppsala Tampere Turku Riga Vilnius"
)
FIRMS = _words("Acme Globex Initech Umbrella Hooli Vandelay Wonka Cyberdyne Tyrell Aperture Soylent Stark")
JOBS = _words("designer accountant nurse plumber architect librarian pharmacist electrician translator surveyor")
FOODS = _words("peanuts shellfish strawberries gluten walnuts sesame mustard celery lupins kiwis")
DRINKS = _words("oat milk|black tea|green tea|sparkling water|soy milk|apple juice|ginger ale|rooibos", "|")
ROOMS = _words("kitchen bathroom cellar attic garage hallway bedroom study laundry workshop")
SERVICES = _words("billing orders payments search inventory shipping reporting login mail audit")
DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = _words("January February March April May June July August September October November December")
TOOLS = _words("printer projector router scanner dishwasher boiler thermostat dryer freezer vacuum")

# Each fact in two phrasings. In braces: what is drawn for it; "not" marks where it can be denied, as "plain/denied".
TEMPLATES = (
    ("{name} lives in {city} with {count} cats", "{name} and {count} cats have their home in {city}"),
    ("{name} works at {firm} as a {job}", "{firm} employs {name} in the role of {job}"),
    ("{name} is/is not allergic to {food}", "{food} give {name} an allergic reaction"),
    ("{name} drinks/never drinks {drink} in the afternoon", "Afternoons are when {name} has {drink}"),
    ("The appointment of {name} with the dentist is on {day} at {time}", "{name} sees the dentist {day} {time}"),
    ("{name} was born on {date}", "{date} is the birthday of {name}"),
    ("The phone number of {name} is {phone}", "{name} can be called at {phone}"),
    (
        "The {service} service listens/does not listen on port {port} in {city}",
        "Port {port} serves {service} in {city}",
    ),
    ("The limit of the {service} service is {big} requests per minute", "{service} accepts {big} calls each minute"),
    ("The {tool} in the {room} was repaired on {date}", "On {date} somebody fixed the {tool} of the {room}"),
    ("The {tool} in the {room} is/is not under warranty until {date}", "Warranty of the {room} {tool} ends {date}"),
    ("{name} flies from {city} to {city2} on {date}", "On {date} there is a flight {city} {city2} for {name}"),
    ("{name} owes {name2} {count} dollars for the tickets", "{name2} lent {name} {count} dollars to buy the tickets"),
    ("The meeting of {name} and {name2} starts at {time} on {day}", "{day} {time}: {name} meets {name2}"),
    ("The {room} needs/does not need {count} square meters of tiles", "Tiles for the {room}: {count} square meters"),
    ("{name} pays {big} dollars of rent for the apartment in {city}", "Rent in {city} costs {name} {big} dollars"),
    ("The backup of the {service} database runs at {time} every {day}", "Every {day} {time} {service} data is saved"),
    (
        "{name} speaks/does not speak the language of {city} after {count} years",
        "{count} years taught {name} to talk in {city}",
    ),
    ("Version {version} of the {service} service was released on {date}", "{service} {version} came out {date}"),
    ("The contract of {name} with {firm} ends on {date}", "{name} leaves {firm} when {date} has passed"),
    ("{name} ordered {count} boxes of {food} from {firm}", "{firm} sells {name} {count} boxes of {food}"),
    (
        "The train from {city} to {city2} leaves at {time} on platform {count}",
        "Platform {count}, {time}: {city} {city2}",
    ),
    ("The password of the {tool} in the {room} is {code}", "To log in at the {room} {tool} type {code}"),
    ("{name} completed/did not complete the course in {city} on {date}", "The {city} course ended {date} for {name}"),
)
FILLERS = _words("just really actually basically currently already simply also")
SHORT = {
    "appointment": "appt",
    "apartment": "apt",
    "database": "db",
    "phone": "telephone",
    "dollars": "USD",
    "Monday": "Mon",
    "Tuesday": "Tue",
    "Wednesday": "Wed",
    "Thursday": "Thu",
    "Friday": "Fri",
    "meeting": "mtg",
}


@dataclass(slots=True)
class Fact:
    """A fact: how it is phrased, what was drawn for it, and whether it is denied."""

    template: int
    slots: dict[str, str]
    denied: bool = False
    phrasing: int = 0

    def text(self) -> str:
        """Return the sentence."""
        said = TEMPLATES[self.template][self.phrasing]
        if "/" in said and not self.phrasing:
            before, _slash, after = said.partition("/")
            plain = before.rsplit(" ", 1)[-1]
            denial = next(each for each in DENIALS if after.startswith(each))
            said = before.removesuffix(plain) + (denial if self.denied else plain) + after.removeprefix(denial)
        return said.format(**self.slots)


DENIALS = ("is not", "never drinks", "does not listen", "does not need", "does not speak", "did not complete")


def slots_draw(dice: random.Random) -> dict[str, str]:
    """Return a value for everything that a template may ask for."""
    name, name2 = (f"{dice.choice(FIRST)} {dice.choice(LAST)}" for _ in range(2))
    city, city2 = dice.sample(CITIES, 2)
    return {
        "name": name,
        "name2": name2,
        "city": city,
        "city2": city2,
        "firm": dice.choice(FIRMS),
        "job": dice.choice(JOBS),
        "food": dice.choice(FOODS),
        "drink": dice.choice(DRINKS),
        "room": dice.choice(ROOMS),
        "service": dice.choice(SERVICES),
        "tool": dice.choice(TOOLS),
        "day": dice.choice(DAYS),
        "count": str(dice.randint(3, 40)),
        "big": f"{dice.randint(1, 9)},{dice.randint(0, 99):02}0",
        "port": str(dice.randint(1024, 9999)),
        "phone": f"555-{dice.randint(1000, 9999)}",
        "time": f"{dice.randint(1, 12)} {dice.choice(('am', 'pm'))}",
        "date": f"{dice.choice(MONTHS)} {dice.randint(1, 28)}, {dice.randint(2019, 2027)}",
        "version": f"{dice.randint(1, 9)}.{dice.randint(0, 20)}.{dice.randint(0, 9)}",
        "code": "".join(dice.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(8)),
    }


def facts_draw(number: int, dice: random.Random) -> list[Fact]:
    """Return so many facts, no two with the same words."""
    found: dict[str, Fact] = {}
    while len(found) < number:
        fact = Fact(dice.randrange(len(TEMPLATES)), slots_draw(dice), denied=dice.random() < 0.15)
        found.setdefault(fact.text(), fact)
    return list(found.values())


def near_make(fact: Fact, dice: random.Random) -> str:
    """Return what says the same with one to three changes that do not matter."""
    text = fact.text()
    changed = text
    while changed == text:
        for change in dice.sample(CHANGES, dice.randint(1, 3)):
            changed = change(changed, dice)
    return changed


def paraphrase_make(fact: Fact, _dice: random.Random) -> str:
    """Return the fact in its other phrasing."""
    return Fact(fact.template, fact.slots, phrasing=1).text()


def look_alike_make(fact: Fact, dice: random.Random) -> tuple[str, str]:
    """Return a sentence that differs in one thing that matters, and what that is."""
    template = TEMPLATES[fact.template][0]
    ways = [way for way, names in _MATTERS.items() if any(f"{{{name}}}" in template for name in names)]
    if "/" in template:
        ways.append("negation")
    way = dice.choice(ways)
    if way == "negation":
        return Fact(fact.template, fact.slots, denied=not fact.denied).text(), way
    names = [name for name in _MATTERS[way] if f"{{{name}}}" in template]
    while True:
        other = dict(fact.slots)
        drawn, name = slots_draw(dice), dice.choice(names)
        other[name] = _nearly(fact.slots[name], drawn[name], way, dice)
        if other[name] != fact.slots[name] and other.get("city") != other.get("city2"):
            return Fact(fact.template, other, denied=fact.denied).text(), way


_MATTERS = {
    "number": ("count", "big", "port", "phone", "version"),
    "date": ("date", "day", "time"),
    "name": ("name", "name2", "city", "city2", "firm", "food", "job", "drink", "room", "tool", "service", "code"),
}


def _nearly(was: str, drawn: str, way: str, dice: random.Random) -> str:
    """Return another value that is as near as values of its kind get: one digit, one first name, one day."""
    if way == "number" and dice.random() < 0.7:
        at = dice.choice([place for place, sign in enumerate(was) if sign.isdigit()])
        digit = dice.choice("123456789")
        return was[:at] + digit + was[at + 1 :]
    if way == "name" and " " in was and was[0].isupper() and dice.random() < 0.7:
        first, last = was.split(" ")
        return f"{dice.choice(FIRST)} {last}" if dice.random() < 0.5 else f"{first} {dice.choice(LAST)}"
    if way == "date" and ", " in was and dice.random() < 0.7:
        day, year = was.split(", ")
        month, _number = day.split(" ")
        return dice.choice((f"{month} {dice.randint(1, 28)}, {year}", f"{day}, {dice.randint(2019, 2027)}"))
    return drawn


def _lower(text: str, _dice: random.Random) -> str:
    return text.lower()


def _punctuate(text: str, dice: random.Random) -> str:
    return dice.choice((f"{text}.", f"{text}!", f"- {text}", f"“{text}”", text.replace(" is ", ": ", 1)))


def _fill(text: str, dice: random.Random) -> str:
    for verb in (
        " is ",
        " was ",
        " lives ",
        " works ",
        " needs ",
        " drinks ",
        " starts ",
        " pays ",
        " ordered ",
        " runs ",
    ):
        if verb in text:
            return text.replace(verb, f"{verb}{dice.choice(FILLERS)} ", 1)
    return f"Note that {text[0].lower() if text.startswith('The ') else text[0]}{text[1:]}"


def _shorten(text: str, dice: random.Random) -> str:
    known = [word for word in SHORT if word in text]
    if not known:
        return text
    word = dice.choice(known)
    return text.replace(word, SHORT[word], 1)


def _rewrite(text: str, _dice: random.Random) -> str:
    for hour in range(12, 0, -1):
        for half in ("am", "pm"):
            if f" {hour} {half}" in text:
                return text.replace(f" {hour} {half}", f" {hour}:00 {half}" if hour % 2 else f" {hour}{half}", 1)
    for number, month in enumerate(MONTHS, start=1):
        head, found, tail = text.partition(f"{month} ")
        if found and ", " in tail and tail.split(", ")[0].isdigit():
            day, rest = tail.split(", ", 1)
            return f"{head}{rest[:4]}-{number:02}-{int(day):02}{rest[4:]}"
    return text.replace(",", "", 1) if any(sign.isdigit() for sign in text) else text


def _front(text: str, _dice: random.Random) -> str:
    head, at, tail = text.rpartition(" on ")
    if at and (tail.split(" ")[0] in DAYS or tail.split(" ")[0] in MONTHS) and "until" not in text:
        return f"On {tail}, {head[0].lower() if head.startswith('The ') else head[0]}{head[1:]}"
    return text


def _mistype(text: str, dice: random.Random) -> str:
    words = text.split(" ")
    long = [at for at, word in enumerate(words) if len(word) >= 8 and word.isalpha() and word.islower()]
    if not long:
        return text
    at = dice.choice(long)
    place = dice.randint(2, len(words[at]) - 3)
    word = words[at]
    words[at] = (
        word[:place] + word[place + 1] + word[place] + word[place + 2 :]
        if dice.random() < 0.5
        else (word[:place] + word[place + 1 :])
    )
    return " ".join(words)


CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    _lower,
    _punctuate,
    _fill,
    _shorten,
    _rewrite,
    _front,
    _mistype,
)
