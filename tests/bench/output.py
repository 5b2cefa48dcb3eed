#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast a launcher passes on the output of its workers: 1 GiB of 100-byte lines, from one rank and from 8.

The workers (floor_lines write) do little more than write. All output goes to one pipe:

  cat      without a launcher, each worker through its own `cat`: the floor
  hvdrun   labelled, with --no-label, and labelled without a log (--log-size 0)
  hydra    -prepend-rank, and plain        (if installed)
  mpirun   --tag-output, and plain         (if installed)
  srun     -l, and plain                   (inside an allocation)

Each round runs all of them twice, in turns. The first time the reader only counts bytes, which gives the speed. The
second time it checks every byte of every line. That gives the number of lines that were torn, had a wrong label, were
out of order, or were missing. The table also shows the speed with the checking reader, which may itself be slow.
Speed is the number of bytes that the workers wrote, without labels, divided by the time. The time goes from the start
of the first process to the end of the reader."""

import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time

import bench

LENGTH = 100
GOAL = 0.5  # of cat
LOG_GOAL = 0.85  # of the same without a log
NO_LOG = "hvdrun without a log"
SLOW_MIB = 256  # for launchers that are known to be slow, so that a round does not take minutes


class Way:
    """One path of the bytes. `commands(worker, ranks)` returns the command lines, which run at the same time."""

    def __init__(self, name, commands, label="", slow=False):
        self.name, self.commands, self.label, self.slow = name, commands, label, slow


def cat_way(worker, ranks):
    """One shell line for each rank, with exec, so that no shell remains between."""
    return [["sh", "-c", "\"$@\" | exec cat", "sh", *worker, "--rank", str(rank)] for rank in range(ranks)]


def launcher(*words):
    return lambda worker, ranks: [[word.replace("%n", str(ranks)) for word in words] + worker]


def ways(wanted):
    from ground import HVDRUN
    found = [Way("cat", cat_way),
             Way("hvdrun", launcher(HVDRUN, "-np", "%n"), "[%d]<stdout>:"),
             Way("hvdrun --no-label", launcher(HVDRUN, "--no-label", "-np", "%n")),
             Way(NO_LOG, launcher(HVDRUN, "--log-size", "0", "-np", "%n"), "[%d]<stdout>:")]
    hydra, mpirun = shutil.which("mpiexec.hydra"), shutil.which("mpirun.openmpi")
    if hydra:
        found += [Way("hydra -prepend-rank", launcher(hydra, "-prepend-rank", "-np", "%n"), "[%d] ", slow=True),
                  Way("hydra", launcher(hydra, "-np", "%n"))]
    if mpirun:
        start = [mpirun, "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self", "-np", "%n"]
        found += [Way("mpirun --tag-output", launcher(*start, "--tag-output"), "[1,%d]<stdout>:", slow=True),
                  Way("mpirun", launcher(*start), slow=True)]
    if "SLURM_JOB_ID" in os.environ and shutil.which("srun"):
        start = ["srun", "--overlap", "-n", "%n"]
        found += [Way("srun -l", launcher(*start, "-l"), "%d: ", slow=True), Way("srun", launcher(*start), slow=True)]
    return [way for way in found if not wanted or way.name == "cat" or way.name in wanted]


def floor_lines():
    from ground import BUILD
    path = os.path.join(BUILD, "tests/bench/floor_lines")
    if not os.access(path, os.X_OK):
        sys.exit(f"no {path}: build the target bench_floors")
    return path


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_once(way, ranks, mebibytes, verify):
    """{"speed": MiB/s, "cpu": CPU seconds of all processes for 1 GiB, and the reader's results}"""
    program = floor_lines()
    lines = mebibytes * (1 << 20) // LENGTH // ranks
    reader_argv = [program, "drain"]
    if verify:
        reader_argv = [program, "verify", "--ranks", str(ranks), "--lines", str(lines), "--label", way.label]
    read, write = os.pipe()
    cpu, began = cpu_seconds(), time.monotonic()
    reader = subprocess.Popen(reader_argv, stdin=read, stdout=subprocess.PIPE)
    os.close(read)
    commands = way.commands([program, "write", "--lines", str(lines)], ranks)
    writers = [subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=write) for argv in commands]
    os.close(write)
    said = json.loads(reader.communicate()[0])
    took = time.monotonic() - began
    status = max(abs(writer.wait()) for writer in writers)
    size = lines * ranks * LENGTH / (1 << 20)
    if not verify and said["bytes"] < lines * ranks * LENGTH:
        status = status or "bytes are missing"
    return {"speed": size / took, "cpu": (cpu_seconds() - cpu) * 1024 / size, "status": status, "lines": lines * ranks, **said}


