"""Food: recipes that were tried, and what the family made of them."""

from typing import Final

KITCHEN: Final = """
@ /home/kitchen
+ no-hazelnut-rule | active_decision | 3 | Nothing with hazelnuts in the house | food, allergy
No hazelnuts, praline or nougat in the kitchen; almonds and sesame are fine. Check "may contain" on chocolate.
> depends_on ivo-hazelnut
! allergy
+ friday-tacos | preference | 5 | Friday dinner is fixed | food, family
Tacos on Fridays, whoever comes. Beans for Mara and Priya, mince for the rest, sweetcorn in its own bowl for Ivo.
+ recipe-lentil | preference | 6 | Red lentil soup, the weekday one | food, recipe
Twenty minutes: lentils, carrot, cumin, a tin of tomatoes, lemon at the end. Ivo eats it if it is called orange soup.
= minutes int 20
= rating_of_5 int 4
+ recipe-sourdough | observation | 9 | Sourdough loaf, house version | food, recipe
78 % water, 12 % spelt, 18 hours in the cold. Folded four times, not six.
= hydration_percent int 75
~ 23 78 | crumb too tight | none
~ 86 76 | new oven browns earlier | bake at 230, not 245
= oven_c int 245
~ 86 230 | oven in the house is hotter than it says | none
+ recipe-salmon | preference | 13 | Salmon with mustard crumb | food, recipe
Oven at 125 degrees until 46 inside. Crumb of rye, dill and mustard, potatoes with skin.
+ recipe-gnocchi | observation | 26 | Gnocchi failed | food, recipe
Waxy potatoes: glue. Only mealy ones, baked not boiled, or buy them.
+ recipe-dal | preference | 33 | Black dal for guests | food, recipe
Six hours, mostly alone. Freeze half before the cream goes in.
+ recipe-fishcakes | preference | 36 | Fish cakes that children eat | food, recipe
Pollock, potato, chives; fry small and flat. Elsa counts seven as one portion.
+ recipe-cake-elsa | decision | 73 | Cake for Elsa's birthday | food, recipe, children
Lemon sponge with blueberries, almond flour replaced by oat because Hedvig's mother was unsure.
+ recipe-feijoada | observation | 120 | Octopus rice from the holiday | food, recipe, travel
Tried at home after São Miguel; the frozen octopus needs fifty minutes, not thirty.
= rating_of_5 int 3
~ 148 4 | second attempt with fifty minutes | serve it to Henrik
+ recipe-pancake | preference | 11 | Thursday pea soup and pancakes | food, recipe
Pea soup is for the adults, pancakes for everyone; two eggs per child, milk from the big carton.
+ recipe-granola | decision | 39 | Granola without nuts | food, recipe, allergy
Oats, pumpkin seed, coconut, a little salt; 150 degrees, stir once, stop when it smells of biscuits.
> about no-hazelnut-rule
+ recipe-kimchi | observation | 107 | Kimchi, first jar | food, recipe
Too salty by half. Next time rinse twice, and keep it out of the study.
+ recipe-risotto | preference | 45 | Risotto in the oven | food, recipe
Lid on, 18 minutes at 180, butter and lemon afterwards. Nobody could tell.
+ recipe-chili | preference | 58 | Bean chilli for the movers | food, recipe
Twelve portions, chipotle on the side. Freeze in flat bags.
+ recipe-buns | preference | 81 | Cardamom buns for farewells | food, recipe
Forty buns, dough overnight in the fridge, cardamom crushed the same morning. Baked for Sam's last day.
> mentions sam
+ recipe-plum | observation | 142 | Plum jam from Solveig's tree | food, recipe
Eleven jars, half the sugar, cinnamon in three of them. Keep two for Birgit.
+ recipe-miso | preference | 114 | Aubergine with miso, Jonas absent | food, recipe
For nights when Jonas works. Grill until it gives up.
> about jonas-food
+ recipe-shakshuka | preference | 52 | Sunday eggs | food, recipe
Shakshuka, feta only on one half, bread first out of the freezer.
+ recipe-curry | preference | 65 | Yellow curry from the freezer box | food, recipe
Paste in ice-cube shapes: three cubes for four people, one for children, fish sauce at the table.
+ recipe-crispbread | observation | 127 | Crispbread on the baking steel | food, recipe
Two minutes a side; roll thinner than you believe. Elsa punches the holes with Ruben's ticket punch.
+ recipe-semla | observation | 16 | Cream buns, a family dispute | food
Jonas eats them in warm milk. This has been discussed and is not open.
+ oven-house | gotcha | 85 | The house oven runs hot | food, devices
Measured: 20 degrees above the dial on fan, correct on top and bottom heat.
+ knife-sharpening | observation | 68 | Knives | food
Whetstone twice a year, the bread knife goes to the shop in Haga.
+ freezer-list | observation | 41 | What is in the freezer | food
Kept as a list so that nothing turns into archaeology.
= contents list ["bread", "peas", "half a dal"]
~ 58 ["bean chilli x12", "bread", "peas"] | cooked for the move | eat before {D68}
~ 70 ["bean chilli x3", "peas"] | after the move | none
~ 100 ["peas", "octopus", "bread x2"] | holiday shopping was premature | none
~ 142 ["plums", "bread", "dal", "curry cubes"] | plum weekend | none
~ 166 ["bread", "curry cubes", "buns x14"] | baked for the launch party | none
+ school-lunch | observation | 24 | What Elsa eats at school | food, children
Everything on Mondays, only crispbread on fish Wednesdays.
+ lunchbox-rules | preference | 80 | Outing food for Lönnen | food, children
No nuts, no sweets, a drink with a lid that Ivo can open himself. Bag labelled on the inside.
+ priya-dinner | preference | 32 | When Priya comes to eat | food, friends
Vegetarian, eats eggs, no mushrooms. She brings dessert and is offended by help.
> about priya
+ wine-note | observation | 44 | Wine that does not give a headache | food, health
White from Vinho Verde, one glass, with food. The alcohol-free riesling is for launch parties.
> about mara-migraine
+ restaurant-haga | place | 17 | Restaurant for client dinners | food, places
Sjöbod in Haga: quiet back table, fixed menu, staff understood hazelnuts without a speech.
= table string back left
+ restaurant-family | place | 29 | Restaurant with patience for children | food, places
Pizzeria Lucca: crayons, quick, dough contains no nuts, ask for Enzo.
+ farm-shop | place | 88 | Farm shop on the way home | food, places
Open until seven on weekdays; potatoes, eggs, honest tomatoes. Cash or phone.
+ fish-van | place | 91 | Fish van at the square | food, places
Fridays 10 to 14 at Mölndals torg; says what not to buy if asked.
+ bakery-below | place | 1 | The bakery below the studio | food, work
Rye with caraway sells out by ten; staff hand over yesterday's buns after four.
+ cafe-oat | observation | 60 | Oat milk keeps going sour | food
Three cartons in three weeks, all from the same shop; asked for a refund, got a voucher.
+ spice-order | event | 118 | Spice order with Nadia | food, friends
Ordered together: cumin, sumac, black cardamom, 1 kg of paprika that was meant to be 100 g.
+ picnic-kit | observation | 100 | Picnic bag | food, travel
Always packed: knife, board, salt, wipes, plasters, the second pen.
> mentions ivo-hazelnut
+ party-food-list | finding | 149 | What vanished first at the launch party | food, work
Rye with cured trout in nine minutes; the hummus towers were admired and left.
+ budget-delivery | finding | 151 | Grocery delivery costs more than it seems | food, money
Four weeks compared: 11 % dearer, and bananas always green.
> about budget-food
"""
