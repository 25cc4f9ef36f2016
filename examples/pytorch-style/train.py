#!/usr/bin/env python3
"""Trains a classifier on made-up data, in the shape that most PyTorch scripts have.

Options come from the command line, checkpoints go to the task's own directory, the result is one
JSON object. Only the standard library is used, so that it runs everywhere; where a comment names a
call of PyTorch, that is what would stand there. Without trainyard it is a script as any other.
"""
import argparse
import json
import math
import os
import pathlib
import random

FEATURES = 8


def made_up_data(count, random_numbers):
    """Points in two overlapping clouds around +centre and -centre, with labels 1 and 0."""
    points = []
    for _ in range(count):
        label = random_numbers.randrange(2)
        centre = 0.6 if label else -0.6
        points.append(([random_numbers.gauss(centre, 1) for _ in range(FEATURES)], label))
    return points


def probability(weights, features):
    score = weights[-1] + sum(w * x for w, x in zip(weights, features))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


def train_epoch(weights, data, rate):
    """One pass of stochastic gradient descent; returns the mean loss."""
    loss = 0.0
    for features, label in data:
        guess = probability(weights, features)
        loss -= math.log(max(1e-12, guess if label else 1 - guess))
        slope = rate * (guess - label)
        for i, x in enumerate(features):
            weights[i] -= slope * x
        weights[-1] -= slope
    return loss / len(data)


def accuracy(weights, data):
    right = sum((probability(weights, features) > 0.5) == bool(label) for features, label in data)
    return right / len(data)


def save(path, state):  # torch.save(...)
    """Writes all or nothing: a task that is killed here leaves the checkpoint before it."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(state))
    part.replace(path)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="a training script in PyTorch's style")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args(arguments)

    # The directory stays when a task is retried, so the next attempt finds the checkpoint.
    directory = pathlib.Path(os.environ.get("TRAINYARD_TASK_DIR", "."))
    checkpoint = directory / "checkpoint.json"

    data = random.Random(20)  # The same data for each seed: only the order of training differs.
    train, test = made_up_data(2000, data), made_up_data(1000, data)
    state = {"epoch": 0, "weights": [0.0] * (FEATURES + 1), "loss": None}
    if checkpoint.exists():  # torch.load(...)
        state = json.loads(checkpoint.read_text())
        print(f"going on after epoch {state['epoch']}")

    for epoch in range(state["epoch"] + 1, options.epochs + 1):
        # From the seed and the epoch alone, so that going on gives what going through had given.
        order = random.Random(f"{options.seed}/{epoch}").sample(train, len(train))
        rate = options.lr / epoch
        loss = train_epoch(state["weights"], order, rate)
        state = {"epoch": epoch, "weights": state["weights"], "loss": loss}
        save(checkpoint, state)
        print(f"epoch {epoch}/{options.epochs}  loss {loss:.4f}")

    result = {
        "test_acc": accuracy(state["weights"], test),
        "loss": state["loss"],
        "epochs": state["epoch"],
    }
    print(result)
    if "TRAINYARD_RESULT" in os.environ:
        pathlib.Path(os.environ["TRAINYARD_RESULT"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
