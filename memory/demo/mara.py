"""Mara's tastes, health, money and habits: what an assistant is asked for most."""

from typing import Final

HEALTH: Final = """
@ /user/mara/health
+ mara-penicillin | identity | 0 | Allergic to penicillin | health, allergy, core
Severe penicillin allergy since childhood: rash, swollen throat. Tell every doctor, dentist and pharmacist.
= drug string penicillin
= alternatives list ["erythromycin", "clindamycin"]
! allergy: must never be forgotten
> about mara
+ thyroid-dose | active_decision | 1 | Thyroid tablets, current dose | health, medication
Levothyroxine every morning, half an hour before coffee. Dose follows the blood test, not how she feels.
= dose_ug int 75
~ 40 88 | TSH at 5.9 in the blood test | call the pharmacy, the old box is not to be finished
~ 117 100 | still tired, TSH 4.4 | new blood test in eight weeks
= next_test date {I38}
~ 40 {I115} | dose changed | book at the health centre, before nine
~ 117 {I173} | dose changed again | the lab closes at eleven on Fridays
= tsh float 5.9
~ 116 4.4 | second test | dose goes up once more
! medication
+ mara-migraine | finding | 10 | What sets off Mara's migraine | health
Red wine and a skipped lunch together, hardly ever one alone. Screen glare makes it worse, does not cause it.
= triggers list ["red wine", "skipped lunch"]
~ 83 ["red wine", "skipped lunch", "paint fumes"] | two attacks while painting | windows open
+ migraine-med | preference | 10 | Migraine tablets that work | health, medication
Sumatriptan 50 mg at the first flicker; paracetamol does nothing. Not more than two days a week.
= stock int 6
~ 48 3 | used on three days in {M40} | reorder
~ 55 12 | pharmacy order arrived | none
~ 103 9 | took some to São Miguel | none
~ 152 5 | launch fortnight | reorder before {M165}
> about mara-migraine
+ mara-knee | finding | 14 | Left knee, runner's knee | health, running
Physio says the hip is weak, not the knee. Step-downs every other day; stop when pain passes 4 of 10.
= pain_0_10 int 5
~ 21 4 | first week of step-downs | keep going
~ 35 3 | second physio visit | 5 km allowed
~ 63 4 | carried boxes for the move | a week without running
~ 77 2 | rested | back to plan
~ 104 1 | walking on São Miguel did it good | none
~ 124 1 | day before the race | start slow
~ 145 2 | sitting all day before the launch | step-downs again
+ physio-sara | person | 14 | Sara at the physio practice | health, people
Physiotherapist at Linnéplatsen, slots before eight if asked by text. Wants a video of the squat.
+ health-centre | place | 8 | Health centre | health
Annedal health centre, blood tests before nine without booking on Mondays and Tuesdays.
= name string Annedal
~ 80 Mölndal Torg health centre | registered after the move | records move within a week, ask if not
= phone string 031 818 00 10
~ 80 031 345 09 60 | registered after the move | none
+ gp-name | person | 8 | Mara's doctor | health, people
Dr Emin for thyroid matters; writes long messages in the patient portal and means them.
= name string Dr Emin
~ 82 Dr Sjölander | changed health centre | first appointment is an hour, bring the history
+ mara-lenses | preference | 20 | Contact lenses | health
Daily lenses, right -2.75, left -3.25; glasses in the evening.
= right float -2.75
~ 108 -3.0 | eye test at Klara's own clinic, by accident of being there | order the new strength
= left float -3.25
+ mara-sleep | finding | 29 | Sleep and coffee | health, sleep
Coffee after 13.00 costs her about forty minutes of sleep; tea does not. Measured over three weeks with the watch.
= last_coffee string 13.00
+ mara-cortisone | gotcha | 43 | Reacts to wool-fat cream | health, allergy
The hand cream with lanolin gave her eczema twice. Read the list, it hides as "wool wax".
+ mara-vaccines | observation | 24 | Vaccinations | health
Tick-borne encephalitis second dose done, third due in {M160}. Tetanus good for another six years.
= tbe_doses int 2
~ 163 3 | third dose at Mölndal Torg | next one in three years
+ blood-donor | observation | 45 | Blood donor | health
A negative, gives at most three times a year, not within four weeks of a tattoo or a trip to the wrong places.
+ mara-ergonomics | finding | 32 | Neck pain comes from the laptop | health, work
Neck pain only on days without the external screen. The studio's second dock solves
it as long as nobody borrows it.
+ running-plan | active_decision | 21 | Ten-kilometre plan | health, running
Training for the 10 km on {D125}: three runs a week, the long one on Sunday, no intervals until the knee is quiet.
= longest_km float 4.0
~ 34 5.0 | knee quiet enough | none
~ 48 6.0 | steady | none
~ 76 6.5 | restart after the move | none
~ 90 8.0 | along the river, no pain | new shoes before the race
~ 113 9.0 | first long run after the holiday | taper from now
~ 125 10.0 | race day, 58.41 | find the next goal
> depends_on mara-knee
+ race-result | event | 125 | The ten-kilometre race | running, health
Finished in 58.41, negative split, hazelnut-free cake afterwards baked by Elsa.
= time string 58:41
> follows running-plan
+ dentist-crown | event | 58 | Crown on a lower molar | health
Crown fitted, told the dentist about penicillin, no antibiotic needed. Two weeks without nougat.
> mentions mara-penicillin
+ mara-iron | finding | 118 | Ferritin on the low side | health
Ferritin 19 in the same blood test as TSH; Dr Sjölander suggests iron every second day, never together with
thyroid tablets.
= ferritin int 19
! interaction with the thyroid tablets
> depends_on thyroid-dose
+ iron-timing | gotcha | 119 | Iron and thyroid tablets apart | health, medication
At least four hours between iron and levothyroxine, so iron goes with dinner and orange juice.
> depends_on thyroid-dose
+ elsa-asthma | finding | 62 | Elsa's cough is not asthma | health, children
Spirometry normal; exercise cough only in cold air. A buff over the mouth at training is enough.
+ ivo-fever-plan | preference | 26 | When Ivo has fever | health, children
Paracetamol by weight only if he is miserable; call 1177 after three days or if he will not drink.
= weight_kg float 18.4
~ 99 19.2 | weighed at grandmother's | dose changes
~ 150 19.9 | preschool check | dose changes
+ ivo-party-pen | gotcha | 51 | The pen stays within reach | health, allergy, children
At Lo's house the bag was left in the car. The pen travels on the child or the parent, never in the boot.
> about ivo-hazelnut
+ sunscreen | observation | 92 | Sunscreen that does not sting | health
The zinc one in the yellow tube; the spray from the kiosk gave Elsa red eyes.
+ therapist-note | preference | 36 | Not to be discussed at work | health, privacy
Health details stay out of anything shared with the studio, calendar titles included: use "private".
! privacy
"""

