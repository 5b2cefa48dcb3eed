#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_speed.py [ROUNDS]: the speed of trainings with DDP on NCCL and with DistributedOptimizer, in turns, in the same
processes: ResNet-50, in images a second, and a GPT with 124 million parameters, in tokens a second. Rank 0 prints a line
for each kind of numbers. Run it under hvdrun with one rank for each GPU."""
import os
import statistics
import sys
import time

import horovod.torch as hvd
import torch
import torchvision
from torch import distributed, nn
from torch.nn import functional

STEPS, WARM_UP = 10, 8


class ResNet:
    name, unit, batch = "ResNet-50", "images/s", 64

    def __init__(self):
        self.inputs = torch.randn(self.batch, 3, 224, 224).cuda()
        self.labels = torch.randint(0, 1000, (self.batch,)).cuda()
        self.amount = self.batch

    def network(self):
        return torchvision.models.resnet50()

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        parts = self.into(self.first(x)).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.second(x))


class Transformer(nn.Module):
    """As GPT-2, the smallest one."""

    def __init__(self, words, length, width=768, heads=12, layers=12):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        return functional.linear(self.norm(self.blocks(x)), self.words.weight).transpose(1, 2)


class Gpt:
    name, unit, batch = "GPT", "tokens/s", 8

    def __init__(self, words=50304, length=1024):
        self.inputs, self.labels = torch.randint(0, words, (2, self.batch, length)).cuda()
        self.words, self.length, self.amount = words, length, self.batch * length

    def network(self):
        return Transformer(self.words, self.length)

    def optimizer(self, parameters):
        return torch.optim.AdamW(parameters, lr=1e-4)


def make(model, **options):
    """DDP without options."""
    torch.manual_seed(1)
    network = model.network().cuda()
    if not options:
        network = nn.parallel.DistributedDataParallel(network)
    optimizer = model.optimizer(network.parameters())
    if options:
        optimizer = hvd.DistributedOptimizer(optimizer, network.named_parameters(), **options)
        hvd.broadcast_parameters(network.state_dict(), root_rank=0)
    return network, optimizer


def train(model, network, optimizer, half, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=half):
            loss = functional.cross_entropy(network(model.inputs), model.labels)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()


def speed(model, *arguments):
    hvd.barrier()
    start = time.perf_counter()
    train(model, *arguments, STEPS)
    return STEPS * model.amount * hvd.size() / (time.perf_counter() - start)


def compare(model, half, rounds):
    sides = {"DDP": make(model), "DistributedOptimizer": make(model, op=hvd.Average),
             "with 10 groups": make(model, groups=10)}  # fmt: skip
    for side in sides.values():
        train(model, *side, half, WARM_UP)
    found = {name: [] for name in sides}
    for turn in range(rounds):
        names = list(sides)
        for name in names[turn % 3 :] + names[: turn % 3]:
            found[name].append(speed(model, *sides[name], half))
    if hvd.rank() != 0:
        return
    print(f"speed: {model.name}, {'bf16 (autocast)' if half else 'fp32'}, batch {model.batch}:", flush=True)
    for name, values in found.items():
        ratios = [ours / theirs for ours, theirs in zip(values, found["DDP"])]
        print(f"speed: {name} {statistics.median(values):.0f} {model.unit}, by DDP: {statistics.median(ratios):.3f} "
              f"({min(ratios):.3f} to {max(ratios):.3f})", flush=True)  # fmt: skip


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    hvd.init()
    torch.cuda.set_device(hvd.local_rank())
    torch.backends.cudnn.benchmark = True
    distributed.init_process_group("nccl", init_method="env://")
    for model in (ResNet(), Gpt()):
        for half in (False, True):
            compare(model, half, rounds)
    print("all right", flush=True)
    distributed.destroy_process_group()
    hvd.shutdown()
    os._exit(0)


main()
