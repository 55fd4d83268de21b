"""Where a conversation was left: written at the end of each, read at most at the start of the next."""

from typing import Final

WORK_SESSIONS: Final = """
* s-atlas-screens | session_state | /session | 1-135 | 60 | session, atlas
> atlas, atlas-a11y, atlas-nav
# do: reworking; annotating; redrawing; checking; simplifying; measuring; sketching; questioning; testing; undoing
# it: the stop picker; the ticket wallet; the disruption banner; the fare list; the basket; the pier page; the night map
# it: the receipt; the empty alerts page; the search field; the account offer; the route strip; the tide notice
# stop: two versions left, Oskar to be asked what each costs; version B leads but nobody has tried it in wind
# stop: stopped at the small phone; the third state has no words yet; Ana has the file open
# stop: three notes from Dimitri unanswered; left at the question who pays for children
# stop: the shorter word won; wind test on Thursday; the pensioner version reads better than ours
# stop: Ana wants the verb first
# stop: it works at 200 %, looks sad; one tap fewer, one line more; Birk has only seen the first half
# stop: the icon from Rasmus is missing; he wants to sleep on it; printed and pinned to the wall
# next: ask Ana for two lines; try it on the cracked phone; show it in stand-up; throw the older one away
# next: count taps once more; wait for API names; nothing before Thursday
- {it}: {do} it again
- {do} {it}
- Open: {it}
- Left at {it}
- {it}, {weekday}
: {do} {it}; {stop}. Next: {next}.
: Interrupted at {now} while {do} {it}. {stop}.
: {stop}. She was {do} {it}, wants to {next}.
: {#15-80} minutes on {it}, mostly {do} it. {stop}; then {next}.
* s-atlas-launch | session_state | /session | 133-151 | 28 | session, atlas, launch
> atlas-deadline, atlas
# do: going through the checklist; sorting blockers; reading crash reports; answering the desk; rehearsing the morning
# do: rewriting store texts; comparing builds; preparing words for an outage; collecting screenshots
# with: with Ewa; with Oskar on the line; alone, late; with Dimitri beside her; while eating soup; with Lone on speaker
# stop: line {#3-19} of 19 is done; {#2-14} bugs left, one of them scary; two texts wait for Ana
# stop: nobody has called for an hour; the rota changes at {clock}; Viktor wants a number, he gets one tomorrow
# stop: stickers still dry; the tide banner again; the printer jams on page two
- Launch: {do}
- {do}
- Launch room, {now}
- {do} {with}
: {do} {with}; {stop}.
: {stop}. Was {do} {with} until {now}.
: {with}: {do}. Left open: {stop}.
* s-lantern | session_state | /session | 4-183 | 56 | session, lantern
> lantern, lantern-large-type
# do: drawing; rewriting; testing; translating; shortening; printing; reordering; comparing; proofreading; explaining
# it: the appointment page; the drops page; the results sheet; helper access; the reception strip; the letter
# it: the consent form; interview {#2-14}; the import list; the reminder texts; the messages page; the diary study
# stop: Yuki has the last word on names; nine lines became four; it still says "negative" once
# stop: Hugo will ask who answers on Thursday; the Arabic one waits for a reader; type is too small by two
# stop: Rut would phone instead; the print is better than the screen; helper and patient see different words
# stop: the taxi sentence moved up; two clinics disagree about "soon"; one page, front only; Arabic looks calmer
# stop: dim mode hurts nothing here; the urgent line comes first now; Hugo laughed, which is new
# stop: Sten does not fit; Ingrid tries it tomorrow; stopped where the law begins; two quotes sound alike
# next: read it aloud; send only the print; remove the polite words; ask the lawyer one thing; leave it till Wednesday
- {it}: {do}
- {do} {it}
- Left open: {it}
- {it}, {weekday} {now}
: {do} {it}; {stop}. Next: {next}.
: {stop}. She stopped {do} {it} at {now}.
: Half done: {do} {it}. To do: {next}; {stop}.
* s-pebble | session_state | /session | 2-183 | 24 | session, pebble
> pebble, pebble-contrib
# do: splitting; naming; documenting; retiring; testing in Lantern; drawing three sizes of; arguing about
# it: the table; the notice; the list row; the badge; dim colours; focus rings; the date field; spacing steps; the strip
# stop: Rasmus will do it at night; two names left, both bad; example first, words later; waits for a second product
# stop: breaks one screen in Atlas, known; corner radius not mentioned
- Pebble: {it}
- {do} {it}
- {it} in Pebble, {weekday}
: {do} {it}; {stop}.
: {stop}. Was {do} {it} until lunch.
: Pebble Friday rest: {do} {it}, {stop}.
* s-old-site | session_state | /session | 0-58 | 24 | session, old-site
> old-site, old-redirects
# do: sorting; rescuing captions from; counting visits to; redirecting; reading once more before deleting; copying
# it: the news of year {#2-9}; the press page; case studies; the typography course; team portraits; forms; legal pages
# stop: {#3-190} pages left; meeting-room machine needed again; Halima knows who bookmarks it
# stop: two dialects in one file; Mats calls back on Thursday; kept one for sentimental reasons
- Old site: {it}
- {do} {it}
- {it}, where we stopped
: {do} {it}; {stop}.
: {stop}. Stopped {do} {it} at {now}.
* s-lead | session_state | /session | 112-183 | 24 | session, work
> studio-lead-duties
# it: one-to-one with {who}; the advert; a reply to Viktor; the budget sheet; feedback for {who}; the team page
# it: the case study; salary notes, private; who decides what; the talk; craft morning, defended
# who: Freja; Ana; Yuki; Rasmus
# stop: two sentences too many; waits for Viktor in writing; she wants it shorter; Halima explains it on Friday
# stop: one question left, the hard one; no numbers without Birk; moved to the tram
# next: send nothing before nine; print it; ask for a date; drop the second half
- {it}
- Draft: {it}
- {it}, {weekday}
: Worked on {it}; {stop}. Then: {next}.
: {stop}. Next for {it}: {next}.
: {#10-55} minutes on {it} between two meetings; {stop}.
* s-plan | session_state | /session | 0-183 | 56 | session, planning
> mara-timezone
# what: planning the week; sorting the inbox; preparing stand-up; closing the day; filling the time sheet
# what: moving meetings; clearing {#12-90} tabs; looking for {#1-3} free hours
# first: write to Birk; call the school; call the dentist; send Halima the batch; answer Yuki; ask Jonas about Thursday
# first: decide on two options; cancel Fladen; read Oskar's note; book the lab; oranges
# second: {clock} dentist call; figs; pay Alva; half an hour of drawing; parcels; library; slides; pick-up at 16.00
# mood: tired, short answers wanted; good morning, coffee first; in the tram, text only
# mood: on the phone with Birgit in between
# mood: with a child on the lap; walking; at the café, low battery
- {what}
- {what}, {weekday}
- {weekday} {now}: {what}
- First: {first}
- {first}, then {second}
: {what}. First {first}, then {second}; {mood}.
: {mood}. {#2-9} things open, on top: {first}; {second} can wait.
: {what} took {#4-35} minutes. Left: {second}. Promised for {soon}: {first}.
: Nothing decided while {what}; {first} stays first. {mood}.
"""

