"""The home: the flat, the move, the house, its devices, its bills and what was bought for it."""

from typing import Final

HOME: Final = """
@ /home
+ home | place | 0 | The household's home | home, core
Where everything under this scope belongs.
= where string third-floor flat, Kastellgatan
~ 68 house in Mölndal, Gullregnsvägen | moved | what is noted about the flat no longer holds
+ bin-days | observation | 70 | Bin collection | home
Green and black on alternate Thursdays before seven; Gunilla puts hers out on Wednesday and is always right.
= next string black
~ 84 green | alternates | none
~ 112 black | alternates | none
+ keys-who | active_decision | 5 | Who has keys | home, safety
Spare keys are with people, never under a pot.
= holders list ["Nadia", "Ruben"]
~ 68 ["Nadia", "Gunilla"] | new locks in the house | Ruben's set returned
! safety
+ wifi-home | observation | 2 | Home network names | home, devices
Guests use the network called Havregryn; the password is on the card inside the pantry door.
= guest_network string Havregryn
+ laundry-room | observation | 4 | Laundry bookings at Kastellgatan | home
Slots on the panel in the cellar, Sundays 10 to 13 is the family's usual one. Lint filter or the board writes letters.
+ stairs-cleaning | observation | 16 | Stair cleaning rota | home
Third floor has weeks divisible by four.
+ heating-flat | gotcha | 21 | Radiators in the flat | home
The bedroom radiator only gets warm when the one in the hall is opened first. Nobody knows why.
+ house-boiler | finding | 73 | The heat pump's real settings | home, heating
Previous owner ran it at curve 6; at 4 the house stays at 20 degrees and the compressor is quiet after ten.
= curve int 6
~ 80 5 | trial week | watch the bathroom
~ 87 4 | still warm | saves about 9 kWh a day
+ house-water | gotcha | 69 | The main tap is behind the freezer | home, safety
The stopcock of the house sits behind the freezer in the laundry; move the freezer with two people.
! needed in a hurry
+ fuse-box | finding | 71 | What each fuse feeds | home
Fuse 7 is the kitchen AND the doorbell. Fuse 3 is labelled "sauna" and there is no sauna.
= fuses json {"1": "cooker", "3": "labelled sauna, feeds the shed", "7": "kitchen and doorbell", "9": "study"}
+ chimney | event | 101 | Chimney swept | home
Swept, no cracks; next one in two years. The sweep left soot prints in the shape of a heart, or a lung.
+ garden-plan | active_decision | 89 | What to plant where | home, garden
Nothing edible by the road. Currants along the shed, beans by the south wall, the lawn stays ugly for a year.
+ bees | observation | 97 | Gunilla's bees | home, garden
Two hives on her side of the hedge. Do not mow near them on warm afternoons; wave slowly.
+ loose-tile | observation | 95 | Loose tile above the porch | home, repairs
One tile rattles in west wind. The roofer will look when he is next in the street.
= fixed bool false
~ 137 true | roofer came by and took coffee as payment | none
+ cellar-damp | finding | 106 | Damp in the cellar corner | home, repairs
Hygrometer showed 78 % in the north corner after rain; the gutter above it had a hole the size of a coin.
= humidity_percent int 78
~ 113 71 | gutter patched | watch another month
~ 141 63 | drying | dehumidifier back to Ruben
+ hall-colour | decision | 78 | Hall painted grey-green | home
After five sample cards, the third one; Ivo calls it "pond".
= colour_code string S 4005-G20Y
+ study-desk | decision | 75 | Study shared, desk by the north window | home, work
Mara gets the north window, Jonas the wall; calls with patients' names never from the shared room.
+ cleaning | active_decision | 92 | Cleaning help every other Friday | home
Two hours, kitchen and bathrooms; Tofu has to be shut in the study because of the hoover.
= price_sek int 560
+ spare-room | observation | 82 | Bed in the spare room | home, family
Birgit sleeps better on the firm mattress, so guests who are not Birgit get the sofa.
+ post-redirect | event | 66 | Mail redirection ordered | home, move
Redirect for a year from {D68}; parcels are not included, which the form mentions on page three.
= until date {I433}
+ rubbish-room-code | observation | 6 | Code of the recycling room | home
2580 at Kastellgatan, changes whenever somebody leaves a sofa there.
+ mouse-cellar | observation | 144 | Mouse in the cellar | home, pets
Tofu watched it walk past. Trap with peanut butter, not hazelnut spread.
> mentions ivo-hazelnut
@ /home/move
+ house-viewing | event | 20 | Viewing at Gullregnsvägen | home, move
Second viewing with Jonas: damp smell in the cellar, south garden, eleven minutes to the train.
= asking_sek int 5450000
+ house-offer | decision | 29 | Bid for the house | home, move, money
Went to 5.62 million and stopped there; the other bidder stopped at 5.6.
= price_sek int 5620000
> follows house-viewing
+ surveyor-report | finding | 41 | Surveyor's report | home, move
Roof five years, drainage old but working, one illegal socket in the shed, nothing that changes the price.
> about house-offer
+ flat-sale | event | 55 | The flat is sold | home, move, money
Sold to a couple with a cello; they take over the shelves in the hall and the ghost of the radiator.
= price_sek int 4150000
+ movers | decision | 46 | Movers for {D68} | home, move
Two men and a lift van from Flyttbjörn, 7.30, piano excluded, plants go in our own car.
= price_sek int 11900
~ 59 12900 | lift van needed for the sofa | none
+ move-boxes | observation | 50 | Box numbering | home, move
Numbers in blue, kitchen 1 to 30, books 31 to 68, "do not open before winter" from 90.
= packed int 4
~ 54 17 | kitchen shelves | none
~ 58 39 | books | none
~ 62 71 | everything but beds | none
~ 66 94 | done | none
+ move-checklist | project_status | 44 | Moving checklist | home, move
What is left before the move: addresses, meters, keys, school, Tofu.
= open_items int 31
~ 51 24 | bank, tax, school done | none
~ 58 15 | meters booked | none
~ 65 6 | keys and cat left | none
~ 72 1 | library card | none
~ 79 0 | all done | can be archived
+ electric-contract | decision | 57 | Electricity for the house | home, move, money
Hourly price, not fixed: the heat pump can avoid the evening hours.
+ broadband-house | gotcha | 61 | Fibre box needs an electrician | home, move, devices
The fibre ends in the shed. Installing it inside costs an electrician's hour that the operator does not mention.
+ curtain-measure | observation | 64 | Window measurements | home, move
Living room 142 by 120, study 98 by 120, children's rooms 110 by 120, all measured twice by Elsa.
= windows json {"living": [142, 120], "study": [98, 120], "children": [110, 120]}
+ piano-question | observation | 53 | What to do with the piano | home, move
Nobody plays it, nobody wants to say so. Solveig offered to store it "until".
+ piano-sold | decision | 63 | The piano goes to the school | home, move
Given to Elsa's old school against collection; music teacher brought four ninth-graders.
> contradicts piano-question
+ goodbye-ruben | event | 67 | Goodbye coffee with Ruben | home, friends
He gave Ivo a tram conductor's punch. Visit him once a month, said in front of witnesses.
"""

