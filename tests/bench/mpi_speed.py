#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast MPI is once a program runs, under hvdrun and under the launchers of the libraries.

The program mpi_speed runs on this machine, with Open MPI under hvdrun and mpirun, and with MPICH under hvdrun and
mpiexec.hydra. The launchers take turns, and the first round does not count. With enough cores, mpirun binds ranks to
them unasked. So hvdrun also runs with --bind-to core."""

import os
import subprocess

import bench
from box import Box
from ground import HVDRUN, mpi_worker

COLUMNS = ("8 bytes, one way", "1 MiB, one way", "sum of 8 bytes", "sum of 1 MiB")
QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


def commands(kind, size):
    ranks, program = ["-np", str(size)], [mpi_worker("mpi_speed", kind), str(1000 if size <= os.cpu_count() else 100)]
    native = ["mpirun.openmpi", "--oversubscribe"] if kind == "openmpi" else ["mpiexec.hydra"]
    return {native[0]: [*native, *ranks, *program], "hvdrun": [HVDRUN, *ranks, *program],
            "hvdrun --bind-to core": [HVDRUN, "--bind-to", "core", "--oversubscribe", *ranks, *program]}


def once(words, env):
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
                          check=False, env=env)
    said = [line.split("speed ", 1)[1] for line in done.stdout.splitlines() if "speed " in line]
    if done.returncode != 0 or len(said) != 1:
        raise RuntimeError(f"{words}: status {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    return [float(word) for word in said[0].split()]


def measure(kind, size, rounds, env):
    """{command: [the four times of each round]}"""
    ways = commands(kind, size)
    names, found = list(ways), {name: [] for name in ways}
    for number in range(rounds + 1):
        bench.say(f"{kind}, {size} ranks, round {number} of {rounds}")
        at = number % len(names)
        for name in names[at:] + names[:at]:
            times = once(ways[name], env)
            if number > 0:
                found[name].append(times)
    return found


def rows(kind, size, found):
    native = next(iter(found))
    medians = {name: [bench.summary(column)["median"] for column in zip(*times)] for name, times in found.items()}
    return [[f"{kind}, {size}", name,
             *(f"{value:.2f}" + ("" if name == native else f" ({value / medians[native][at]:.2f})")
               for at, value in enumerate(values))] for name, values in medians.items()]


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="values of each kind (10)")
    parser.add_argument("--sizes", type=int, nargs="*", default=[2, 4, 8], help="numbers of ranks (2 4 8)")
    options = parser.parse_args()
    bench.begin()
    report, box, table, data = bench.Report("mpi_speed", options), Box(), [], {}
    for kind in ("openmpi", "mpich"):
        for size in options.sizes:
            found = data[f"{kind}_{size}"] = measure(kind, size, options.rounds, box.environment(QUIET))
            table += rows(kind, size, found)
    box.close()
    report.add("MPI on one node", "Medians in us; in brackets, the ratio to the library's own launcher.\n\n" +
               bench.table(["library, ranks", "launcher", *COLUMNS], table), "speed", data)
    report.finish()


if __name__ == "__main__":
    main()
