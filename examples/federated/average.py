"""Averages what the clients have learned in a round, each by how many images it has, and tests it.

    python3 average.py <where each client has left its network> ...
"""
import os
import pathlib
import sys

import federation
import trainyard

learned = [federation.read(pathlib.Path(client, "weights.npz")) for client in sys.argv[1:]]
shares = [len(images) / len(federation.images) for images in federation.split]

for attempt in trainyard.attempts():
    with attempt as device:
        average = [sum(share * weight for share, weight in zip(shares, weights)).astype("float32")
                   for weights in zip(*learned)]
        federation.save(pathlib.Path(os.environ["TRAINYARD_TASK_DIR"], "weights.npz"), average)
        trainyard.result(test_acc=federation.Network(average).test_accuracy())
