#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_speed.py [ROUNDS]: images a second of ResNet-50 with DDP on NCCL and with DistributedOptimizer, in turns, in
the same processes. Rank 0 prints a line for each kind of numbers. Run it under hvdrun with one rank for each GPU."""
import os
import statistics
import sys
import time

import horovod.torch as hvd
import torch
import torchvision
from torch import distributed
from torch.nn.functional import cross_entropy

BATCH, STEPS, WARM_UP = 64, 10, 8


def make(distribute):
    torch.manual_seed(1)
    network = torchvision.models.resnet50().cuda()
    if distribute:
        network = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    if not distribute:
        optimizer = hvd.DistributedOptimizer(optimizer, network.named_parameters())
        hvd.broadcast_parameters(network.state_dict(), root_rank=0)
    return network, optimizer


def train(network, optimizer, inputs, labels, half, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=half):
            loss = cross_entropy(network(inputs), labels)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()


def speed(*arguments):
    hvd.barrier()
    start = time.perf_counter()
    train(*arguments, STEPS)
    return STEPS * BATCH * hvd.size() / (time.perf_counter() - start)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    hvd.init()
    torch.cuda.set_device(hvd.local_rank())
    torch.backends.cudnn.benchmark = True
    distributed.init_process_group("nccl", init_method="env://")
    inputs, labels = torch.randn(BATCH, 3, 224, 224).cuda(), torch.randint(0, 1000, (BATCH,)).cuda()
    for half in (False, True):
        sides = [make(True), make(False)]
        for side in sides:
            train(*side, inputs, labels, half, WARM_UP)
        found = ([], [])
        for turn in range(rounds):
            for which in (turn % 2, 1 - turn % 2):
                found[which].append(speed(*sides[which], inputs, labels, half))
        ratio = statistics.median(ours / theirs for theirs, ours in zip(*found))
        if hvd.rank() == 0:
            kind = "bf16 (autocast)" if half else "fp32"
            print(
                f"ResNet-50, {kind}, batch {BATCH}, images/s: DDP {statistics.median(found[0]):.0f}, "
                f"DistributedOptimizer {statistics.median(found[1]):.0f}, ratio {ratio:.3f} "
                f"({min(b / a for a, b in zip(*found)):.3f} to {max(b / a for a, b in zip(*found)):.3f})",
                flush=True,
            )
    print("all right", flush=True)
    distributed.destroy_process_group()
    hvd.shutdown()
    os._exit(0)


main()
