#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast is libhvd over hosts of the rig?

- 1000 of 4 KiB: on two hosts with one rank each, 1,000 tensors through libhvd, and 1,000 bare calls (MPI_Allreduce,
  gloo::allreduce). Target: 5.
- sets: on four hosts with one rank each, two process sets of two ranks each reduce 8 tensors of 1 MiB, one set after the
  other, and both at the same time. A link of 200 Mbit/s for each host is slower than the engine, so that the processors of
  one machine do not matter. Target: 1.7.
The ratio is that of the medians: above 1, libhvd is faster than bare calls, and both sets at the same time faster than one
after the other."""

import json
import os
import subprocess
import sys

import bench
import engines

RATE = "200mbit"


def measure(options):
    """{what: result of engines.pairs()}. Runs in a box of the rig."""
    import worlds
    from box import Box
    from ground import BUILD, HVDRUN
    world, box, found = worlds.RigHosts(5), Box(), {}  # the launcher runs on the first host
    env = box.environment({"OMPI_MCA_mpi_yield_when_idle": "1", "HVD_MODULES": os.path.join(BUILD, "lib/hvd")})
    program = os.path.join(BUILD, "tests/bench/hvd_")

    def job(engine, count, *argv):
        hosts = ",".join(f"{world.host(i)}:1" for i in range(count))
        return engines.pairs([HVDRUN, *map(str, world.words(box)), *engines.LAUNCHER[engine], "--no-label", "-H", hosts, *argv], env)

    there = [engine for engine in engines.LAUNCHER if os.path.exists(program + engine)]
    for engine in there:
        bench.say(f"small tensors, {engine}")
        meeting = [os.path.join(box.work, "meeting")] if engine == "gloo" else []
        for folder in meeting:
            os.mkdir(folder)
        found[f"1,000 of 4 KiB, {engine}"] = job(engine, 2, program + engine, str(options.rounds), *meeting, "1000_of_4_KiB")
    for host in world.rig.hosts:
        host.slow(RATE)
    for engine in there:
        bench.say(f"process sets, {engine}")
        found[f"two process sets, {engine}"] = job(engine, 4, program + "cases", "sets", str(options.rounds))
    world.restore()
    box.close()
    return found


def in_the_rig(options):
    argv = [sys.executable, "-B", os.path.abspath(__file__), "--in-the-rig", "--rounds", str(options.rounds)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    last = done.stdout.strip().split("\n")[-1]
    return json.loads(last) if done.returncode == 0 else sys.exit(f"hvd_hosts.py: {last or done.returncode}")


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--in-the-rig", action="store_true", help="used by the program itself")
    options = parser.parse_args()
    bench.begin()
    if options.in_the_rig:
        import entrance
        from ground import BUILD, HVDRUN, SOURCE
        if "HVDRUN_RIG_KEEPER" not in os.environ:
            entrance.enter([SOURCE, BUILD, os.path.dirname(HVDRUN)])
        print(json.dumps(measure(options)))
        return
    report, lines, found = bench.Report("hvd_hosts", options), [], in_the_rig(options)
    for title, result in found.items():
        if isinstance(result, str):
            sys.exit(f"hvd_hosts.py: {title}: {result}")
        for row in engines.rows(2, result):
            lines.append([title, *row[2:]])
    header = ["what", "bare calls, or one set after the other, µs", "worst", "libhvd, or both at the same time, µs", "worst", "ratio"]
    report.add("libhvd over hosts", bench.table(header, lines), "hosts", found)
    report.finish()


if __name__ == "__main__":
    main()
