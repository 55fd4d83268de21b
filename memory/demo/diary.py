"""Events and observations of ordinary days: meetings with an outcome, visits, small discoveries."""

from typing import Final

WORKDAYS: Final = """
@ /project/atlas
+ - | event | 1 | Atlas kick-off at Skarven | work, meeting
Birk wants the night boats first; agreed that the old app stays in the stores for three months.
+ - | event | 9 | Workshop on ticket types | work, meeting
Counted 31 ticket types, eleven of them sold fewer than five times last year. Nobody dared to drop any.
+ - | event | 16 | Atlas review with Birk | work, meeting
Likes the three tabs; asked whether the funnel could be more "Skarven".
> about atlas-nav
+ - | event | 23 | Day on the Vrångö boat | work, research
Rode four crossings with a notebook: people check the time when the gangway goes up, not before.
+ - | event | 36 | On the bridge with Ulla | work, research
An hour on the bridge. The word "delay" is for engines, tide is tide.
> about captain-ulla
+ - | event | 46 | Price display tested at the pier | work, research
Nine people in wind force six, one clipboard lost, the price goes first.
> mentions atlas-price-display
+ - | event | 52 | Afternoon at the customer desk | work, research
Listened to 22 calls with Lone; eight were about bicycles, none about the app.
> about lone
+ - | event | 58 | Payment provider call | work, meeting
They take 1.1 %, answer within a day, and cannot say "refund" without a lawyer.
+ - | event | 65 | Atlas steering group | work, meeting
Budget accepted; the harbour signs ordered before the date was safe, against Mara's advice.
+ - | event | 72 | Sam tells the team | work, people
Sam announced that he leaves at the end of the month. Oskar went for a long coffee.
> about sam
+ - | event | 79 | Handover with Sam, first half | work, meeting
Walked through the spreadsheet; orange means "maybe", except in column K.
> about sam
+ - | event | 86 | Bad call with the hosting company | work, risk
Three weeks of review, no exception, no name of a person to ask.
> about atlas-feed-refused
+ - | event | 92 | Birk on the phone for an hour | work, meeting
Prefers late and right; will explain it to the board himself before his leave.
+ - | event | 115 | Large-text afternoon with two pensioners | work, research
At twice the size the departure list fell apart, and both of them fixed it in words.
+ - | event | 120 | Beta feedback round | work, meeting
Forty comments sorted on the floor: maps 14, tickets 9, thanks 8, the moose 3, other 6.
> about atlas-beta
+ - | event | 127 | The launch that was not today | work, atlas
Would have been launch day. Cake anyway, half of it.
> about atlas-launch-moved
+ - | event | 135 | Ewa's round of questions | work, people
She asked each of us what we would cut. Six of seven said loyalty.
> about ewa
+ - | event | 141 | Rehearsal of the launch | work, meeting
Two hours on a Tuesday at six; rollback worked on the second try, checklist now has 19 lines.
> depends_on atlas-deadline
+ - | event | 144 | Press photograph on the quay | work, meeting
Wind from the left, logo on the right, Viktor without a coat.
+ - | event | 149 | Morning after the launch | work, meeting
75 calls at the desk, one apology, no outage. Oskar slept.
> follows atlas-launch
+ - | event | 156 | Launch party in the loft | work
Crew, clients and children; Lone gave a speech about wind.
+ - | event | 169 | First talk about municipal invoices | work, meeting
Three municipalities, three formats, one of them is a fax number.
> about atlas-after
@ /project/lantern
+ - | event | 8 | Lantern kick-off with the clinics | work, meeting
Dr Mehta came between two patients and stayed for forty minutes.
+ - | event | 15 | Morning at the Kungälv clinic | work, research
Sat in the waiting room from eight: eleven people asked the same two questions at the desk.
+ - | event | 31 | Lantern legal meeting | work, meeting
Lawyer drew a line on a napkin: showing left, advising right. Napkin is in the folder.
+ - | event | 39 | Interviews in Kungälv | work, research
Four in one day is one too many; Yuki fell asleep on the bus.
+ - | event | 59 | Walk through the concept with Hugo | work, meeting
Hugo crossed out the chat. "Who answers it on Thursday?"
> about hugo
+ - | event | 73 | Ingrid tests the prototype | work, research
Found the invisible focus ring, liked the strip of dates, asked for fewer polite words.
> about ingrid-patient
+ - | event | 81 | Lantern budget meeting | work, money
Build budget released, in two halves, second half after the import.
+ - | event | 91 | Leila joins Lantern | work, people
First question: "How many columns has the old system?" 412.
> about leila
+ - | event | 115 | Arabic reading session | work, research
Two readers from Angered; the mirrored eye was found in the first minute.
> mentions lantern-arabic
+ - | event | 128 | Shadowing reception in Lerum | work, research
They answer the phone with the left hand and stamp with the right. There is no third.
> about lantern-reception
+ - | event | 137 | Import signed off | work, meeting
Hugo signed; the last duplicate was himself.
> about lantern-import-state
+ - | event | 142 | First Wednesday session of the pilot | work, research
Five patients, five signed in, one called to say thank you and then asked for her bus.
+ - | event | 157 | Pilot check with Dr Mehta | work, meeting
Wants the dry-eye season in. Mara wants fewer clinics, more weeks; got both.
+ - | event | 170 | Nils meets the Blom family | work, people
Handover of the import with invented patients; Sten's list did not fit on the screen.
> about lantern-fake-family
@ /studio
+ - | event | 11 | Quarterly meeting of the studio | work, meeting
Two good months, one thin; Viktor showed a chart without numbers and was asked about it.
+ - | event | 28 | Freja's first day | work, people
Tour, laptop without charger, lunch with everybody, one good question before four.
> about freja
+ - | event | 50 | First-aid course | work, safety
Halima organised it; Jonas came as the example patient and corrected the instructor once.
+ - | event | 102 | Studio heard from afar | work
Freja wrote once during the holiday, to say that nothing needed an answer.
+ - | event | 126 | First budget meeting as lead | work, money
Understood two thirds; asked Halima afterwards for the rest, with cake.
> about studio-lead-duties
+ - | event | 136 | Portfolio evening at the school | work
Saw nine portfolios; wrote to two people. One of them draws timetables for fun.
+ - | event | 163 | Viktor announces Oskar's role | work, people
Head of engineering; he reddened, then asked who takes Atlas. Leila.
> about oskar
+ - | event | 168 | Interview with the first candidate | work, people
Good ear, slow start; rewrote our error text in five words.
> about studio-hire
+ - | observation | 20-60 | Fladen's screen needs ten minutes | work, devices
The big meeting room's display sleeps so deeply that calls start late; Jorge knows, on Tuesdays.
+ - | observation | 30-80 | Where the good pens go | work
They travel from floor one to floor two and never back.
+ - | observation | 60-120 | Quietest hour at the studio | work
Between 7.40 and 8.40, before the bakery's delivery van and after Rasmus has gone to bed.
+ - | observation | 100-160 | Clients read the first two lines | work, writing
In eleven of twelve replies clients answered only the first paragraph. Decisions go there.
+ - | observation | 5-40 | Dimitri writes reports in verse on Fridays | work
Severity one never rhymes.
+ - | observation | 40-110 | Tove's diagrams need a legend | work
Dashed means "someday" and dotted means "never", or the reverse. Ask.
> mentions studio
@ /project/pebble
+ - | event | 32 | Pebble Friday: the list | work, pebble
Built one list that serves four screens; deleted three.
> about pebble-friday
+ - | event | 46 | Pebble Friday: empty states | work, pebble
Wrote twelve empty states with Ana; the best one says "Nothing today. Good."
> about pebble-friday
+ - | event | 74 | Pebble Friday: icons again | work, pebble
Agreed to never rename icons again, in writing, with cake as deposit.
> about pebble-rename
+ - | event | 130 | Pebble Friday: dim colours | work, pebble
Sat in the cellar with a laptop at one candle, literally.
> about pebble-friday
"""