def measure(options, ranks):
    """{way: {"drain": [run...], "verify": [run...]}}. The ways take turns, and each round begins with another one."""
    there = ways(options.only)
    found = {way.name: {"drain": [], "verify": []} for way in there}
    for number in range(options.rounds):
        turn = number % len(there)
        for verify in (False, True):
            for way in there[turn:] + there[:turn]:
                size = min(options.mib, SLOW_MIB) if way.slow else options.mib
                one = run_once(way, ranks, size, verify)
                found[way.name]["verify" if verify else "drain"].append(one)
        bench.say(f"{ranks} ranks, round {number + 1} of {options.rounds}: "
                  + ", ".join(f"{name} {runs['drain'][-1]['speed']:.0f}" for name, runs in found.items()))
    return found


def median_of(runs, what):
    return statistics.median(one[what] for one in runs)


def ratio(found, name, other, reader):
    """The median of the ratios of the rounds. Other load on the machine slows both runs of a round."""
    return statistics.median(one["speed"] / two["speed"] for one, two in zip(found[name][reader], found[other][reader]))


def ratio_to_cat(found, name, reader):
    return ratio(found, name, "cat", reader)


def row(found, name):
    drain, verify = found[name]["drain"], found[name]["verify"]
    wrong = [sum(one[what] for one in verify) for what in ("bad", "missing", "disorder")]
    failed = [str(one["status"]) for one in drain + verify if one["status"] != 0]
    return [name, f"{median_of(drain, 'speed'):.0f}", f"{min(one['speed'] for one in drain):.0f} to {max(one['speed'] for one in drain):.0f}",
            f"{ratio_to_cat(found, name, 'drain'):.2f}", f"{median_of(drain, 'cpu'):.2f}",
            f"{median_of(verify, 'speed'):.0f}", f"{ratio_to_cat(found, name, 'verify'):.2f}",
            f"{wrong[0]} / {wrong[1]} / {wrong[2]} of {sum(one['lines'] for one in verify)}", ", ".join(failed) or "-"]


def as_table(found):
    head = ["", "MiB/s", "least to most", "/ cat", "CPU s / GiB", "MiB/s, checking reader", "/ cat",
            "torn / missing / out of order lines", "failed"]
    text = bench.table(head, [row(found, name) for name in found])
    goals = [name for name in found if re.match("hvdrun", name)]
    notes = [f"- goal (at least {GOAL} of cat), {name}: {'met' if ratio_to_cat(found, name, 'drain') >= GOAL else 'NOT met'}" for name in goals]
    if "hvdrun" in found and NO_LOG in found:
        kept = ratio(found, "hvdrun", NO_LOG, "drain")
        notes.append(f"- goal (at least {LOG_GOAL} of the speed without a log), hvdrun: {kept:.2f}, {'met' if kept >= LOG_GOAL else 'NOT met'}")
    return text + "\n\n" + "\n".join(notes)


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--mib", type=int, default=1024, help=f"MiB in all (1024); for slow launchers at most {SLOW_MIB}")
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 8])
    parser.add_argument("--only", nargs="*", metavar="NAME", help="only these ways, and cat")
    options = parser.parse_args()
    bench.begin()
    report = bench.Report("output", options)
    for ranks in options.ranks:
        found = measure(options, ranks)
        report.add(f"Lines of {LENGTH} bytes from {ranks} rank{'s' if ranks > 1 else ''}, {options.mib} MiB in all", as_table(found),
                   f"{ranks} ranks", found)
    report.finish()


if __name__ == "__main__":
    main()
