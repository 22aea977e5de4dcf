#!/usr/bin/env python3
"""make_offers.py: writes offers.csv and offers_new.csv, SYNTHETIC logs of decisions. No shop made
them.

A customer of some age comes with a basket of some value; the shop makes one of three offers and
earns something. A coupon pays with customers younger than an age that differs from shop to shop, a
bundle with baskets larger than a value that differs too, no offer earns 2 anyway. offers.csv has 24
shops that decided by lot, all offers alike (propensity 1/3): data to learn from. offers_new.csv is
a shop that is not among them, where half the customers got no offer: a log to replay. Public domain
(CC0).

    python3 examples/data/make_offers.py examples/data
"""
import math
import random
import sys

OFFERS = ("bundle", "coupon", "none")


def rise(x):
    return 1 / (1 + math.exp(-x))


def earned(rng, offer, age, basket, young, large):
    mean = {
        "none": 2.0,
        "coupon": 0.5 + 4 * rise((young - age) / 3),
        "bundle": 0.5 + 5 * rise((basket - large) / 5),
    }[offer]
    return mean + rng.gauss(0, 0.3)


def write(path, rng, shops, customers, chances):
    with open(path, "w") as out:
        print("shop,age,basket,action,reward,propensity", file=out)
        for shop in shops:
            young, large = rng.uniform(25, 65), rng.uniform(20, 80)
            for _ in range(customers):
                age, basket = rng.randint(18, 80), round(rng.uniform(5, 100), 1)
                offer = rng.choices(OFFERS, chances)[0]
                reward = earned(rng, offer, age, basket, young, large)
                likely = chances[OFFERS.index(offer)]
                print(f"{shop},{age},{basket},{offer},{reward:.2f},{likely:.4g}", file=out)


folder = sys.argv[1] if len(sys.argv) > 1 else "."
write(f"{folder}/offers.csv", random.Random(24), [f"s{k:02d}" for k in range(1, 25)], 60, [1 / 3] * 3)
write(f"{folder}/offers_new.csv", random.Random(7), ["new"], 1500, [0.25, 0.25, 0.5])
