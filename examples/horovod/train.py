#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training with Horovod's API, as in its tutorials, on images that it makes:

    hvdrun -np 4 --horovod bundled python3 examples/horovod/train.py

Without torch, the script says so and exits with status 77.
"""
import argparse
import os
import sys

try:
    import torch
except ModuleNotFoundError:
    print("train.py: skipped, torch is not installed (Debian: apt install python3-torch)", flush=True)
    sys.exit(77)

import horovod.torch as hvd
from synthetic import make_images, make_network
from torch.nn.functional import cross_entropy


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--images", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=32, help="images of each rank in a step")
    parser.add_argument("--rate", type=float, default=0.01, help="learning rate for one rank")
    parser.add_argument("--checkpoint", help="file to resume from, and to write after each epoch")
    parser.add_argument("--fp16-allreduce", action="store_true", help="send gradients in 16 bits")
    return parser.parse_args()


def mean(value, name):
    """The average of a number over all ranks."""
    return hvd.allreduce(torch.tensor(value), name=name).item()


def evaluate(network, images):
    """The share of images that the network recognizes. Each rank takes a part of them."""
    network.eval()
    inputs, labels = images[hvd.rank() :: hvd.size()]
    with torch.no_grad():
        right = (network(inputs).argmax(1) == labels).float().mean().item()
    network.train()
    return mean(right, "accuracy")


def train_epoch(network, optimizer, loader):
    last = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = cross_entropy(network(inputs), labels)
        loss.backward()  # the gradients of the last layers are already on their way
        optimizer.step()
        last = loss.item()
    return mean(last, "loss")


def main():
    options = parse()
    hvd.init()
    torch.manual_seed(1)
    network = make_network()
    images, held_out = make_images(options.images), make_images(512, seed=2)
    sampler = torch.utils.data.DistributedSampler(images, num_replicas=hvd.size(), rank=hvd.rank(), seed=1)
    loader = torch.utils.data.DataLoader(images, batch_size=options.batch, sampler=sampler, drop_last=True)

    optimizer = torch.optim.SGD(network.parameters(), lr=options.rate * hvd.size(), momentum=0.9)
    compression = hvd.Compression.fp16 if options.fp16_allreduce else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=network.named_parameters(), compression=compression
    )
    first = 0
    if options.checkpoint and os.path.exists(options.checkpoint) and hvd.rank() == 0:
        saved = torch.load(options.checkpoint)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["epoch"]
    first = hvd.broadcast(torch.tensor(first), root_rank=0, name="first").item()
    hvd.broadcast_parameters(network.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    for epoch in range(first, options.epochs):
        sampler.set_epoch(epoch)
        loss = train_epoch(network, optimizer, loader)
        accuracy = evaluate(network, held_out)
        if hvd.rank() == 0:
            print(
                f"epoch {epoch + 1}: {hvd.size()} ranks, loss {loss:.4f}, accuracy {100 * accuracy:.1f} %", flush=True
            )
            if options.checkpoint:
                saved = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}
                torch.save(saved, options.checkpoint + ".new")
                os.replace(options.checkpoint + ".new", options.checkpoint)
    hvd.shutdown()


if __name__ == "__main__":
    main()
