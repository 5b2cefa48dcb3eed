# SPDX-License-Identifier: Apache-2.0
"""A small model, its data, and what one process makes of it with the batches of all ranks."""
import horovod.torch as hvd
import torch
from torch.nn.functional import cross_entropy

STEPS = 10


def make_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))


def make_data(size):
    torch.manual_seed(2)
    return torch.randn(24 * size, 8), torch.randint(0, 4, (24 * size,))


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def train_alone(size, steps=STEPS):
    """One process with the whole batch."""
    model, (inputs, labels) = make_model(), make_data(size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    return weights(model)


def wrap(model, **options):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), **options)
