"""The programs that measure workers and pools: a JSON object of seconds, or of events and bytes a second."""
import json
import statistics

import harness

GROUP = "workers"


def measured(shop, tool, *words):
    process = shop.start([shop.tool(tool), *(str(word) for word in words)], tool)
    if process.wait(300) != 0:
        raise harness.BenchmarkError(f"{tool} {words}: {harness.complaint(process)}")
    return json.loads((process.place / "out").read_text())


def medians(shop, tool, *words):
    """Of as many processes as there are rounds."""
    found = [measured(shop, tool, *words) for _ in range(shop.rounds(5))]
    return {name: statistics.median(each[name] for each in found) for name in found[0]}
