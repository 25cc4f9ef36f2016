"""The program that measures ranks, and the peer: pickled arrays over multiprocessing connections."""
import json
import pathlib
import statistics

import harness

GROUP = "ranks"
PYTHON = str(pathlib.Path(__file__).parent / "ranks_rank.py")
PEER = str(pathlib.Path(__file__).parent / "ranks_peer.py")


def seconds(shop, command, name):
    process = shop.start(command, name)
    if process.wait(300) != 0:
        raise harness.BenchmarkError(f"{name}: {harness.complaint(process)}")
    return json.loads((process.place / "out").read_text())


def ours(shop, *words):
    return seconds(shop, [shop.tool("ranks_core"), *words], "ranks")


def peers(shop, *words):
    return seconds(shop, ["/usr/bin/python3", PEER, *words], "peer")["peer"]


def middle(measured, name="ours"):
    return statistics.median(each[name] for each in measured)
