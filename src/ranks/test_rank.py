"""The program that the tests of ranks in Python execute."""
import os
import signal
import sys
import threading
import time

import numpy

import trainyard


class Tester:
    def __init__(self, answer=42, fault="", fault_rank=0):
        self.answer = answer
        if fault and int(os.environ["RANK"]) == fault_rank:
            if fault == "throw":
                raise FileNotFoundError("no such file")

    def execute(self, task, data, context, stop):
        mine = data.values.get("rank", context.rank) == context.rank
        reply = {"rank": context.rank, "answer": self.answer}
        if task == "sum":
            return {name: float(each.sum()) for name, each in data.buffers.items()}
        if task == "writable":
            return {name: each.flags.writeable for name, each in data.buffers.items()}
        if task == "fill":
            filled = context.alloc((data.values["count"],))
            filled[:] = context.rank + 1
            return {"filled": filled}
        if task == "copied":
            return {"copied": numpy.full(data.values["count"], float(data.values["round"]))}
        if task == "empty":
            return {"none": numpy.zeros((0, 3), numpy.float32), "one": numpy.zeros((1,)),
                    "large": numpy.ones((data.values["round"] + 1) * 20_000)}
        if task == "long":
            return {"filled": context.alloc((100_000,)), "text": "x" * (2 << 20)}
        if task == "local-rank":
            return {"local-rank": context.local_rank}
        if task == "echo":
            return trainyard.Shareable(data.values, data.buffers)
        if task == "heard":
            return {"heard": HEARD}
        if task == "pid":
            return {"pid": os.getpid()}
        if task in ("wait", "spin"):
            # Beside what it does: the answer comes when it is over.
            threading.Thread(target=context.fire, args=("begun",)).start()
        if task == "wait" and mine:
            stop.wait()
        if task == "spin" and mine:
            while not stop.is_set():
                pass
        if not mine:
            return reply
        if task == "throw":
            raise ValueError("cannot train")
        if task == "memory":
            raise MemoryError()
        if task == "kill":
            print("last words", file=sys.stderr)
            os.kill(os.getpid(), signal.SIGKILL)
        if task == "nonsense":
            return 7
        if task == "fire":
            heard = context.fire("progress", {"rank": context.rank}, group="group" in data.values)
            reply.update(errors=heard.errors, greeting=context.get("greeting", "none"))
        if task == "set":
            context.set("greeting", "from rank %d" % context.rank)
            context.set("round", 40 + context.rank, sticky=True)
        if task == "get":
            reply.update(greeting=context.get("greeting", "none"), round=context.get("round", -1))
        return reply


HEARD = []


class Recorder:
    listens = ["start-run", "end-run", "round", "throw", "progress", "greet", "react"]

    def handle_event(self, name, data, context):
        HEARD.append([name, data, context.from_rank])
        if name == "react":
            context.fire("reacted", data, group=True)
        if name == "throw":
            raise RuntimeError("the recorder throws")


def function(task, data, context, stop, offset=0):
    return {"task": task, "rank": context.rank + offset}
