"""Things Mara said in passing, and facts that were noted twice in other words."""

from typing import Final

SAID: Final = """
@ /user/mara
+ - | utterance | 2-20 | "Don't tidy my sentences" | writing
Mara: "If I dictate something crooked, keep it crooked, that's how I think."
+ - | utterance | 5-30 | On being reminded twice | habits
Mara: "Once is a reminder. Twice is my mother."
+ - | utterance | 8-40 | Wants the sea in view | home
Mara, after the third viewing: "I don't need a sea view, I need to know which way it is."
+ - | utterance | 13-50 | On silence in meetings | work
Mara: "I counted to seven and nobody spoke, so I took the smaller option. Write that down."
+ - | utterance | 22-60 | About her father's frame shop | family
Mara: "Papa measured everything twice and then asked the customer what they saw."
+ - | utterance | 30-80 | "No more apps for the children" | family
Mara: "Not one more login for preschool. Paper, or they phone me."
+ - | utterance | 37-70 | On the word user | writing, work
Mara: "Passengers, patients, people. I'd rather be wrong than say user."
+ - | utterance | 41 | Nervous about the blood test | health
Mara: "Tell me the number first and what it means afterwards, not the other way round."
+ - | utterance | 62-66 | Last week in the flat | home, move
Mara: "I hated that radiator for nine years and today I patted it."
> about heating-flat
+ - | utterance | 69-80 | First mornings in Mölndal | home
Mara: "It is so quiet that I hear the fridge making decisions."
+ - | utterance | 81 | On Sam leaving | work, people
Mara: "He leaves me a spreadsheet with forty colours and no legend."
> about sam
+ - | utterance | 93 | After the launch moved | work, atlas
Mara: "Three weeks is a gift if nobody fills it. Guard it."
> about atlas-launch-moved
+ - | utterance | 97 | Before the holiday | travel
Mara: "For two weeks you may wake me for the children and for nothing with a logo."
+ - | utterance | 112 | Back from the island | work
Mara: "Four hundred and twelve mails. Show me the nine that are from people."
+ - | utterance | 119 | On becoming lead | work
Mara: "I said yes and then I asked what it was. Remind me not to do that again."
> about studio-promotion
+ - | utterance | 125 | After the race | running
Mara: "Fifty-eight and the knee said nothing. I would like that framed."
> about race-result
+ - | utterance | 146 | The night of the crash | work, atlas
Mara: "Dimitri's horrible phone has paid for itself for life."
> about atlas-crash
+ - | utterance | 148 | Six in the morning | work, atlas
Mara: "Four minutes past six and somebody is already going to Styrsö. That's all I wanted."
> about atlas-launch
+ - | utterance | 150-160 | Too tired to choose | habits
Mara: "This week you decide dinner. I will complain and eat it."
+ - | utterance | 127-140 | About leading juniors | work
Mara: "Ask Freja what she would throw away. She always knows and never says."
+ - | utterance | 10-90 | On perfume in the lift | health
Mara: "Whoever wears the vanilla on floor two owes me an afternoon."
+ - | utterance | 24-100 | On lists | habits
Mara: "More than seven things isn't a list, it's weather."
+ - | utterance | 45-120 | Wants fewer summaries | habits
Mara: "You may skip the summary when nothing happened. Nothing is a fine thing to have happened."
+ - | utterance | 70-130 | On buying used | shopping
Mara: "If it has survived one family it will survive us."
+ - | utterance | 101-111 | At the crater lake | travel
Mara: "Note the green. Not the hex, the feeling that it is deeper than it should be."
+ - | utterance | 136-170 | On Birgit's dancing | family
Mara: "She danced to half a song and looked at us as if we had bet against her."
+ - | utterance | 155-172 | Thinking about next year | work
Mara: "One big thing next year. I don't know which, but one."
+ - | utterance | 16-60 | About Tofu and the printer | pets
Mara: "The cat sits on it because it's warm. So it's the cat, not the driver."
+ - | utterance | 52-110 | Why she keeps a paper calendar | habits
Mara: "Paper doesn't move things on its own."
+ - | utterance | 90-170 | On saying no | work
Mara: "Draft me a no that sounds like a door, not like a wall."
@ /user/mara/family
+ - | utterance | 4-50 | Ivo asks about rain | children
Ivo: "If the sea goes up in the rain, when is it the fishes' turn?" Mara wants these kept.
> about ivo
+ - | utterance | 51-100 | Ivo on moving | children
Ivo: "Does the old house know our new address?"
+ - | utterance | 101-111 | Ivo on volcanoes | children, travel
Ivo, at the hot springs: "The ground is cooking for somebody."
+ - | utterance | 113-165 | Ivo counts to a hundred | children
Ivo: "After ninety-nine I always get tired, so I stop there."
+ - | utterance | 12-60 | Elsa on goalkeeping | children
Elsa: "When nothing happens, that's me doing well."
> about elsa
+ - | utterance | 64-67 | Elsa before swimming | children
Elsa: "Can I be brave on Sunday instead?"
+ - | utterance | 76-140 | Elsa on her new room | children
Elsa: "It's good, but it doesn't have my dark yet."
+ - | utterance | 140-172 | Elsa on mum's app | children, work
Elsa: "Moa's grandma uses it. So now you're a bit famous in Styrsö."
+ - | utterance | 6-160 | Jonas on night shifts | family
Jonas: "Ask me anything after two o'clock and a sandwich."
+ - | utterance | 14-90 | Birgit on hospital food | family
Birgit: "Everything beige. Even the radio was beige."
+ - | utterance | 60-150 | Jonas about the cargo bike | family
Jonas: "It's not a bicycle, it's a small ferry, you of all people should approve."
+ - | utterance | 20-120 | Birgit does not want a tablet | family, devices
Birgit: "I have a telephone. It rings and then you're in it."
@ /project/atlas
+ - | utterance | 36 | Ulla about waiting | work, atlas
Ulla: "We are never late for the tide. You are."
> about captain-ulla
+ - | utterance | 20-70 | Birk on features | work, atlas
Birk: "The union asks for three things and loyalty points isn't one of them."
> about birk
+ - | utterance | 52-80 | Lone on complaints | work, atlas
Lone: "They don't phone because they're angry, they phone because they stand in the wind."
> about lone
+ - | utterance | 60-130 | Dimitri on flagship phones | work, atlas
Dimitri: "It works on yours. I'm happy for you."
> about dimitri
+ - | utterance | 133-140 | Ewa on roadmaps | work, atlas
Ewa: "If it needs a legend it isn't a plan."
> about ewa
+ - | utterance | 100-145 | Oskar before launches | work, atlas
Oskar: "I don't need confidence, I need the rollback tried."
> about oskar
+ - | utterance | 150-165 | Viktor after launch | work, atlas
Viktor, in the corridor: "Tell them dark mode by the end of the quarter." Not in writing yet.
> about viktor
@ /project/lantern
+ - | utterance | 12-40 | Dr Mehta on small print | work, lantern
Dr Mehta: "If I need my glasses, they need a neighbour."
> about dr-klara
+ - | utterance | 57-90 | Ingrid about help | work, lantern
Ingrid: "I like help that waits until I ask and then is already there."
> about ingrid-patient
+ - | utterance | 70-120 | Hugo on reception | work, lantern
Hugo: "You may change the software or the Monday, not both."
> about hugo
+ - | utterance | 45-62 | Yuki on numbers | work, lantern
Yuki: "Eleven of fourteen isn't a percentage, it's eleven people."
> about yuki
+ - | utterance | 141-170 | Leila about the import | work, lantern
Leila: "Data is never dirty. It was clean for somebody who has retired."
> about leila
@ /studio
+ - | utterance | 28-60 | Freja's first question | work
Freja: "Am I allowed to delete things?" Mara said yes, and said it again.
> about freja
+ - | utterance | 9-80 | Rasmus on naming | work, pebble
Rasmus: "There are two hard things, and Mara has opinions on both."
> about rasmus
+ - | utterance | 35-130 | Halima on receipts | work, money
Halima: "A crumpled receipt is still a receipt. A memory of one isn't."
> about halima
+ - | utterance | 81 | Sam's farewell | work
Sam: "You were right about the tour. I will deny this in Copenhagen."
> mentions atlas-onboarding
"""

