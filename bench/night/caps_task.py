"""A task that takes so much of its card by torch's allocator, piece by piece, and works for a while.

caps_task.py GIGABYTES SECONDS_BEFORE SECONDS_A_GIGABYTE SECONDS_AFTER
"""
import sys
import time

import torch

PIECE = 100_000_000

time.sleep(float(sys.argv[2]))
for piece in range(round(float(sys.argv[1]) * 1e9 / PIECE)):
    torch.take(PIECE)
    time.sleep(float(sys.argv[3]) * PIECE / 1e9)
time.sleep(float(sys.argv[4]))
