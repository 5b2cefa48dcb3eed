#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training with DistributedDataParallel over gloo, on data that the script makes itself.

    hvdrun --transport docker -H trainer-0,trainer-1 --wdir /app python3 train.py
    torchrun --nnodes 2 --node-rank 0 --master_addr trainer-0 --master_port 29500 train.py

init_method="env://" reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Both launchers set them, and
nothing here is specific to one of them. The script continues from its checkpoint if there is one.
"""
import argparse
import datetime
import io
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

SAMPLES, FEATURES = 512, 16


def make_data():
    """The same on all ranks: points, and values that depend on them almost linearly."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(SAMPLES, FEATURES, generator=generator)
    wanted = inputs @ torch.linspace(-1, 1, FEATURES).unsqueeze(1) + 0.5
    return inputs, wanted + 0.1 * torch.randn(SAMPLES, 1, generator=generator)


def load(path, model, optimizer):
    """Returns the last step that the checkpoint holds. All ranks read it, from the volume that they share."""
    if not os.path.exists(path):
        return 0
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def save(path, step, model, optimizer):
    """If this process is killed in the middle, the old checkpoint stays intact."""
    content = io.BytesIO()
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, content)
    try:
        with open(path + ".new", "wb") as file:
            file.write(content.getvalue())
        os.replace(path + ".new", path)
    except OSError as error:
        sys.exit(f"train.py: cannot write the checkpoint {path}: {error.strerror}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", default="/shared/checkpoint.pt", help="file on the shared volume")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=20, help="steps between two checkpoints")
    parser.add_argument("--pause", type=float, default=0, help="seconds to wait after each step, to give you time to watch")
    parser.add_argument("--timeout", type=float, default=60, help="seconds to wait for the other ranks")
    options = parser.parse_args()

    # gloo's own default is half an hour, which is long when a container has gone
    dist.init_process_group("gloo", init_method="env://", timeout=datetime.timedelta(seconds=options.timeout))
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    inputs, wanted = make_data()
    torch.manual_seed(2)
    model = torch.nn.Linear(FEATURES, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    first = load(options.checkpoint, model, optimizer)
    print(f"rank {rank} of {size} in {socket.gethostname()} continues after step {first}", flush=True)
    dist.barrier()  # no rank writes the checkpoint while another one reads it
    parallel = DistributedDataParallel(model)

    for step in range(first + 1, options.steps + 1):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(parallel(inputs[rank::size]), wanted[rank::size])
        loss.backward()  # averages the gradients over all ranks
        optimizer.step()
        time.sleep(options.pause)
        if rank == 0 and (step % options.every == 0 or step == options.steps):
            save(options.checkpoint, step, model, optimizer)
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    dist.barrier()  # rank 0 may still be writing
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
