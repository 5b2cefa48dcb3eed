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


def make(**options):
    """DDP without options."""
    torch.manual_seed(1)
    network = torchvision.models.resnet50().cuda()
    if not options:
        network = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    if options:
        optimizer = hvd.DistributedOptimizer(optimizer, network.named_parameters(), **options)
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
        sides = {"DDP": make(), "DistributedOptimizer": make(op=hvd.Average), "with 10 groups": make(groups=10)}
        for side in sides.values():
            train(*side, inputs, labels, half, WARM_UP)
        found = {name: [] for name in sides}
        for turn in range(rounds):
            names = list(sides)
            for name in names[turn % 3 :] + names[: turn % 3]:
                found[name].append(speed(*sides[name], inputs, labels, half))
        if hvd.rank() == 0:
            print(f"ResNet-50, {'bf16 (autocast)' if half else 'fp32'}, batch {BATCH}, images/s:", flush=True)
            for name, values in found.items():
                ratios = [ours / theirs for ours, theirs in zip(values, found["DDP"])]
                print(f"images/s: {name} {statistics.median(values):.0f}, by DDP: {statistics.median(ratios):.3f} "
                      f"({min(ratios):.3f} to {max(ratios):.3f})", flush=True)  # fmt: skip
    print("all right", flush=True)
    distributed.destroy_process_group()
    hvd.shutdown()
    os._exit(0)


main()