TASTES: Final = """
@ /user/mara
+ coffee-order | preference | 1 | Coffee order | food
Cortado with oat milk, small cup. If the place has no cortado, black filter and no discussion.
= order string cortado, oat milk
~ 64 black filter | gave up oat milk after the third sour carton | the kitchen order too
+ favourite-cafe | preference | 3 | Favourite café to work in | food, places
Table by the radiator, plug under the bench, nobody minds if she stays.
= name string Café Kardemumma, Linnégatan
~ 72 Bageri Tallen, Mölndal | moved house | open from seven, no plugs after noon
~ 141 Kvarnen by the falls | Tallen got loud | closed on Mondays
+ no-meetings-monday | preference | 4 | No meetings on Monday before ten | work, calendar
Monday until ten is for planning the week. Decline or move anything short of a client emergency.
= until string 10.00
~ 120 9.30 | leads' meeting now sits there | stand-up stays
+ mara-writing-tools | preference | 6 | Paper first, then screen | work, habits
Sketches with a 0.7 pencil on squared paper; screenshots of the paper are fine as attachments.
+ mara-calls | preference | 7 | Calls without camera after four | work, habits
Camera off after four in the afternoon. She says so herself at the start; no apology needed.
+ seat | preference | 11 | Seats on trains and planes | travel
Train: window, facing forward, table if there is one. Plane: aisle, left side.
+ mara-news | preference | 13 | Morning summary | habits
At 7.40: calendar, weather for cycling, one line on trains if the children travel. Nothing about markets.
= at string 7.40
~ 70 7.20 | longer way to work from Mölndal | none
+ mara-music | preference | 16 | Music for concentration | music, work
Slow piano or field recordings, no lyrics in Swedish, volume two below what the speaker thinks.
+ mara-gifts | preference | 23 | Gifts from the children | gifts
Would rather have one drawing framed than anything bought.
+ flowers | preference | 25 | Flowers | gifts
Ranunculus or anything that looks picked; lilies are out because of the cat.
+ clothes-size | preference | 30 | Sizes | shopping
Shoes 39 wide, trousers 40 long, no wool next to the skin.
+ mara-tipping | observation | 42 | Tips | money, habits
Rounds up to the next ten at restaurants, always cash for the hairdresser.
+ hair | preference | 53 | Hairdresser | habits
Every eight weeks with Zeynep at Sax & Co, evenings only, leaves the fringe alone.
= next date {I72}
~ 72 {I129} | appointment kept | book the one after at the till
~ 129 {I185} | appointment kept | none
+ mara-film | preference | 39 | What to watch together | evenings
Slow crime with landscapes for both; Jonas alone gets submarines. Nothing with children in danger.
+ mara-board-games | preference | 46 | Games that work with both children | family, evenings
Co-operative ones under forty minutes. Ivo may not lose to Elsa twice in a row.
+ mara-language-practice | active_decision | 50 | Portuguese twice a week | hobby, language
Conversation with Inês on Tuesdays at 20.00 and one article on Fridays, so that it does not rust.
= tutor string Inês, Braga
= sessions_done int 0
~ 63 3 | one missed because of packing | none
~ 96 7 | before the holiday | ask her for words about the sea
~ 118 12 | used it for a fortnight in the Azores | move on to the subjunctive
~ 160 19 | two skipped during the launch | none
+ inbox-rule | preference | 9 | What may interrupt | work, habits
School, preschool, Jonas, Birgit, and the on-call line during launch weeks. Everything else waits for the hour.
= allowed list ["school", "preschool", "Jonas", "Birgit"]
~ 140 ["school", "preschool", "Jonas", "Birgit", "Atlas on-call"] | launch fortnight | remove a week after launch
~ 161 ["school", "preschool", "Jonas", "Birgit"] | launch is over | none
! used to decide what to pass on
+ mara-spelling | preference | 8 | Words she will not have in copy | writing, work
No "seamless", "delight", "simply" or "journey" in anything that carries her name.
> about mara-voice
+ mara-decisions | preference | 15 | How to put a choice to her | writing, work
Two options with the cost of each and a recommendation. Three is already a meeting.
> about mara-voice
+ birthdays-rule | preference | 19 | Birthday reminders | family, calendar
Remind eight days before, with one idea, and once more two days before. Never on the morning itself.
+ photos-rule | preference | 34 | Photographs of the children | family, privacy
No pictures of the children's faces in anything public, including studio social posts.
! privacy
+ mara-charity | active_decision | 81 | Monthly donations | money
Sea Rescue Society and the library in Kalmar; no new ones without asking her first.
= total_sek int 350
~ 120 450 | pay rise | none

@ /user/mara/money
+ bank | identity | 10 | Bank and accounts | money
Joint account at the savings bank for the house, her own for the rest; codes are never stored here.
= adviser string Pernilla Wång
~ 94 Adnan Kurtović | Pernilla moved to Skövde | renegotiation meeting is his first
+ mortgage | active_decision | 49 | Mortgage on the house | money, home
Signed for Gullregnsvägen: three parts, one fixed for three years, two floating.
= rate_floating float 4.12
~ 84 3.98 | rate cut | automatic
~ 122 3.71 | asked Adnan with the new payslip | ask again after a year
= monthly_sek int 18450
~ 84 18120 | rate cut | none
~ 122 17390 | lower margin | move the difference to the roof fund
+ roof-fund | active_decision | 76 | Roof fund | money, home
Savings for the roof: the surveyor gives it five years, Gunilla gives it three.
= balance_sek int 12000
~ 95 15000 | standing order | none
~ 125 20500 | lower mortgage | none
~ 155 26000 | standing order, larger | none
+ insurance-home | active_decision | 60 | Home insurance | money, home
Moved from flat to house cover with the same company; deductible 3,000, water damage 6,000.
= premium_sek_year int 4980
+ car-decision | decision | 109 | No second car | money, transport
Costed twice; a cargo bike and two taxis a month are cheaper than the small electric car.
= monthly_difference_sek int 2140
> contradicts car-wish
+ car-wish | observation | 71 | Perhaps a second car in Mölndal | money, transport
First week after the move both parents wanted the car on the same morning three times.
+ tax-travel | gotcha | 54 | Commuting deduction needs two hours | money, tax
The deduction only applies if the car saves two hours a day; from Mölndal it saves eleven minutes.
+ budget-food | active_decision | 27 | Food budget | money, food
Agreed ceiling for groceries, eating out apart. Tracked on Sundays, without blame.
= ceiling_sek int 9500
~ 90 9000 | house costs | fewer deliveries
~ 152 9800 | prices | none
+ reimbursement | preference | 37 | Expenses at the studio | money, work
Photograph the receipt the same day; send the batch to Halima on the last working day.
> about halima
"""
