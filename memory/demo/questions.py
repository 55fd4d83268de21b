"""What the agents asked of the memory, over and over, and what a person did to it by hand."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Question:
    """A thing that is asked: its wordings, how often and when, and the topics that surely belong to the answer."""

    wordings: tuple[str, ...]
    weight: int
    days: tuple[int, int]
    keys: tuple[str, ...]


# weight | days | wordings, parted by "/" | keys
_QUESTIONS: Final = """
40 | 0-183 | how should I phrase this for Mara / tone of answers | mara-voice, mara-spelling
34 | 0-183 | allergies in the family / is this recipe safe for Ivo / hazelnut | ivo-hazelnut, no-hazelnut-rule
18 | 0-183 | medicines Mara must not get / penicillin / before the pharmacy | mara-penicillin, thyroid-dose
22 | 1-183 | thyroid tablets dose today / levothyroxine / which dose does she take | thyroid-dose, iron-timing
30 | 0-183 | who is in the family / the household / children's names and ages | mara-family-shape, mara, elsa, ivo
26 | 0-183 | delivery address / where does Mara live / street and postcode for the form | mara-address, twin-address
18 | 0-183 | Mara's phone number and e-mail / contact details for the form | mara, twin-phone
20 | 0-183 | Mara's job title / signature / who does she report to | mara-job, twin-title, twin-title-2, viktor
26 | 0-183 | working hours, who picks up the children today / pick-up | mara-timezone, jonas-rota, inbox-rule
22 | 0-183 | is Jonas reachable, which shift / rota this week / Jonas nights | jonas-rota, jonas, jonas-nights
20 | 0-183 | may this interrupt her now / who may call through | inbox-rule, mara-emergency, atlas-oncall
14 | 4-183 | can I book Monday at nine / monday meetings | no-meetings-monday, twin-monday, studio-standup
14 | 1-183 | order coffee / what does she drink | coffee-order, twin-coffee
14 | 3-183 | where does she like to work outside / café to meet Ana | favourite-cafe, twin-cafe
10 | 5-183 | dinner on Friday / tacos | friday-tacos, no-hazelnut-rule, jonas-food
16 | 3-183 | dinner idea quick, all four / what do the children eat | recipe-lentil, recipe-fishcakes, recipe-pancake
8 | 9-183 | sourdough water and oven / bread recipe | recipe-sourdough, oven-house, twin-oven, twin-dough
8 | 41-183 | what is in the freezer | freezer-list
6 | 32-183 | Priya comes to eat, vegetarian dinner | priya-dinner, priya, recipe-dal
9 | 10-183 | migraine: what sets it off / may she have red wine | mara-migraine, migraine-med, wine-note, twin-migraine
9 | 14-150 | how is the knee / running today with the knee? | mara-knee, running-plan, physio-sara
9 | 21-130 | running plan this week / long run | running-plan, running-week, mara-knee
8 | 4-183 | body weight trend / sleep and pulse last weeks | body-weight, sleep-hours, resting-pulse
7 | 8-183 | book a blood test / health centre phone | health-centre, gp-name, thyroid-dose
6 | 26-183 | Ivo has fever, paracetamol by weight | ivo-fever-plan, ivo
9 | 1-183 | how is Birgit / Birgit's hip / call mother | birgit
8 | 2-183 | Tofu food and weight / vet | tofu, tofu-water
8 | 17-183 | babysitter for Thursday / Alva's rate | sitter, jonas-choir
8 | 1-183 | Nadia's number, who has the keys | nadia, keys-who, twin-keys
6 | 30-183 | sizes for shoes and trousers / Elsa shoe size | clothes-size, elsa, ivo
5 | 20-60 | gift for Jonas | jonas-gift
6 | 60-76 | Elsa's birthday guests and cake | birthday-elsa, recipe-cake-elsa, elsa-friends, birthdays-rule
30 | 0-147 | when is the Atlas launch / Atlas deadline / launch date | atlas-deadline, atlas, atlas-launch-moved
46 | 0-183 | status of Atlas / where does Atlas stand / Atlas summary for Viktor | atlas, atlas-bugs, atlas-budget
24 | 2-183 | who does what on Atlas / contact for the timetable API | atlas-team, oskar, leila, tove
14 | 8-135 | why three tabs / navigation decision Atlas | atlas-nav, atlas-nav-reason, twin-tabs
14 | 37-183 | words for delay and tide / how do we write "late" | atlas-words-delay, api-tide, captain-ulla
12 | 19-160 | tickets offline, QR brightness | atlas-offline, atlas-qr, twin-offline
12 | 27-170 | account needed to buy? / purchase without account | atlas-accounts, atlas-accounts-conflict
10 | 22-150 | large text 200 % departure list | atlas-a11y, atlas-a11y-result, pebble-large
10 | 15-120 | route colours colour blindness | atlas-colour
8 | 33-140 | may map tiles be cached / chart licence | atlas-map-licence
20 | 5-170 | API version we can rely on / timetable API fields | api-version, api-overview, api-seven
14 | 17-150 | times without zone, clocks change | api-tz, twin-tz
12 | 23-150 | pier numbers and names / pier 31 | api-pier-ids, api-strings, twin-caps
8 | 61-150 | sandbox bookings gone on Monday | api-sandbox, api-keys
10 | 30-120 | rate limit of the timetable API | api-rate
12 | 86-118 | disruption feed blocked by the host | atlas-feed-refused, api-feed-open, atlas-launch-moved
12 | 12-150 | nightly build state / why did the build fail | app-build, app-repo, pebble-rename
10 | 41-170 | ticket wallet: order, owner | app-wallet, app-wallet-owner, freja
14 | 105-148 | beta crash rate and open bugs | atlas-beta, atlas-bugs, atlas-crash
26 | 133-150 | launch blockers left / checklist for launch morning | atlas, atlas-beta, atlas-freeze, atlas-oncall
18 | 146-160 | crash on old phones, cause and fix | atlas-crash, atlas-crash-fix, twin-old-phones
16 | 139-163 | who is on call tonight | atlas-oncall, inbox-rule
20 | 148-183 | store rating and reviews / downloads so far | atlas-reviews, atlas-downloads, atlas-crashfree
14 | 151-183 | senior fare complaint | atlas-pensioner, atlas-pensioner-fix, lone
14 | 165-183 | what comes after launch / dark mode or invoices first | atlas-after, atlas-dark, app-widget
40 | 1-183 | status of Lantern / where does Lantern stand / pilot date | lantern, lantern-budget, lantern-pilot-start
18 | 3-183 | who does what on Lantern / backend contact Lantern | lantern-team, leila, yuki, lantern-nils
20 | 14-66 | interview plan and what participants said / research findings | research-plan, research-principles
12 | 62-160 | principles from the interviews | research-principles, research-readout
14 | 12-170 | type size and contrast in Lantern | lantern-large-type, lantern-contrast, twin-type
12 | 9-183 | patient data in design files / which names in screenshots | lantern-privacy, lantern-fake-family, twin-blom
12 | 43-170 | may Lantern give advice / legal line | lantern-no-advice, lantern-legal
12 | 47-170 | when are results shown, wording of results | lantern-results-rule, lantern-words-results
10 | 61-160 | drop reminders, cap colours | lantern-drops, lantern-drops-risk, research-diary
14 | 94-170 | record import progress / import errors | lantern-import-state, lantern-import, leila
10 | 117-150 | Arabic layout, mirrored pictures | lantern-arabic, lantern-lang
16 | 131-175 | reception strip, what reception will not do | lantern-strip, lantern-reception, hugo
18 | 141-183 | pilot numbers this week / how many signed in | lantern-pilot-start, lantern-signins, lantern-calls
14 | 2-183 | Pebble version, breaking changes | pebble, pebble-rename, twin-icons
8 | 11-170 | naming tokens and spacing steps | pebble-tokens, pebble-spacing
6 | 60-183 | how to propose a component | pebble-contrib
16 | 0-58 | old site: what is left / pages left old website | old-site, old-redirects, old-export
8 | 3-57 | login to the old control panel | old-cms-login, printer-mats
6 | 20-60 | old contact form and phone number | old-form, old-phone, old-mailbox
10 | 0-183 | receipts and expenses at the studio | reimbursement, halima, twin-receipts
8 | 13-183 | time sheet hours | studio-timesheet
10 | 120-183 | lead duties and one-to-ones this week | studio-lead-duties, studio-one-freja, studio-one-ana
10 | 134-183 | hiring content designer, applicants | studio-hire, ana
8 | 3-183 | Ana's lead time for texts | ana
10 | 0-183 | contact at Skarven Ferries, Birk / next meeting with Birk | birk, next-meeting-birk, lone
8 | 6-183 | contact at the clinics, Hugo and Dr Mehta | hugo, dr-klara
24 | 20-69 | moving: what is open / movers time / boxes | move-checklist, movers, move-boxes, house-offer
8 | 60-80 | window measurements, curtains | curtain-measure
8 | 69-120 | where is the stopcock / fuse for the kitchen | house-water, fuse-box, twin-tap
10 | 70-183 | bins this week | bin-days, twin-bins
8 | 73-120 | heat pump settings | house-boiler, electricity
8 | 49-183 | mortgage rate and monthly cost / roof fund balance | mortgage, roof-fund, savings
6 | 7-183 | phone plan cost | phone-plan
6 | 79-183 | sofa delivery date | sofa
18 | 35-111 | trip to the Azores: flights, car, flat / island plan | trip-azores, azores-flights, azores-car
10 | 97-111 | where to eat on the island, nut-free | azores-restaurant, ivo-hazelnut, azores-furnas
6 | 112-145 | travel insurance claim | azores-claim, azores-doctor
6 | 131-168 | flight to Manchester / Leeds weekend | leeds-flight, trip-leeds, henrik
10 | 11-183 | seats, trains or planes, hotel wishes | seat, train-rule, hotel-rule, twin-seat
8 | 12-183 | passport expiry / documents for travel | mara-passport, mara-licence
8 | 3-183 | climbing Tuesday, entries left | climbing-tuesday, sub-gym, nadia
7 | 8-183 | book to read next / book club | book-list, now-reading, priya
6 | 50-183 | Portuguese with Inês | mara-language-practice, portuguese-words
6 | 55-183 | book for Elsa or Ivo | book-elsa, book-ivo
6 | 23-183 | birthday coming up, gift idea | birthdays-rule, flowers, mara-gifts
6 | 34-183 | photo of the children for a post? | photos-rule, therapist-note
"""

# day | action | keys | reason
_CHANGES: Final = """
36 | pin | azores-flights | needed until we are back
44 | pin | move-checklist | looked at every day until the move
59 | archive | old-cms-login, old-export, old-fonts | site is shut down
59 | archive | old-images, old-search, old-badge, old-templates | site is shut down
59 | archive | old-news, old-cookies, old-blog | site is shut down
73 | unpin | move-checklist | moved
80 | archive | laundry-room, stairs-cleaning, rubbish-room-code, heating-flat | we no longer live there
80 | archive | move-boxes, movers, house-viewing, piano-question, move-checklist | moved, nothing left to do
90 | archive | twin-launch-old | the date has changed twice since
91 | restore | old-images | client asked for the original photographs
92 | archive | sub-box-start, sub-box | cancelled
95 | pin | trip-azores | on holiday from Saturday
104 | archive | car-wish | decided against
113 | unpin | trip-azores, azores-flights | back home
118 | archive | azores-packing, azores-car, airport-bus | holiday is over
120 | archive | curtain-measure, broadband-house, surveyor-report | house matters settled
127 | restore | curtain-measure | blinds for the study need the measurements
129 | restore | surveyor-report | insurer wants the page on drainage
140 | pin | atlas-oncall | asked every night of the launch
142 | restore | azores-packing | list is good for Leeds too
162 | unpin | atlas-oncall | fortnight is over
163 | archive | atlas-freeze, atlas-signs, twin-launch-2 | launched
166 | pin | atlas-after | leads every conversation with Ewa
170 | restore | atlas-signs | printer asks for the sticker blue
"""


def questions_read() -> list[Question]:
    """The questions in the order written."""
    found: list[Question] = []
    for line in _QUESTIONS.strip().splitlines():
        weight, days, wordings, keys = (part.strip() for part in line.split("|"))
        first, _, last = days.partition("-")
        found.append(
            Question(
                tuple(word.strip() for word in wordings.split(" / ")),
                int(weight),
                (int(first), int(last)),
                tuple(key.strip() for key in keys.split(",")),
            )
        )
    return found


def changes_read() -> list[tuple[int, str, str, str]]:
    """What was done by hand, as day, action, key and reason."""
    found: list[tuple[int, str, str, str]] = []
    for line in _CHANGES.strip().splitlines():
        day, action, keys, reason = (part.strip() for part in line.split("|"))
        found.extend((int(day), action, key.strip(), reason) for key in keys.split(","))
    return found
