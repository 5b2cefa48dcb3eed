# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of commands that ask a running job share: they take turns with their floors, in rounds."""

import os
import statistics
import subprocess
import tempfile
import time

import bench


def hvdrun(*words):
    return [bench.HVDRUN, *map(str, words)]


def output(*words):
    return subprocess.run(hvdrun(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout


def timed(argv):
    """Seconds until its end."""
    began = time.monotonic()
    subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    return time.monotonic() - began


def stop(*jobs):
    for job in jobs:
        subprocess.run(hvdrun("stop", job), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def in_rounds(count, one_round):
    """{name: [seconds...]}, of the {name: seconds} that each round returns."""
    found = {}
    for number in range(count):
        for name, seconds in one_round(number).items():
            found.setdefault(name, []).append(seconds)
        bench.say(f"round {number + 1} of {count}: " + ", ".join(f"{name} {1000 * values[-1]:.1f} ms"
                                                                 for name, values in found.items()))
    return found


def as_table(found, floors):
    """`floors` is {name: the name of its floor}; the last column is the median of the ratios of the rounds."""
    rows = []
    for name, values in found.items():
        floor = found.get(floors.get(name))
        ratio = f"{statistics.median(one / other for one, other in zip(values, floor)):.2f}" if floor else "-"
        rows.append([name, f"{1000 * statistics.median(values):.2f}", f"{1000 * max(values):.2f}", ratio])
    return bench.table(["", "ms, median", "ms, worst", "/ floor"], rows)


def run(description, name, title, measure, floors):
    """A whole benchmark. `measure` gets the number of rounds, in a folder for the jobs' files."""
    parser = bench.arguments(description)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    bench.begin()
    report = bench.Report(name, options)
    with tempfile.TemporaryDirectory(prefix="hvdb-", dir="/tmp") as folder:
        os.environ["TMPDIR"] = folder
        found = measure(options.rounds)
    report.add(title, as_table(found, floors), name, found)
    report.finish()
