#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The store of torch.distributed: an agent's and rank 0's own, in turns.

One worker of hvdrun imports torch, and then forks all ranks at the same time, so that no import is measured. The clock
starts with the forks. It stops when the last rank has left init_process_group("gloo"), and again when it has left
a barrier.
"""

import os
import sys

import bench
from box import Box
from ground import HVDRUN
from jobs import Job
from restart import find_python

WORKER = """if True:
    import datetime, os, sys, time
    import torch, torch.distributed as dist
    size, folder = int(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    begun = time.monotonic()
    children = []
    for rank in range(size):
        pid = os.fork()
        if pid:
            children.append(pid)
            continue
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank))
        status = 1
        try:
            dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=300))
            entered = time.monotonic() - begun
            dist.barrier()
            with open(f"{folder}/{rank}", "w") as file:
                file.write(f"{entered} {time.monotonic() - begun}")
            dist.barrier()
            status = 0
        finally:
            os._exit(status)
    bad = sum(os.waitpid(pid, 0)[1] != 0 for pid in children)
    sys.exit(bad > 0)
"""


def measure(python, who, size):
    """The last times of all ranks: (out of init_process_group, out of the barrier)."""
    box, job = Box(), None
    try:
        script = box.path("worker.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(WORKER)
        os.mkdir(box.path("times"))
        job = Job(box, [HVDRUN, "-np", 1, "--torch-store", who, python, "-B", script, str(size), box.path("times")],
                  env={"OMP_NUM_THREADS": "1"})
        result = job.wait(400)
        if result.status != 0:
            raise RuntimeError(f"{who} with {size} ranks failed{result.describe()}")
        times = []
        for rank in range(size):
            with open(box.path("times", str(rank)), encoding="utf-8") as file:
                times.append(tuple(map(float, file.read().split())))
        return max(one[0] for one in times), max(one[1] for one in times)
    finally:
        if job is not None and job.popen.poll() is None:
            job.kill()
        box.kill_strays()
        box.close()


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="values of each kind (10)")
    parser.add_argument("--ranks", type=int, nargs="*", default=[16, 64], help="numbers of ranks (16 64)")
    options = parser.parse_args()
    bench.begin()
    python, has_torch = find_python()
    if not has_torch:
        sys.exit("torch_store.py: there is no torch on this machine (Debian: apt install python3-torch)")
    report = bench.Report("torch_store", options)
    for size in options.ranks:
        found = {"rank0": [], "agent": []}
        for number in range(options.rounds):
            bench.say(f"{size} ranks: round {number + 1} of {options.rounds}")
            for who in sorted(found, reverse=number % 2 == 1):
                found[who].append(measure(python, who, size))
        rows = [[who, len(times), bench.pair([one[0] for one in times]), bench.pair([one[1] for one in times])]
                for who, times in found.items()]
        report.add(f"{size} ranks", "Seconds, median / worst.\n\n" + bench.table(
            ["--torch-store", "n", "start to init_process_group", "start to first barrier"], rows), str(size), found)
    report.finish()


if __name__ == "__main__":
    main()
