#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon `hvdrun stacks` shows where 64 ranks on this machine are.

  python   64 Python ranks with three threads each
  native   the same with --native
  status   `hvdrun status` of that job, which reads nothing of the ranks: the floor

They take turns, and the table has the median of the ratios of the rounds as well."""

import sys

import bench
import commands

RANKS = 64
SCRIPT = """\
import os, threading, time
def nap(): time.sleep(10000)
def step(n): nap() if n == 0 else step(n - 1)
for i in range(2): threading.Thread(target=nap, daemon=True).start()
os.write(1, b"ready\\n")
step(int(os.environ["RANK"]) % 4)
"""


def measure(rounds):
    job = commands.output("--detach", "-np", RANKS, sys.executable, "-c", SCRIPT).strip()
    ways = {"python": ("stacks", job), "native": ("stacks", job, "--native"), "status": ("status", job)}
    try:
        bench.wait_for(lambda: commands.output("logs", job).count("ready") == RANKS, "all ranks")
        bench.wait_for(lambda: f"[0-{RANKS - 1}]" in commands.output("stacks", job), "the tree of all ranks")
        return commands.in_rounds(rounds, lambda _: {name: commands.timed(commands.hvdrun(*words))
                                                     for name, words in ways.items()})
    finally:
        commands.stop(job)


if __name__ == "__main__":
    commands.run(__doc__, "stacks", f"Stacks of {RANKS} ranks", measure, {"python": "status", "native": "status"})
