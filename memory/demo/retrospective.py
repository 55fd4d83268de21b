"""The minutes that Mara gave the assistant to study, and what it took down of them.

They are as long as a message has to be for that. Each section is its text, a line of dashes, and the notes of it in the
notation of the other chapters (``notes.py``). A note whose key was there before says more about the same thing.
"""

from typing import Final

MINUTES: Final = """
Please remember this: Ewa's minutes of our retrospective of Atlas, in full.

# Atlas retrospective, {D164}

Present: Mara, Oskar, Leila, Dimitri, Ana, Ewa. By phone for the last half hour: Lone from the harbour desk at
Saltholmen and Captain Ulla from the Vrångö boat. Sam sent a letter, which is read out at the end. Ewa leads and
writes this down; corrections to her by Friday. Everybody brought three cards: one thing to keep, one to drop, one
to try.

The aim of today is not to find out who was late. It is to be able to do the next launch, whichever it is, with
fewer nights. Ewa reminds everybody that she came on the day of the freeze and that she will ask stupid questions.
The first one: why does nobody in this room know by heart what was promised to the client in the beginning? It takes
us eleven minutes to find the sentence in the contract.

----
+ minutes | event | 164 | Retrospective of Atlas, the meeting | work, atlas
Mara, Oskar, Leila, Dimitri, Ana and Ewa looked back at the launch; Lone and Captain Ulla joined by phone.
= led_by string Ewa
= corrections string Ewa, by Friday
> about atlas
====
## The date

Planned was a launch on {D127}. It was moved once, on {D93}, by three weeks, because the hosting company of Skarven
Ferries wanted a security review before it opened the port for the disruption feed. Birk agreed on the phone, Viktor
confirmed in writing the same evening. From then on the date was {D148}, and it held: live at 06.00, first ticket
sold four minutes later.

What helped was the rule that launches are on a Tuesday at 06.00 and never before a weekend. It was written for the
harbour desks, which are not staffed then, but it also meant that everybody slept on Monday. Oskar wants the rule
kept for every release that changes a screen, Dimitri for every release. Agreed: every release that passengers can
see.

What did not help was that the review of the hosting company was known since day 30 and on nobody's list. Leila had
mentioned it in a message to Sam; Sam had it in the private spreadsheet; nobody else opened that. When the port
stayed shut, the first we heard of it was an error in the log. Three weeks cost the client a little over ninety
hours of design and us a reputation for being on time that had lasted two projects.

----
+ minutes-date | decision | 164 | When Atlas was to be launched, and when it was | work, atlas, deadline
Planned for {D127}, moved once by three weeks, live on {D148} at 06.00.
= launch_rule string a Tuesday at 06.00, for every release that passengers can see
= moved_because string the hosting company's security review was on nobody's list
> part_of minutes
+ minutes-review | finding | 164 | The security review was known since day 30 | work, atlas, risk
Leila had told Sam, Sam had it in a private spreadsheet, and nobody else opened that.
= design_hours_lost string a little over 90
> part_of minutes
> about atlas-feed-refused
====
## The night of the old phones

On {D144}, four days before the launch, the route map took down every phone with 2 GB of memory. Dimitri found it on
the third try with the cracked phone that all of us had laughed about. All 14 route images were decoded at once. The
fix, loading the visible route alone, was in by {D147}: 80 milliseconds more when the map opens, 190 megabytes less.

We had the numbers to see it coming. The beta counted 97.1 % sessions without a crash at its start and 99.2 % at the
candidate, and we looked at the average. Of the phones with 2 GB, 88 % came through, and there were eleven of them
among 512 testers. Dimitri: an average over phones is an average over people with good phones. From now on the crash
rate is looked at per class of memory, and a class with fewer than thirty phones is reported as unknown, not as
fine.

Oskar did two nights in a row because the rota began with the launch and not with the candidate. Nobody noticed
until he fell asleep in the stand-up. The rota begins with the release candidate from now on. Mara stays second line
until 22.00 for words and screens; nobody is second line at night.

----
+ minutes-crash | finding | 164 | Crash rates hide old phones behind an average | work, atlas, risk
At the candidate 99.2 % of sessions were free of crashes, but 88 % of those on phones with 2 GB; eleven such phones were
in the beta.
= from_now_on string per class of memory; fewer than thirty phones count as unknown
> part_of minutes
> about atlas-crash
+ minutes-rota | decision | 164 | The on-call rota begins with the release candidate | work, atlas
It began with the launch, so Oskar did two nights in a row before it.
= second_line string Mara until 22.00, nobody at night
> part_of minutes
> about atlas-oncall
====
## The desks

Lone, on the phone: 75 calls on the first morning, 60 of them about the senior fare, which on small phones lay below
the fold. That was changed on the day after by sorting fares by what is sold on the route. The other fifteen were
about the old app, which people still had and which said that there were no departures. Lone had asked in spring
what the old app would say after the change. The question is in the minutes of {D110}, with no name behind it.

Ulla, on the phone: the word for waiting on the tide is the best thing in the app. Crews are asked less, and
passengers repeat it correctly. She would like to have it on the boards on the piers too. Those belong to the
harbour, not to Skarven Ferries; Ewa asks Birk whom to write to.

Decided: one person from a desk is in the weekly meeting from the freeze on, paid by the client. Lone is willing. A
question that comes from a desk gets a name and a date in the meeting in which it comes up.

----
+ minutes-desks | decision | 164 | Somebody from a harbour desk joins the weekly meeting | work, atlas
From the freeze on, paid by the client; a question from a desk gets a name and a date at once.
= who string Lone is willing
> part_of minutes
> about lone
+ minutes-old-app | gotcha | 164 | The old app told people that there were no departures | work, atlas
Fifteen of the first 75 calls. Lone had asked about it in spring, and nobody's name stood behind the question.
= asked_on string {I110}
> part_of minutes
> about lone
+ minutes-boards | observation | 164 | "Waiting for tide" could be on the boards of the piers | work, atlas, writing
Captain Ulla asks for it. The boards are the harbour's; Ewa asks Birk whom to write to.
= next string Ewa asks Birk
> about captain-ulla
> about minutes
====
## Words

Ana has counted. The app says 412 different things to a passenger, 61 of them when something is wrong. Of these 61,
nine were changed in the first week, all for the same reason: they said what the system could not do, and not what
somebody standing on a pier in the rain can do now. "No connection to the timetable service" has become "These times
are six minutes old; the boat may be late". The other 52 are to be read again with that question in mind, one screen
a week, and by somebody with wet hands.

"Delayed", "waiting for tide" and "cancelled" have stood up to everything, colours included. Two passengers have
asked what a tide is. The answer is now one line below the word and no link, because nobody opens a link on a pier.

Names: three passengers with an Ł in their name wrote in to say thank you. Nobody of us had thought that this would
be noticed by those for whom it works. Ana would like to have that in the case study, with their consent.

----
+ minutes-words | decision | 164 | Every message says what a passenger can do now | work, atlas, writing
Nine of the 61 messages for trouble said what the system could not do and were changed; the other 52 are read again.
= pace string one screen a week
= read_by string somebody with wet hands
> part_of minutes
> about atlas-words-delay
====
## The first week in numbers

31,840 tickets, of which 71 % were bought without an account and 84 % paid with the phone. Median from opening the
app to a ticket: 48 seconds; in the old app it was two minutes and ten. 1,206 calls at the desks, as against 2,900
in the last week of the old app, and after the third day hardly one about buying. 4.1 stars at the end of the first
week, after 3.6 on the first evening. Crash-free sessions 99.4 %, and 98.9 % on phones with 2 GB, which are counted
now.

What we do not know: how many people stood at a pier and gave up. Mara wants to spend two mornings at Saltholmen
with a counter in her pocket before the next thing is designed, and one of them in the rain. Ewa asks for a number
that the client can look at every month and that is not stars. Suggested: boardings with a ticket that was bought on
the way to the pier. Dimitri finds out whether the scanners can tell.

----
+ minutes-week | finding | 164 | The first week of Atlas in numbers | work, atlas, research
31,840 tickets, half the calls of before, 4.1 stars, and nobody knows how many gave up at the pier.
= tickets int 31840
= seconds_to_ticket int 48
= calls int 1206
= crash_free_percent float 99.4
> part_of minutes
> about atlas-reviews
====
## How we worked

The weekly meeting was too long until {D72} and too short afterwards. Before, everybody told what they had done;
later, Sam was leaving and nobody told what they had not. Ewa's way, three questions in a fixed order (what is
decided, what is in the way, who asks whom), took eighteen minutes on average and is kept.

Reasons in one line behind each decision: Leila has looked them up. Of 118 decisions, 97 have such a line, and in
five cases it saved a discussion that would have been the third one about the same thing. The 21 without a line are
nearly all from the two weeks in which the date was moved. So when it matters most, nobody writes. Mara suggests
that whoever takes the decision says the line aloud and that the assistant takes it down.

The trip on the boats in week three was argued about for its costs and has been quoted in every design review since.
Oskar saw there that deckhands hold a phone in the left hand, because the right one holds the rail; the button for
the scanner went to the left a day later. Decided: a trip at the beginning of each project, paid by the studio if
the client does not want to.

----
+ minutes-trip | decision | 164 | A trip to where the thing is used, at the beginning of each project | work, atlas
Paid by the studio if the client does not want to. On the boats Oskar saw which hand is free.
= found string deckhands hold the phone in the left hand, the right one holds the rail
> part_of minutes
+ minutes-reasons | finding | 164 | When it matters most, nobody writes down why | work, atlas
97 of 118 decisions have a reason in one line; those without are nearly all from the weeks in which the date was moved.
= try string whoever decides says the line aloud, and the assistant takes it down
> part_of minutes
====
## Signs and paper

Sixty signs were printed five weeks before the old date, because the printer had a free day. Forty were up when the
date moved. Mats's brother printed stickers in the same blue; putting them on took two people a day and a half and
one boat. Ana counted: the free day at the printer's saved 900 kronor, the stickers cost 4,200. Nothing with a date
on it is printed before the freeze. Signs without a date are fine at any time, and most signs need none.

The leaflet for the boats was right at the first try, in three languages, since Ana had it read by two deckhands
before it was set. Keep that. The deckhands would like to be asked about the winter edition as well.

----
+ minutes-print | decision | 164 | Nothing with a date on it is printed before the freeze | work, atlas, money
A free day at the printer's saved 900 kronor; stickers for the old date cost 4,200 and a day and a half.
= old_signs string 40 of 60
> part_of minutes
> about atlas-signs
====
## Keep, drop, try

Keep: testing on Dimitri's cracked phone; reasons in one line behind each decision; the boat trip with the whole
team in week three, after which nobody drew a pier from memory again; reading every text to a deckhand.

Drop: the roadmap in a private spreadsheet; averages over phones; meetings after 15.00 on Fridays, of which there
were nine, and of which nobody remembers one decision.

Try: the freeze a week earlier than feels right; a list of all outside reviews and permits with a date and a name,
looked at every Monday; a rehearsal of the first morning, with somebody who plays the desk. Ewa keeps the list of
permits. Oskar prepares the rehearsal for the winter timetable, which is small enough to practise on.

----
+ minutes-permits | decision | 164 | A list of outside reviews and permits, looked at every Monday | work, atlas, risk
Each with a date and a name, so that no review comes as a surprise again.
= kept_by string Ewa
> part_of minutes
> follows minutes-review
+ minutes-rehearsal | decision | 164 | A rehearsal of the first morning | work, atlas
Somebody plays the harbour desk. First for the winter timetable, which is small enough to practise on.
= prepared_by string Oskar
> part_of minutes
====
## Sam's letter, in short

Sam writes that the spreadsheet was private because the first one was public and was laughed at in a meeting. That
is read out twice. Nobody remembers the meeting, and everybody believes it. Mara says that this belongs under "drop"
as well and writes the card herself. Sam also writes that the tour of three cards should have stayed in the app. On
that we do not agree with him, and the numbers do not either: 4 % of first starts end before the first search, as
against 11 % in the old app, which had a tour.

## What is left open

Who pays for the stickers: Birk and Viktor have different memories of the call. Ewa asks both in one message.
Whether the night boat gets the dark screens first: the crews say yes, the calendar says after the invoices for
municipalities. And the party. It is on the Vrångö boat or not at all, says Ulla, and she has the keys. Who may say
no to the client when a date is asked for in a corridor: so far whoever is asked, from now on Ewa, and whoever is
asked says so. Leila would like to have the error log of the first night explained by somebody from the hosting
company, over coffee and not over mail; Oskar knows somebody there from school.

The number of the pier on Donsö is on nobody's list either, although it changed hands with the rebuild, and the new one
comes with the spring timetable. Leila asks the harbour and tells Dimitri, who has to test it twice in any case.

What nobody put on a card, and what Mara says in the end: it was a good team, it is a good app, and Ulla's cousin
still has the first ticket and will not let anybody scan it. Minutes end at 16.40.

----
+ minutes | event | 164 | Retrospective of Atlas, the meeting
Ended at 16.40.
= open string who pays for the stickers; whether the night boat gets dark screens first; the party
+ minutes-sam | observation | 164 | Why the roadmap was in a private spreadsheet | work, atlas, people
The first one was public and was laughed at in a meeting, Sam writes; nobody remembers it, and everybody believes it.
= said_by string Sam, in a letter
> follows minutes-review
+ minutes-tour | finding | 164 | Fewer give up before the first search without a tour | work, atlas, research
4 % of first starts end before the first search; in the old app, which had a tour, it was 11 %.
= against string Sam, who would have kept the tour
> part_of minutes
> about atlas-onboarding
"""

# What is the same thing as a topic of the other chapters.
SAME: Final = {"minutes-date": "atlas-deadline"}
