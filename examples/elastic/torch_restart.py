#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training with torch.distributed that survives the loss of workers and hosts. When one is lost, hvdrun
terminates the other workers and starts all of them again on the hosts that remain. The script continues
from its last checkpoint.

    hvdrun -np 2 --min-np 1 --max-np 8 --host-discovery-script examples/elastic/discover.sh \\
        python3 examples/elastic/torch_restart.py --checkpoint /shared/checkpoint.pt

init_method="env://" reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which hvdrun sets for each
start. Nothing here is specific to hvdrun, and torchrun can start the script too. All hosts must be able
to reach the checkpoint. Without torch, the script says so and exits with status 77.
"""
import argparse
import datetime
import os
import sys
import time

try:
    import torch
    import torch.distributed as dist
except ModuleNotFoundError:
    print("torch_restart.py: skipped, torch is not installed (Debian: apt install python3-torch)", flush=True)
    sys.exit(77)

SAMPLES, FEATURES = 240, 8


def make_data():
    """The data is the same on every rank, and each rank uses its share."""
    torch.manual_seed(1)
    inputs = torch.randn(SAMPLES, FEATURES, dtype=torch.float64)
    return inputs, inputs @ torch.linspace(-1, 1, FEATURES, dtype=torch.float64).unsqueeze(1) + 0.5


def load(path):
    """Rank 0 reads the checkpoint and sends it to all ranks, so that all begin at the same step."""
    state = {"step": 0, "weights": torch.zeros(FEATURES + 1, 1, dtype=torch.float64)}
    if dist.get_rank() == 0 and os.path.exists(path):
        state = torch.load(path)
    box = [state]
    dist.broadcast_object_list(box, src=0)
    return box[0]["step"], box[0]["weights"]


def save(path, step, weights):
    """If the worker is killed during this, the old checkpoint stays intact."""
    if dist.get_rank() == 0:
        torch.save({"step": step, "weights": weights}, path + ".new")
        os.replace(path + ".new", path)


def train_step(weights, inputs, wanted, rate):
    """One step over all samples. It divides the sum over the ranks by the number of samples, not of ranks,
    so the result does not depend on the number of ranks. Returns the loss before the step."""
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = torch.cat([inputs[rank::size], torch.ones(len(inputs[rank::size]), 1, dtype=torch.float64)], 1)
    error = mine @ weights - wanted[rank::size]
    fused = torch.cat([mine.T @ error * 2, (error ** 2).sum().reshape(1, 1)])
    dist.all_reduce(fused)
    weights -= rate * fused[:-1] / SAMPLES
    return fused[-1].item() / SAMPLES


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", default="checkpoint.pt", help="file that all hosts can reach")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=10, help="steps between two checkpoints")
    parser.add_argument("--pause", type=float, default=0, help="seconds to wait after each step, to give you time to watch")
    options = parser.parse_args()

    # the default timeout is half an hour, too long to wait for a host that has lost power
    dist.init_process_group("gloo", init_method="env://", timeout=datetime.timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    inputs, wanted = make_data()
    step, weights = load(options.checkpoint)
    print(f"rank {rank} of {size}: restart {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}, "
          f"port {os.environ['MASTER_PORT']}, from step {step}, pid {os.getpid()}", flush=True)

    loss = float("nan")
    while step < options.steps:
        loss = train_step(weights, inputs, wanted, rate=0.002)
        step += 1
        time.sleep(options.pause)
        if step % options.every == 0 or step == options.steps:
            save(options.checkpoint, step, weights)
            if rank == 0:
                print(f"step {step}: loss {loss:.6f}", flush=True)
    if rank == 0:
        final = (torch.cat([inputs, torch.ones(SAMPLES, 1, dtype=torch.float64)], 1) @ weights - wanted).square().mean()
        print(f"final loss {final.item():.9f} after {step} steps", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
