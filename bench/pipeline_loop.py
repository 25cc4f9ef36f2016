"""The peer: the same loop as Python programs have it. Steps are functions or generators of a context, kept
on a stack for the way back; a dataclass is the context, made anew for each iteration.

usage: pipeline_loop.py ITERATIONS     prints the nanoseconds of a plain and of a two-way step as JSON
"""
import dataclasses
import json
import sys
import time

STEPS = 16


@dataclasses.dataclass
class Context:
    total_step: int = 0
    count: int = 0
    kept: tuple = ("count",)

    def renew(self):
        fresh = type(self)()
        for name in self.kept:
            setattr(fresh, name, getattr(self, name))
        fresh.total_step = self.total_step + 1
        return fresh


class Loop:
    def __init__(self):
        self.context, self.steps, self.finished = Context(), [], False

    def forward(self, step):
        generator = step(self.context)
        if generator is None:
            return
        try:
            next(generator)
        except StopIteration:
            return
        self.waiting.append(generator)

    def run(self, iterations):
        for _ in range(iterations):
            self.waiting = []
            for step in self.steps:
                self.forward(step)
            while self.waiting:
                for _ in self.waiting.pop():
                    pass
            if self.finished:
                break
            self.context = self.context.renew()


def plain(context):
    pass


def two_way(context):
    yield


def measure(step, iterations):
    loop = Loop()
    loop.steps = [step] * STEPS
    began = time.perf_counter()
    loop.run(iterations)
    return 1e9 * (time.perf_counter() - began) / iterations / STEPS


if __name__ == "__main__":
    count = int(sys.argv[1])
    print(json.dumps({"plain": measure(plain, count), "two_way": measure(two_way, count)}))
