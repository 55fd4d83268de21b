"""What the assistant wrote down a second time, and what only looks as if it had.

The key of a note names the note it resembles: `again-` says the same in other words, `unlike-` differs in a number, a
name, a day or a "not", and must never be taken for a duplicate.
"""

from typing import Final

AGAIN: Final = """
@ /home/kitchen
+ again-friday-tacos | preference | 141 | Friday dinner is fixed | food
Tacos on Fridays, whoever comes: beans for Mara and Priya, mince for the rest, and sweetcorn in its own bowl for Ivo.
= cook string Jonas
+ again-recipe-lentil | preference | 150 | Red lentil soup, the weekday one | food, recipe
Twenty minutes: lentils, carrot, cumin, a tin of tomatoes and lemon at the end. Ivo eats it if it's called orange soup.
= garnish string parsley
+ unlike-priya-dinner | preference | 158 | When Priya comes to eat | food, friends
Vegetarian, eats no eggs, no mushrooms. She brings dessert and is offended by help.
@ /user/jonas
+ again-jonas-food | preference | 146 | What Jonas will not eat | food, family
No blue cheese, no coriander, and he thinks that aubergine is a prank.
@ /user/mara
+ again-photos-rule | preference | 161 | Photographs of the children | family, privacy
No pictures of the children's faces in anything public, studio social posts included.
@ /user/mara/family
+ unlike-sitter | person | 155 | Ines, the babysitter | family, children
Student, babysits on Thursdays if choir and a late meeting collide; wants two days' notice.
@ /user/mara/health
+ unlike-migraine-med | preference | 152 | Migraine tablets that work | health, medication
Sumatriptan 100 mg at the first flicker; paracetamol does nothing. Not more than two days a week.
@ /project/atlas
+ unlike-atlas-beta | project_status | 160 | Atlas beta with 350 passengers | work, atlas
Closed test on the Vrångö and Styrsö routes.
= testers int 350
@ /project/atlas/api
+ again-api-sandbox | gotcha | 147 | The sandbox empties itself on Sundays | work, atlas, api
Test bookings vanish on Sunday at 02.00, demonstrations on Mondays need new ones.
+ unlike-api-sandbox | gotcha | 163 | Staging empties itself on Wednesdays | work, atlas, api
Test bookings vanish on Wednesday at 04.00. Demonstrations on Thursdays need new ones.
"""