HOMEDAYS: Final = """
@ /user/mara/family
+ - | event | 10 | Parents' evening, 3B | children, school
Reading good, spelling inventive, homework only on Mondays and Wednesdays.
+ - | event | 19 | Ivo's gymnastics trial | children
Hung upside down for an hour; wants to go, needs shorts without pockets.
+ - | event | 26 | Swimming lesson went badly | children
Elsa turned round at the fifty-metre mark and would not say why.
> about elsa
+ - | event | 33 | Henrik visits for the weekend | family
Brought cheese and a plan for shelves; one of the two was used.
> about henrik
+ - | event | 44 | Birgit's operation went well | family, health
Surgeon rang at 13.20: two hours, no surprises, on her feet tomorrow.
> about birgit
+ - | event | 61 | Tooth fairy, first time for Ivo | children
Lower left. He asked for a receipt.
+ - | event | 77 | First day at the new school for Elsa | children, school
Came home with two names and a bruise, both good.
> about elsa
+ - | event | 77 | First day at Lönnen | children
Ivo held the door frame for four minutes, then somebody mentioned drains.
> about ivo
+ - | event | 89 | Oranges for the match | children
Our turn; Elsa saved a penalty from Hedvig and apologised.
> mentions elsa-friends
+ - | event | 116 | Parents' evening at the new school | children, school
Class of 22, teacher Mattias Ohlin, gym bag on Tuesdays, library on Fridays.
+ - | event | 129 | Ivo measured and weighed at preschool | children, health
111 cm, refuses to be 111, says 112.
+ - | event | 145 | Elsa stays with Moa for the launch | family, children
Two nights, bag packed by herself, no vegetables in evidence.
+ - | event | 161 | Lantern walk at Lönnen | children
Paper lanterns made of milk cartons; Ivo's had a drain.
+ - | event | 173 | Solveig's seventieth | family
Lunch in Alingsås, eleven courgette dishes, Jonas's speech under two minutes.
> about solveig
+ - | observation | 8-50 | Ivo eats better when he serves himself | children, food
With the small ladle he takes twice as much as we would have given him.
+ - | observation | 25-90 | Elsa reads timetables | children
Knows the tram lines by last stop; quiz her on long queues.
+ - | observation | 80-120 | The children fall asleep earlier in Mölndal | children, sleep
About twenty minutes earlier than at Kastellgatan; Jonas blames the air, Mara the hill.
+ - | observation | 114-170 | Ivo's vocabulary since the island | children
Says "obrigado" to the bus driver and "caldeira" to soup.
+ - | observation | 120-172 | Elsa's pocket money | children, money
Forty kronor a week, half saved for a keeper's jersey, no advance on Thursdays.
@ /home
+ - | event | 3 | Meeting of the flat owners | home
The cellar gets new storage cages, ours becomes number 14; nobody wants the old sledge.
+ - | event | 24 | Plumber for the kitchen tap | home, repairs
Cartridge replaced in twenty minutes, 1,140 with travel; keep the old handle.
+ - | event | 68 | Moving day | home, move
Done by four. One mirror, one finger, no plants lost; pizza on box 12.
> about movers
+ - | event | 70 | First night without curtains | home
Everyone awake at five. Curtains moved to the top of the list.
+ - | event | 83 | Evening with Gunilla | home, friends
She drew the street's pipes on a napkin and left a jar of honey.
> about gunilla
+ - | event | 90 | House-warming, small version | home, friends
Fourteen people, three chairs; Ruben brought a tram bell for the porch.
+ - | event | 105 | Nadia fed Tofu and the beans | home, pets
Message: cat fine, beans taller than Ivo, one parcel at Gunilla's.
> about nadia
+ - | event | 113 | Gutter patched | home, repairs
Jonas on the shared ladder, Mara holding it, Gunilla commenting.
> about cellar-damp
+ - | event | 122 | Bank meeting with Adnan | money, home
Lower margin after the payslip, in force from next month. He has a whale poster too.
> about mortgage
+ - | event | 130 | Vet visit with Tofu | pets
Blood test, kidney values slightly up, special food; she bit nobody.
> about tofu
+ - | event | 151 | Pharmacy: new adrenaline pens | health, children
Two pens collected, old ones handed in; one to Lönnen, one to the hall drawer.
> about ivo-hazelnut
+ - | observation | 71-90 | Sun reaches the kitchen at 8.10 | home
And leaves at 11; breakfast on that side, tomatoes on the other.
+ - | observation | 73-100 | The third stair creaks | home
Left edge is silent. Ivo found out first.
+ - | observation | 91-130 | Trains can be heard in east wind | home
Only then, and only the freight one at 23.20.
+ - | observation | 100-150 | Parcel box fills up on Mondays | home
Courier leaves a slip if more than two parcels wait; pick-up at the petrol station.
+ - | observation | 20-60 | Best tram to town before eight | transport
Line 11 at 7.32 has room for a pushchair, the 7.38 never.
+ - | observation | 80-130 | Where to cross the E6 by bike | transport
Under the bridge by the paper mill, not the tunnel: the tunnel floods.
+ - | observation | 95-165 | Hedge belongs to both sides | home, garden
Gunilla cuts hers in the even years; we cut ours when she looks at it.
@ /user/mara/hobby
+ - | event | 15 | Elbow scraped at the wall | hobby
Slipped off the blue route; Nadia counted the seconds until the first swear word: two.
> about climbing-tuesday
+ - | event | 37 | Book club on the aunt | books, friends
Four say she lies, three say everybody does. Priya's dessert was cardamom.
> about book-small-rooms
+ - | event | 107 | A swim in the crater lake's outlet | travel
Cold, green, alone for ten minutes. Best of the trip.
+ - | event | 132 | Figs for Ana | work, food
Found at the square; bought a day of lead time.
> about ana
+ - | event | 153 | Kiln opened at Ringön | hobby, friends
Seven of nine plates good; the launch mugs say 06.04 underneath.
> about nadia
+ - | observation | 10-80 | Pencil leads by hardness | hobby
2B for thinking, H for tracing, nothing in between.
+ - | observation | 60-140 | Where she draws best | hobby
On boats, facing backwards.
@ /user/mara/travel
+ - | event | 98 | Travel day to Ponta Delgada | travel
Left at 5.10, landed at 17.35 local; Elsa slept, Ivo narrated.
> part_of trip-azores
+ - | event | 105 | Moved to the farmhouse near Furnas | travel
Stove, cows, one bar of reception by the hydrangeas.
> part_of trip-azores
+ - | event | 112 | Home from the island | travel
Bags at 23.40, one wet. Passport found to expire soon.
> part_of trip-azores
+ - | place | 100 | Tea plantation on the north coast | travel, places
Free to walk, tea for one euro, machines that look like printing presses.
+ - | place | 102 | Beach for children, Água d'Alto | travel, places
Lifeguard, showers, shade until noon; black sand gets hot at one.
+ - | place | 139 | Hotel by the castle in Kalmar | travel, places
Family room 14, breakfast from six, lets you keep bags until the evening train.
+ - | place | 168 | Bookshop in the arcade, Leeds | travel, places
Second floor: signage, shipping, unsorted. Allow two hours.
> part_of trip-leeds
@ /user/mara/money
+ - | event | 21 | Tax form sent | money, tax
Filed on paper because of the flat; copy in the blue folder.
+ - | event | 95 | Electricity bill explained | money, home
Heating curve from 6 to 4: 270 kWh less in a month.
> about house-boiler
+ - | event | 150 | Car service and new wipers | money, transport
2,980, brakes good for another 20,000 km; next service by the mileage on the sticker.
+ - | observation | 30-100 | Cheapest day for groceries | money, food
Wednesday evenings: the counter halves the fish after six.
+ - | observation | 60-160 | Two insurers insure the same bicycle | money
Cancelled the one in the club membership; refund 212.
"""
