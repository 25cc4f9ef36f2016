"""What sharing cards comes to, simulated: 60 tasks on 4 cards that go as fast as they leave each other, beside a card
for each of them, and beside sharing by memory alone, where nobody measures what it costs."""
import json
import random
import statistics

import harness
import rows

GROUP = "night"
GPUS, GPU_MEMORY, KINDS = 4, 24, 3
# What a card that is wanted by more than it is loses by each task beyond the first, in thousandths.
CROWDING = 100
ALL_OF_A_CARD = 1000


def tasks(count, seed, all_of_a_card):
    """Of three kinds: kind, seconds alone on a card, GB of it, and the part of it that it uses, in thousandths."""
    dice = random.Random(seed)
    kinds = [(dice.uniform(600, 3600), round(dice.uniform(5, 9.5), 1),
              ALL_OF_A_CARD if all_of_a_card else round(dice.uniform(300, 550))) for _ in range(KINDS)]
    made = []
    for number in range(count):
        kind = number * KINDS // count
        seconds, memory, share = kinds[kind]
        made.append((kind, seconds * dice.uniform(0.85, 1.15), memory, share))
    return made


def play(shop, made, crowding):
    lines = [f"{GPUS} {GPU_MEMORY} {crowding}"] + [f"{kind} {seconds:.3f} {memory} {share}"
                                                     for kind, seconds, memory, share in made]
    path = shop.fresh("sharing") / "tasks"
    path.write_text("\n".join(lines) + "\n")
    process = shop.start([shop.tool("sharing_core"), path], "sharing")
    if process.wait(600) != 0:
        raise harness.BenchmarkError(f"sharing_core: {harness.complaint(process)}")
    return json.loads((process.place / "out").read_text())


def hours(played, name):
    return statistics.median(each[name] for each in played) / 3600


def part(played, name):
    """Of what a card for each takes: the median over the sets, each by itself."""
    return statistics.median(each[name] / each["alone"] for each in played)


def off(played):
    return statistics.median(100 * abs(each["forecast"] - each["second"]) / each["second"] for each in played)


def run(shop):
    for name, all_of_a_card in (("30 to 55 % of a card", False), ("100 % of a card", True)):
        for crowding in (0, CROWDING):
            what = f"{name}{', who disturb each other' if crowding else ''}"
            played = []
            for seed in range(shop.rounds(9)):
                played.append(play(shop, tasks(shop.size(60, tiny=9), seed, all_of_a_card), crowding))
                harness.say(f"{what}, {seed}: " + ", ".join(
                    f"{key} {value / 3600:.2f} h" for key, value in played[-1].items()))
            most = 1 if all_of_a_card else 0.7
            yield rows.within(GROUP, f"{what}: makespan", part(played, "shared"), "x a card each", most)
            if all_of_a_card:
                yield rows.within(GROUP, f"{what}, and that is written: makespan", part(played, "written"),
                                  "x a card each", 1)
            yield rows.at_most(GROUP, f"{what}: beside memory alone", hours(played, "shared"), "h", "no prices",
                               hours(played, "memory_alone"), 1)
            yield rows.within(GROUP, f"{what}: forecast off by", off(played), "%", shop.size(15, tiny=1e9))
