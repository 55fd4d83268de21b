"""What tools answered at work: looked at once, seldom asked for again."""

from typing import Final

WORK_TOOLS: Final = """
* calendar | tool_output | /user/mara | 0-183 | 40 | calendar
# who: Oskar; Leila; Ana; Yuki; Dimitri; Rasmus; Halima; Viktor; Hugo and Ana; Oskar and Dimitri; Birk; the leads
# why: well before the pick-up at 16.00; before Jonas leaves for the late shift; Fladen is free too; only Vinga is free
# why: moving the time sheet makes room; nothing that week without giving up lunch; they asked for a shorter one
# why: outside Lone's rush hours; leaves twenty minutes for the tram
- Free slots for {who}
- Calendar: {who}, {workday}
- When {who} could meet
- {weekday} calendar against {who}
: {#2-5} gaps with {who} until {workday}; {office} is best, {why}.
: First common half hour with {who} is {workday} at {office}; {why}.
: Nothing with {who} before {workday}. Two holds that could go: "focus" at {office} and an old sync; {why}.
: Proposed {workday} at {office}; {why}. No answer expected before tomorrow.
* mail-search | tool_output | /session | 0-183 | 40 | mail
# hits: {#2-48}
# what: the sign-off for the harbour signs / from Birk; the invoice of the lift van / from Flyttbjörn
# what: the quote for translated fares / from Ana; a photograph of the whiteboard / from Leila
# what: the class list with phone numbers / from school; the accessibility statement / from Hugo
# what: the expense batch of last month / from Halima; the workshop agenda / from Sam
# what: the tile licence / from the map supplier; the parking permit / from the town
# what: the vet's price list / from the vet
# what: the deposit receipt / from the sofa shop; the old price list / from a former client
# what: the recipe with the green lid / from Solveig; the rota for oranges / from the football club
# what: "the thing about the buoys" / from Ulla; the contract draft with two columns / from Viktor
- Mail search: {what}
- Looking for {what}
- Where is {what}?
: {hits} hits, the right one {what.1}, {#2-90} days old, with an attachment of {~0.1-9.8} MB.
: Found on the second try {what.1}; it was in a thread about something else, {#4-31} messages deep.
: Not found {what.1}. Nearest is a reply without the attachment, {#9-120} days old.
: Two versions {what.1}; the later one, of {clock}, differs in one line.
= hits int {hits}
* api-call | tool_output | /project/atlas/api | 4-170 | 56 | api, debugging
> api-overview, api-version
# path: /departures?pier=31; /departures?pier=7&day=sunday; /piers; /disruptions; /routes/284; /fares?route=281
# ms: {#80-1900}
# code: 200; 200; 200; 304; 404; 429; 502
# path: /vessels; /tides/today; /tickets/validate; /fares/period; /stops/near; /health
# what: two piers without a name; an empty list after the last boat; prices in öre again; the ghost pier at the end
# what: the same departure twice with different vessels; times fine, platform negative; all as documented, for once
# what: a disruption without an end; the captain's name in `note`; one route with nine stops and ten times
# what: an old cache header; HTML instead of JSON for a second or so; no difference to yesterday
- GET {path}
- Timetable call {path}
- Answer of {path} at {now}
- {path} checked after the complaint
: {#3-212} rows in {ms} ms; {what}.
: Status {code}, {#2-640} kB. Noticeable: {what}.

: {what}, {#2-9} calls in a row. Compared with the sandbox: {#0-6} differences.
: Called from the studio at {now}: {what}; {ms} ms.
= milliseconds int {ms}
* test-run | tool_output | /project/atlas/app | 5-183 | 52 | tests
> app-build, app-repo
# fail: {#0-9}
# took: {~0.8-14.5}
# suite: wallet; search; basket; alerts; map; sign-in; settings; receipts; first start; departures list; offline
# what: the clock test still believes in one time zone; a snapshot is older than its icon; two wait for the sandbox
# what: flaky on the third try, as on the first two; the list scrolls one pixel less; passes alone, fails in company
# what: a pier in capitals; the new silhouette; only on the small screen; nothing else
# by: on Dimitri's cracked phone; on the build machine; on Rasmus's laptop at night; on the oldest emulator
- Test run: {suite}
- {suite} tests, {weekday}
- {suite} suite, {fail} red
- Nightly: {suite}, {today}
: {#41-380} passed, {fail} failed, {#0-6} skipped in {took} minutes {by}: {what}.
: {fail} red among {#60-210} {by}, after {took} minutes; {what}.
: {fail} red {by}. Suspected: {what}.
: Rerun {by} after the merge: {fail} red, before it {#3-12}; {what}.
= failed int {fail}
= minutes float {took}
* screenshot-diff | tool_output | /project/atlas/app | 15-170 | 30 | design, tests
> app-repo
# screen: departure list; ticket front; basket; fare picker; map at night; pier page; receipt; empty alerts; settings
# what: line height; a missing umlaut in the mock name; the old blue; badge one step too low; icon of the wrong vessel
# what: shadow in dark mode; nothing a person would see; text cut at 160 %; the price jumps when the date changes
- Screenshot comparison: {screen}
- {screen}, before and after
- Pixels that moved on the {screen}
: {~0.1-6.8} % of pixels differ on {#2-14} devices: {what}.
: {#1-11} of 14 devices differ, {what}; accepted {#0-9}.
: Only the {screen} changed: {what}. Baseline kept.
* access-scan | tool_output | /project/lantern | 60-183 | 34 | accessibility
> lantern-contrast, lantern-large-type
# n: {#0-3}
# page: appointments; results; helper access; drops today; messages; sign-in; print view; reception strip; letter code
# what: a button named "button"; contrast 6.4 where 7 is ours; heading level skipped; focus lost after closing
# what: two landmarks with one name; a live region that says everything twice; table without a caption
# what: link text "here"; label in Swedish on the Finnish page; touch target of 48 instead of 56
- Accessibility scan: {page}
- {page} page, screen reader pass
- Contrast on {page}
: {#3-11} findings, {n} of them serious: {what}.
: Passed with one remark: {what}. {#31-90} elements checked.
: {what}. Was {#3-14} findings last time, now {#0-9}.
: Read aloud in {#40-190} seconds; stumbles once: {what}.
= serious int {n}
* transcript | tool_output | /project/lantern/research | 28-64 | 22 | research, transcript
> research-plan, research-consent
# min: {#4-41}
# part: Participant 2; Participant 4; Participant 6; Participant 8; Participant 10; Participant 12; helper 1; helper 3
# part: reception, Kungälv; reception, Lerum; staff 3
# about: the way to the clinic; waiting without a number; the green cap; a form filled in twice; a nurse called Maj
# about: parking; the word "pressure"; a letter kept in the bread tin; how she tells the bottles apart; driving home
# about: the daughter's telephone; music in the exam room
- Transcript: {part}
- {part}, {#2-6}th part of the recording
- Recording of {part}, cleaned
: {min} minutes, {#900-6200} words; longest passage on {about}.
: {#2-19} places inaudible; on {about} at {#0-2}.{#10-59} by the recorder's clock.
: Names replaced {#1-14} times. Mostly about {about}; one passage for the readout.
= minutes int {min}
* pilot-talk | tool_output | /project/lantern/research | 142-183 | 16 | research, transcript
> lantern-pilot-start, research-w2
# who: pilot patient {#3-40}; reception, Lerum; reception, Kungälv; diary {#1-12}; a helper; the Wednesday group
# about: the letter with the code; where the messages are; drops at nine in the evening; printing for the fridge
# about: the strip of four numbers; signing in with one hand; a daughter who reads along; the large buttons
# min: {#6-48}
- Pilot talk: {who}
- {who} on {about}
- Recording, {who}
: {min} minutes; most of it on {about}, {#2-9} sentences marked.
: Names replaced {#1-11} times. {about}, and at the end a compliment for Ana's words.
: {#300-4100} words in {min} minutes; one contradiction about {about}.
= minutes int {min}
* web-work | tool_output | /session | 0-183 | 36 | web search
# q: tide tables as open data / the hydrographic office has them, hourly, free with attribution
# q: ferry apps in Norway / three, all with the price first
# q: large type guidelines for low vision / two associations, both say 18 to 20
# q: haptic patterns for validity / vendor guidelines only, one talk from a metro company
# q: legal age for senior fares / differs by municipality, 65 or 67
# q: printing on eye-friendly paper / matt, off-white, 90 grams
# q: rate of missed appointments in clinics / between 4 and 11 %
# q: cap colours of eye drops / no standard at home, one in the States
# q: names for the state "waiting for tide" / pilots say "standing by"
# q: icon silhouettes of vessel classes / a museum in Karlskrona
# q: two first names in records / a forum of archivists with strong opinions
# q: signs that survive salt water / vinyl, seven years, ask for UV ink
# q: e-ID for relatives / guardianship register, slow
# q: how others retire a website / nine posts, most end with redirects
# q: measuring screen luminance / cinema meters do
- Web search: {q}
- Looked up: {q}
- Search notes, {q}
: {q.1}. {#4-38} results, {#2-6} opened, one worth keeping.
: {q.1}; the rest is marketing. {#2-9} minutes.
: best source is {#1-14} years old: {q.1}.
* spreadsheet | tool_output | /session | 3-183 | 24 | numbers
# sheet: hours by project; ticket types by sales; calls by topic
# sheet: redirects; bugs by screen; food per week; interview slots; route colours; taxi rides
# what: one row counted twice; the sum is right, the column is not; a blank month; orange rows left out
# what: the date was text; nothing odd; two names for one person
- Sheet summed: {sheet}
- {sheet}, as of {today}
- Pivot of {sheet}
: {#12-640} rows, total {#40-9800}; {what}.
: Largest group holds {#18-71} %, smallest {#1-6} %; {what}.
: Compared with last time: {#1-40} rows more; {what}.
* commits | tool_output | /project/pebble | 2-183 | 26 | code
> pebble, rasmus
# what: button variants by night; the notice grows a close mark; spacing scale applied; six retired components removed
# what: focus ring in two tones; token names; table split begun and reverted; Arabic mirrored except pictures
# what: dim colours; a comment in verse; icon aliases that were promised away
- Commits by Rasmus, {weekday} night
- Pebble changes up to {today}
- What changed in Pebble: {what}
- Diff read: {what}
: {#2-17} commits, {#20-940} lines in, {#10-700} out: {what}.
: {what}; last one at {#0-4}.{#10-59} in the morning.
: {#1-4} changes touch Lantern as well: {what}.
* crash-reports | tool_output | /project/atlas/app | 106-183 | 32 | crash, operations
> atlas-beta, atlas-crash
# n: {#2-64}
# where: map; wallet; search; start; alerts; receipt; QR screen
# what: memory; a nil pier; date in another calendar; the keyboard again; an old certificate on a very old phone
# what: rotation on a tablet; a name with an apostrophe; no pattern yet
- Crash reports, {today}
- Crashes on the {where} screen
- {n} crashes since yesterday
- Top crash: {where}
: {n} reports in a day, mostly {where}: {what}.
: {where} leads with {#20-70} %: {what}. Fixed in the build after next.
: Free of crashes: {~96.9-99.8} %. Worst on {where}, cause {what}.
= reports int {n}
* store-reviews | tool_output | /project/atlas | 148-183 | 26 | reviews
> atlas-reviews
# n: {#6-70}
# says: wants a widget; missed the boat, blames us, was early; likes the knock; finds the blue too blue
# says: asks for bicycles; cannot find the senior fare; thanks the desk; wants the old icon; "works in the fog"
# says: asks for Finnish; prints tickets anyway; complains about the weather; loves "waiting for tide"
- Store reviews, {today}
- New reviews: {says}
- {n} new reviews
: {n} new, average {~3.4-4.9}; the most helpful one {says}.
: One star: {says}. Five stars: {#3-41}.
: Answered {#1-9}, translated {#0-4}; repeated theme: {says}.
* redirects | tool_output | /project/old-site | 1-62 | 30 | web, operations
> old-redirects, old-site
# n: {#12-212}
# code: 200; 301; 302; 404
# page: /kontakt; /jobb; /nyheter/2017; /case/hamnen; /om-oss/viktor; /press; /logo.pdf; /kurs/typografi; /en/maps; /ko
# what: chain of three hops; lands on the friendly page; 302 where 301 was meant; loops once; fine
# what: caption lost on the way; answers only with a slash at the end
- Redirect check: {page}
- {n} old addresses tried
- Crawl of the old site, {weekday}
- Old page {page}
: {page} {what}; {#1-40} visits last month.
: {n} checked, {#0-19} wrong; for example {page}: {what}.
: Header says {code}, body says welcome. {page}: {what}.
* old-export | tool_output | /project/old-site | 2-58 | 18 | files
> old-export, old-site
# part: news; case studies; team pictures; typography course; press kit; forms; footers; the secret page
- Export of {part}
- Files found: {part}
- {part}, images matched
: {#9-340} files, {#1-48} without a caption, {~0.1-3.9} GB.
: {#2-60} duplicates by content, {#1-9} by name only.
: {#30-99} % matched to a page; the rest looks like {#2001-2016}.
* pilot-counts | tool_output | /project/lantern | 141-183 | 22 | pilot, numbers
> lantern-pilot-start
# what: two forgot the code; one is a relative; Lerum ahead; Kungälv after the phone calls
# what: print used more than messages
# what: most before breakfast; the strip was opened {#9-40} times; Arabic {#2-9} times
- Sign-ins in the pilot, {today}
- Pilot counters, {weekday}
- Who used what in Kungälv
: {#14-188} signed in, {#3-40} today; {what}.
: {#2-31} printed a result, {#1-12} wrote a message; {what}.
: Calls to reception {#8-40}, last week {#11-52}; {what}.
* words-check | tool_output | /session | 90-183 | 24 | writing
> mara-spelling, ana
# text: store description; error texts; letter to patients; sticker for the signs; case study, page {#1-4}; talk notes
# text: advert for content designer; fare rules; consent form; reminder by text message; retrospective summary
# what: "simply" twice; one sentence of forty words; a passive that hides a person; "journey", removed; clean
# what: Ł missing; two spellings of Ponta Delgada; no verb in the heading
- Language check: {text}
- {text}, read for plain words
- Proof of the {text}
: Reading age {#8-14}; {what}.
: {#0-12} remarks in {#90-900} words: {what}.
: {what}. Ana's table of names applied, {#1-20} replaced.
* images | tool_output | /session | 37-183 | 20 | files, design
# what: route pictures; vessel silhouettes; slides; photographs from the bridge; drawings by Elsa; interview room
# what: sign mock-ups; tiles from the kiln; napkin from the lawyer
- Converted {what}
- Resized: {what}
- {what}, contact sheet
: {#3-64} files from {~4.1-88.0} to {~0.6-4.0} MB.
: {#2-30} images, {#0-4} refused for their colour profile.
: Sorted by time; {#2-9} doubles set aside, faces of children blurred in {#0-6}.
* papers | tool_output | /session | 4-183 | 20 | documents
# doc: surveyor's report; host's security form; fare regulation; sofa contract; clinic contract; insurance terms
# doc: workshop notes; preschool form; heat pump manual, in German; tide almanac; employment contract; tile licence
- Text of the {doc}
- {doc}, page {#1-48}
- Asked the {doc}
: {#2-61} pages, {#1-5} relevant; the clause is on page {#2-40}.
: Table on page {#3-30} read with {#0-7} doubtful cells.
: Answer found in a footnote; confidence fair, page {#2-40}, quoted in the chat.
* build-log | tool_output | /project/atlas/app | 12-168 | 26 | build
> app-build
# n: {#1180-1620}
# step: signing; tests; icons; upload; licences; assets; tokens from Pebble
# what: certificate; disk; nothing, just slow; a renamed icon; the store's server; two warnings nobody owns
- Build {n}
- Nightly build, {today}
- Build stopped at {step}
- Log of build {n}: {step}
: {~11.0-39.0} minutes, longest step {step}; {what}.
: Stopped in {step} after {~2.0-20.0} minutes: {what}.
: Passed on try {#1-3}; {step}: {what}.
= build int {n}
"""
