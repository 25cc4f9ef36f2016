"""What it costs a yard that eight of them on one machine see what each has promised."""
import json
import statistics

import harness
import rows

GROUP = "daily"
# A yard that waits looks so often at the others; one at work starts a task and sees one end so often.
LOOKS_A_SECOND = 10
TURNS_A_SECOND = 10


def measure(shop, turns):
    process = shop.start([shop.tool("claims_core"), shop.fresh("board"), turns], "claims")
    if process.wait(600) != 0:
        raise harness.BenchmarkError(f"claims_core: {harness.complaint(process)}")
    return json.loads((process.place / "out").read_text())


def run(shop):
    turns = shop.size(2_000, tiny=20)
    said = [measure(shop, turns) for _ in range(shop.rounds(5))]
    turn = statistics.median(one["turn_us"] for one in said)
    look = statistics.median(one["look_us"] for one in said)
    yards = said[0]["yards"]
    harness.say(f"{yards} yards: {turn:.1f} us a turn with a claim and an end, {look:.1f} us a look")
    yield rows.within(GROUP, f"claims of {yards} yards: a turn", turn / 1000, "ms", 1)
    share = 100 * (TURNS_A_SECOND * turn + LOOKS_A_SECOND * look) / 1e6
    yield rows.within(GROUP, f"claims of {yards} yards: of a core", share, "%", 2)
