# SPDX-License-Identifier: Apache-2.0
"""A rank of a job of PyTorch with NCCL: hang.sh says what each word is for."""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist


def load(seconds):
    time.sleep(seconds)


def step(matrix):
    for _ in range(4):
        torch.mm(matrix, matrix)
    dist.all_reduce(total)
    torch.cuda.synchronize()


def wait_for_gpu():
    torch.cuda.synchronize()


word, seconds = sys.argv[1], float(sys.argv[2])
rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", timeout=datetime.timedelta(minutes=10))
total = torch.ones(1024, device="cuda")
large = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
for _ in range(100):
    step(large)
print("ready", flush=True)
if word == "train":
    for _ in range(int(seconds * 100)):
        step(large)
elif word == "skip":
    if rank == 1:
        load(seconds)
    dist.all_reduce(total)
    wait_for_gpu()
elif word == "kernels":
    if rank == 1:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(1000):
                torch.mm(large, large)
        begun = time.monotonic()
        graph.replay()
        torch.cuda.synchronize()
        for _ in range(int(seconds / (time.monotonic() - begun))):
            graph.replay()
    dist.all_reduce(total)
    wait_for_gpu()
print("done", flush=True)
dist.destroy_process_group()
