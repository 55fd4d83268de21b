"""Lantern: the patient portal for Klara Eye Clinics, from interviews to pilot."""

from typing import Final

LANTERN: Final = """
@ /project/lantern
+ lantern | project_status | 1 | Lantern, the project | work, lantern
Patient portal for nine eye clinics: appointments, drops, results in plain words. Pilot in two clinics.
= status string discovery
~ 35 interviews | first eight patients booked | none
~ 63 concept | research readout approved | none
~ 84 design | budget released | none
~ 105 build | record import started | none
~ 126 pilot preparation | Kungälv and Lerum chosen | reception training
~ 141 pilot | first 50 patients invited | Wednesday sessions
~ 158 pilot, extended | six more weeks | contract addendum
= pilot_start date {I119}
~ 98 {I141} | record import slower than hoped | none
= client string Klara Eye Clinics -> dr-klara
! the second project asked about most
+ lantern-team | observation | 3 | Who does what on Lantern | work, lantern, people
Mara design half-time, Yuki research, Ana words, Rasmus front end, backend to be found.
= backend string to be found
~ 91 Leila | moved from Atlas | none
~ 161 Nils, on contract | Leila back to Atlas | handover in two weeks
> part_of lantern
+ lantern-large-type | decision | 11 | Base size 20, not 16 | work, lantern, design
After drops the pupils are wide for hours: 20 px is the smallest text anywhere, buttons 56 high.
> about dr-klara
+ lantern-contrast | decision | 18 | Contrast 7 to 1 throughout | work, lantern, design
Stricter than the law because the audience sees badly today of all days.
+ lantern-results-rule | active_decision | 46 | Results appear after a person has read them | work, lantern
No result is shown before a clinician has released it; at night it says when someone will look.
! patient safety
> part_of lantern
+ lantern-words-results | finding | 53 | "Negative" reads as bad news | work, lantern, writing
Eleven of fourteen took "negative" as a bad result. We write "nothing found".
+ lantern-drops | decision | 60 | Drop reminders by colour of the cap | work, lantern, design
Patients say "the green one", not the name. Cap colour first, name second, and a note for generic bottles.
+ lantern-drops-risk | gotcha | 95 | Cap colours differ between makers | work, lantern, risk
The same drug has a teal and a white cap depending on the batch. Colour comes from the batch table or is left out.
> contradicts lantern-drops
+ lantern-login | decision | 67 | Sign-in with e-ID, helper access apart | work, lantern
E-ID for patients; relatives get their own access with an end date instead of a shared code.
+ lantern-helper | finding | 57 | Half of them come with a helper | work, lantern, research
A daughter or neighbour books for them. The portal must say who did what without telling on anyone.
> about ingrid-patient
+ lantern-privacy | active_decision | 9 | No patient data outside the clinic network | work, lantern, privacy
Only invented patients in design files, screenshots and tests. The invented family is called Blom.
! privacy
+ lantern-fake-family | observation | 18 | The Blom family, test patients | work, lantern
Alma 81, Sten 79, Rut 44, each with believable histories. Sten has every disease.
+ lantern-import | finding | 102 | Record import drops the second first name | work, lantern, risk
The old system keeps two first names in one column; the import kept the first. Found by Leila with the Bloms.
> about leila
+ lantern-import-state | project_status | 94 | Record import | work, lantern
How far the import of old records has come.
= clinics_done int 0
~ 105 1 | Kungälv, test copy | none
~ 120 2 | Lerum, test copy | none
~ 137 2 | both for real | pilot can start
~ 165 4 | two more during the pilot | none
= errors_open int 214
~ 105 131 | names fixed | none
~ 112 88 | addresses | none
~ 120 40 | duplicates by hand | none
~ 133 12 | last ones are people with two numbers | none
~ 137 0 | signed off by Hugo | none
+ lantern-pilot-sites | decision | 123 | Pilot in Kungälv and Lerum | work, lantern
One large, one small; Lerum because reception there says no to everything and is then right.
> about hugo
+ lantern-reception | finding | 128 | Reception will not read two screens | work, lantern, research
They keep the old system open and cover ours with it. A strip of four numbers is all that survives.
+ lantern-strip | decision | 129 | A strip instead of a dashboard | work, lantern, design
Four numbers along the top of their old screen: waiting, late, to call, done.
> follows lantern-reception
+ lantern-pilot-start | event | 141 | First fifty patients invited | work, lantern
Letters, not e-mails, with a large code that can be typed with one hand.
= invited int 50
~ 148 120 | second batch | none
~ 162 260 | extended | none
= signed_in int 0
~ 144 31 | before the weekend | none
~ 148 79 | letters work | none
~ 155 101 | reminder by phone | none
~ 169 188 | extended | none
> part_of lantern
+ lantern-noshow | finding | 155 | Fewer missed appointments | work, lantern
Missed appointments in Lerum fell from 9.1 to 6.4 % in two weeks. Too early to print, says Yuki.
= missed_percent float 6.4
~ 169 6.9 | four weeks | still better
+ lantern-extend | decision | 158 | Pilot extended by six weeks | work, lantern
Dr Mehta wants the dry-eye season in the numbers. Addendum signed by Viktor.
> about dr-klara
+ lantern-darkroom | gotcha | 78 | The exam room is dark | work, lantern, design
Staff open the portal in a dark room: white flashes hurt the patient's eyes. A dim mode for that room only.
+ lantern-print | decision | 72 | Everything prints on one page | work, lantern, design
Each result prints in large type on one sheet; the fridge door is the real portal.
+ lantern-sms | decision | 100 | Texts carry no diagnosis | work, lantern, privacy
"You have a message from the clinic", never more. Links go to the front page only.
+ lantern-lang | decision | 85 | Five languages at the pilot | work, lantern, writing
Swedish, English, Arabic, Somali, Finnish. Arabic mirrored, numbers as spoken at the clinic.
+ lantern-arabic | gotcha | 115 | Mirrored eye drawings | work, lantern, design
The layout mirrored the eye diagram, so left became right. Pictures of bodies must never mirror.
! patient safety
> about lantern-lang
+ lantern-budget | project_status | 10 | Hours left on Lantern | work, lantern, money
Design hours in the Lantern contract.
= hours_left int 380
~ 35 331 | monthly report | none
~ 63 268 | monthly report | none
~ 94 206 | monthly report | none
~ 126 129 | monthly report | none
~ 158 210 | addendum | none
~ 171 188 | monthly report | none
+ lantern-legal | finding | 42 | Portal counts as a medical product? | work, lantern, risk
Lawyer says no as long as it only shows and reminds. Any advice computed from values would change that.
> part_of lantern
+ lantern-no-advice | active_decision | 43 | Lantern never advises | work, lantern, risk
It shows what the clinic wrote and reminds of what the clinic ordered. No thresholds, no traffic lights on values.
> depends_on lantern-legal
+ lantern-icons-eye | decision | 66 | No eyes as icons | work, lantern, design
Ingrid: "I know where I am." Icons show the thing to do, not the organ.
> about ingrid-patient
+ lantern-demo-klara | event | 98 | Prototype shown without Mara | work, lantern
Freja presented while Mara was on leave; Dr Mehta asked for even larger type and hired nobody's cousin.
> about freja
+ lantern-nils | person | 162 | Nils Forsell, contractor on Lantern | work, people
Backend for three months, two days in the office; reads the wiki before asking, a first.
= role string contract backend engineer

@ /project/lantern/research
+ research-plan | active_decision | 14 | Interview plan for Lantern | work, lantern, research
Fourteen patients, four helpers, six staff, in their own rooms; forty minutes; nobody called "user".
= done int 0
~ 35 3 | first week | none
~ 42 8 | Kungälv | none
~ 50 15 | helpers found through Ingrid | none
~ 57 24 | last staff interview | readout
> about yuki
+ research-consent | gotcha | 25 | Consent form in large type | work, lantern, research
Two participants signed what they could not read. The form is now 20 point, read aloud, and sent home in advance.
+ research-p3 | finding | 36 | Participant 3: the drawer of bottles | work, lantern, research
Keeps eleven empty drop bottles to show which worked. Our list of medicines should remember the ended ones too.
+ research-p5 | finding | 38 | Participant 5: the magnifier | work, lantern, research
Holds the phone under a reading machine. Animations make it useless; so nothing moves by itself.
+ research-p7 | finding | 45 | Participant 7: afraid of the letter | work, lantern, research
Left the clinic's letter unopened for three weeks. The first line must say whether it is urgent.
+ research-p9 | finding | 46 | Participant 9: two calendars | work, lantern, research
Paper at home, phone outside, and they disagree. A printed month solved it better than any sync.
+ research-p11 | finding | 50 | Participant 11: the daughter in Oslo | work, lantern, research
Daughter books, mother attends, neither knows what the other was told.
+ research-p14 | finding | 56 | Participant 14: proud of the score | work, lantern, research
Writes down pressure values like football results; wants the trend, not the verdict.
+ research-staff2 | finding | 52 | Reception: the four questions | work, lantern, research
When, where, may I drive, do I pay. Everything else is for the doctor.
+ research-staff4 | finding | 53 | Optician: dilated and driving | work, lantern, research
One in ten still drives home with wide pupils. The reminder the day before must ask who fetches them.
+ research-readout | event | 60 | Research readout for Lantern | work, lantern, research
Forty minutes, seven quotes, three principles; Hugo took the photograph of the drawer for reception.
> part_of lantern
+ research-principles | decision | 60 | Three principles from the interviews | work, lantern, research
Say whether it is urgent; remember what ended; nothing moves by itself.
> follows research-readout
+ research-recruit | gotcha | 32 | Recruiting through the clinic biases | work, lantern, research
Reception picks the cheerful ones. Four more were found through the patient council.
+ research-pay | decision | 25 | Thank participants with a taxi | work, lantern, research
A taxi both ways instead of a voucher; attendance went from six of ten to ten of ten.
+ research-diary | finding | 151 | Diary study: evenings are for drops | work, lantern, research
Twelve diaries: reminders at 21.00 were kept, those at 18.00 collided with dinner.
+ research-w2 | finding | 158 | Pilot interviews, second week | work, lantern, research
Nobody found the messages until the letter named the page. Then everybody did.
+ research-quote | observation | 63 | The quote everybody repeats | work, lantern, research
"I don't want to be informed, I want to know." Participant 7. Use with permission only.
+ research-names | preference | 16 | Naming of recordings | work, lantern, research
Date, clinic letter, number: never initials. Deleted ninety days after the readout.
= delete_by date {I153}
~ 150 {I181} | council asked for one more listening | Yuki deletes and confirms
"""
