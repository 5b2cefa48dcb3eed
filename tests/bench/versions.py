#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of hvdrun in turns: is the new one as fast as the old one?

  --old FOLDER   the build folder to compare with: a release build of another commit
  --real-time    starts local ranks under a real-time priority (needs root), so that other work on the machine waits

The new one is the build in $HVDRUN_BUILD, as for all benchmarks. Both builds do the same tasks in turns: start `true`
on this machine (1, 16, 64 ranks), pass on the output of one rank, and start `true` on 8 and 32 hosts over SSH. One sshd
on loopback addresses serves these hosts. The order changes from round to round. A ratio is new / old, of the medians of
the times: above 1 the new build is slower. The table also has the ratio of the best times, which other work on the
machine disturbs least. Copies of both programs start the local ranks, because a file that the linker has just written
lies differently in the page cache."""

import os
import shutil
import subprocess
import tempfile
import time

import bench
import launchers
import ssh_world
from ground import BUILD

LIMIT = 60  # s


def program(folder):
    return os.path.join(folder, "hvdrun")


def copy(folder, place):
    os.mkdir(place)
    shutil.copy(program(folder), place)
    os.symlink(os.path.join(folder, "lib"), os.path.join(place, "lib"))
    return place


def starts(builds, options):
    """{title: {name: [seconds]}}"""
    found = {}
    if options.real_time:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    with tempfile.TemporaryDirectory() as place:
        copies = {name: copy(folder, os.path.join(place, name)) for name, folder in builds.items()}
        for ranks in options.np:
            bench.say(f"versions: {ranks} ranks")
            found[f"start of {ranks} rank{'s' if ranks > 1 else ''}"] = in_turns(copies, options.rounds,
                                                                                 lambda build: start(build, ranks))
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return found


def start(folder, ranks):
    launch = launchers.Launch([program(folder), "-np", str(ranks), shutil.which("true")])
    if not launch.wait(LIMIT) or launch.status != 0:
        launch.kill()
        raise RuntimeError(f"{folder}: {ranks} ranks of `true` failed")
    return launch.ended - launch.began


def output(folder, mib):
    lines = mib * (1 << 20) // 100
    worker = os.path.join(BUILD, "tests", "bench", "floor_lines")
    began = time.monotonic()
    with subprocess.Popen([program(folder), "-np", "1", worker, "write", "--lines", str(lines)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE) as job:
        subprocess.run([worker, "drain"], check=True, stdin=job.stdout, stdout=subprocess.DEVNULL)
    if job.returncode != 0:
        raise RuntimeError(f"{folder}: status {job.returncode}")
    return time.monotonic() - began


def ssh(world, folder, numbers):
    argv = world.hvdrun(numbers, "true")
    value = world.measure([program(folder), *argv[1:]])
    if "wall" not in value:
        raise RuntimeError(value["error"])
    return value["wall"]


def in_turns(builds, rounds, measure):
    """{name: [seconds]}; a first round for warming up does not count."""
    found = {name: [] for name in builds}
    names = list(builds)
    for number in range(rounds + 1):
        for name in names if number % 2 else reversed(names):
            seconds = measure(builds[name])
            if number > 0:
                found[name].append(seconds)
    return found


def row(title, found):
    old, new = (bench.summary(found[name])["median"] for name in ("old", "new"))
    best = min(found["new"]) / min(found["old"])
    return [title, len(found["new"]), f"{old * 1e3:.2f}", f"{new * 1e3:.2f}", f"{new / old:.3f}", f"{best:.3f}"]


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--old", required=True, metavar="FOLDER")
    parser.add_argument("--real-time", action="store_true")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--np", type=int, nargs="*", default=[1, 16, 64])
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--hosts", type=int, nargs="*", default=[8, 32])
    options = parser.parse_args()
    bench.begin()
    builds = {"old": os.path.abspath(options.old), "new": BUILD}
    report = bench.Report("versions", options)
    data = {}
    data.update(starts(builds, options))
    if options.mib:
        bench.say("versions: output")
        data[f"{options.mib} MiB of lines from one rank"] = in_turns(builds, max(1, options.rounds // 4),
                                                                     lambda build: output(build, options.mib))
    if options.hosts:
        world = ssh_world.begin("versions")
        for count in options.hosts:
            bench.say(f"versions: {count} hosts")
            numbers = range(1, count + 1)
            data[f"start on {count} hosts over SSH"] = in_turns(builds, max(1, options.rounds // 2),
                                                                lambda build: ssh(world, build, numbers))
        world.close()
    head = ["what", "n", "old, median ms", "new, median ms", "new / old", "best new / best old"]
    report.add("Two builds in turns", bench.table(head, [row(title, found) for title, found in data.items()]), "versions", data)
    report.finish()


if __name__ == "__main__":
    main()
