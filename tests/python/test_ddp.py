# SPDX-License-Identifier: Apache-2.0
"""The same training with torch.distributed's DDP gives the same losses."""
import os

import horovod.torch as hvd
import pytest
import torch
from torch import distributed
from torch.nn.functional import cross_entropy

STEPS, TOLERANCE = 50, 1e-5


def make_network():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 36, 16),
        torch.nn.Tanh(),
        torch.nn.Linear(16, 5),
    )


def make_data(size):
    torch.manual_seed(2)
    return torch.randn(64 * size, 1, 8, 8), torch.randint(0, 5, (64 * size,))


def losses_of(network, optimizer, rank, size):
    """Of this rank, in each step. Its part of the data differs from those of other ranks."""
    inputs, labels = (part[rank::size] for part in make_data(size))
    losses = []
    for step in range(STEPS):
        batch = slice(16 * (step % 4), 16 * (step % 4) + 16)
        optimizer.zero_grad()
        loss = cross_entropy(network(inputs[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.fixture
def group():
    if "MASTER_ADDR" not in os.environ or not distributed.is_available():
        pytest.skip("needs torch.distributed, and hvdrun")
    distributed.init_process_group("gloo", init_method="env://")
    yield
    distributed.destroy_process_group()


@pytest.mark.parametrize("options", [{}, {"groups": 2}], ids=str)
def test_losses_are_those_of_ddp(group, options, rank, size):
    network = torch.nn.parallel.DistributedDataParallel(make_network())
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    wanted = losses_of(network, optimizer, rank, size)

    network = make_network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=network.named_parameters(), **options)
    hvd.broadcast_parameters(network.state_dict(), root_rank=0)
    found = losses_of(network, optimizer, rank, size)

    assert wanted[-1] < wanted[0] - 0.1  # it learns
    assert max(abs(a - b) for a, b in zip(found, wanted)) < TOLERANCE
