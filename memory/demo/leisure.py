"""Trips, places, books and hobbies."""

from typing import Final

TRAVEL: Final = """
@ /user/mara/travel
+ trip-azores | active_decision | 34 | Two weeks on São Miguel | travel, holiday
Holiday from {D98} to {D111}: flat in Ponta Delgada the first week, farmhouse near Furnas the second.
= nights int 13
= flat string Rua do Melo 40
> mentions mara-family-shape
+ azores-flights | event | 35 | Flights to the Azores booked | travel, holiday
Via Lisbon both ways, four seats, nut-free request filed, one bag each and the pen in hand luggage.
= reference string QX7LMB
= departs datetime {I98}T07:20:00+02:00
= total_sek int 21870
~ 71 22950 | added one bag for the pushchair that was then left at home | none
> mentions ivo-hazelnut
+ azores-car | decision | 60 | Car on the island | travel, holiday
Small estate from the local firm, booster for Ivo, deductible insured separately for 190.
= price_sek int 6200
+ azores-furnas | finding | 106 | Furnas in the morning | travel, holiday
Hot springs are empty before nine and full after ten. Swimsuits come out orange; take the old ones.
+ azores-whales | event | 104 | Whale trip | travel, holiday
Three sperm whales and a queasy Elsa. Ginger biscuits helped, the tablets came too late.
+ azores-restaurant | place | 103 | Restaurant by the harbour, Ponta Delgada | travel, food
Casa do Cabo, lunch only, grilled fish, no reservations. Owner wrote "avelã" on the kitchen window for Ivo.
> mentions ivo-hazelnut
+ azores-doctor | event | 109 | Ear infection on holiday | travel, health
Clinic in Ponta Delgada: ear drops, no antibiotic; mentioned penicillin anyway. Invoice goes to the travel insurance.
= paid_eur float 64.5
> mentions mara-penicillin
+ azores-claim | project_status | 113 | Travel insurance claim | travel, money
Claim for the clinic on São Miguel.
= status string receipts sent
~ 127 asked for the doctor's note in English | letter | Inês translated it
~ 143 paid, 412 SEK | done | close
> follows azores-doctor
+ azores-packing | observation | 94 | Packing list that worked | travel
Rain jackets on top, four pairs of socks each, no books for the children, cards instead.
+ trip-kalmar | event | 48 | Weekend in Kalmar with Birgit | travel, family
Visited the ward, Jonas stayed with the children; 4 h 20 by train with one change that held.
> about birgit
+ trip-kalmar-2 | event | 139 | Birgit's birthday in Kalmar | travel, family
All four by train, hotel by the castle because the sofa is for one. Birgit danced, carefully.
> about birgit
+ trip-leeds | event | 168 | Henrik's housewarming in Leeds | travel, family
Mara alone, three days, hand luggage. Callum's garden, two galleries, rain as promised.
> about henrik
+ leeds-flight | event | 131 | Flight to Manchester | travel
Direct, Friday 11.05, back on Sunday 19.40; train to Leeds from platform 13.
= reference string TR40PD
= departs datetime {I165}T11:05:00+02:00
+ trip-cph | event | 80 | Day trip to Copenhagen for the fair | travel, work
Design fair with Freja; early train, back at ten. Best thing: a stand about wayfinding on islands.
+ train-rule | preference | 12 | Train before plane under six hours | travel
Takes the train if it is under six hours door to door, even if dearer, unless a child has fever.
= limit_hours float 6.0
+ hotel-rule | preference | 15 | Hotel rooms | travel
High floor, away from the lift, kettle. With children: ground floor and a door to the garden.
+ travel-insurance | observation | 59 | Travel insurance is in the home policy | travel, money
45 days included for the whole family; cancellation needs a doctor's note from before departure.
+ lounge-card | observation | 82 | Lounge vouchers | travel
Two left from the studio's card, valid until {D200}, children count.
= left int 2
~ 98 0 | used on the way to Lisbon | none
+ ferry-styrso | place | 88 | Favourite short trip | travel, places
Boat to Styrsö, walk to the south point, buns at the café with the blue door. Last boat 21.10.
+ bus-pass | observation | 76 | Period ticket zone change | travel, money
From Mölndal the 30-day ticket covers zones A and B; the app hides it under "more".
= price_sek int 935
~ 150 965 | price rise | none
+ airport-bus | gotcha | 97 | Airport bus from Korsvägen | travel
The stop moved behind the museum while the tunnel is built. Allow ten more minutes.
+ cabin-idea | observation | 156 | A cabin for the spring break | travel, family
Solveig's cousin has one by a lake near Mellerud; no power, good stove, asks for wood instead of money.
+ lisbon-layover | finding | 111 | Four hours in Lisbon with children | travel
Oceanarium is one metro change away and bags can be left; better than the play corner.
+ train-food | observation | 47 | Food on the Kalmar train | travel, food
No bistro after Alvesta. Bring soup.
+ ski-no | decision | 160 | No skiing this year | travel, money
Roof fund first. Sledges and the hill behind the school instead.
> about roof-fund

@ /user/mara/hobby
+ climbing-tuesday | preference | 3 | Climbing with Nadia | hobby, friends
Tuesdays 18.00 at the wall in Mölndal; Nadia leads, Mara swears.
= grade string 5c
~ 44 6a | finished the yellow one | none
~ 165 6a+ | on the third evening back | none
> about nadia
+ pottery | event | 62 | Kiln weekend at Nadia's | hobby, friends
Twelve cups, four survived, one is good. Glaze "Tång" runs unless it is thin.
+ pottery-glaze | finding | 109 | Glaze test tiles | hobby
Tång over Lava gives rust; Lava over Tång gives regret.
+ garden-currants | observation | 134 | Three currant bushes | hobby, garden
Planted along the shed, one black, two red; water for the first two weeks, bees will do the rest.
+ knitting | observation | 56 | The grey sweater | hobby
On the second sleeve since the spring before last. Needles 4.0, pattern in the green folder.
= rows_done int 12
~ 100 58 | aeroplanes | none
~ 166 71 | aeroplanes again | none
+ sketch-daily | active_decision | 36 | A sketch a day | hobby
One small drawing a day in the brown book, skipped days are skipped, no catching up.
= days_drawn int 1
~ 64 22 | held | none
~ 97 41 | held | none
~ 112 56 | every day on the island | none
~ 155 70 | launch ate three weeks | none
+ linocut | observation | 124 | Linocut for the holiday cards | hobby
Whale with four small hats, two colours; paper from the shop in Majorna.
+ football-parent | observation | 30 | Elsa's matches | family, children
Saturday mornings, somebody brings oranges: our turn is every sixth week.
= next_turn date {I47}
~ 47 {I89} | did it | none
~ 89 {I131} | did it | none
~ 131 {I173} | did it | none
+ choir-concert | event | 159 | Hospital choir concert | family, evenings
Jonas sings four bars alone; Ivo clapped in the rest.
+ swimming-course | event | 66 | Elsa swims 200 metres | family, children
Second attempt, cried at 150, smiled at 200. Badge sewn on the towel.
"""

