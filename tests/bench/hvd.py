#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast is libhvd, compared with bare calls of the library below it?

Each program (hvd_mpi.c, hvd_gloo.cc) runs both in turns, in the same processes, in place and in fp32. Rank 0 takes the times.
- 64 MiB: one allreduce.
- 1000 of 4 KiB: 1,000 tensors through libhvd, and 1,000 bare calls. They are side by side in memory, as in one block of
  gradients, so that libhvd copies nothing.
- 1000 apart: the same with 64 bytes between two tensors, so that libhvd copies them into its fusion buffer and back.
- ResNet-50: 161 tensors with the sizes of its parameters (98 MiB) through libhvd, and one bare call for all.
The ratio is that of the medians, bare by libhvd: above 1, libhvd is faster."""

import os
import sys

import bench
import engines
from ground import BUILD


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--engine", choices=engines.LAUNCHER, help="only this one")
    options = parser.parse_args()
    bench.begin()
    report = bench.Report("hvd", options)
    for engine in [options.engine] if options.engine else engines.LAUNCHER:
        if not os.path.exists(os.path.join(BUILD, "tests/bench/hvd_" + engine)):
            bench.say(f"hvd.py: the build omitted the engine {engine}")
            continue
        lines, results = [], {}
        for size in (2, 4):
            found = engines.run("hvd_" + engine, engine, size, options.rounds, str)
            if isinstance(found, str):
                sys.exit(f"hvd.py: {engine}, {size} ranks: {found}")
            results[size] = found
            lines.extend(engines.rows(size, found))
        header = ["ranks", "tensors", "bare, µs", "worst", "libhvd, µs", "worst", "ratio"]
        report.add(f"libhvd with {engine}", bench.table(header, lines), engine, results)
    report.finish()


if __name__ == "__main__":
    main()
