#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon `hvdrun stacks` shows where 64 ranks on this machine are.

  python   64 Python ranks with three threads each
  native   the same with --native
  status   `hvdrun status` of that job, which reads nothing of the ranks: the floor

They take turns, and the table has the median of the ratios of the rounds as well."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import bench

RANKS = 64
SCRIPT = """\
import os, threading, time
def nap(): time.sleep(10000)
def step(n): nap() if n == 0 else step(n - 1)
for i in range(2): threading.Thread(target=nap, daemon=True).start()
os.write(1, b"ready\\n")
step(int(os.environ["RANK"]) % 4)
"""


def hvdrun(*words):
    from ground import HVDRUN
    return [HVDRUN, *map(str, words)]


def output(*words):
    return subprocess.run(hvdrun(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout


def timed(*words):
    began = time.monotonic()
    output(*words)
    return time.monotonic() - began


def measure(options):
    """{name: [seconds...]}"""
    job = output("--detach", "-np", RANKS, sys.executable, "-c", SCRIPT).strip()
    found = {name: [] for name in ("python", "native", "status")}
    try:
        bench.wait_for(lambda: output("logs", job).count("ready") == RANKS, "all ranks")
        bench.wait_for(lambda: f"[0-{RANKS - 1}]" in output("stacks", job), "the tree of all ranks")
        for number in range(options.rounds):
            found["python"].append(timed("stacks", job))
            found["native"].append(timed("stacks", job, "--native"))
            found["status"].append(timed("status", job))
            bench.say(f"round {number + 1} of {options.rounds}: " + ", ".join(f"{name} {1000 * values[-1]:.0f} ms"
                                                                              for name, values in found.items()))
    finally:
        subprocess.run(hvdrun("stop", job), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return found


def as_table(found):
    rows = []
    for name, values in found.items():
        ratio = statistics.median(one / floor for one, floor in zip(values, found["status"]))
        rows.append([name, f"{1000 * statistics.median(values):.0f}", f"{1000 * max(values):.0f}", f"{ratio:.1f}"])
    return bench.table(["", "ms, median", "ms, worst", "/ status"], rows)


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    bench.begin()
    report = bench.Report("stacks", options)
    with tempfile.TemporaryDirectory(prefix="hvdb-", dir="/tmp") as folder:
        os.environ["TMPDIR"] = folder
        found = measure(options)
    report.add(f"Stacks of {RANKS} ranks", as_table(found), "stacks", found)
    report.finish()


if __name__ == "__main__":
    main()
