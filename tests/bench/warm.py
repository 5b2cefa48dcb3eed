#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon do PyTorch ranks print their first line, and what do they need, with --warm and without?

  start     from the command to the first line of the last rank, with the import
  restart   rank 0 of an elastic job is killed: to the first line of the last new rank
  memory    PSS of all ranks after their first line, and of the interpreter that forks them

Both ways take turns. Cold restarts are measured with at most 16 ranks, since 64 take minutes."""

import os
import re
import signal
import sys
import time

import bench
import launchers
from box import Box
from ground import HVDRUN
from python import find_python

SCRIPT = """\
import os, sys, time
import torch
with open(sys.argv[1], "a") as file:
    file.write("%s %s %d %f\\n" % (os.environ["HVDRUN_EPOCH"], os.environ["RANK"], os.getpid(), time.monotonic()))
while True:
    time.sleep(1000)
"""
WAYS = {"cold": (), "warm": ("--warm",)}
LIMIT = 600


def lines(path):
    """(epoch, rank, pid, time) of each rank."""
    try:
        with open(path, encoding="ascii") as file:
            return [tuple(float(word) for word in line.split()) for line in file if line.endswith("\n")]
    except OSError:
        return []


def last_of(path, size, epoch):
    """Waits until all ranks of the epoch have written; their lines."""
    def there():
        found = [line for line in lines(path) if line[0] == epoch]
        return found if len(found) == size else None
    return bench.wait_for(there, f"{size} ranks of epoch {epoch}", LIMIT)


def memory(pids):
    """PSS in MiB."""
    total = 0
    for pid in pids:
        with open(f"/proc/{int(pid)}/smaps_rollup", encoding="ascii") as file:
            total += int(re.search(r"^Pss:\s+(\d+)", file.read(), re.M).group(1))
    return total / 1024


def mothers(launch):
    return [one.pid for one in launch.processes() if b"<hvdrun --warm>" in open(f"/proc/{one.pid}/cmdline", "rb").read()]


def measure(python, way, size):
    box = Box()
    path, script = box.path("lines"), box.path("train.py")
    with open(script, "w", encoding="ascii") as file:
        file.write(SCRIPT)
    restarts = way == "warm" or size <= 16
    elastic = ("--min-np", str(size), "--on-failure", "restart", "--grace", "0.1") if restarts else ()
    launch = launchers.Launch([HVDRUN, "-np", str(size), "-H", f"localhost:{size}", *elastic, *WAYS[way], python, script, path])
    try:
        first = last_of(path, size, 1 if elastic else lines_epoch(path, size))
        result = {"start": max(line[3] for line in first) - launch.began,
                  "memory": memory([line[2] for line in first] + mothers(launch)), "restart": None}
        if restarts:
            killed = time.monotonic()
            os.kill(int(next(line[2] for line in first if line[1] == 0)), signal.SIGKILL)
            result["restart"] = max(line[3] for line in last_of(path, size, 2)) - killed
        return result
    finally:
        os.kill(launch.pid, signal.SIGTERM)
        launch.wait(30)
        launch.kill()
        box.kill_strays()
        box.close()


def lines_epoch(path, size):
    """The number of the only epoch of a job that is not elastic."""
    bench.wait_for(lambda: len(lines(path)) == size, f"{size} ranks", LIMIT)
    return lines(path)[0][0]


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default="2,4,16,64")
    options = parser.parse_args()
    bench.begin()
    python = find_python("torch")
    if python is None:
        sys.exit("warm.py: no Python has torch")
    report = bench.Report("warm", options)
    rows, data = [], {}
    for size in map(int, options.sizes.split(",")):
        found = {way: [] for way in WAYS}
        for number, way in launchers.turns(WAYS, options.rounds):
            bench.say(f"warm: {size} ranks, {way}")
            value = measure(python, way, size)
            if number > 0:
                found[way].append(value)
        data[size] = found
        for what in ("start", "restart", "memory"):
            cold, warm = ([one[what] for one in found[way] if one[what] is not None] for way in WAYS)
            ratio = bench.summary(warm)["median"] / bench.summary(cold)["median"] if cold and warm else None
            rows.append([size, what, bench.pair(cold), bench.pair(warm), bench.seconds(ratio)])
    report.add("Warm ranks", bench.table(["ranks", "what", "cold", "warm", "warm / cold"], rows), "warm", data)
    report.finish()


if __name__ == "__main__":
    main()
