"""The studio's own matters: Pebble the design system, the retired website, and life at Halden & Rye."""

from typing import Final

PEBBLE: Final = """
@ /project/pebble
+ pebble | project_status | 2 | Pebble, the design system | work, pebble
Shared components of the studio, kept by Mara and Rasmus on alternate Fridays; used by Atlas and Lantern.
= version string 1.8
~ 32 1.9 | spacing scale | none
~ 67 2.0 | icons renamed | Atlas must pin
~ 116 2.1 | large-type mode from Lantern | Atlas profits at 200 %
~ 157 2.2 | dim mode | none
= components int 41
~ 32 44 | list, strip, notice | none
~ 67 39 | six retired | none
~ 116 42 | large-type variants | none
~ 157 45 | dim mode | none
> about rasmus
+ pebble-rename | gotcha | 67 | Pebble 2 renames every icon | work, pebble
`ic-boat` became `boat-16`; no alias. Atlas pinned to 1.9 until after launch.
> part_of pebble
+ pebble-tokens | decision | 11 | Tokens named by use, not by look | work, pebble
`text-quiet` instead of `grey-60`, so that Lantern's contrast can differ without a fork.
+ pebble-spacing | decision | 32 | Spacing in steps of four | work, pebble
4, 8, 12, 16, 24, 40. The 20 is gone; three screens sulk.
+ pebble-buttons | decision | 25 | One primary button per screen | work, pebble
The linter warns at two. Viktor's own page has three and an exemption until he notices.
+ pebble-focus | gotcha | 53 | Focus ring vanishes on blue | work, pebble
Two-tone ring: light inside, dark outside. Found by Ingrid in four seconds.
> about ingrid-patient
+ pebble-docs | finding | 81 | Nobody reads usage notes, everybody copies examples | work, pebble
Search log: 90 % leave from the example. So the notes moved into the example as comments.
+ pebble-large | decision | 116 | Large-type mode is a setting, not a theme | work, pebble
Any product can switch it on; spacing grows with it at half the rate.
> depends_on lantern-large-type
+ pebble-table | observation | 102 | The table component is really three | work, pebble
Reading, choosing, editing. Splitting it waits until someone has a free Friday.
+ pebble-contrib | active_decision | 60 | How to propose a component | work, pebble
Show it twice in two products first. Once is a one-off, twice is a pattern, three times is late.
+ pebble-figma | gotcha | 88 | Library must be published before six | work, pebble
The nightly export takes what is published; forgotten on a Thursday means old icons until Monday.
+ pebble-dim | decision | 154 | Dim mode measured, not guessed | work, pebble
Below 5 cd/m2 on the clinic's own screen; Rasmus borrowed the meter from a cinema.
> depends_on lantern-darkroom
+ pebble-friday | preference | 10 | Pebble Fridays | work, pebble
Every other Friday, from nine to one, phones in the drawer.
= next date {I18}
~ 32 {I46} | kept | none
~ 60 {I74} | kept | none
~ 116 {I130} | kept | none
~ 144 {I172} | two skipped for launch | none
+ pebble-radius | observation | 122 | Argument about corner radius | work, pebble
Rasmus 6, Mara 4, Freja drew both and nobody could tell them apart. It is 6.

@ /project/old-site
+ old-site | project_status | 0 | Old studio website | work, old-site
The studio's website from nine years ago, to be retired once the new one carries the case studies.
= status string frozen
~ 14 export running | none | none
~ 37 redirects in review | none | none
~ 53 read-only | new site live | none
~ 57 shut down | host contract ended | keep the export one year
= pages_left int 212
~ 14 180 | news before year four dropped | none
~ 23 96 | duplicates | none
~ 37 31 | case studies rewritten | none
~ 50 4 | legal pages | none
~ 57 0 | done | none
+ old-cms-login | gotcha | 3 | Old control panel needs an old browser | work, old-site
Works only in the browser on the meeting-room machine, which is therefore not updated until {M57}.
> part_of old-site
+ old-export | finding | 11 | Export loses captions | work, old-site
The built-in export leaves out image captions; Rasmus reads them from the pages instead.
+ old-redirects | decision | 29 | Redirects for the 40 pages that matter | work, old-site
Forty addresses have visitors, the rest get a friendly page. List agreed with Halima, who knows what clients bookmark.
+ old-form | gotcha | 18 | The contact form still writes to someone | work, old-site
It mailed to an intern who left six years ago; 214 messages, two of them orders.
+ old-news | decision | 16 | News older than five years is dropped | work, old-site
Nobody has read them, says the log; two were kept for sentimental reasons by Viktor.
+ old-images | observation | 22 | Where the original photographs are | work, old-site
On the grey drive in the archive cupboard, folder named "nya nya sista".
+ old-dns | gotcha | 45 | Name server change takes a day and a half | work, old-site
The registrar says four hours. Measured 36. Plan for a Thursday evening.
> about printer-mats
+ old-analytics | finding | 9 | Who still visits the old site | work, old-site
Half are job seekers, a third robots, the rest look for the phone number.
+ old-phone | decision | 31 | The phone number goes on every page | work, old-site
Since a third of people come for it. Bottom left, selectable text.
> depends_on old-analytics
+ old-fonts | observation | 4 | Font licence of the old site | work, old-site
Web licence ends together with the host; do not carry the files over.
+ old-blog | decision | 32 | Three blog posts are rewritten | work, old-site, writing
The one on queues, the one on maps, and the apology. The other 58 rest.
+ old-shutdown | event | 57 | The old site is shut down | work, old-site
Switched off at 15.00 with cake. Export on the grey drive and one copy with Halima, to be kept a year.
> part_of old-site
+ old-complaint | event | 64 | A client missed the old price list | work, old-site
Sent the PDF by hand; decided not to put it back, it was from before the crown fell.
+ old-mailbox | decision | 50 | The info@ address stays | work, old-site
Forwarded to Halima, with a note that it is not read at night.
+ old-templates | observation | 17 | Templates in three dialects | work, old-site
Header in one template language, footer in another, the news in a third; nobody alive wrote all three.
+ old-badge | observation | 24 | Award badges expire too | work, old-site
Two of the five badges in the footer belong to competitions that no longer exist.
+ old-search | finding | 25 | What people searched for | work, old-site
"address", "jobs", "viktor", "logo pdf". The new site answers three of them on the first page.
+ old-cookies | decision | 39 | No cookie banner, because no cookies | work, old-site
The last one was set by a weather widget from nine years ago.
"""

