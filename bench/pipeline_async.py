"""What an iteration of sixteen empty steps costs: side by side with three workers, and one run a time."""
import pipeline_core
import rows
from pipeline_core import GROUP


def run(shop):
    costs = pipeline_core.medians(shop, "async")
    yield rows.within(GROUP, "16 empty steps side by side, 3 workers", costs["apart"] / 1000, "us", 5)
    yield rows.told(GROUP, "16 empty steps that say nothing of themselves, async", costs["in_order"] / 1000,
                    "us")
    yield rows.within(GROUP, "16 empty steps, run and waited for", costs["single_run"] / 1000, "us", 0.2)
