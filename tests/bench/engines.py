#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast is an allreduce of fp32 through libhvd's engines, compared with MPI_Allreduce and gloo::allreduce?

Each program (engine_mpi.c, engine_gloo.cc) runs both in turns, in the same processes. Rank 0 takes the times. The ratio
is that of the medians, bare by engine: 0.9 means that the engine has 0.9 of the bare speed. The ranks of one machine share its
processors. With more ranks than processors, the times say more about the kernel's scheduler than about either side."""

import os
import statistics
import subprocess
import sys
import tempfile

import bench
from ground import BUILD, HVDRUN

LAUNCHER = {"mpi": ["--controller", "mpi"], "gloo": ["--controller", "gloo"]}


def run(program, engine, size, rounds, key=int):
    """{key(what): ([bare], [own])} in microseconds, or a text that says what went wrong."""
    env = {**os.environ, "HVD_ENGINE": engine, "HVD_MODULES": os.path.join(BUILD, "lib/hvd")}
    with tempfile.TemporaryDirectory() as folder:
        argv = [HVDRUN, *LAUNCHER[engine], "--no-label", "-np", str(size), os.path.join(BUILD, "tests/bench", program),
                str(rounds), *([folder] if engine == "gloo" else [])]
        return pairs(argv, env, key)


def pairs(argv, env, key=str):
    """Runs a job whose rank 0 prints lines "WHAT BARE OWN". As run()."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600, env=env)
    if done.returncode != 0:
        return f"status {done.returncode}: {done.stderr.strip()[-300:]}"
    found = {}
    for line in done.stdout.splitlines():
        what, bare, own = line.split()
        sides = found.setdefault(key(what), ([], []))
        sides[0].append(float(bare))
        sides[1].append(float(own))
    return found


def rows(size, found):
    for what, (bare, own) in found.items():
        middle = statistics.median(bare), statistics.median(own)
        yield [size, what, f"{middle[0]:.1f}", f"{max(bare):.1f}", f"{middle[1]:.1f}", f"{max(own):.1f}", f"{middle[0] / middle[1]:.2f}"]


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    bench.begin()
    report = bench.Report("engines", options)
    for engine in LAUNCHER:
        if not os.path.exists(os.path.join(BUILD, "tests/bench/engine_" + engine)):
            bench.say(f"engines.py: the build omitted the engine {engine}")
            continue
        lines, results = [], {}
        for size in (2, 4):
            found = run("engine_" + engine, engine, size, options.rounds)
            if isinstance(found, str):
                sys.exit(f"engines.py: {engine}, {size} ranks: {found}")
            results[size] = found
            lines.extend(rows(size, found))
        header = ["ranks", "bytes", "bare, µs", "worst", "engine, µs", "worst", "ratio"]
        report.add(f"allreduce with {engine}", bench.table(header, lines), engine, results)
    report.finish()


if __name__ == "__main__":
    main()
