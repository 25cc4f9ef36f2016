"""What all tasks of the federation share: the images, who has which, and the network.

Imported once for all of them ('preload' in federated.yaml). The same as federated.cc, split.cc and
mnist/ do in C++, down to the random numbers: the two arrive at the same network.

    MNIST_DIR        where the images are; the part of MNIST in this repository by default
    FEDERATED_SPLIT  uniform or label
"""
import gzip
import math
import os
import pathlib

import numpy

CLIENTS = 10
HIDDEN = 128
LEARNING_RATE = numpy.float32(2e-3)
BATCH = 64
ALPHA = 0.5  # Of the split by label.


class Random:
    """The 64-bit Mersenne Twister of C++, and what mnist/random.h makes of it."""

    def __init__(self, seed):
        self._state = [seed]
        for i in range(1, 312):
            before = self._state[-1]
            self._state.append((6364136223846793005 * (before ^ before >> 62) + i) % 2**64)
        self._at = 312

    def _next(self):
        if self._at == 312:
            state = self._state
            for i in range(312):
                joined = state[i] & ~(2**31 - 1) | state[(i + 1) % 312] & (2**31 - 1)
                state[i] = state[(i + 156) % 312] ^ joined >> 1 ^ (0xB5026F5AA96619E9 if joined & 1 else 0)
            self._at = 0
        value = self._state[self._at]
        self._at += 1
        value ^= value >> 29 & 0x5555555555555555
        value ^= value << 17 & 0x71D67FFFEDA60000
        value ^= value << 37 & 0xFFF7EEE000000000
        return value ^ value >> 43

    def unit(self):
        return (self._next() >> 40) * 2.0**-24

    def shuffle(self, values):
        for left in range(len(values), 1, -1):
            other = self._next() % left
            values[left - 1], values[other] = values[other], values[left - 1]

    def normal(self):
        return math.sqrt(-2 * math.log(max(1e-12, self.unit()))) * math.cos(2 * math.pi * max(1e-12, self.unit()))

    def gamma(self, alpha):
        if alpha < 1:
            return self.gamma(alpha + 1) * max(1e-12, self.unit()) ** (1 / alpha)
        d = alpha - 1 / 3
        c = 1 / math.sqrt(9 * d)
        while True:
            x = self.normal()
            v = (1 + c * x) ** 3
            if v > 0 and math.log(max(1e-12, self.unit())) < 0.5 * x * x + d - d * v + d * math.log(v):
                return d * v


def _read_idx(name, header):
    directory = pathlib.Path(os.environ.get("MNIST_DIR") or pathlib.Path(__file__).parent / "../mnist/data")
    path = directory / name
    text = path.read_bytes() if path.exists() else gzip.open(f"{path}.gz").read()
    return numpy.frombuffer(text, numpy.uint8, offset=header)


def _load(part):
    labels = _read_idx(f"{part}-labels-idx1-ubyte", 8)
    return _read_idx(f"{part}-images-idx3-ubyte", 16).reshape(len(labels), -1), labels


def _split_uniformly(order):
    return [order[client::CLIENTS] for client in range(CLIENTS)]


def _split_by_label(order, random):
    """The images of each digit in shares drawn from a Dirichlet distribution."""
    clients = [[] for _ in range(CLIENTS)]
    for digit in range(10):
        images = [image for image in order if labels[image] == digit]
        shares = [random.gamma(ALPHA) for _ in range(CLIENTS)]
        dealt, first = 0.0, 0
        for client in range(CLIENTS):
            dealt += shares[client] / sum(shares)
            end = len(images) if client + 1 == CLIENTS else max(first, min(int(dealt * len(images)), len(images)))
            clients[client] += images[first:end]
            first = end
    return clients


def _split():
    random = Random(0)
    order = list(range(len(images)))
    random.shuffle(order)
    if os.environ.get("FEDERATED_SPLIT", "uniform") == "label":
        return _split_by_label(order, random)
    return _split_uniformly(order)


def _first_weights():
    random = Random(0)
    weights = []
    for rows, columns in (HIDDEN, images.shape[1]), (10, HIDDEN):
        limit = numpy.sqrt(numpy.float32(6) / numpy.float32(columns))
        drawn = numpy.array([random.unit() for _ in range(rows * columns)], numpy.float32)
        weights += [(limit * (2 * drawn - 1)).reshape(columns, rows).T.copy(), numpy.zeros((rows, 1), numpy.float32)]
    return weights


class Network:
    """One hidden layer: pixels -> ReLU -> softmax, trained with Adam. See mnist/network.cc."""

    def __init__(self, weights):
        self.weights = [weight.copy() for weight in weights]
        self._means = [numpy.zeros_like(weight) for weight in weights]
        self._squares = [numpy.zeros_like(weight) for weight in weights]
        self._steps = 0

    def _forward(self, pixels):
        into, bias_into, out, bias_out = self.weights
        hidden = numpy.maximum(into @ pixels + bias_into, 0)
        scores = out @ hidden + bias_out
        return hidden, scores - scores.max(axis=0)

    def train(self, picks):
        """One step on some images; how many of them it knew before, and their mean loss."""
        pixels = images[picks].T.astype(numpy.float32) / numpy.float32(255)
        truth, columns = labels[picks], numpy.arange(len(picks))
        hidden, scores = self._forward(pixels)
        shares = numpy.exp(scores)
        shares /= shares.sum(axis=0)
        loss = -float(numpy.log(shares[truth, columns]).mean())
        known = int((scores.argmax(axis=0) == truth).sum())
        shares[truth, columns] -= 1
        shares /= numpy.float32(len(picks))
        back = (self.weights[2].T @ shares) * (hidden > 0)
        self._step([back @ pixels.T, back.sum(axis=1, keepdims=True),
                    shares @ hidden.T, shares.sum(axis=1, keepdims=True)])
        return known, loss

    def _step(self, gradients):
        self._steps += 1
        bias = numpy.float32(math.sqrt(1 - 0.999 ** self._steps))
        rate = LEARNING_RATE * bias / numpy.float32(1 - 0.9 ** self._steps)
        for weight, mean, square, gradient in zip(self.weights, self._means, self._squares, gradients):
            mean += numpy.float32(0.1) * (gradient - mean)
            square += numpy.float32(0.001) * (gradient * gradient - square)
            weight -= rate * mean / (numpy.sqrt(square) + numpy.float32(1e-8) * bias)

    def test_accuracy(self):
        pixels = test_images.T.astype(numpy.float32) / numpy.float32(255)
        return float((self._forward(pixels)[1].argmax(axis=0) == test_labels).mean())


def save(path, weights):
    numpy.savez(path, *weights)


def read(path):
    with numpy.load(path) as file:
        return [file[name] for name in file.files]


images, labels = _load("train")
test_images, test_labels = _load("t10k")
split = _split()
first_weights = _first_weights()
