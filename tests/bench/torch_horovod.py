#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast is hvdrun's Horovod package, compared with torch.distributed on gloo?

The ranks run both in turns, in the same processes, with one thread each. Rank 0 takes the times.
- a step: forward, backward and update of a small convolutional net, with DDP and with DistributedOptimizer; the images
  of a second have the same ratio. Target: 0.95.
- 4 bytes: one allreduce that waits. Target: 0.67, at most 1.5 times the time of torch.distributed.
The ratio is that of the medians, torch by Horovod: above 1, hvdrun's package is faster.
The second table is about SIGKILL for one of four elastic ranks: the time until every survivor has made its next step.
Target: 0.2 s."""

import os
import statistics
import subprocess
import sys

import bench
import engines
import hvd_failure
from ground import HVDRUN
from python import find_python

WORKER = os.path.join(bench.HERE, "torch_horovod_worker.py")
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}


def command(python, *launcher):
    return [HVDRUN, "--horovod", "bundled", "--controller", "gloo", *map(str, launcher), python, "-B", WORKER]


def compare(python, size, rounds):
    """{what: ([torch], [Horovod])} in µs."""
    argv = [*command(python, "--no-label", "--oversubscribe", "-np", size), "compare", str(rounds)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=900, env=ENV)
    if done.returncode != 0:
        sys.exit(f"torch_horovod.py: {size} ranks: status {done.returncode}: {done.stderr.strip()[-300:]}")
    found = {}
    for line in done.stdout.splitlines():
        what, theirs, ours = line.split()
        sides = found.setdefault(what.replace("_", " "), ([], []))
        sides[0].append(float(theirs))
        sides[1].append(float(ours))
    return found


def kill(python):
    """Seconds from the SIGKILL of rank 3 to the next step of the last survivor."""
    argv = [*command(python, "-H", "a:4", "--transport", "local", "--min-np", 3), "elastic", "{}", "15"]
    return hvd_failure.kill_elastic(argv, ENV)


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--kills", type=int, default=5)
    options = parser.parse_args()
    bench.begin()
    python = find_python("torch", "cloudpickle")
    if python is None:
        bench.say("torch_horovod.py: skipped, no Python has torch and cloudpickle")
        return
    report = bench.Report("torch_horovod", options)
    lines, results = [], {}
    for size in (2, 4):
        results[size] = compare(python, size, options.rounds)
        lines.extend(engines.rows(size, results[size]))
    header = ["ranks", "work", "torch, µs", "worst", "Horovod, µs", "worst", "ratio"]
    report.add("hvdrun's Horovod package and torch.distributed, on gloo", bench.table(header, lines), "compare", results)
    times = [kill(python) for _ in range(options.kills)]
    row = [bench.seconds(statistics.median(times)), bench.seconds(max(times))]
    report.add("SIGKILL of one of four ranks", bench.table(["next step of the survivors, s", "worst"], [row]), "kill", times)
    report.finish()


if __name__ == "__main__":
    main()
