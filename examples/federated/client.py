"""One client's part of a round: trains the network of the round before on what the client has.

    python3 client.py <round> <client> <where the server has left its network, empty in round 0>
"""
import os
import pathlib
import sys

import federation
import trainyard

turn, client, before = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
weights = federation.first_weights
if before:
    weights = federation.read(pathlib.Path(before, "weights.npz"))
images = list(federation.split[client])
federation.Random((turn + 1) * federation.CLIENTS + client).shuffle(images)

for attempt in trainyard.attempts():
    with attempt as device:
        network = federation.Network(weights)
        known = 0
        for first in range(0, len(images), federation.BATCH):
            right, loss = network.train(images[first:first + federation.BATCH])
            known += right
            trainyard.progress(first / len(images), loss=loss)
        federation.save(pathlib.Path(os.environ["TRAINYARD_TASK_DIR"], "weights.npz"), network.weights)
        trainyard.result(train_acc=known / len(images), images=len(images))
