"""A chain of tasks, each of which needs the one before, beside one loop in a shell that keeps the same logs."""
import harness
import rows

GROUP = "daily"
LOOP = """
i=0
while [ $i -lt {count} ]; do
  mkdir -p {logs}/step-$i/run
  /bin/true > {logs}/step-$i/run/stdout.log 2> {logs}/step-$i/run/stderr.log || exit 1
  i=$((i + 1))
done
"""


def chain(count):
    """Groups of one task. Each needs the one before, which is so where nothing is said."""
    groups = [f"- {{name: step-{i}, cpus: 0, memory: 10MB, needs: [{f'step-{i - 1}' if i else ''}], "
              f"tasks: [{{id: run, command: [/bin/true]}}]}}" for i in range(count)]
    return "\n".join(["name: chain", "groups:", *groups, ""])


def by_needs(shop, count):
    place = shop.fresh("chain")
    (place / "chain.yaml").write_text(chain(count))
    return shop.measure([shop.trainyard, "run", place / "chain.yaml", "--run-dir", place / "run"], "trainyard")


def by_loop(shop, count):
    return shop.measure(["/bin/sh", "-c", LOOP.format(count=count, logs=shop.fresh("logs"))], "loop")


def run(shop):
    count = shop.size(1000, tiny=10)
    costs = harness.interleaved(shop.rounds(7), {
        "trainyard": lambda: by_needs(shop, count),
        "shell loop": lambda: by_loop(shop, count),
    })
    walls = {name: harness.median_wall(all_costs) for name, all_costs in costs.items()}
    yield rows.at_most(GROUP, f"a chain of {count:,} tasks by needs", walls["trainyard"], "s",
                       "a loop in sh, the same logs", walls["shell loop"], 1.3)
