"""Atlas: the ferry and bus app for Skarven Ferries, from redesign to launch."""

from typing import Final

ATLAS: Final = """
@ /project/atlas
+ atlas | project_status | 0 | Atlas, the project | work, atlas
New app for Skarven Ferries: plan, buy and ride on 14 routes. Public launch is planned for {D127}.
= status string green
~ 30 amber | timetable API slips | none
~ 51 green | API back on plan | none
~ 72 amber | Sam is leaving | roadmap owner missing
~ 86 red | disruption feed refused by the client's host | launch date in doubt
~ 93 amber | launch moved three weeks | tell the printer of the harbour signs
~ 126 green | feature freeze held | none
~ 144 amber | crash on old phones two days before launch | Dimitri owns it
~ 148 launched | live at 06.00 | watch crash rate for a week
~ 162 live, stable | hand over to support | retrospective
= launch date {I127}
~ 93 {I148} | feed needs three more weeks | posters, app store texts, on-call rota
= client string Skarven Ferries -> birk
! the project asked about most
+ atlas-deadline | active_decision | 3 | Atlas launch date | work, atlas, deadline
Launch on a Tuesday at 06.00, never before a weekend, because the harbour desks are unstaffed then.
= launch date {I127}
~ 93 {I148} | disruption feed late | everything dated moves by three weeks
= freeze date {I113}
~ 93 {I133} | launch moved | none
> part_of atlas
! deadline
+ atlas-team | observation | 2 | Who does what on Atlas | work, atlas, people
Mara design, Oskar engineering, Leila timetable API, Dimitri quality, Ana words, Sam product.
= product string Sam -> sam
~ 133 Ewa | Sam left, Ewa started | old roadmap stays read-only
= api string Leila -> leila
~ 91 Tove | Leila moved to Lantern | none
~ 161 Leila | back as technical lead | none
> part_of atlas
+ atlas-nav | decision | 8 | Three tabs, not five | work, atlas, design
Plan, Tickets, Alerts. Account moves behind the avatar; "More" is where features go to die.
> part_of atlas
+ atlas-nav-reason | finding | 7 | Nobody opened "More" | work, atlas, research
In eleven hallway tests nobody opened the fourth tab without being asked, and two thought it was an advertisement.
+ atlas-words-delay | decision | 37 | Three words for late | work, atlas, writing
"Delayed", "waiting for tide" and "cancelled" are separate states with separate colours. Captain Ulla insisted.
> about captain-ulla
+ atlas-colour | decision | 15 | Route colours from the harbour charts | work, atlas, design
Fourteen colours taken from the old charts, checked for three kinds of colour blindness, never used as the only sign.
+ atlas-offline | decision | 18 | Tickets must open without a network | work, atlas
A bought ticket is stored on the device and opens in under a second in flight mode; below deck there is no reception.
> part_of atlas
+ atlas-qr | gotcha | 43 | Codes unreadable at low brightness | work, atlas
The scanners on the piers fail below 40 % brightness. The ticket screen raises it and puts it back afterwards.
> depends_on atlas-offline
+ atlas-search | decision | 24 | Search by island, not by pier | work, atlas, design
People type the island's name. Piers appear under it, ordered by next departure.
+ atlas-accounts | decision | 25 | Buying without an account | work, atlas
No sign-up before the first purchase. An e-mail for the receipt is enough; the account is offered afterwards.
+ atlas-accounts-conflict | decision | 66 | Account needed for period tickets | work, atlas
Period tickets need an account after all: the inspectors' device looks them up by name.
> contradicts atlas-accounts
+ atlas-price-display | finding | 46 | Price before date | work, atlas, research
Seven of nine looked for the price first and felt tricked when the date changed it. Show "from" with the cheapest date.
+ atlas-kids | finding | 53 | Children travel free, nobody knows | work, atlas, research
The rule is on page two of the terms. One line in the basket removed the question Lone hears most.
> about lone
+ atlas-dark | decision | 58 | Dark mode only on the map at first | work, atlas, design
Full dark mode after launch; the map follows the system from day one because of the night boats.
+ atlas-map-licence | gotcha | 32 | Sea chart tiles may not be cached | work, atlas
The licence for the nautical tiles forbids storing them for longer than a day; offline maps must use our own outlines.
+ atlas-fonts | gotcha | 39 | The client's typeface lacks Ł and ő | work, atlas, design
Names of passengers lose letters. Fallback set to the system font for names only.
+ atlas-a11y | active_decision | 22 | Large text to 200 % without cutting | work, atlas, design
Every screen must hold at twice the text size; the departure list drops its icons first, never the times.
+ atlas-a11y-result | finding | 115 | Departure list breaks at 170 % | work, atlas, design
Times wrapped under pier names on the smallest phone. Fixed by stacking from 150 % upwards.
> about atlas-a11y
+ atlas-notify | decision | 63 | One alert per trip | work, atlas
At most one push per trip and change of state; updates replace the earlier one instead of piling up.
+ atlas-onboarding | decision | 70 | No tour at first start | work, atlas, design
The three-card tour is gone; empty states explain themselves. Sam disagreed and wrote so.
> mentions sam
+ atlas-payment | decision | 60 | Phone payment first, card second | work, atlas
Phone payment covers 84 % of the old app's sales. Invoice for municipalities comes after launch.
+ atlas-refund | gotcha | 88 | Refunds take the bank's time, not ours | work, atlas
The payment provider confirms refunds after up to five days; the text must not promise "at once".
+ atlas-feed-refused | finding | 86 | Host refuses the disruption feed | work, atlas, risk
Skarven's hosting company will not open the port for the live feed before a security review of three weeks.
> part_of atlas
+ atlas-launch-moved | decision | 93 | Launch moved by three weeks | work, atlas, deadline
Birk agreed on the phone, Viktor confirmed in writing: {D148} instead of {D127}.
> depends_on atlas-feed-refused
> about atlas-deadline
+ atlas-signs | gotcha | 94 | Harbour signs already printed | work, atlas
Forty of the sixty signs carry the old launch date. Stickers, in the same blue, from Mats's brother.
> follows atlas-launch-moved
+ atlas-beta | project_status | 105 | Atlas beta with 200 passengers | work, atlas
Closed test on the Vrångö and Styrsö routes.
= testers int 200
~ 119 340 | Lone recruited at the desk | none
~ 133 512 | opened to staff families | none
= crash_free_percent float 97.1
~ 112 97.9 | map memory fixed | none
~ 126 98.8 | old Android fixed, so we thought | none
~ 140 99.2 | release candidate | none
= open_bugs int 61
~ 112 54 | triage | none
~ 119 43 | fix week | none
~ 126 29 | freeze | none
~ 133 21 | only blockers | none
~ 140 12 | candidate | none
~ 144 14 | crash on old phones | launch blocker
~ 147 9 | fixed at night | go
> part_of atlas
+ atlas-freeze | event | 133 | Feature freeze | work, atlas
Frozen at noon. Ewa's first day, and her first "no" was to Viktor.
> part_of atlas
+ atlas-crash | finding | 144 | Crash on phones with 2 GB | work, atlas, risk
The route map decoded all 14 images at once. Dimitri's cracked phone found it on the third try.
> about dimitri
+ atlas-crash-fix | decision | 147 | Load route images one by one | work, atlas
Decode only the visible route; costs 80 ms on open, saves 190 MB. Held on the cracked phone.
> follows atlas-crash
+ atlas-launch | event | 148 | Atlas is live | work, atlas
Live at 06.00, first ticket sold at 06.04 to Ulla's cousin. Nobody applauded, everybody refreshed.
= live_at datetime {I148}T06:00:00+02:00
= first_ticket_at datetime {I148}T06:04:00+02:00
> part_of atlas
> follows atlas-freeze
+ atlas-oncall | active_decision | 140 | On-call during launch fortnight | work, atlas
Oskar and Dimitri alternate nights, Mara is second line until 22.00 for words and screens.
= tonight string Oskar
~ 149 Dimitri | rota | none
~ 151 Oskar | rota | none
~ 155 Dimitri | rota | none
~ 162 nobody | fortnight over | remove from allowed interruptions
+ atlas-reviews | project_status | 150 | Store rating | work, atlas
What people say in the app stores.
= stars float 3.6
~ 151 3.9 | login complaint answered | none
~ 155 4.1 | fix for pensioner tickets | none
~ 158 4.3 | steady | none
~ 165 4.4 | steady | quote in the case study
~ 172 4.5 | steady | none
+ atlas-pensioner | finding | 151 | Pensioner ticket hidden below the fold | work, atlas, research
On small phones the senior fare needed a scroll; 60 of the first 75 calls were about it.
> about lone
+ atlas-pensioner-fix | decision | 151 | Fares sorted by use on the route | work, atlas, design
The three fares sold most on that route come first; Styrsö shows seniors on top.
> follows atlas-pensioner
+ atlas-retro | event | 164 | Atlas retrospective | work, atlas
Kept: testing on Dimitri's phone, one-line reasons. Drop: roadmap in a private spreadsheet. Try: freeze a week earlier.
> part_of atlas
+ atlas-after | active_decision | 165 | What comes after launch | work, atlas
Order agreed with Ewa: invoices for municipalities, full dark mode, bicycle places, then loyalty, if ever.
= order list ["municipal invoices", "dark mode", "bicycle places", "loyalty"]
~ 171 ["dark mode", "municipal invoices", "bicycle places", "loyalty"] | winter darkness argued by the crews | none
> about ewa
+ atlas-case | active_decision | 165 | Case study for the studio site | work, atlas, writing
Mara writes, Ana edits; no numbers without Birk's consent, no photographs of passengers.
> about birk
+ atlas-budget | project_status | 4 | Hours left on Atlas | work, atlas, money
Design hours in the contract and what is left of them.
= hours_left int 620
~ 21 571 | monthly report | none
~ 49 488 | monthly report | none
~ 79 391 | monthly report | none
~ 94 470 | client paid for the extra weeks | none
~ 116 352 | monthly report | none
~ 144 181 | monthly report | none
~ 168 96 | after launch | invoice at month's end

@ /project/atlas/api
+ api-overview | observation | 4 | Timetable API in one paragraph | work, atlas, api
Departures by pier and day, disruptions as a separate feed, both cached for 60 seconds; times are local, without zone.
> part_of atlas
+ api-version | active_decision | 10 | API version in use | work, atlas, api
The version that the app may rely on; older ones answer but are not watched.
= version string 0.9
~ 51 1.0 | fields renamed, see changelog | screens with pier names
~ 92 1.1 | disruption feed v2 | alert texts
~ 129 1.2 | tide state added | Three words for late
~ 155 1.2.1 | fares sorted by use | none
> about leila
+ api-tz | gotcha | 17 | Times come without a zone | work, atlas, api
Local time with no offset: on the night the clocks change one departure exists twice. The app shows both.
+ api-pier-ids | gotcha | 23 | Pier numbers are reused | work, atlas, api
Pier 31 was Vrångö until the rebuild and is now Donsö. Always pass the date along with the number.
+ api-rate | finding | 30 | Rate limit is per office, not per key | work, atlas, api
Everyone in the studio shares 600 calls a minute; Dimitri's load test blocked the design review.
= limit_per_minute int 600
~ 58 3000 | asked nicely with a drawing | none
+ api-cache | decision | 32 | Cache sixty seconds, show the age | work, atlas, api
Departures may be a minute old and the screen says so. Nobody has complained about honesty yet.
+ api-tide | decision | 44 | Tide as its own state | work, atlas, api
New value `waiting_tide` instead of a delay with a comment. In force from API 1.2.
> depends_on atlas-words-delay
+ api-strings | gotcha | 52 | Pier names arrive in capitals | work, atlas, api
"VRÅNGÖ NORRA" must not be lower-cased by rule: "S:t" and "Ö" break. Use the table that Ana keeps.
> about ana
+ api-errors | decision | 59 | One error text per cause | work, atlas, api
Network, no departures, service closed for the night: three texts, no codes, a time to try again.
+ api-sandbox | gotcha | 60 | Sandbox empties itself on Sundays | work, atlas, api
Test bookings vanish on Sunday at 02.00. Demonstrations on Mondays need new ones.
+ api-handover | event | 88 | Leila hands the API to Tove | work, atlas, api
Two hours at the whiteboard, one page of notes, list of the seven things that only look wrong.
> mentions leila
> mentions tove
+ api-seven | observation | 88 | Seven things that only look wrong | work, atlas, api
Negative platform numbers, two Mondays, the ghost pier, prices in öre, empty routes, 24.30, and the captain's name
in `note`.
> follows api-handover
+ api-latency | finding | 108 | Slow only at quarter past | work, atlas, api
Response time peaks at xx.15 because the old kiosks all refresh then. Measured by Tove over two days.
= p95_ms int 1900
~ 122 640 | kiosks spread over the hour | none
~ 149 720 | launch day | none
~ 163 510 | cache moved closer | none
+ api-feed-open | event | 113 | The disruption feed answers | work, atlas, api
Port opened a day early. First message: a moose on the Öckerö ramp.
> depends_on atlas-feed-refused
+ api-keys | gotcha | 126 | Production key differs by one letter | work, atlas, api
Sandbox and production keys both start with `skv`; two builds went out against the wrong one.
+ api-moose | observation | 114 | Disruption texts are written by crews | work, atlas, api
Free text, all capitals, sometimes jokes. Show cause from the code, free text only behind "details".

@ /project/atlas/app
+ app-repo | observation | 4 | How the app is built | work, atlas, app
One code base for both phones, nightly build at 02.30, design tokens come from Pebble.
= tokens_from string Pebble -> pebble
> part_of atlas
+ app-build | project_status | 11 | Nightly build | work, atlas, app
State of the last nightly build.
= state string passed
~ 25 failed: certificate expired | renewed by Jorge | none
~ 25 passed | certificate renewed | none
~ 67 failed: icon font missing | Pebble 2 renamed it | pin the version
~ 71 passed | pinned | none
~ 106 failed: disk full on the build machine | holiday videos of someone | none
~ 107 passed | cleaned | none
~ 144 failed: two tests on 2 GB profile | crash found | launch
~ 147 passed | images one by one | none
+ app-min-version | decision | 31 | Oldest phones supported | work, atlas, app
Android 9 and iOS 15: covers 97 % of the old app's users, leaves out 1,900 people who get the mobile site.
+ app-wallet | decision | 39 | Tickets as a stack, newest in front | work, atlas, app
Like paper in a coat pocket. The valid one jumps to the front ten minutes before departure.
+ app-wallet-owner | active_decision | 140 | Freja owns the ticket wallet | work, atlas, app, people
From now on wallet questions go to Freja first; Mara reviews on Thursdays.
> about freja
+ app-haptics | observation | 84 | A small knock when a ticket is valid | work, atlas, app
Crew like it: passengers hold the phone out at the right moment.
+ app-keyboard | gotcha | 95 | Search field hides under the keyboard | work, atlas, app
Only on two older models with the large keyboard; the list must scroll to the field, not the field to the list.
+ app-icons | decision | 46 | Drawn boat icons, one per vessel class | work, atlas, app
Three silhouettes drawn by Freja from the quay, approved by a captain who corrected the funnel.
+ app-size | finding | 123 | The app is 38 MB, half of it pictures | work, atlas, app
Route pictures in the wrong format. Converted: 21 MB.
= size_mb int 38
~ 127 21 | pictures converted | none
+ app-analytics | decision | 74 | What is measured, and what is not | work, atlas, app, privacy
Screens and purchases, no positions, no identifiers beyond the session. Text for the settings page by Ana.
+ app-widget | observation | 157 | Everyone asks for a widget | work, atlas, app
31 of the first 400 reviews want the next departure on the home screen. Noted for after dark mode.
+ app-tablet | observation | 99 | Crew use tablets in landscape | work, atlas, app
Freja saw it on the bridge; nobody had ever turned the screen in tests.
+ app-store-text | decision | 130 | Store description | work, atlas, app, writing
First sentence: "Boats and buses to the islands, with tickets that work below deck." No list of features.
"""