HOME_SESSIONS: Final = """
* s-move | session_state | /session | 18-84 | 36 | session, move
> move-checklist, house-offer
# do: sorting out; thinking about; making a list for; asking about; putting off; arguing gently about; planning
# it: the movers; boxes {#1-90} and up; curtains; keys; the piano; broadband; the sofa; lamps; shelves; the shed socket
# stop: Jonas decides after his nights; Elsa measures again; two calls not returned; the form is on paper
# stop: third quote is the honest one; Birgit offers curtains; it does not fit in the lift; Ruben takes one
# stop: the seller answers only by post; in box 41 or 14
# stop: Solveig has opinions; nothing until the bank answers; done except for the cat
- Move: {it}
- {do} {it}
- {it}, open ends
: {do} {it}; {stop}.
: {stop}. We were {do} {it} until {now}.
: {#2-9} open points on {it}. {stop}.
* s-dinner | session_state | /session | 0-183 | 40 | session, food
> no-hazelnut-rule, budget-food
# eve: 17.15; 17.30; 17.45; 18.00; 18.15; 18.30; 19.00
# dish: fish cakes; orange soup; tacos; dal; risotto; leftovers with eggs; pea soup; curry cubes; shakshuka
# dish: pizza, bought
# who: all four; the children and Moa; Priya and three more; three, Jonas asleep; Birgit; six
# who: two, children at Solveig's
# stop: list sent, no coriander; sweetcorn missing; somebody must soak the beans; bread out of the freezer at {eve}
# stop: Elsa chops, slowly; double it for the freezer; lemon instead of cream; Solveig sent courgettes, use two
# stop: rice cooker is at Nadia's; starts without Jonas; no nuts in the new stock cubes, checked; early, football
# stop: Ivo wants it called something else; fish van closes at 14; hazelnut check done
# stop: decided for her, she complained; two recipes open, the shorter one wins
- Dinner: {dish}
- {dish} for {who}
- What to eat on {weekday}
- {weekday} food plan
: {dish} for {who}; {stop}.
: {stop}. Plan: {dish}, {who}, table at {eve}.
: {weekday} {dish}, {soon} something with fish. {stop}.
* s-trip | session_state | /session | 14-112 | 28 | session, travel
> trip-azores, azores-flights
# do: booking; comparing; packing; asking about; putting on one page; writing in Portuguese about
# it: the flights; the farmhouse; the car; whale trips; the way to the airport; travel papers; rain clothes
# it: Kalmar trains
# it: places that understand "avelã"; the flat on Rua do Melo
# stop: held until {clock}; two tabs, one price; needs Jonas's rota; Elsa made her own list; nut note by phone
# stop: pen in hand luggage, twice; passports lie in the blue folder; no reply from the owner
- Trip: {it}
- {do} {it}
- Island plan, {it}
: {do} {it}; {stop}.
: {stop}. Left while {do} {it}.
: {it}: {#2-9} options down to {#1-2}; {stop}.
* s-children | session_state | /session | 0-183 | 36 | session, children
# it: spelling words; the lighthouse twins; a rain trap; the multiplication of {#6-9}; swimming, and why
# it: a map of the street
# it: tram lines; party guests; loose tooth; the excavator voice; a letter to Birgit; gym bag; the cat's diary; lanterns
# who: Elsa; Ivo; both; Elsa, in bed already; Ivo, on the floor
# stop: {#3-18} of 20 right, then giggling; continues after brushing teeth; needs tape; she wants to do it alone
# stop: needs the atlas from the shelf; ends with a drawing; Jonas continues tomorrow; two new words, one invented
# stop: tears, then not; better standing up; the cat took part; wants to show it to Moa
# stop: fell asleep at page {#4-40}; question noted for Henrik; he would like a receipt
- {who}: {it}
- {it} with {who}
- {it}, to be continued
: {it} with {who}; {stop}.
: {stop}. {who}, {it}, {#5-40} minutes.
: Stopped at {now}: {it}. {stop}.
* s-house | session_state | /session | 69-183 | 34 | session, home
> home, roof-fund
# do: finding out about; drawing a plan of; asking Gunilla about; measuring; ordering for; putting off
# do: comparing prices for
# it: the gutter; the fuse box; curtain rails; currants; the shed; the loose tile; floor heating; the sofa's delay
# it: the hedge
# it: cellar humidity; roof fund; smoke alarms; where the mouse lives; the third stair; parcel box
# stop: photograph promised; waits for a dry day; two screws short; Ruben has one; Jonas on the ladder on Saturday
# stop: not this year, says the fund; Gunilla has the spare part in a jar; measured twice, two results
# stop: Ivo holds the torch; found the old plan behind the heat pump; the paint is still in the cellar
# stop: written to the shop, politely; nobody home between eight and four
- House: {it}
- {do} {it}
- {it}, where it stands
: {do} {it}; {stop}.
: {stop}. Evening spent {do} {it}.
: {it}: {#2-5} things to buy, {#1-3} to borrow. {stop}.
* s-self | session_state | /session | 2-183 | 36 | session, personal
# it: run before breakfast; conversation with Inês; a drawing of {thing}; book club chapter; glaze notes; step-downs
# it: next race, perhaps; linocut, second colour; letter to Henrik; tablets before coffee; the sweater
# it: quiet evening, no plans
# thing: a bollard; the ficus; hands; a crane; the ferry ramp; Tofu asleep; boots; a pear
# stop: knee asked first; subjunctive wins again; page {#9-210}; stopped when the kettle did; postponed without guilt
# stop: nothing to report, pleasantly; colder than planned; hands smell of clay; one line kept out of ten
# stop: too late to start the next; Inês sends a song; Tofu on the paper
# stop: Nadia laughs at the name; watch says {~5.0-8.2} hours of sleep; wants no reminder
- {it}
- Evening: {it}
- {it}, {weekday}
- After dinner: {it}
: {it}; {stop}.
: {stop}. {it}, until {now}.
: A quarter of an hour for {it}; {stop}.
* s-care | session_state | /session | 6-183 | 24 | session, family
# who: Birgit; Tofu; Ivo; Elsa; Jonas after nights; Solveig; Nadia; Henrik
# it: call at {clock}; questions for the doctor; how last night was; what to bring; medicine list; who drives; a present
# stop: no answer, try after choir; written on paper for her; temperature {~36.4-38.9}; better than yesterday
# stop: vet rings back
# stop: nothing to do but be there; train held until Friday; jar to be returned
- {who}: {it}
- {it}, {who}
- For {who}: {it}
: {it} for {who}; {stop}.
: {stop}. About {who}: {it}.
: {who}: {it}, noted at {now}. {stop}.
* asked | utterance | /session | 0-183 | 60 | request
# ask: when must we leave for {place}; is there milk; what did I promise {who}; how long is the {thing}
# ask: where is the {thing}
# ask: who has the {thing}; remind me of the {thing} after pick-up; when does the {shop} close; is {who} back
# ask: what is {who}'s number
# ask: read me the last line about the {thing}; when does the {shop} close; how do you say "{thing}" in Portuguese
# ask: what would {who} say
# shop: fish van; library; pharmacy; farm shop; toy library; paint shop; bakery; petrol station
# place: the boat; swimming; choir; the clinic in Lerum; Alingsås; the wall; the match; stand-up; the airport bus
# who: Oskar; Hugo; Halima; Henrik; Ana; Alva; Yuki; the roofer; Nadia; Birk; Solveig; the vet
# thing: drill; blue folder; lift van; invoice; whale book; gym bag; second pen; letter; grey drive; drops
# thing: slides; recipe; library book; oranges; ladder; napkin with the law; dehumidifier
# how: from the bicycle; in a whisper, Ivo asleep; between two doors; by voice, wind; twice; while cooking
# how: without hello
# how: with a typing error; at the till; from the corridor
# got: answered in one line; not known, said so; answer from the calendar; she had found it meanwhile
# got: done; asked back once; answered, with the day; guessed and marked as a guess
- "{ask}?"
- {weekday} question: {ask}
: Mara, {how}, at {now}: "{ask}?" {got}.
: "{ask}?" ({how}). {got}.
: Asked {how}: {ask}. {got} at {now}.
"""
