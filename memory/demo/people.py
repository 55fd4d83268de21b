"""Who is who: Mara herself, her family and friends, the studio and its clients."""

from typing import Final

SELF: Final = """
@ /user/mara
+ mara | identity | 0 | Mara Lindqvist | core, family
Mara Lindqvist, 38, product designer in Gothenburg, married to Jonas, two children. Goes by Mara, never Maria.
= full_name string Mara Elisabet Lindqvist
= birthday date 1987-11-23
= phone string +46 70 174 06 31
~ 61 +46 76 174 88 02 | moved the family to one shared plan and lost the old number | fill the new one into forms
= email string mara@lindqvist.example
! the person this memory belongs to
+ mara-job | identity | 0 | Mara's job at Halden & Rye | core, work
Senior product designer at the studio Halden & Rye since the spring four years ago; leads design on Atlas.
= title string Senior product designer
~ 119 Design lead | promoted, announced at the Monday meeting | signature and conference bio must change
= employer string Halden & Rye -> studio
= weekly_hours int 36
~ 119 40 | part of the agreement for the new role | Friday afternoons are no longer free
= reports_to string Viktor Sund -> viktor
> about mara
! asked in almost every work conversation
+ mara-address | identity | 0 | Where Mara lives | core, home
The family's postal address. Used for deliveries, forms and the bicycle courier.
= street string Kastellgatan 11, third floor -> home
~ 68 Gullregnsvägen 4, Mölndal | moved house | redirect parcels, tell the school and the bank
= door_code string 4471
~ 68 none, ring twice | a house has no stairwell code | couriers ask for it anyway
~ 96 0912 on the key box | key box mounted for the cat sitter | share only with Nadia
= postcode string 413 07
~ 68 431 38 | moved house | forms
> about mara
! deliveries go wrong without it
+ mara-voice | preference | 1 | How Mara wants answers | core, writing
Short answers first, reasoning only if she asks. No exclamation marks, no "great question", British spelling.
= tone string plain, a little dry
! applies to every reply
> about mara
+ mara-languages | identity | 2 | Languages Mara speaks | core
Swedish at home, English at work, good Portuguese from two years in Porto, German only for reading.
= languages list ["Swedish", "English", "Portuguese", "German (reading)"]
> about mara
+ mara-family-shape | identity | 0 | The household | core, family
Four people and a cat: Mara, Jonas, Elsa (9), Ivo (5) and Tofu. Birgit stays over about once a month.
= people int 4
= pets list ["Tofu"]
> about mara
! needed for bookings and portions
+ mara-emergency | identity | 2 | Emergency contact | core, health
Jonas first; if he is in theatre and cannot answer, call Nadia, who lives ten minutes away and has keys.
= first string Jonas Ekwall -> jonas
= second string Nadia Haddad -> nadia
! safety
+ mara-timezone | identity | 1 | Working hours and time zone | core, calendar
Europe/Stockholm. At her desk 8.30 to 16.30, picks up the children on Mondays and Wednesdays at 16.00.
= pickup_days list ["Monday", "Wednesday"]
~ 119 ["Wednesday"] | Jonas takes Mondays since the promotion | meetings may run late on Mondays now
+ mara-payslip | identity | 9 | Salary and pay day | money
Paid on the 25th, or the Friday before. Studio pays into the joint account, not into her own.
= gross_monthly int 49500
~ 121 56200 | new contract as design lead | mortgage adviser wants the first payslip
+ mara-born | identity | 5 | Where Mara grew up | core
Born in Kalmar, moved to Gothenburg at nineteen for the design school. Parents ran a small frame shop.
+ mara-passport | identity | 12 | Passport | travel, papers
Her passport is in the blue folder in the study; renewal takes about two weeks.
= expires date {I236}
= renewal_booked bool false
~ 101 true | remembered at the airport on the way home | appointment at the police station in Mölndal
+ mara-licence | identity | 15 | Driving licence | travel, papers
Category B, wears contact lenses when driving (code 01 on the licence).

@ /user/jonas
+ jonas | person | 0 | Jonas Ekwall, husband | family, core
Nurse anaesthetist at the university hospital, works a rolling three-week rota. Cannot read messages while in theatre.
= role string nurse anaesthetist, theatre 4
~ 91 deputy head nurse, theatre 4 | took over while Agneta is on leave | fewer nights, more meetings
= phone string +46 70 903 55 12
> about mara-family-shape
+ jonas-nights | observation | 18 | After a run of nights | family, sleep
After three nights in a row Jonas sleeps until two; do not plan visitors or deliveries before that.
+ jonas-food | preference | 6 | What Jonas will not eat | food, family
No coriander, no blue cheese, and he thinks aubergine is a prank.
+ jonas-gift | observation | 47 | Gift idea for Jonas | gifts, family
He stopped for a long time at a hand-plane in the tool shop on Linnégatan and put it back because of the price.
= shop_price_sek int 1890
+ jonas-bike | observation | 33 | Jonas's commute | family, transport
Cycles to the hospital except on early shifts in frost; then he takes the car and Mara needs the tram.
+ jonas-choir | observation | 22 | Choir on Thursdays | family, calendar
Jonas sings bass in the hospital choir, Thursdays 18.30 to 20.30, concert twice a year.

@ /user/mara/family
+ elsa | person | 0 | Elsa, nine | family, core
Elder child, third grade, reads under the blanket, plays goalkeeper, worries before swimming lessons.
= birthday date {I75}
= class string 3B, teacher Annika Rosén
= shoe_size int 35
~ 34 36 | football boots pinched | buy one size up
~ 139 37 | measured in the shop | winter boots too
= swimming_level string cannot yet do 200 m
~ 66 200 m badge | passed on the second attempt | no longer needs the course
+ ivo | person | 0 | Ivo, five | family, core
Younger child, preschool group Tallkotten, collects lids, asks what happens to rain.
= preschool string Tallkotten, Kastellgatan
~ 77 Lönnen, Mölndal | moved house and changed preschool | new pick-up code and new spare clothes
= shoe_size int 28
~ 52 29 | sandals too short | indoor shoes as well
= bedtime string 19.15
~ 112 19.30 | daylight and the new room | dinner can be later
+ ivo-hazelnut | identity | 0 | Ivo is allergic to hazelnuts | health, allergy, core
Hazelnut allergy, confirmed at three. Hives within minutes; pen in the hall drawer and in the preschool bag.
= pen_expires date {I151}
~ 146 {I511} | new pens collected from the pharmacy | throw the old ones into the pharmacy box
= severity string moderate, hives and swelling
! allergy: check every recipe, restaurant and party
> about ivo
+ birgit | person | 1 | Birgit Lindqvist, mother | family, core
Mara's mother, 71, lives alone in Kalmar, prefers a call to a text, hip operation in {M44}.
= hip string waiting list, walking with a stick
~ 44 operated, ward 7 in Kalmar | operation done | visits from Thursday
~ 51 home with crutches | discharged | home help mornings
~ 79 walks without crutches indoors | physio check | may travel by train again
~ 126 back in the choir | called on Sunday | invite her for the autumn concert
= phone string +46 480 55 27 19
+ henrik | person | 3 | Henrik Lindqvist, brother | family
Younger brother, structural engineer in Leeds, partner Callum; calls on Sunday evenings when the children are asleep.
= city string Leeds
+ solveig | person | 8 | Solveig Ekwall, mother-in-law | family
Jonas's mother in Alingsås. Grows more courgettes than anyone can eat and expects jars to be returned.
+ tofu | observation | 2 | Tofu the cat | pets, home
Grey short-hair, eleven, afraid of the hoover and of nothing else.
= weight_kg float 4.9
~ 60 4.7 | vet check before the move | none
~ 130 4.3 | losing weight, kidney values slightly raised | renal food from now on
~ 158 4.4 | two weeks on the new food | keep going
= food string ordinary dry food, twice a day
~ 130 renal diet, wet, three small meals | vet | order the 12-packs, not the single trays
+ nadia | person | 1 | Nadia Haddad, best friend | friends, core
Friend since design school, ceramicist, climbs with Mara on Tuesdays, has spare keys and feeds Tofu.
= phone string +46 73 220 41 77
= studio string Stigbergstorget, ground floor
~ 105 Ringön, unit 12 | rent doubled | kiln weekend moves too
+ ruben | person | 27 | Ruben Aalto, neighbour | friends, home
Neighbour at Kastellgatan, retired tram driver, takes in parcels, knows every tram ever built.
+ priya | person | 13 | Priya Raman runs the book club | friends, books
Hosts the book club on the last Wednesday, vegetarian, allergic to cats, so never at our place.
+ gunilla | person | 74 | Gunilla next door | friends, home
New neighbour at Gullregnsvägen 6; knows where every pipe in the street runs and keeps bees.
+ elsa-friends | observation | 38 | Elsa's closest friends | family, children
Moa (two streets away, no shellfish) and Hedvig (goalkeeper for the other team, which is complicated).
+ ivo-friend | observation | 93 | Ivo's new friend Lo | family, children
Lo from Lönnen, mother is called Teresa; they want to build a trap for rain.
+ sitter | person | 17 | Alva, the babysitter | family, children
Student, babysits on Thursdays if choir and a late meeting collide; wants two days' notice.
= rate_sek_hour int 140
~ 128 160 | turned nineteen and asked politely | pay by phone transfer as before
+ dentist-family | person | 40 | Dr Lundh, family dentist | health
Calm with Ivo, terse with adults. Cancels for free until 24 hours before.
"""

