#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_elastic.py ONCE: an elastic training on GPUs, in which rank 1 kills itself while gradients are under way. ONCE is a
file that does not exist yet. All ranks end with the weights that a training without a loss gives."""
import os
import signal
import sys
import threading
import time

import horovod.torch as hvd
import torch

STEPS, PATIENCE_S = 300, 10


def make():
    torch.manual_seed(1)
    network = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)]).cuda()
    return network, torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9)


def step(network, optimizer, number):
    """All ranks have the same data, so that the result does not depend on their number."""
    inputs = torch.full((64, 512), 1.0 + number % 3).cuda()
    optimizer.zero_grad()
    network(inputs).pow(2).mean().backward()
    optimizer.step()


def await_the_new_rank(state):
    """Steps are faster than the start of a process."""
    end = time.monotonic() + PATIENCE_S
    while hvd.size() == 1 and time.monotonic() < end:
        state.commit()
        time.sleep(0.02)


@hvd.elastic.run
def train(state):
    while state.number < STEPS:
        if state.number == STEPS // 2 and hvd.rank() == 1 and not os.path.exists(sys.argv[1]):
            open(sys.argv[1], "x").close()
            threading.Timer(0.002, os.kill, (os.getpid(), signal.SIGKILL)).start()
        step(state.model, state.optimizer, state.number)
        state.number += 1
        if state.number == STEPS - 10:
            await_the_new_rank(state)
        if state.number % 10 == 0 or STEPS // 2 < state.number < STEPS // 2 + 10:
            state.commit()


def main():
    hvd.init()
    torch.cuda.set_device(int(os.environ.get("HOROVOD_LOCAL_RANK", 0)))
    network, optimizer = make()
    for number in range(STEPS):
        step(network, optimizer, number)
    wanted = torch.cat([p.detach().flatten() for p in network.parameters()])
    network, optimizer = make()
    optimizer = hvd.DistributedOptimizer(optimizer, network.named_parameters())
    train(hvd.elastic.TorchState(model=network, optimizer=optimizer, number=0))
    found = torch.cat([p.detach().flatten() for p in network.parameters()])
    if not torch.allclose(found, wanted, rtol=1e-4, atol=1e-6):
        sys.exit(f"the weights differ by {(found - wanted).abs().max().item()}")
    print(f"all right: rank {hvd.rank()} of {hvd.size()}", flush=True)


main()
