#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""restart_torch.py FILE LAST: each start of the job makes an NCCL group and reduces a vector. Then one rank kills itself
while all others reduce again, until start number LAST. FILE gets a line for each start that was right: its number, when
the vector was there, when the rank was killed (both in s), and the keys of the store. Each tenth start has a fifth number:
the most memory (MiB) that a GPU had in use before a rank of this start touched it."""
import os
import signal
import subprocess
import sys
import time

import torch
import torch.distributed as dist


def used():
    said = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], check=True,
                          capture_output=True, text=True).stdout
    return max(map(int, said.split()))


def main():
    path, last = sys.argv[1], int(sys.argv[2])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    start = int(os.environ["TORCHELASTIC_RESTART_COUNT"]) + 1
    looks = start % 10 == 1 or start == last
    before = ""
    if looks:
        dist.init_process_group("gloo")
        before = used() if rank == 0 else ""
        dist.barrier()
        dist.destroy_process_group()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    vector = torch.full((1 << 20,), rank + 1.0, device="cuda")
    dist.all_reduce(vector)
    torch.cuda.synchronize()
    moment = time.monotonic()
    if not (vector == size * (size + 1) / 2).all():
        sys.exit(f"rank {rank}: wrong sum {vector[0]}")
    dist.barrier()
    torch.cuda.synchronize()
    time.sleep(0.3)  # the watchdog looks at the store
    if rank == 0:
        with open(path, "a", encoding="ascii") as file:
            file.write(f"{start} {moment} {time.monotonic()} {dist.distributed_c10d._get_default_store().num_keys()} {before}\n")
    dist.barrier()
    torch.cuda.synchronize()
    if start == last:
        dist.destroy_process_group()
        print(f"all right: rank {rank} of {size}", flush=True)
        return
    if rank == start % size:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(vector)
    torch.cuda.synchronize()
    sys.exit(f"rank {rank}: all_reduce came back without a rank")


main()
