#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The training of train.py in an elastic job: ranks may be lost, and hosts may come and go.

    hvdrun -H a:2,b:2 --min-np 2 --horovod bundled python3 examples/horovod/train_elastic.py

The surviving processes go on from the last commit. If the whole job ends, the next one begins with the
checkpoint. Without torch, the script says so and exits with status 77.
"""
import argparse
import os
import sys
import time

try:
    import torch
except ModuleNotFoundError:
    print("train_elastic.py: skipped, torch is not installed (Debian: apt install python3-torch)", flush=True)
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
    parser.add_argument("--pause", type=float, default=0, help="seconds to wait in each step")
    return parser.parse_args()


def save(path, state):
    """Writes the whole file or nothing."""
    torch.save(
        {"network": state.model.state_dict(), "optimizer": state.optimizer.state_dict(), "epoch": state.epoch},
        path + ".new",
    )
    os.replace(path + ".new", path)


def resume(path, network, optimizer):
    """The number of epochs that the checkpoint has. All ranks get its content from rank 0."""
    if not path or not os.path.exists(path):
        return 0
    saved = torch.load(path)
    network.load_state_dict(saved["network"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["epoch"]


def main():
    options = parse()
    hvd.init()  # no collective operation until train(): a rank that comes later would not take part in it
    torch.manual_seed(1)
    network = make_network()
    images = make_images(options.images)
    optimizer = torch.optim.SGD(network.parameters(), lr=options.rate * hvd.size(), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=network.named_parameters())
    first = resume(options.checkpoint, network, optimizer)
    sampler = hvd.elastic.ElasticSampler(images, seed=1)
    loader = torch.utils.data.DataLoader(images, batch_size=options.batch, sampler=sampler)

    def train_epoch(state):
        loss = torch.zeros(())
        for index, (inputs, labels) in enumerate(loader):
            optimizer.zero_grad()
            loss = cross_entropy(network(inputs), labels)
            loss.backward()
            optimizer.step()
            time.sleep(options.pause)
            sampler.record_batch(index, len(labels))  # these images are not used again in this epoch
            state.batch += 1
            if state.batch % 4 == 0:
                state.commit()  # a failure goes back to here, and new ranks begin here
        return loss.detach()

    @hvd.elastic.run
    def train(state):
        print(f"rank {hvd.rank()} of {hvd.size()}, pid {os.getpid()}, batch {state.batch}", flush=True)
        while state.epoch < options.epochs:
            loss = hvd.allreduce(train_epoch(state), name="loss").item()
            state.epoch += 1
            sampler.set_epoch(state.epoch)
            if hvd.rank() == 0:
                print(f"epoch {state.epoch}: {hvd.size()} ranks, loss {loss:.4f}", flush=True)
                if options.checkpoint:
                    save(options.checkpoint, state)
            state.commit()

    def on_reset():
        for group in optimizer.param_groups:
            group["lr"] = options.rate * hvd.size()

    state = hvd.elastic.TorchState(model=network, optimizer=optimizer, sampler=sampler, epoch=first, batch=0)
    state.register_reset_callbacks([on_reset])
    train(state)
    if hvd.rank() == 0:
        print(f"done after {state.epoch} epochs", flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main()
