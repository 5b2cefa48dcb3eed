# SPDX-License-Identifier: Apache-2.0
"""A rank of torch_horovod.py. `compare ROUNDS`: the same work with torch.distributed and with hvdrun's Horovod package,
in turns. Rank 0 prints lines "WHAT TORCH HOROVOD", in µs. `elastic FOLDER SECONDS`: an elastic training, which stamps
each step."""

import os
import sys
import time

import horovod.torch as hvd
import torch
from torch import distributed, nn
from torch.nn.functional import cross_entropy

BATCH, STEPS, SMALL = 16, 8, 200


def make_network():
    torch.manual_seed(1)
    layers, channels = [], 3
    for more in (16, 32, 64):
        layers += [nn.Conv2d(channels, more, 3, padding=1, bias=False), nn.BatchNorm2d(more), nn.ReLU(), nn.MaxPool2d(2)]
        channels = more
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * 16, 256), nn.ReLU(), nn.Linear(256, 10))


def make_step(network, optimizer, images, labels):
    def step():
        optimizer.zero_grad()
        cross_entropy(network(images), labels).backward()
        optimizer.step()
    return step


def time_of(function, count):
    """µs of one call. All ranks begin together."""
    hvd.barrier()
    begin = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - begin) / count * 1e6


def compare(rounds):
    distributed.init_process_group("gloo", init_method="env://")
    images, labels = torch.randn(BATCH, 3, 32, 32), torch.randint(0, 10, (BATCH,))
    network = nn.parallel.DistributedDataParallel(make_network())
    theirs = make_step(network, torch.optim.SGD(network.parameters(), lr=0.01), images, labels)
    network = make_network()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.01), network.named_parameters())
    ours = make_step(network, optimizer, images, labels)
    number = torch.ones(1)
    work = [("a step of a small convolutional net", theirs, ours, STEPS),
            ("4 bytes", lambda: distributed.all_reduce(number), lambda: hvd.allreduce_(number, op=hvd.Sum, name="small"), SMALL)]
    for what, first, second, count in work:
        for number_of_round in range(rounds + 1):  # the first is a warm-up
            values = time_of(first, count), time_of(second, count)
            if hvd.rank() == 0 and number_of_round > 0:
                print(what.replace(" ", "_"), *values, flush=True)
    distributed.destroy_process_group()


def elastic(folder, seconds):
    model = nn.Linear(64, 64)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters())
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, steps=0)
    path = os.path.join(folder, os.environ["HVDRUN_HOSTNAME"])

    @hvd.elastic.run
    def train(state):
        end = hvd.broadcast_object(time.monotonic() + seconds, name="end")
        while hvd.broadcast_object(time.monotonic(), name="now") < end:
            optimizer.zero_grad()
            model(torch.ones(1, 64)).sum().backward()
            optimizer.step()
            state.steps += 1
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"step {time.monotonic():.6f} {os.getpid()} {hvd.rank()} {hvd.size()}\n")
            if state.steps % 5 == 0:
                state.commit()

    train(state)


if __name__ == "__main__":
    hvd.init()
    if sys.argv[1] == "compare":
        compare(int(sys.argv[2]))
    else:
        elastic(sys.argv[2], float(sys.argv[3]))
    hvd.shutdown()
