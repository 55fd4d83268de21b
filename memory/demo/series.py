"""Values that were measured or counted again and again: the fields with many versions."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Series:
    """A topic whose one field changes about every `every` days between `first` and `last`.

    Numbers wander from `start` to `end` by up to `wobble`; `words`, if given, are taken in turn instead.
    """

    key: str
    scope: str
    kind: str
    title: str
    summary: str
    categories: tuple[str, ...]
    field: str
    first: int
    last: int
    every: float
    whys: tuple[str, ...]
    start: float = 0.0
    end: float = 0.0
    wobble: float = 0.0
    decimals: int = 0
    words: tuple[str, ...] = ()
    impact: str = ""


_SCALE = ("weighed after the run", "morning, before coffee", "weekly weighing", "after the weekend", "bathroom scale")
_LOG = ("read out at stand-up", "counted on Friday", "triage", "taken from the board", "monthly report")
_COUNT = ("counted by Elsa", "Sunday check", "noted in passing", "read from the list")

SERIES: Final[tuple[Series, ...]] = (
    Series("body-weight", "/user/mara/health", "observation", "Body weight",
           "Weighed about once a week without comment; she wants the number kept and not discussed.",
           ("health",), "weight_kg", 4, 176, 7, _SCALE, 68.4, 65.9, 0.5, 1),
    Series("resting-pulse", "/user/mara/health", "observation", "Resting pulse",
           "Weekly average from the watch; goes up before a cold and in heavy weeks.",
           ("health", "running"), "bpm", 9, 174, 8, ("weekly average", "watch", "after a quiet week"), 61, 54, 2),
    Series("blood-pressure", "/user/mara/health", "observation", "Blood pressure at home",
           "Dr Emin asked for a reading every other Sunday, sitting, left arm.",
           ("health",), "systolic", 13, 174, 14, ("Sunday, sitting", "left arm, second try"), 131, 122, 5),
    Series("sleep-hours", "/user/mara/health", "observation", "Sleep, weekly average",
           "Hours asleep as the watch sees it, which is kinder than the mirror.",
           ("health", "sleep"), "hours", 16, 176, 7, ("weekly average", "watch worn five nights"), 6.6, 7.1, 0.5, 1),
    Series("running-week", "/user/mara/health", "observation", "Kilometres this week",
           "Running only; walking to the tram does not count, says Jonas.",
           ("health", "running"), "km", 21, 174, 7, ("long run included", "only two runs", "knee allowed it"),
           8, 19, 4),
    Series("tofu-water", "/home", "observation", "How much Tofu drinks",
           "Millilitres a day from the fountain, because the vet asked.",
           ("pets",), "ml_day", 133, 177, 4, ("refilled", "marked with tape", "fountain cleaned"), 160, 215, 25),
    Series("elsa-height", "/user/mara/family", "observation", "Elsa on the door frame",
           "Pencil marks at the kitchen door; standing on toes is checked.",
           ("children",), "cm", 10, 172, 27, ("door frame", "without shoes, she insists"), 137.5, 140.1, 0.05, 1),
    Series("spelling-test", "/user/mara/family", "observation", "Elsa's spelling tests",
           "Correct words of twenty, every other Wednesday; the number matters less than the funny ones.",
           ("children", "school"), "right_of_20", 9, 170, 14, ("Wednesday test", "practised on the tram"), 12, 18, 2),
    Series("bedtime-ivo", "/user/mara/family", "observation", "How long Ivo takes to fall asleep",
           "Minutes from the last page to silence.",
           ("children", "sleep"), "minutes", 12, 170, 9, ("excavator twice", "question about rain", "quick tonight"),
           38, 17, 8),
    Series("electricity", "/home/devices", "observation", "Electricity by week",
           "Kilowatt hours a week in the house, read on Mondays.",
           ("home", "money"), "kwh", 77, 176, 7, ("Monday reading", "colder week", "guests", "heating curve"),
           262, 171, 22),
    Series("water-meter", "/home/devices", "observation", "Water meter",
           "Cubic metres in total; the number is behind the freezer, like the tap.",
           ("home",), "m3", 70, 174, 13, ("freezer moved for it", "Jonas read it"), 1204, 1249, 1),
    Series("cellar-dry", "/home/devices", "observation", "Humidity in the cellar, weekly",
           "North corner, dehumidifier on from Monday to Thursday.",
           ("home", "repairs"), "percent", 107, 176, 6, ("dehumidifier emptied", "rain", "window open"), 77, 61, 3),
    Series("indoor-plants", "/home", "observation", "Currants: leaves and hopes",
           "State of the three bushes by the shed, as reported at breakfast.",
           ("garden",), "state", 134, 176, 6, ("looked after breakfast", "Gunilla says so"),
           words=("planted", "watered", "one sulks", "all upright", "first new leaf", "snails", "upright again")),
    Series("savings", "/user/mara/money", "observation", "Savings account",
           "Balance after payday, rounded to the hundred.",
           ("money",), "balance_sek", 2, 172, 14, ("after payday", "mid-month", "bill paid"), 84200, 61300, 3000),
    Series("groceries-week", "/user/mara/money", "observation", "Groceries per week",
           "Sum of the receipts from Monday to Sunday, tracked against the ceiling.",
           ("money", "food"), "sek", 13, 174, 7, ("Sunday sum", "guests", "big shop", "fish van"), 2280, 2190, 260),
    Series("pocket-money", "/user/mara/family", "observation", "Elsa's savings for the jersey",
           "Saved of 699; counted aloud every other Saturday.",
           ("children", "money"), "saved_sek", 121, 173, 7, _COUNT, 20, 210, 8),
    Series("atlas-bugs", "/project/atlas", "project_status", "Open bugs in Atlas",
           "All open bugs, not only the blockers; read out on Mondays.",
           ("work", "atlas"), "open", 20, 176, 7, _LOG, 34, 22, 9, impact="order of the fix week"),
    Series("atlas-screens", "/project/atlas", "project_status", "Screens drawn and approved",
           "Of 48 in the new app, counted when Oskar and Birk have both nodded.",
           ("work", "atlas"), "approved_of_48", 9, 131, 7, ("Birk nodded", "review", "Oskar nodded"), 3, 48, 1),
    Series("atlas-coldstart", "/project/atlas/app", "finding", "Start time on the worst phone",
           "Seconds until the departures show, measured by Dimitri on the cracked phone.",
           ("work", "atlas", "app"), "seconds", 26, 172, 9, ("Dimitri, three tries", "images one by one",
           "build machine"),
           5.8, 2.1, 0.4, 1),
    Series("atlas-tests", "/project/atlas/app", "project_status", "Automatic tests in the app",
           "Number of tests in the nightly run.",
           ("work", "atlas", "app"), "tests", 12, 174, 8, ("wallet added", "nightly count", "flaky ones removed"),
           118, 604, 12),
    Series("atlas-downloads", "/project/atlas", "project_status", "Downloads in total",
           "Both stores together, looked at once a day in the first week and then not so often.",
           ("work", "atlas"), "downloads", 149, 178, 2.6, ("store figures", "Ewa asked", "after the radio piece"),
           4100, 61200, 900),
    Series("atlas-crashfree", "/project/atlas/app", "project_status", "Sessions without a crash",
           "Percentage over the last day.",
           ("work", "atlas", "app"), "percent", 148, 178, 2.5, ("morning figure", "after the fix", "weekend"),
           98.9, 99.7, 0.15, 2),
    Series("atlas-queue", "/project/atlas", "project_status", "Calls at the customer desk",
           "Calls about the app per day, from Lone's tally sheet.",
           ("work", "atlas"), "calls", 148, 177, 3, ("Lone's tally", "windy day", "quiet day"), 75, 6, 6),
    Series("atlas-words", "/project/atlas", "project_status", "Texts still to be written",
           "Ana's list for Atlas; down is good.",
           ("work", "atlas", "writing"), "texts", 16, 147, 8, ("Ana's list", "new screens", "fares came back"),
           96, 0, 6),
    Series("api-uptime", "/project/atlas/api", "finding", "Feed outages per week",
           "Minutes in which the disruption feed did not answer.",
           ("work", "atlas", "api"), "minutes", 116, 176, 6, ("Tove's log", "host's maintenance", "cause unknown"),
           44, 9, 8),
    Series("lantern-interviews", "/project/lantern/research", "project_status", "Quotes sorted for Lantern",
           "Yellow notes on the wall that have found their cluster.",
           ("work", "lantern", "research"), "notes", 30, 62, 4, ("wall afternoon", "with Yuki", "after the bus"),
           22, 318, 14),
    Series("lantern-screens", "/project/lantern", "project_status", "Lantern screens at large type",
           "Screens that hold at 20 px without scrolling sideways.",
           ("work", "lantern"), "done_of_26", 66, 138, 7, ("review", "Ingrid looked", "one fell back"), 2, 26, 1),
    Series("lantern-languages", "/project/lantern", "project_status", "Translated lines",
           "Percent of lines present in all five languages.",
           ("work", "lantern", "writing"), "percent", 86, 141, 6, ("translator's batch", "Ana merged",
           "new screens"), 8, 100, 2),
    Series("lantern-calls", "/project/lantern", "project_status", "Reception calls in Lerum",
           "Calls per day, counted with pencil strokes by reception itself.",
           ("work", "lantern"), "calls", 141, 177, 4, ("pencil strokes", "Monday", "letter batch"), 61, 38, 5),
    Series("lantern-signins", "/project/lantern", "project_status", "Pilot: share that signed in",
           "Percent of the invited who signed in at least once.",
           ("work", "lantern"), "percent", 143, 177, 3.5, ("counter", "after reminder calls", "new batch dilutes"),
           38, 73, 3),
    Series("pebble-adoption", "/project/pebble", "project_status", "Pebble in use",
           "Percent of components on screens that come from Pebble unchanged.",
           ("work", "pebble"), "percent", 11, 172, 12, ("script by Rasmus", "Lantern moved", "old code removed"),
           52, 81, 2),
    Series("pebble-issues", "/project/pebble", "project_status", "Open wishes for Pebble",
           "Issues with the label wish.",
           ("work", "pebble"), "open", 18, 170, 14, ("Pebble Friday", "closed twelve at once"), 27, 19, 6),
    Series("inbox-count", "/user/mara", "observation", "Mails waiting on Friday",
           "What is left in the inbox when the time sheet is sent.",
           ("habits", "work"), "mails", 4, 174, 7, ("Friday at three", "after the sweep", "launch"), 41, 28, 14),
    Series("next-meeting-birk", "/project/atlas", "active_decision", "Next meeting with Birk",
           "Standing appointment, moved more often than held.",
           ("work", "calendar"), "when", 5, 172, 9, ("Birk moved it", "held", "tide, literally", "his leave"),
           words=("Tuesday 10.00, quay", "Wednesday 13.00, call", "Tuesday 10.30, studio", "cancelled",
                  "Thursday 9.00, call",
                  "Tuesday 14.00, studio")),
    Series("jonas-rota", "/user/jonas", "active_decision", "Jonas's rota this week",
           "Which shifts he works; decides who fetches the children.",
           ("family", "calendar"), "shift", 0, 176, 7, ("new week", "swapped with Agneta", "rota published"),
           words=("early", "late", "nights Thursday to Saturday", "early", "late, free Friday",
                  "nights Monday to Wednesday"),
           impact="pick-ups and dinner"),
    Series("car-where", "/home", "observation", "Where the car is parked",
           "Written down because of the market days and the street cleaning.",
           ("transport",), "where", 3, 176, 11, ("street cleaning", "told by voice", "Jonas parked"),
           words=("Kastellgatan, even side", "Risåsgatan by the school", "garage, level 2", "Kastellgatan, odd side",
                  "hospital, P4", "at home by the hedge", "at Solveig's")),
    Series("sourdough-state", "/home/kitchen", "observation", "The sourdough starter",
           "Called Sven. Fed, forgotten, revived.",
           ("food",), "state", 8, 175, 9, ("smelled", "fed", "found behind the milk", "Nadia fed it"),
           words=("lively", "hungry", "asleep in the fridge", "revived with rye", "lively", "doubled in four hours")),
    Series("guest-list", "/user/mara/family", "observation", "Who sleeps over this weekend",
           "Asked every Friday by both children.",
           ("family",), "guests", 4, 174, 8, ("Friday question", "changed on the phone"),
           words=("nobody", "Moa", "Birgit", "nobody", "Henrik and Callum", "Lo", "Moa and Hedvig", "nobody")),
    Series("portuguese-words", "/user/mara/hobby", "observation", "Portuguese words in the box",
           "Cards that were right three times in a row.",
           ("hobby", "language"), "cards", 51, 172, 8, ("after Inês", "on the tram", "island practice"), 40, 412, 11),
    Series("now-reading", "/user/mara/hobby", "observation", "On the bedside table",
           "What lies on top of the pile by her bed.",
           ("books",), "book", 6, 172, 11, ("finished", "given up at page 60", "book club is near"),
           words=("The Salt Ledger", "Forty Names for Tide", "Small Rooms, Long Winters", "Hinge", "A Theory of Queues",
                  "The Lamp Mender", "The First Hundred Meetings", "Wet Plaster")),
)  # fmt: skip
