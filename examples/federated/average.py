"""Averages what the clients have learned in a round, each by how many images it has, and tests it.

    python3 average.py <round>
"""
import os
import pathlib
import sys

import federation
import trainyard

turn = int(sys.argv[1])
run = pathlib.Path(os.environ["TRAINYARD_RUN_DIR"])
learned = [federation.read(run / f"round-{turn}/client={client}/weights.npz") for client in range(federation.CLIENTS)]
shares = [len(images) / len(federation.images) for images in federation.split]

for attempt in trainyard.attempts():
    with attempt as device:
        average = [sum(share * weight for share, weight in zip(shares, weights)).astype("float32")
                   for weights in zip(*learned)]
        federation.save(pathlib.Path(os.environ["TRAINYARD_TASK_DIR"], "weights.npz"), average)
        trainyard.result(test_acc=federation.Network(average).test_accuracy(), round=turn)
