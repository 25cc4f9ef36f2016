"""MNIST trained by several processes as one, with PyTorch as it is: a plain script for `ranks: 4`.

    trainyard ranks -n 4 -- python3 examples/data_parallel/train.py
    trainyard run examples/data_parallel/train.yaml

It knows nothing of trainyard but where its result goes: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
are what torchrun sets. By itself it is one process with the same batches.
"""
import gzip
import json
import os
import pathlib

import numpy
import torch
import torch.distributed

DATA = pathlib.Path(os.environ.get("MNIST_DIR", pathlib.Path(__file__).parent.parent / "mnist/data"))
BATCH = 64  # Of all ranks together.


def load(part):
    def read(name, head):
        path = DATA / f"{part}-{name}-ubyte"
        packed = path.with_name(path.name + ".gz")
        data = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
        return numpy.frombuffer(data, numpy.uint8, offset=head)
    labels = torch.from_numpy(read("labels-idx1", 8).astype(numpy.int64))
    images = torch.from_numpy(read("images-idx3", 16).astype(numpy.float32) / 255)
    return images.reshape(len(labels), -1), labels


def main():
    ranks, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
    (images, labels), (test_images, test_labels) = load("train"), load("t10k")
    network = torch.nn.Sequential(torch.nn.Linear(images.shape[1], 128), torch.nn.ReLU(),
                                  torch.nn.Linear(128, 10))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    order = torch.Generator().manual_seed(1)  # The same in all ranks.
    epochs = int(os.environ.get("EPOCHS", 3))
    for epoch in range(1, epochs + 1):
        for batch in torch.randperm(len(labels), generator=order).split(BATCH):
            picks = batch[rank::ranks]
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(network(images[picks]), labels[picks], reduction="sum")
            (loss / len(batch)).backward()
            if ranks > 1:
                gradients = torch.cat([each.grad.reshape(-1) for each in network.parameters()])
                torch.distributed.all_reduce(gradients)
                at = 0
                for each in network.parameters():
                    each.grad.copy_(gradients[at:at + each.numel()].reshape(each.shape))
                    at += each.numel()
            optimizer.step()
        with torch.no_grad():
            accuracy = (network(test_images).argmax(1) == test_labels).float().mean().item()
        if rank == 0:
            print(f"epoch {epoch}: test {100 * accuracy:.2f} %", flush=True)
    if rank == 0 and "TRAINYARD_RESULT" in os.environ:
        pathlib.Path(os.environ["TRAINYARD_RESULT"]).write_text(json.dumps({"test_acc": accuracy, "ranks": ranks}))


if __name__ == "__main__":
    main()
