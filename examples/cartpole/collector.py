"""A collector of examples/cartpole in Python: plays with the newest policy of a learner in C++, and sends what it saw.

    trainyard parallel -n 4 --roles learner,collector,collector,evaluator -- sh -c '
      case "$TRAINYARD_WORKER" in *collector*) exec python3 collector.py;; *) exec ./cartpole --worker;; esac'
"""
import queue
import sys

import numpy
import trainyard

WORLDS, STEPS, HIDDEN = 16, 4, 64
USUAL = numpy.array([2.4, 2, 0.2, 2], numpy.float32)  # As the network sees a state.
EXPLORE_STEPS, EXPLORE_LEAST = 20_000, 0.05
GRAVITY, CART, POLE, HALF, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02


class Policy:
    """The network of q_network.h: two hidden layers with ReLU."""

    def __init__(self, numbers):
        self.layers, at = [], 0
        for rows, columns in ((HIDDEN, 4), (HIDDEN, HIDDEN), (2, HIDDEN)):
            weights = numbers[at:at + rows * columns].reshape(columns, rows).T
            at += rows * columns
            self.layers.append((weights, numbers[at:at + rows].reshape(rows, 1)))
            at += rows

    def best(self, states):
        values = (states / USUAL).T
        for weights, bias in self.layers[:-1]:
            values = numpy.maximum(weights @ values + bias, 0)
        weights, bias = self.layers[-1]
        return (weights @ values + bias).argmax(0)


class Worlds:
    def __init__(self, dice):
        self.dice = dice
        self.states = numpy.zeros((WORLDS, 4), numpy.float32)
        self.steps = numpy.zeros(WORLDS, int)
        self.reset(numpy.ones(WORLDS, bool))

    def reset(self, which):
        self.states[which] = (self.dice.random((which.sum(), 4)) - 0.5) / 10
        self.steps[which] = 0

    def step(self, actions):
        """The states after it, whether they have failed, and how many episodes have ended."""
        place, speed, angle, turn = self.states.T
        force = numpy.where(actions == 1, FORCE, -FORCE)
        sine, cosine = numpy.sin(angle), numpy.cos(angle)
        pull = (force + POLE * HALF * turn ** 2 * sine) / (CART + POLE)
        turning = (GRAVITY * sine - cosine * pull) / (HALF * (4 / 3 - POLE * cosine ** 2 / (CART + POLE)))
        speeding = pull - POLE * HALF * turning * cosine / (CART + POLE)
        after = numpy.stack([place + SECONDS * speed, speed + SECONDS * speeding, angle + SECONDS * turn,
                             turn + SECONDS * turning], 1).astype(numpy.float32)
        failed = (abs(after[:, 0]) > 2.4) | (abs(after[:, 2]) > 12 * numpy.pi / 180)
        self.steps += 1
        done = failed | (self.steps == 500)
        self.states = after.copy()
        self.reset(done)
        return after, failed, int(done.sum())


def collect(worlds, policy, dice, env_step):
    seen, episodes = [], 0
    for _ in range(STEPS):
        before = worlds.states
        actions = policy.best(before) if policy else dice.integers(0, 2, WORLDS)
        share = 1 + (EXPLORE_LEAST - 1) * min(1.0, env_step / EXPLORE_STEPS)
        actions = numpy.where(dice.random(WORLDS) < share, dice.integers(0, 2, WORLDS), actions)
        after, failed, ended = worlds.step(actions)
        seen.append(numpy.column_stack([before, after, actions, failed]))
        episodes += ended
    return numpy.concatenate(seen).astype(numpy.float32).ravel(), episodes


def main():
    worker = trainyard.Worker.from_environment()
    models = queue.Queue()
    worker.on("model.policy", models.put)
    # A learner that has begun again has no model yet, and waits for what is collected.
    worker.on("trainyard.peer",
              lambda it: it["change"] == "again" and "learner" in it["roles"] and models.put(None))
    worker.follow("learner")
    worker.ready()
    dice = numpy.random.default_rng(1 + 1000 * worker.index)
    worlds, policy, env_step, lag = Worlds(dice), None, 0, 0
    while not worker.ending.is_set():
        try:
            # One iteration ahead of the learner at most.
            model = models.get(timeout=0.1) if lag > 1 else models.get_nowait()
            policy, lag = Policy(numpy.array(model.buffers[0])) if model else policy, 0
        except queue.Empty:
            if lag > 1:
                continue
        seen, episodes = collect(worlds, policy, dice, env_step)
        worker.emit("exchange.collector", trainyard.Bundle({"seen": 0, "env_step": WORLDS * STEPS, "episodes": episodes}, [seen]))
        env_step += WORLDS * STEPS
        lag += 1


if __name__ == "__main__":
    sys.exit(main())