BOOKS: Final = """
@ /user/mara/hobby
+ book-harbour | observation | 8 | Reading: "The Salt Ledger" | books
Novel about a customs clerk who counts things that are not there. Good on paperwork, long on fog.
= page int 40
~ 15 122 | evenings | none
~ 27 260 | train | none
~ 33 341 | finished | lend to Nadia
+ book-tide | observation | 35 | Reading: "Forty Names for Tide" | books, work
Essays on coastal speech. Underlined the chapter about waiting; useful for the ferry wording.
= page int 18
~ 45 96 | Kalmar train | none
~ 59 171 | finished | quote page 92 to Ana
+ book-small-rooms | observation | 36 | Book club: "Small Rooms, Long Winters" | books, friends
Family chronicle in one flat. The club split on whether the aunt lies.
+ book-hinge | observation | 63 | Book club: "Hinge" | books, friends
Short, angry, about a carpenter's apprentice. Mara was the only one who liked the ending.
+ book-queue | observation | 90 | Reading: "A Theory of Queues for Anxious People" | books, work
Funny and exact; the part on estimates belongs in every ferry app.
= page int 55
~ 103 140 | São Miguel | none
~ 108 212 | finished | buy a copy for Ewa
+ book-volcano | observation | 99 | Reading on the island: "Ash Wednesday Street" | books
Thriller left in the flat by someone; ending torn out. Elsa wrote a new one.
+ book-lamp | observation | 121 | Book club: "The Lamp Mender" | books, friends
Read in two evenings; Priya cried and blamed the dal.
+ book-manage | observation | 123 | Reading: "The First Hundred Meetings" | books, work
On leading designers. Half obvious, one good chapter: decide who decides.
= page int 30
~ 132 88 | tram | none
~ 170 150 | slowly | none
+ book-elsa | preference | 55 | Books Elsa will read | books, children
Anything with maps on the first page; series about the lighthouse twins, volume six is missing at the library.
= next_volume int 6
~ 104 7 | volume six bought second-hand | none
~ 152 8 | finished in two nights | none
+ book-ivo | preference | 57 | Bedtime book for Ivo | books, children
The one about the excavator that is afraid of holes, every night, with voices.
+ book-list | active_decision | 70 | To read next | books
A short list; when one comes in, one goes out.
= list list ["A Theory of Queues for Anxious People", "Northern Signage", "The Lamp Mender"]
~ 109 ["Northern Signage", "The Lamp Mender", "Wet Plaster"] | finished Queues | none
~ 123 ["Northern Signage", "Wet Plaster", "The First Hundred Meetings"] | book club | none
~ 168 ["Wet Plaster", "Otter Year"] | gave up Northern Signage | none
+ library-card | observation | 86 | Library in Mölndal | books, places
New card, same PIN; reserved books wait seven days on shelf M.
+ book-returned | event | 117 | Lost library book found | books, children
Under Ivo's bed, inside the excavator. No fee if returned by {D120}.
+ podcast | preference | 48 | Podcast for the bicycle | evenings
"Lotsen", about pilots of harbours and other people who help others arrive.
+ exhibition | event | 152 | Exhibition of ticket machines | hobby, work
At the tram museum with Ruben, who corrected two labels and was thanked.
> about ruben
"""
