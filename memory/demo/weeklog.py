"""Status notes of the four projects, week by week as they were read out."""

from typing import Final

WEEKLOG: Final = """
@ /project/atlas
+ - | project_status | 4 | Atlas week 1: inventory | work, atlas
All 63 screens of the old app on one wall, 19 of them unreachable. API sketch with Leila on Monday.
+ - | project_status | 11 | Atlas week 2: navigation drawn | work, atlas
Three tabs drawn and tried in the hallway; ticket types still a swamp.
+ - | project_status | 18 | Atlas week 3: colours and charts | work, atlas
Fourteen route colours tested, two collided in the dark; map licence unanswered.
+ - | project_status | 25 | Atlas week 4: search by island | work, atlas
Search works on real names. Waiting for pier numbers that mean one pier each.
+ - | project_status | 32 | Atlas week 5: API slips | work, atlas
Leila two weeks behind because of the tide data; design goes on with invented departures.
+ - | project_status | 39 | Atlas week 6: purchase without account | work, atlas
Flow down to four taps; Ana has words for all but one of the fares.
+ - | project_status | 46 | Atlas week 7: wallet stack | work, atlas
Stack of tickets animates on the worst phone. QR brightness solved on two of three scanners.
+ - | project_status | 53 | Atlas week 8: API 1.0 is here | work, atlas
Real departures in the app for the first time; eleven screens had assumed shorter names.
+ - | project_status | 60 | Atlas week 9: payment | work, atlas
Phone payment in the sandbox, card next; refund text with the lawyer.
+ - | project_status | 67 | Atlas week 10: alerts | work, atlas
One alert per trip, replaced in place. Mara off Monday and Tuesday after the move.
+ - | project_status | 74 | Atlas week 11: without a roadmap owner | work, atlas
Sam is going; Oskar and Mara share the order of things until somebody comes.
+ - | project_status | 81 | Atlas week 12: handover and haptics | work, atlas
Spreadsheet exported, orange rows discussed. Crew test of the small knock went well.
+ - | project_status | 88 | Atlas week 13: red | work, atlas
Feed refused by the host. Two options written for Birk: late and whole, or on time without alerts.
+ - | project_status | 95 | Atlas week 14: three weeks more | work, atlas
New date, stickers ordered, beta starts while Mara is away; Freja covers screens.
+ - | project_status | 109 | Atlas week 16: beta is out | work, atlas
Two hundred passengers, first map crash found, Tove chases quarter-past slowness.
+ - | project_status | 116 | Atlas week 17: feed is open | work, atlas
Disruptions arrive live; large text repaired in the departure list.
+ - | project_status | 123 | Atlas week 18: fix week | work, atlas
43 bugs, none with a rhyme. App size next.
+ - | project_status | 130 | Atlas week 19: words and store | work, atlas
Store texts in three languages, screenshots without the moose.
+ - | project_status | 137 | Atlas week 20: frozen | work, atlas
Freeze held against two good ideas and one from Viktor.
+ - | project_status | 144 | Atlas week 21: rehearsal | work, atlas
Rollback proven, rota printed, 12 bugs, none of them scary yet.
+ - | project_status | 151 | Atlas week 22: launched | work, atlas
Live since Tuesday. Senior fare found too far down; crash rate 0.4 % and falling.
+ - | project_status | 158 | Atlas week 23: quiet | work, atlas
Rating 4.3, fares sorted by use, on-call phone silent for three nights.
+ - | project_status | 165 | Atlas week 24: handing over | work, atlas
Support has the texts and the seven oddities; retrospective done, dark mode argued.
+ - | project_status | 172 | Atlas week 25: dark mode moves up | work, atlas
Crews won the argument: dark mode before municipal invoices.
@ /project/lantern
+ - | project_status | 10 | Lantern week 2: who to ask | work, lantern
Interview list stands, consent form too small, taxi idea approved.
+ - | project_status | 24 | Lantern week 4: recruiting | work, lantern
Six of fourteen found; two through a hairdresser in Lerum.
+ - | project_status | 38 | Lantern week 6: five interviews in | work, lantern
The drawer of bottles and the reading machine; no animation anywhere, decided on the spot.
+ - | project_status | 52 | Lantern week 8: staff speak | work, lantern
Four questions at reception explain nine tenths of the calls.
+ - | project_status | 59 | Lantern week 9: law and napkins | work, lantern
Shows and reminds, never advises. Concept redrawn around that line.
+ - | project_status | 66 | Lantern week 10: after the readout | work, lantern
Principles on the wall at the clinic too; budget question goes to the board.
+ - | project_status | 80 | Lantern week 12: design in large | work, lantern
All key screens at 20 px; nothing fits, everything is clearer.
+ - | project_status | 94 | Lantern week 14: 412 columns | work, lantern
Leila maps the old records; 300 columns are empty, 12 are poetry.
+ - | project_status | 108 | Lantern week 16: first clinic imported | work, lantern
Kungälv's copy is in; second first names return. Demonstration given by Freja.
+ - | project_status | 116 | Lantern week 17: mirrored by mistake | work, lantern
Arabic layout corrected, pictures of bodies never mirror, five languages on track.
+ - | project_status | 129 | Lantern week 19: reception wins | work, lantern
Dashboard dropped for a strip of four numbers.
+ - | project_status | 136 | Lantern week 20: ready to invite | work, lantern
Letters printed in 22 point; code tested by Ingrid with one hand.
+ - | project_status | 150 | Lantern week 22: 79 signed in | work, lantern
Letters beat e-mails four to one; two calls about passwords, both from staff.
+ - | project_status | 164 | Lantern week 24: extended | work, lantern
Six more weeks, two more clinics' records, Leila leaves for Atlas, Nils arrives.
@ /project/pebble
+ - | project_status | 18 | Pebble notes: tokens renamed by use | work, pebble
Half of Lantern moved to the new names in one afternoon; Atlas waits.
+ - | project_status | 60 | Pebble notes: twice before it enters | work, pebble
Rule for new components agreed; three proposals went home.
+ - | project_status | 88 | Pebble notes: usage log | work, pebble
Examples are copied, notes are not read, so notes move.
+ - | project_status | 144 | Pebble notes: dim mode measured | work, pebble
Numbers from the clinic's screen in the tokens; two colours fell out.
@ /project/old-site
+ - | project_status | 4 | Old site: what is there | work, old-site
212 pages, 58 posts, three template dialects, one login nobody knew.
+ - | project_status | 18 | Old site: export, second try | work, old-site
Captions rescued from the rendered pages; news before year four stays behind.
+ - | project_status | 32 | Old site: redirects counted | work, old-site
Forty worth keeping. The intern's mailbox held two orders.
+ - | project_status | 46 | Old site: four pages left | work, old-site
Legal pages and the phone number; name servers on Thursday.
+ - | project_status | 60 | Old site: closed | work, old-site
Nobody complained but one, about prices from before the crown fell.
"""
