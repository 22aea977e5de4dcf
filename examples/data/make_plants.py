#!/usr/bin/env python3
"""make_plants.py [PLANTS [SEED]]: a SYNTHETIC table of growth curves, 60 of them. No plant was measured.

Each plant follows a logistic curve with its own final height, speed and middle, is measured on
irregular days (7 to 18 times, not the same number for each), with an error of 0.4 cm, and about one
height in thirty is missing. Public domain (CC0).

    python3 examples/data/make_plants.py > examples/data/plants.csv
    python3 examples/data/make_plants.py 2000 61 > many.csv      # another 2000, for docs/user/tutorial.md
"""
import math
import random
import sys

plants, seed = (int(a) for a in (sys.argv[1:] + ["60", "60"][len(sys.argv) - 1 :]))
rng = random.Random(seed)
print("plant,day,height_cm")
for plant in range(1, plants + 1):
    final = rng.lognormvariate(math.log(40), 0.25)
    middle = rng.gauss(24, 4)
    speed = rng.lognormvariate(math.log(0.22), 0.2)
    days = sorted(rng.uniform(0, 60) for _ in range(rng.randint(7, 18)))
    for day in days:
        height = final / (1 + math.exp(-speed * (day - middle)))
        measured = max(height + rng.gauss(0, 0.4), 0.1)
        print(f"p{plant:02d},{day:.1f},{'' if rng.random() < 1 / 30 else f'{measured:.1f}'}")
