"""A torch as far as it matters: who asks its allocator for more than the fraction runs out of memory."""
import os
import sys

import fake_gpu

CONTEXT = 300_000_000  # Which it does not count.
TOTAL = 24_000_000_000
fraction = 1.0
for option in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "").split(","):
    name, _, value = option.partition(":")
    if name == "per_process_memory_fraction":
        fraction = float(value)
allocated = 0


def take(memory):
    global allocated
    try:
        if allocated + memory > fraction * TOTAL:
            raise RuntimeError("more than the fraction")
        fake_gpu.take(memory + (0 if allocated else CONTEXT))
    except RuntimeError:
        sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %.2f GiB. GPU 0 has a total capacity of "
                 "22.35 GiB. Including non-PyTorch memory, this process has %.2f GiB memory in use." %
                 (memory / 2**30, (allocated + CONTEXT) / 2**30))
    allocated += memory