THINGS: Final = """
@ /home/devices
+ dishwasher | gotcha | 19 | Dishwasher error E15 | home, devices
E15 means water in the base tray: tilt it 45 degrees, wait, put the hose clip back. The repairman charged 900 to say so.
+ washing-machine | observation | 72 | Washing machine in the house | home, devices
Left by the previous owner, German labels. "Pflegeleicht" is the one for everything.
+ robot-mower | decision | 102 | No robot mower | home, devices, garden
Hedgehogs and bees; a push mower from the classifieds for 400 instead.
+ e-bike | observation | 110 | Cargo bike | devices, transport
Bought used, long-john, holds both children and a week of food. Name painted by Elsa: Valrossen.
= price_sek int 28500
= odometer_km int 2140
~ 131 2390 | reading at service | brake pads next time
~ 159 2705 | reading | chain
+ bike-battery | finding | 128 | Cargo bike range in cold | devices, transport
Full assist with both children: 31 km at 6 degrees, not the 60 on the label.
= range_km int 31
+ phone-plan | active_decision | 7 | Phone plan | devices, money
One person, 15 GB, no calls abroad.
= plan string Solo 15 GB
~ 61 Family 60 GB, shared by three | Elsa's watch needs a plan too | old number lost
= monthly_sek int 249
~ 61 479 | family plan | none
~ 150 449 | campaign for staying | bound until next spring
+ laptop-work | observation | 5 | Work laptop | devices, work
Studio laptop, 14 inch, battery swells when left on the dock; Jorge has ordered a new one.
= battery_health_percent int 81
~ 45 78 | checked | none
~ 90 74 | checked | none
~ 135 100 | new machine | move licences
+ printer-home | gotcha | 35 | Printer prints only from the phone | devices
From the laptop it sulks unless the network is 2.4 GHz. From the phone it always works.
+ elsa-watch | decision | 61 | Elsa's watch phone | devices, children
Calls to six numbers, no browser, school mode 8 to 14. She may take it off for football.
= numbers_allowed int 6
+ smoke-alarms | observation | 83 | Smoke alarms | home, safety, devices
Five of them, ten-year batteries, the one by the kitchen is the sensitive kind.
= tested date {I83}
~ 116 {I116} | monthly test | none
~ 144 {I144} | monthly test | none
~ 172 {I172} | monthly test | none
+ thermostat | finding | 94 | Bathroom floor heating timer | devices, home
Loses its clock after a power cut and then heats at three in the night.
+ headphones | observation | 12 | Headphones | devices
Left cushion replaced; the noise cancelling hums on trains, not on planes.
+ camera-cellar | decision | 115 | No camera at the door | devices, privacy
Discussed after the parcel thefts. A box with a lock does it, and nobody is filmed.
+ kitchen-scale | observation | 28 | Kitchen scale drifts | devices, food
Shows 4 g too much under 50 g. Weigh yeast on the letter scale.
+ e-reader | observation | 38 | E-reader | devices, books
Library loans work only after signing in again every 30 days.
+ backup-drive | active_decision | 18 | Family photo backup | devices, privacy
Two copies: drive in the study, drive at Nadia's, swapped on the first Sunday.
= last_swap date {I13}
~ 48 {I48} | swapped | none
~ 83 {I83} | swapped | none
~ 118 {I118} | swapped | none
~ 167 {I167} | two weeks late, launch | none
@ /home
+ sub-music | observation | 14 | Subscription: music, family | subscriptions, money
Family plan, six seats, Henrik uses one from Leeds and nobody has objected.
= monthly_sek int 189
~ 98 199 | price rise | none
+ sub-news | decision | 31 | Subscription: morning paper | subscriptions, money
Weekend edition on paper, weekdays digital; pause it in the holidays by the form, not by phone.
= monthly_sek int 329
+ sub-gym | decision | 25 | Climbing wall membership | subscriptions, hobby
Ten-entry cards instead of the year: she goes on Tuesdays when the rota allows.
= entries_left int 9
~ 43 6 | Tuesdays | none
~ 85 2 | Tuesdays | buy the next card
~ 92 11 | new card | none
~ 162 5 | launch weeks without climbing | none
+ sub-cloud | observation | 22 | Cloud storage is full twice a year | subscriptions, devices
Videos from school concerts fill it. Move the old year to the drive instead of upgrading.
= used_gb int 171
~ 50 188 | concert | none
~ 52 139 | moved last year to the drive | none
~ 140 176 | holiday videos | none
+ sub-box | decision | 87 | Cancelled the vegetable box | subscriptions, food
Three weeks of swede were enough; the farm shop on the way home does it better.
> contradicts sub-box-start
+ sub-box-start | decision | 30 | Trying a vegetable box | subscriptions, food
Small box every other Wednesday, swaps allowed until Sunday evening.
+ sub-tv | observation | 48 | Streaming: one at a time | subscriptions, evenings
Only one service per month; whoever did the cellar chooses.
= current string Nordvisning
~ 78 Kanal Atlas | new series | none
~ 120 Nordvisning | crime season | none
+ sofa | decision | 79 | New sofa ordered | shopping, home
Three-seater in rust wool mix, 14 weeks, deposit paid. Old one goes to Nadia's workshop.
= delivery date {I177}
~ 127 {I191} | letter from the shop | complain politely once
~ 148 {I184} | complained politely | none
+ bunk-bed | decision | 71 | Bunk bed, or two beds | shopping, children
Two beds. Ivo sleeps across everything and Elsa wants her own lamp.
+ boots-elsa | event | 34 | Football boots for Elsa | shopping, children
Size 36, blue, 449 with the club's discount at the sports shop on Avenyn.
+ rain-gear | event | 49 | Rain gear for preschool | shopping, children
Two sets, since the first is always wet. Name labels in the collar AND the sleeve.
+ drill | observation | 74 | Borrowed drill | home, friends
Gunilla's hammer drill, promised back by the weekend, chuck key taped to the cable.
= returned bool false
~ 90 true | returned with a jar of jam | none
+ desk-chair | decision | 88 | Used desk chair | shopping, home, work
From an office clearance in Gårda, 1,200, twelve-year-old model with a new cylinder.
+ lamp-study | event | 103 | Lamp for the study returned | shopping, home
Flickered at low level; refund arrived on the joint account after nine days.
+ race-shoes | decision | 93 | Running shoes | shopping, running
Wide last, 8 mm drop, 1,450 on sale; keep the old pair for gravel.
> about running-plan
+ cat-fountain | event | 133 | Water fountain for Tofu | shopping, pets
She drinks more from it than from three bowls, which the vet wanted.
> about tofu
+ winter-coat-ivo | observation | 154 | Coat for Ivo, handed down | shopping, children
Moa's brother's red coat, size 116, zip repaired; no need to buy one.
+ birthday-elsa | event | 75 | Elsa turns ten | family, children
Nine girls and one goalkeeper glove cake; hazelnut-free, shellfish-free, quiet corner for Moa.
= guests int 10
> about elsa
+ toy-library | place | 104 | Toy library in Mölndal | children, places
Third floor of the library, Tuesdays and Saturdays, one large toy per card.
+ ladder-shared | observation | 99 | The street shares a ladder | home, friends
Hangs on number 9's garage. Text Gunilla, not number 9.
"""
