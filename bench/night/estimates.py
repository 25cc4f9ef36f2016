"""24 tasks on two made-up cards while a stranger grows on one, yard and keeper are killed and a card blinks: who
comes back, and how long it takes with estimates that are wrong, beside the same night with the truth written.

NIGHT_SEEDS=3,7 plays these alone, NIGHT_KINDS="70 %,auto" these beside the truth; NIGHT_KEEP=1 keeps what all of them
wrote. Of a night in which something was lost it is kept anyway, and named.
"""
import os
import statistics

import harness
import rows
from night import plan as planned
from night import play

GROUP = "night"
TRUTH = "truth"
# What is written, as a part of the truth; nothing: `auto`. And how much longer the night may be.
KINDS = {TRUTH: (1.0, 1.0), "70 %": (0.7, 1.15), "35 %": (0.35, 1.5), "auto": (None, 1.25)}
SECOND_MOST = 1.05


def chosen(name, all_of):
    words = os.environ.get(name)
    return [word.strip() for word in words.split(",")] if words else all_of


def tell(night):
    """Says what came of a night."""
    harness.say(night.summary())
    for task, state in night.unfinished().items():
        harness.say(f"  {task}: {state}")
    if night.ran_again():
        harness.say(f"  ran again after they had finished: {night.ran_again()}")
    if night.left:
        harness.say(f"  left: {night.left}")


def keep(shop, nights):
    """What the nights wrote in which something was lost."""
    kept = {night.place.directory: night for night in nights if not night.is_well() or "NIGHT_KEEP" in os.environ}
    for directory, night in kept.items():
        harness.say(f"seed {night.plan.seed}, {night.place.name}: kept in {shop.keep(directory)}")


def play_all(shop, seeds, kinds):
    """All nights, by (seed, kind, first or second). The second nights of a seed beside the first of the next."""
    nights, second = {}, []
    for seed in [*seeds, None]:
        first = []
        if seed is not None:
            plan = planned.made(int(seed), shop.size(24, tiny=6), shop.size(8, tiny=1.5))
            first = [play.Night(shop, play.Place(shop, plan, kind, KINDS[kind][0])) for kind in kinds]
        second = [play.Night(shop, night.place, 2) for night in second]
        play.play(first + second)
        for number, of in ((1, first), (2, second)):
            for night in of:
                tell(night)
                nights[night.plan.seed, night.place.name, number] = night
        second = [night for night in first if night.place.name != TRUTH]
    return nights


def ratio(nights, kind, number):
    """Of the seconds of a night by those of the first one with the truth, the median."""
    return statistics.median(night.seconds / nights[seed, TRUTH, 1].seconds
                             for (seed, its, which), night in nights.items() if (its, which) == (kind, number))


def run(shop):
    seeds = chosen("NIGHT_SEEDS", shop.size([str(seed) for seed in range(1, 11)], tiny=["1"]))
    kinds = [kind for kind in KINDS if kind in (TRUTH, *chosen("NIGHT_KINDS", shop.size(list(KINDS), tiny=["70 %"])))]
    nights = play_all(shop, seeds, kinds)
    for kind in kinds:
        lost = sum(len(night.unfinished()) for (_, its, _), night in nights.items() if its == kind)
        count = sum(len(night.plan.tasks) for (_, its, _), night in nights.items() if its == kind)
        yield rows.within(GROUP, f"{kind}: lost of {count} tasks", lost, "tasks", 0)
    again = sum(len(night.ran_again()) for night in nights.values())
    yield rows.within(GROUP, f"{len(nights)} nights: tasks run again after they had finished", again, "tasks", 0)
    left = sum(len(night.left) for night in nights.values())
    yield rows.within(GROUP, f"{len(nights)} nights: processes, sockets and memory left", left, "things", 0)
    yield rows.told(GROUP, "truth: the night", statistics.median(
        night.seconds for (_, its, _), night in nights.items() if its == TRUTH), "s")
    for kind in kinds:
        if kind != TRUTH:
            most = shop.size(KINDS[kind][1], tiny=1e9)
            yield rows.within(GROUP, f"{kind}: the night", ratio(nights, kind, 1), "x truth", most)
            yield rows.within(GROUP, f"{kind}: the second night", ratio(nights, kind, 2), "x truth",
                              shop.size(SECOND_MOST, tiny=1e9))
    keep(shop, nights.values())
