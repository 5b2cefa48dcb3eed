#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon do PyTorch ranks print their first line, and what do they need, with --warm and without?

  cold, warm   without --warm, and with it
  kept         with --warm, after a job that has left its interpreter (hvdrun warm start)

  start     from the command to the first line of the last rank, with the import
  restart   rank 0 of an elastic job is killed: to the first line of the last new rank
  memory    PSS of all ranks after their first line, and of the interpreter that forks them

The ways take turns. Cold restarts are measured with at most 16 ranks, since 64 take minutes."""

import os
import re
import signal
import subprocess
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
WAYS = {"cold": (), "warm": ("--warm",), "kept": ("--warm",)}
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
    launchers.ENV["TMPDIR"] = box.tmp
    restarts = way == "warm" or way == "cold" and size <= 16  # an elastic job keeps interpreters of its own
    elastic = ("--min-np", str(size), "--on-failure", "restart", "--grace", "0.1") if restarts else ()
    command = [HVDRUN, "-np", str(size), "-H", f"localhost:{size}", *elastic, *WAYS[way], python, script, path]
    if way == "kept":
        leave_interpreter(command, path, size)
    launch = launchers.Launch(command)
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
        subprocess.run([HVDRUN, "warm", "stop"], env=launchers.ENV, stdout=subprocess.DEVNULL, check=True)
        box.kill_strays()
        box.close()


def leave_interpreter(command, path, size):
    """A job before the one that is measured."""
    subprocess.run([HVDRUN, "warm", "start"], env=launchers.ENV, stdout=subprocess.DEVNULL, check=True)
    launch = launchers.Launch(command)
    lines_epoch(path, size)
    os.kill(launch.pid, signal.SIGTERM)
    launch.wait(60)
    os.remove(path)


def lines_epoch(path, size):
    """The number of the only epoch of a job that is not elastic."""
    bench.wait_for(lambda: len(lines(path)) == size, f"{size} ranks", LIMIT)
    return lines(path)[0][0]


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default="1,2,4,16,64")
    parser.add_argument("--ways", default=",".join(WAYS), help="of these only")
    options = parser.parse_args()
    bench.begin()
    python = find_python("torch")
    if python is None:
        sys.exit("warm.py: no Python has torch")
    ways = [way for way in WAYS if way in options.ways.split(",")]
    report = bench.Report("warm", options)
    rows, data = [], {}
    for size in map(int, options.sizes.split(",")):
        found = {way: [] for way in ways}
        for number, way in launchers.turns(ways, options.rounds):
            bench.say(f"warm: {size} ranks, {way}")
            value = measure(python, way, size)
            if number > 0:
                found[way].append(value)
        data[size] = found
        for what in ("start", "restart", "memory"):
            values = [[one[what] for one in found[way] if one[what] is not None] for way in ways]
            rows.append([size, what, *map(bench.pair, values)])
    report.add("Warm ranks", bench.table(["ranks", "what", *ways], rows), "warm", data)
    report.finish()


if __name__ == "__main__":
    main()
