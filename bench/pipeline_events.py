"""What an event costs: to emit, through a queue, and to wake who waits for it."""
import pipeline_core
import rows
from pipeline_core import GROUP


def run(shop):
    costs = pipeline_core.medians(shop, "bus")
    yield rows.within(GROUP, "an event emitted to one listener", costs["emit"], "ns", 50)
    yield rows.within(GROUP, "an event through a queue, from first to last", costs["queued"], "ns", 100)
    waits = pipeline_core.medians(shop, "wake")
    yield rows.at_most(GROUP, "who waits for an event is awake", waits["wait_for"] / 1000, "us",
                       "condition variable", waits["condition_variable"] / 1000, 2)