STUDIO: Final = """
@ /studio
+ studio-standup | observation | 1 | Stand-ups | work, calendar
Atlas 9.15 daily, Lantern 9.40 on Tuesdays and Thursdays, in the corner with the dying ficus.
= atlas string 9.15
~ 133 9.00 | Ewa's preference | Jonas takes the school run then
+ studio-promotion | event | 119 | Mara becomes design lead | work, people
Announced on Monday; she keeps Atlas, gives the wallet to Freja, and gets the budget meeting nobody wanted.
> about mara-job
+ studio-lead-duties | active_decision | 120 | What the new role means | work
One-to-ones every other week with four designers, hiring with Viktor, half a day for craft that nobody may book.
= craft_time string Thursday morning
~ 142 Friday morning | Lantern sessions moved to Thursday | none
> depends_on studio-promotion
+ studio-one-freja | observation | 122 | One-to-one with Freja | work, people, private
Wants more contact with clients, less feedback in public. Agreed: comments on paper first.
> about freja
+ studio-one-ana | observation | 129 | One-to-one with Ana | work, people, private
Two products are too much in launch weeks; asks for help with Portuguese or a quieter {M150}.
> about ana
+ studio-hire | active_decision | 134 | Hiring a second content designer | work, people
Advert out on {D140}, task paid, no portfolios of logos. Ana chooses, Mara signs.
= applicants int 0
~ 147 23 | first week | none
~ 154 41 | second week | none
~ 161 52 | closed | six invited
= stage string writing the advert
~ 140 advert out | none | none
~ 161 reading | closed on time | none
~ 170 interviews | six invited | two per day at most
+ studio-salary-talk | preference | 116 | Before the salary talk | work, money, private
Ask for the title, then the hours, then the money, in this order. Viktor fills silence.
+ studio-room-names | observation | 18 | Meeting rooms | work
Named after lightships: Fladen (8 seats), Vinga (4), Trubaduren (2 and a draught).
+ studio-guests | observation | 39 | Visitors at the studio | work
Lift stops between floors when four people jump. Ask guests to take the stairs "for the view".
+ studio-fika | observation | 4 | Fika rota | work, food
Our Friday is every fifth; no hazelnuts is printed on the list because of Ivo's visits.
= next date {I32}
~ 32 {I67} | buns | none
~ 67 {I116} | moved because of the holiday | none
~ 116 {I151} | plum tart | none
+ studio-dock | event | 37 | The second dock was stolen | work, devices
Gone over a weekend together with the good scissors. Police report by Halima.
+ studio-licence | observation | 46 | Design tool seats | work, money
Twenty seats, two unused; Sam's goes to Ewa.
= seats int 20
~ 137 22 | hiring | none
+ studio-offsite | event | 87 | Studio day on Styrsö | work
Rowing, a quiz about kerning, rain from two o'clock; Viktor lost his phone to the sea.
+ studio-viktor-phone | observation | 88 | Viktor's number for now | work, people
Uses his daughter's old phone until the insurance pays; does not get group messages.
= number string +46 70 551 20 98
~ 101 +46 70 330 14 14 | insurance paid | none
+ studio-award | event | 171 | Atlas shortlisted for a prize | work, atlas
Regional service design prize; dinner on {D196}, two seats. Mara takes Freja.
> about freja
+ studio-lunch-deal | observation | 42 | Lunch stamps | work, food
Tenth lunch free at the Korean place on Kyrkogatan; card lives in the drawer with the batteries.
+ studio-parking | observation | 66 | Bicycle room code | work
Changes on the first; asked from Halima by message.
= code string 7720
~ 84 1946 | new month | none
~ 115 3381 | new month | none
~ 144 9054 | new month | none
+ studio-plant | observation | 71 | The ficus | work
Declared dead by Tove, watered by Dimitri, new leaf in {M141}.
+ studio-policy-ai | decision | 95 | What may be given to assistants | work, privacy
No client names in public tools, no patient data anywhere, own notes are fine. One page, signed by all.
+ studio-talk | event | 143 | Talk at the wayfinding evening | work
Fifteen minutes on "waiting for tide". Slides without bullet points, applause with questions.
= audience int 85
+ studio-mentor | observation | 60 | Mentoring at the design school | work
Two students on the last Thursday of the month; brings the broken prototypes, not the polished ones.
+ studio-timesheet | preference | 11 | Time sheet on Friday at three | work
Remind her at 14.50 with the hours guessed from the calendar, so that she only corrects.
= remind_at string 14.50
"""
