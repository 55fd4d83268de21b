"""What tools answered at home and on the way: most of what a memory fills with."""

from typing import Final

HOME_TOOLS: Final = """
* weather | tool_output | /user/mara | 0-183 | 44 | weather
# where: Gothenburg; Mölndal; Kalmar; Vrångö; Styrsö; the way to Borås; Alingsås; the river path; Kungälv
# adv: ride before eight; take the tram; gloves for Ivo; match not in danger; no hanging laundry; boat may wait for tide
# adv: picnic possible; wind from behind on the way home; the tunnel will flood
- Forecast: {where}
- {where}, {weekday} weather
- Rain radar at {now}
- Dry until {clock}?
: {where}: {#3-21} degrees, gusts {#4-19} m/s, rain {#0-90} % after {clock}; {adv}.
: Dry until {clock}, then {~0.3-9.0} mm; {adv}.
: {#3-19} degrees at eight, {#6-23} at three, {where}; {adv}.
* trams | tool_output | /session | 0-183 | 36 | transport
> mara-timezone
# line: tram 11; tram 3; line 25 to Mölndal; commuter train; the Styrsö boat; train to Alingsås; bus to the wall
# what: the next has room for a bicycle; change at Korsvägen; replacement bus from the museum; driver change, wait
# what: walk, it is faster; low-floor car at last
- Departures, {line}
- {line} is late
- {line} at {clock}
- How to be there by {clock}
: {line} in {#1-14} minutes, next in {#9-30}; {what}.
: {#4-38} minutes late according to the feed; {what}.
: {#14-72} minutes door to door with {line}; {what}.
* receipts | tool_output | /user/mara/money | 1-183 | 26 | receipts, money
> budget-food, reimbursement
# sum: {#29-890}
# shop: grocery at Linné; hardware shop; pharmacy; bookshop; florist
# shop: tram museum kiosk; station kiosk; art supplies; second-hand at Stigberget;  garden centre
# what: bananas again; one item unreadable; a deposit not returned; discount missed by a krona; studio, to Halima
# what: two lines are gifts; price differs from the shelf; filed under house; no hazelnuts found in the list
- Receipt: {shop}
- {shop}, {sum} kr
- Read from a photograph: {shop}
- Paid at the {shop}, {weekday}
: {#2-34} lines, {sum},{#10-95} kr on {today}; {what}.
: Total {sum} kr, VAT included; {what}.
: Photograph slightly skewed, total {sum} kr; {what}.
= total_sek int {sum}
* house-receipts | tool_output | /user/mara/money | 69-183 | 22 | receipts, money
> budget-food, roof-fund
# sum: {#35-1450}
# shop: fish van; farm shop; Bageri Tallen; paint shop; supermarket at Mölndal torg; garden centre; builders' merchant
# shop: school fair; petrol station; locksmith; curtain shop
# what: screws counted twice; for the hall; Gunilla's half to be paid back; eggs again
# what: return until {soon}; guarantee on the back; cash, so written down at once
- {shop}, {sum} kr
- Receipt from the {shop}
- House money: {shop}
: {sum} kr on {today}, {#1-19} lines; {what}.
: {what}; total {sum} kr.
: Read from a crumpled photograph: {sum} kr. {what}.
= total_sek int {sum}
* parcels | tool_output | /home | 3-183 | 34 | deliveries
> mara-address
# what: cat food; running shoes; curtain rail; lenses; knife from repair; library book by post; paint; soap; lamp
# what: school photographs; spare part E15; bulbs; keeper's gloves; ink; coffee; linocut paper; dehumidifier filter
# where: the terminal in Landvetter; the petrol station; Ruben; the kiosk; the box; a van that turned round; customs
- Parcel: {what}
- Where is the {what}?
- Delivery of {what}, {soon}
: At {where} since {now}; expected {soon}.
: Handed to {where}, code {#1000-9899}, kept for {#5-14} days.
: {what} delayed, now {soon}; last seen at {where}.
* bank | tool_output | /user/mara/money | 2-183 | 28 | bank, money
# way: above; below
# what: groceries; children; house; eating out; transport; subscriptions; shoes; gifts; repairs; travel
# odd: one charge twice, {#49-390} kr; gym card counted as food; refund of {#90-900} kr arrived; nothing unusual
# odd: a foreign fee; pocket money forgotten; a name nobody knows, it was the chimney sweep
- Spending on {what}
- Account check, {today}
- {what} this month
- Transactions to {weekday}
: {#900-9800} kr on {what} so far, {#2-38} % {way} last month; {odd}.
: {#11-64} rows since payday; {odd}.
: Largest: {what}, {#400-6400} kr; {odd}.
* cooking | tool_output | /home/kitchen | 1-183 | 34 | food
> no-hazelnut-rule
# dish: lentil soup for {#5-14}; fish cakes; cardamom buns; dal from the freezer; risotto; granola; plum jam; crispbread
# dish: lemon sponge; bean chilli; yellow curry; octopus rice; sourdough at {#71-80} %; pea soup; salmon at low heat
# what: salt not scaled; cups to grams; spelt swapped for wheat; yeast on the letter scale; without oat milk
# what: oven 15 degrees lower; half the sugar
- Scaled: {dish}
- Kitchen timer, {dish}
- {dish}, shopping list
- Converted for {dish}
: {#3-14} ingredients, {#2-6} in the house; {what}.
: {#9-75} minutes, second alarm after {#4-30}; {what}.
: For {#2-14} portions: {what}. Hazelnut check passed.
* school-menu | tool_output | /user/mara/family | 1-183 | 22 | school, food
# food: fish gratin; pancakes; vegetable patties; pasta with pesto, nut-free; sausage stew; tacos; potato soup; curry
# what: gym bag; library books; signed slip about the outing; warm socks; swap for Ivo agreed with the kitchen
# what: teacher away, substitute; photograph day
- School menu, {weekday}
- Lunch today: {food}
- School app: {what}
: {food}; also to bring: {what}.
: {food} on {soon}. Message of the week: {what}.
: {#2-6} new messages, one matters: {what}. Lunch is {food}.
* house-readings | tool_output | /home/devices | 70-183 | 40 | house, sensors
> cellar-damp, house-boiler
# what: living room; cellar corner; bathroom floor; study; freezer; heat pump; porch; children's room; fridge; hall
# odd: door open for {#4-40} minutes; battery low; as usual; clock lost again; Tofu on the sensor; drier than last week
# odd: one sensor silent
- Reading: {what}
- {what}, {weekday} night
- Sensors at {now}
- {what} above its usual
: {what} {~4.0-23.0} degrees, humidity {#38-79} %; {odd}.
: {#2-19} kWh since midnight; {what}: {odd}.
: Between {~3.0-16.0} and {~17.0-24.0} degrees in a day; {odd}.
* prices | tool_output | /home | 4-183 | 30 | shopping, prices
# n: {#3-9}
# thing: curtain fabric; a push mower; trail shoes; a dehumidifier; bunk beds; hand plane; e-reader cover; wall paint
# thing: cat fountain; a child's cello, rejected; roof tiles, 20 pieces; ladder hire; second-hand desk; kettle
# thing: cargo bike cover; adrenaline pen case; sledges; trombone mute, a joke; reading lamp; swim goggles
# what: the used one has a scratch; delivery costs half again; Gunilla has one to lend; cheapest is out of stock
# what: price was lower last month; same maker under two names
- Price check: {thing}
- {thing}: {n} offers
- Compared: {thing}
: From {#190-600} to {#610-1900} kr in {n} shops; {what}.
: Best {#189-1400} kr with delivery {soon}; {what}.
: Used {#90-400} kr, new {#410-1500}; {what}.
* travel-search | tool_output | /user/mara/travel | 12-97 | 18 | travel
> train-rule, trip-azores
# way: Lisbon to Ponta Delgada; train to Kalmar; night train, abandoned; car on the island
# way: farmhouse near Furnas; boat to Styrsö with bicycles; flat on Rua do Melo
# what: nut-free note possible by phone only; child fare from four; two changes; price up {#2-19} % since Monday
# what: free cancellation until {soon}; last room facing the garden
- Travel search: {way}
- {way}, prices
- Options: {way}
: {#2-17} options, from {#390-6900} kr; {what}.
: Fastest {#2-9} h {#10-55}, cheapest {#3-14} h; {what}.
: Held until {clock}: {what}.
* movers | tool_output | /home/move | 22-82 | 26 | move
> move-checklist
# what: tax office; bank; preschool; insurance; library; water meter; electricity; broadband; mail; football club
# odd: needs both signatures; form wants the old address twice; done in four minutes; on hold for {#9-48} minutes
# odd: call again on Thursday; reference number noted
- Address change: {what}
- Move: {what}
- {what} and the new house
: {what} informed on {today}; {odd}.
: Valid from moving day; {odd}.
: Confirmation {#10000-99999} arrived at {now}; {odd}.
* health-logs | tool_output | /user/mara/health | 2-183 | 34 | health, watch
> running-plan, mara-knee
# km: {~2.5-9.0}
# run: river path; round the lake; hill behind the school; treadmill, rain; park with Elsa on the bicycle; from the tram
# what: knee quiet; a stitch at kilometre two; stopped for a dog; new shoes; slept {~5.1-8.4} h before; too fast early
# what: step-downs afterwards; coffee at {#12-15}.{#10-50}
- Run: {run}
- Watch summary, {weekday}
- Sleep before {today}
- {km} km, {run}
: {km} km at {#5-6}.{#10-55} a kilometre, pulse {#128-164}; {what}.
: {~5.6-8.4} h asleep, {#0-4} times awake; resting pulse {#52-63}; {km} km the day before, {what}.
: {#3100-14900} steps, {km} km of them running; {what}.
* translate | tool_output | /session | 96-183 | 18 | language
# what: washing machine label; letter from the clinic in Ponta Delgada; menu; German manual; parents' letter for Teresa
# what: whale folder; fare rules; reading list for Inês; sign on the tea plantation; Ulla's joke
# to: English; Swedish; Portuguese
- Translated: {what}
- {what}, in {to}
: {#40-900} words into {to}; {#0-5} terms left as they are.
: Into {to}, dry tone kept. Doubt about one word, marked.
: Literal and free version; the free one sent at {now}.
* reminders | tool_output | /session | 0-183 | 34 | reminders
# what: time sheet; gym bag; call Birgit; black bin; pens expire; library; oranges
# what: swap the backup drive; contact lenses; pay Alva; tax slip; ficus; fika rota
- Reminder set: {what}
- {what}, {soon}
- Moved reminder: {what}
: Rings {soon} at {clock}, once.
: Put off until {clock}; reason given: "not while I am cycling".
: Set by voice; the last one was done within {#2-70} minutes.
: Ignored once, set again for {soon} at {clock}; asked whether it still matters.
* later-trips | tool_output | /user/mara/travel | 112-168 | 10 | travel
> train-rule, leeds-flight
# way: Landvetter to Manchester; hotel by the castle in Kalmar; train to Leeds; boat to Styrsö; train to Alingsås
# what: last room with two beds; hand luggage only; change in Alvesta; seat by the window
- Options: {way}
- {way}, times and prices
- Travel search: {way}
: {#2-11} options, from {#290-2900} kr; {what}.
: Fastest {#1-7} h {#10-55}; {what}.
: Held until {clock}: {what}.
* late-reminders | tool_output | /session | 119-183 | 14 | reminders
> iron-timing, bees
# what: iron with dinner; water the currants; wet food for Tofu; gutter after rain; figs for Ana; one-to-one notes
# what: oranges for the match; Tofu's blood test; empty the dehumidifier; tea for Gunilla
- Reminder: {what}
- {what}, {soon}
: Rings {soon} at {clock}, once.
: Asked for by voice at {now}, for {soon}.
: Third time this month; she said it may stay.
: Moved to {soon}, {clock}, because of {#2-4} meetings.
* web-house | tool_output | /session | 72-183 | 16 | web search
> house-boiler, bees
# q: heat pump curve / lower by one, wait three days
# q: bee-safe distance for lawns / three metres on warm days
# q: hedgehogs and mowers / no mowing after dusk
# q: gutter with a small hole / tape first, solder later
# q: whose hedge is it / both, unless the deed says otherwise
# q: damp cellar in old houses / air out when it is colder outside than in
# q: floor heating loses its clock / a battery behind the cover
# q: renal diet for an old cat / wet food, mix slowly over ten days
# q: red coat zip repair / wax first, then pliers
# q: currants in shade / half a day of sun is enough
# q: key box, which one / insurers accept two models
- Looked up: {q}
- House search: {q}
- {q}?
: {q.1}. {#2-14} pages read, two agree.
: {q.1}; source a forum, {#3-90} answers, treat with care.
: {q.1}, according to the best of {#3-20} videos.
* web-home | tool_output | /session | 1-183 | 28 | web search
# q: paint smell how long / two to four weeks, open windows at both ends
# q: dogs on the Styrsö boat / on deck, leash, free
# q: first loose tooth at five / early but ordinary
# q: levothyroxine and coffee / half an hour at least
# q: may a bidder withdraw / until the contract is signed
# q: rust on cast iron / salt, potato, oven
# q: cello versus piano sale / schools take pianos, nobody buys
# q: rules for a 10 km start / be there forty minutes before
# q: how to leave a group chat / say thanks, then leave
# q: starter smells of nail varnish / feed it twice a day
# q: how to sharpen a bread knife / have it done
- Looked up: {q}
- Home search: {q}
- {q}?
: {q.1}. {#2-14} pages read, two agree.
: {q.1}; source a forum, treat with care, {#3-90} answers.
: {q.1}, says the first official page; {#2-9} minutes spent.
"""
