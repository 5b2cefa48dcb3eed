#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training with torch.distributed, on CPUs with gloo:

    hvdrun -np 2 python3 examples/torch_ddp.py

init_method="env://" reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which hvdrun sets. Nothing
here is specific to hvdrun. Without torch, the script says so and exits with status 77.
"""
import pathlib
import sys

try:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
except ModuleNotFoundError:
    print("torch_ddp.py: skipped, torch is not installed (Debian: apt install python3-torch)",
          flush=True)
    sys.exit(77)

DATA = pathlib.Path(__file__).resolve().parent / "data" / "digits.csv"
EPOCHS, BATCH = 20, 64


def read_digits():
    rows = [[float(word) for word in line.split(",")] for line in DATA.read_text().split()]
    table = torch.tensor(rows)
    images, labels = table[:, :64] / 16, table[:, 64].long()
    held_out = torch.arange(len(table)) % 5 == 4
    return images[~held_out], labels[~held_out], images[held_out], labels[held_out]


def main():
    dist.init_process_group("gloo", init_method="env://")
    rank, size = dist.get_rank(), dist.get_world_size()
    images, labels, test_images, test_labels = read_digits()

    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()

    for _ in range(EPOCHS):
        order = torch.randperm(len(images))  # the same on all ranks, because the seed is the same
        # DDP averages over the ranks, so all ranks must use the same number of images
        part = BATCH // size
        for first in range(0, len(images) - part * size + 1, part * size):
            mine = order[first + rank * part:first + (rank + 1) * part]
            optimizer.zero_grad()
            loss = loss_of(model(images[mine]), labels[mine])
            loss.backward()
            optimizer.step()

    with torch.no_grad():
        right = (model.module(test_images).argmax(1) == test_labels).float().mean().item()
    if rank == 0:
        print(f"{size} ranks, last loss {loss.item():.4f}, held-out accuracy {100 * right:.2f} %")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
