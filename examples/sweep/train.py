#!/usr/bin/env python3
"""Trains a logistic regression on generated points. Needs Python 3 and nothing else.

Writes its result, one JSON object, into the file that TRAINYARD_RESULT names. Without that variable it only prints.
"""
import argparse
import json
import math
import os
import random

FEATURES = 20


def generate_points(count, numbers):
    """Points of two overlapping clouds, each with the label of its cloud: 0 or 1."""
    points = []
    for _ in range(count):
        label = numbers.randrange(2)
        points.append(([numbers.gauss(0.25 if label else -0.25, 1) for _ in range(FEATURES)], label))
    return points


def predict(weights, features):
    """The probability of label 1. The last weight is the bias."""
    score = weights[-1] + sum(w * x for w, x in zip(weights, features))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


def train_epoch(weights, points, lr):
    """One pass of stochastic gradient descent over the points."""
    for features, label in points:
        step = lr * (label - predict(weights, features))
        for i, x in enumerate(features):
            weights[i] += step * x
        weights[-1] += step


def accuracy(weights, points):
    return sum((predict(weights, features) > 0.5) == bool(label) for features, label in points) / len(points)


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=40)
    options = parser.parse_args(arguments)

    data = random.Random(1)  # The same data for each seed.
    train, test = generate_points(5000, data), generate_points(2000, data)
    numbers = random.Random(options.seed)  # First weights and order of training differ with the seed.
    weights = [numbers.gauss(0, 1) for _ in range(FEATURES + 1)]
    for epoch in range(1, options.epochs + 1):
        train_epoch(weights, numbers.sample(train, len(train)), options.lr)
        print(f"epoch {epoch}/{options.epochs}: accuracy {accuracy(weights, test):.3f}", flush=True)

    if "TRAINYARD_RESULT" in os.environ:
        with open(os.environ["TRAINYARD_RESULT"], "w") as file:
            json.dump({"test_acc": accuracy(weights, test)}, file)


if __name__ == "__main__":
    main()
