#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training with torch.distributed that survives the loss of workers and hosts: when one is lost, hvdrun
ends the others and starts all of them again, with the hosts that there are, and the script goes on
from its last checkpoint.

    hvdrun -np 2 --min-np 1 --max-np 8 --host-discovery-script examples/elastic/discover.sh \\
        python3 examples/elastic/torch_restart.py --checkpoint /shared/checkpoint.pt

init_method="env://" reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which hvdrun sets anew for
each start; nothing here is special to it, and torchrun can start the script as well. The checkpoint must be
where every host can reach it. Without torch the script says so and exits with status 77.
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
    """The same on every rank: each takes its share of it."""
    torch.manual_seed(1)
    inputs = torch.randn(SAMPLES, FEATURES, dtype=torch.float64)
    return inputs, inputs @ torch.linspace(-1, 1, FEATURES, dtype=torch.float64).unsqueeze(1) + 0.5


def load(path):
    """Rank 0 reads the checkpoint, and all get it, so that no two begin at different steps."""
    state = {"step": 0, "weights": torch.zeros(FEATURES + 1, 1, dtype=torch.float64)}
    if dist.get_rank() == 0 and os.path.exists(path):
        state = torch.load(path)
    box = [state]
    dist.broadcast_object_list(box, src=0)
    return box[0]["step"], box[0]["weights"]


def save(path, step, weights):
    """Whoever is killed in the middle of this leaves the old checkpoint whole."""
    if dist.get_rank() == 0:
        torch.save({"step": step, "weights": weights}, path + ".new")
        os.replace(path + ".new", path)


def train_step(weights, inputs, wanted, rate):
    """One step over all samples. The sum over the ranks is divided by the samples, not by the ranks,
    so that the result does not depend on how many there are. Returns the loss before the step."""
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
    parser.add_argument("--pause", type=float, default=0, help="seconds that a step takes, to have time to look")
    options = parser.parse_args()

    # a short limit: when a host vanishes without a word, nobody waits for it for half an hour
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