TWICE: Final = """
@ /user/mara/health
+ twin-penicillin | observation | 59 | Mara is allergic to penicillin | health, allergy
Noted again after the dentist: no penicillin for Mara, rash and swelling of the throat.
> about mara-penicillin
+ twin-thyroid | observation | 41 | Thyroid dose raised | health, medication
From now on 88 micrograms of levothyroxine, following the TSH result.
> about thyroid-dose
+ twin-thyroid-2 | observation | 117 | Thyroid dose raised | health, medication
From now on 100 micrograms of levothyroxine, following the second TSH result.
> about thyroid-dose
+ twin-migraine | finding | 83 | Paint fumes and migraine | health
Paint fumes seem to start an attack as red wine with a skipped lunch does; twice while the hall was painted.
> about mara-migraine
+ twin-hazelnut | observation | 79 | Ivo: hazelnut allergy | health, allergy
Told Lönnen preschool: Ivo is allergic to hazelnuts, pen in his bag, hives within minutes.
> about ivo-hazelnut
@ /user/mara
+ twin-cafe | preference | 73 | Favourite café to work in | food, places
Bageri Tallen in Mölndal is the new place to work from, early, before the plugs are switched off.
> about favourite-cafe
+ twin-coffee | preference | 65 | Coffee order | food
Black filter coffee now; she has given up on oat milk.
> about coffee-order
+ twin-monday | preference | 57 | Mondays before ten stay free | calendar
No meetings before ten on Mondays, that time is for planning the week.
> about no-meetings-monday
+ twin-seat | observation | 47 | Train seat by the window | travel
Window seat, facing forward, with a table if possible; said again when booking Kalmar.
> about seat
+ twin-phone | observation | 62 | Mara's new number | core
Mara can be reached on +46 76 174 88 02 since the family plan; the old number is gone.
> about mara
+ twin-address | observation | 69 | New address in Mölndal | home
The family lives at Gullregnsvägen 4 in Mölndal from now on.
> about mara-address
+ twin-title | observation | 119 | Mara is now design lead | work
New title: design lead at Halden & Rye.
> about mara-job
+ twin-title-2 | identity | 121 | Job title: design lead | work
Signature changed to "Mara Lindqvist, design lead, Halden & Rye".
> about mara-job
@ /home
+ twin-bins | observation | 77 | Bin collection | home
Bins on alternate Thursdays before seven in the morning, green and black in turn.
> about bin-days
+ twin-tap | observation | 70 | Stopcock behind the freezer | home, safety
To shut off the water: stopcock behind the freezer in the laundry room.
> about house-water
+ twin-keys | observation | 68 | Who has keys to the house | home, safety
Nadia and Gunilla each hold a set of keys to the new house.
> about keys-who
@ /home/kitchen
+ twin-oven | observation | 90 | Oven is hotter than the dial | food, devices
On fan the oven runs about 20 degrees over; bake bread at 230.
> about oven-house
+ twin-dough | observation | 24 | Sourdough, 78 % water | food, recipe
Loaf came out right with 78 % hydration, a night in the cold and four folds.
> about recipe-sourdough
+ twin-nuts | preference | 40 | No hazelnuts in the house | food, allergy
Hazelnuts, praline and nougat stay out; almonds are fine.
> about no-hazelnut-rule
@ /project/atlas
+ twin-launch | observation | 94 | Atlas launch date | work, atlas, deadline
New launch date for Atlas is {D148}, three weeks later than planned.
> about atlas-deadline
+ twin-launch-2 | active_decision | 95 | Atlas launches {D148} | work, atlas, deadline
Launch on {D148} at 06.00; the harbour signs get stickers.
> about atlas-deadline
+ twin-launch-old | observation | 10 | Launch of Atlas on {D127} | work, atlas, deadline
Birk confirmed {D127} as the day on which Atlas goes public.
> about atlas-deadline
+ twin-offline | decision | 64 | Tickets work without network | work, atlas
Bought tickets are kept on the phone so that they open below deck, without reception.
> about atlas-offline
+ twin-tabs | observation | 35 | Atlas has three tabs | work, atlas, design
Plan, Tickets and Alerts; the account sits behind the avatar.
> about atlas-nav
+ twin-old-phones | finding | 147 | Atlas crashes on 2 GB phones | work, atlas, risk
Decoding all route images at once kills the app on phones with 2 GB of memory.
> about atlas-crash
@ /project/atlas/api
+ twin-tz | gotcha | 67 | Departure times carry no zone | work, atlas, api
The timetable API sends local times without an offset; one hour exists twice when clocks change.
> about api-tz
+ twin-caps | gotcha | 81 | Pier names come in capitals | work, atlas, api
Names of piers arrive upper-case and must go through Ana's table, not through a lower-casing rule.
> about api-strings
@ /project/lantern
+ twin-type | decision | 44 | Minimum text size 20 | work, lantern, design
Nothing in Lantern is set below 20 px, because pupils stay wide after drops.
> about lantern-large-type
+ twin-blom | observation | 66 | Test patients are the Bloms | work, lantern
Use only the invented Blom family (Alma, Sten, Rut) in files and screenshots.
> about lantern-fake-family
+ twin-pilot | observation | 123 | Pilot clinics: Kungälv and Lerum | work, lantern
The Lantern pilot runs in Kungälv and in Lerum.
> about lantern-pilot-sites
@ /project/pebble
+ twin-icons | gotcha | 72 | Icons renamed in Pebble 2 | work, pebble
Every icon got a new name in 2.0 without aliases; Atlas stays on 1.9 for now.
> about pebble-rename
@ /studio
+ twin-receipts | observation | 63 | Receipts go to Halima | work, money
Expense receipts as photographs to Halima by the third of the month.
> about halima
"""
