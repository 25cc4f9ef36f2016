"""What a night is, made from its seed: tasks and faults. The same for all estimates that are written."""
import dataclasses
import random

CARDS = 2
CARD_GB = 24
GIVEN_GB = CARD_GB - 2.4  # Of each card a tenth stays free.


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    gigabytes: float  # That it takes.
    seconds: float    # That it works.


@dataclasses.dataclass(frozen=True)
class Stranger:
    """A process that is no task's."""
    card: int
    begins: float
    ends: float
    gigabytes: float
    grows_for: float  # From nothing to all of it, in steps.


@dataclasses.dataclass(frozen=True)
class Plan:
    seed: int
    tasks: tuple
    bound: float  # No order is over before, in seconds: memory by time, without a fault.
    stranger: Stranger
    yard_dies: float
    keeper_dies: float
    blinks: int   # The card that does not answer for a while.
    blinks_from: float
    blinks_to: float


def made(seed, count, seconds):
    """`seconds` is how long a task works on the average."""
    dice = random.Random(seed)
    tasks = tuple(Task(f"t{number:02}", round(dice.uniform(3, 12), 1), round(dice.uniform(0.6, 1.4) * seconds, 2))
                  for number in range(count))
    bound = max(max(task.seconds for task in tasks),
                sum(task.gigabytes * task.seconds for task in tasks) / (CARDS * GIVEN_GB))

    def moment():
        return round(bound * dice.uniform(0.1, 0.9), 2)

    comes, gone = moment(), moment()
    stranger = Stranger(card=dice.randrange(CARDS), begins=comes, ends=round(comes + bound * dice.uniform(0.2, 0.4), 2),
                        gigabytes=round(dice.uniform(4, 10), 1), grows_for=round(bound * 0.1, 2))
    return Plan(seed, tasks, bound, stranger, yard_dies=moment(), keeper_dies=moment(),
                blinks=dice.randrange(CARDS), blinks_from=gone, blinks_to=round(gone + dice.uniform(1, 3), 2))


def job(plan, estimates, command):
    """The job file. `estimates` is the part of the truth that is written, or nothing: automatic."""
    def line(task):
        asks = "auto" if estimates is None else f"{task.gigabytes * estimates:.2f}GB"
        words = ", ".join(f'"{word}"' for word in [*command, task.gigabytes, task.seconds])
        return f"      - {{id: {task.name}, gpu-memory: {asks}, command: [{words}]}}"

    # The scale of a night is hours, of this one seconds: what is looked at each second is looked at four
    # times as often, and the memory of a framework is there after a second, not half a minute.
    return f"""name: night
config:
  scheduler.interval: 0.25
  scheduler.settle-time: 1
  utilization-limit.cpu: 100%
  remain-limit.memory: 0B
groups:
  - name: sweep
    cpus: 0
    memory: 20MB
    tasks:
""" + "\n".join(map(line, plan.tasks)) + "\n"