COLLEAGUES: Final = """
@ /studio
+ studio | place | 0 | Halden & Rye, the studio | work, core
Design and software studio, 24 people, two floors above a bakery on Magasinsgatan. Fika at 14.45, not at 15.
= head_count int 24
~ 28 25 | Freja joined | one more desk by the window
~ 81 24 | Sam left | product role open
~ 133 25 | Ewa started | weekly meeting needs the big room
= address string Magasinsgatan 22
+ viktor | person | 0 | Viktor Sund, managing director | work, people
Founded the studio with Rye. Decides fast in the corridor and forgets; get it in writing the same day.
= email string viktor@haldenrye.example
+ oskar | person | 0 | Oskar Bergh, engineering lead on Atlas | work, people
Careful, hates surprises in stand-up, reviews within the hour if you say why it matters.
= role string engineering lead, Atlas
~ 161 head of engineering | Viktor announced it after the launch | Leila becomes the Atlas contact
> mentions studio
+ leila | person | 1 | Leila Farahani, backend | work, people
Built most of the Atlas timetable API; likes a drawing before a ticket. Lives in Borås, remote on Fridays.
= role string backend engineer, Atlas
~ 91 backend engineer, Lantern | Lantern needed someone for the record import | ask Tove about the timetable API now
~ 161 technical lead, Atlas | Oskar moved up | she is back
> mentions oskar
+ tove | person | 86 | Tove Nyqvist, backend | work, people
Took over the timetable API from Leila; asks for everything in writing and answers in diagrams.
= role string backend engineer, Atlas
+ sam | person | 0 | Sam Okafor, product manager | work, people
Product manager of Atlas, keeps the roadmap in a spreadsheet only Sam can read.
= role string product manager, Atlas
~ 70 product manager, on notice | accepted an offer in Copenhagen | handover list by the end of the month
~ 81 left the studio | last day, cinnamon buns | Ewa follows in seven weeks
+ ewa | person | 133 | Ewa Zielińska, product manager | work, people
Sam's successor. Came from a bike-share company; wants the reason in the first line.
= role string product manager, Atlas
> follows sam
+ dimitri | person | 2 | Dimitri Kolev, quality | work, people
Tests on the worst phone he can find, a five-year-old with a cracked corner. Usually right.
= role string quality engineer
+ yuki | person | 2 | Yuki Tanabe, researcher | work, people
Runs the interviews on Lantern. Never send participant names outside the research folder.
= role string researcher
= working_days list ["Monday", "Tuesday", "Thursday"]
~ 105 ["Monday", "Tuesday", "Wednesday", "Thursday"] | extended for the pilot | Wednesday sessions possible
+ freja | person | 28 | Freja Holm, junior designer | work, people
First job after school. Draws beautifully, hesitates to ask; check in at eleven.
= role string junior product designer
~ 140 product designer | probation ended early | owns the ticket wallet from now on
= mentor string Mara -> mara
+ ana | person | 3 | Ana Brandão, content designer | work, people
Writes every word in both apps, in Swedish, English and Portuguese. Two days' lead time, one if bribed with figs.
= role string content designer
+ rasmus | person | 1 | Rasmus Lind, front end | work, people
Maintains Pebble with Mara. Commits at night, so mornings bring new button variants.
= role string front-end engineer
+ halima | person | 18 | Halima Warsame, office and finance | work, people
Expense reports to her by the third of the month, receipts as photographs, no PDFs of photographs.
+ jorge | person | 31 | Jorge, the IT contractor | work, people
Comes on Tuesdays. Anything about accounts before ten, anything about printers never.

@ /project/atlas
+ birk | person | 4 | Birk Sandell, client at Skarven Ferries | work, people, client
Head of digital at Skarven. Friendly, decides with the captain's union in mind, on leave all of {M98}.
= role string head of digital, Skarven Ferries
= phone string +46 31 60 22 14
+ captain-ulla | person | 36 | Ulla Grahn, ferry captain | work, people, client
Invited Mara to the bridge; explained why "delayed" and "waiting for tide" are not the same word.
+ lone | person | 52 | Lone Fisker, Skarven customer desk | work, people, client
Knows the ten questions passengers really ask. Call after 13.00, mornings are rush.
@ /project/lantern
+ dr-klara | person | 4 | Dr Mehta, founder of the eye clinics | work, people, client
Klara Mehta, ophthalmologist, nine clinics; reads prototypes on her phone between patients; wants large type everywhere.
+ hugo | person | 4 | Hugo Palm, clinic operations | work, people, client
Day-to-day contact for Lantern. Honest about what reception will refuse to do.
+ ingrid-patient | person | 42 | Ingrid, patient council chair | work, people, client
Chairs the patient council, low vision herself, tests with a screen reader and a sense of humour.
@ /project/old-site
+ printer-mats | person | 11 | Mats at the old host | work, people
The only one at the hosting company who can still open the old control panel. Phone, not e-mail.
"""
