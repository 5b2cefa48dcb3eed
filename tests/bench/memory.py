#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much memory a launcher's own processes need on this machine, without its ranks. The unit is proportional memory
(PSS): each process counts its share of a page that several processes use.

  idle      N ranks sleep
  stalled   64 ranks write without end, and the launcher's stdout is a pipe that nobody reads; one sample a second
            for 20 s, after the first 3 s

Compares hvdrun (driver and agent) with hydra and mpirun, if they are installed."""

import os
import shutil
import signal
import subprocess
import time

import bench
import launchers

GOAL_RANKS, GOAL_MIB = 256, 12
FLAT_MIB = 1  # how much the memory of a launcher may vary while nobody reads its output
SIZES = (64, 256, 1024)
STALLED_RANKS, STALLED_BEFORE = 64, 3
STALLED_MOST = 2048  # MiB; at this size it is clear that a launcher grows (Open MPI's mpirun takes 0.2 GiB a second)
MPIRUN_UP_TO = 256
UP_LIMIT = 120  # s


def pss_kib(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


class World:
    """A launcher and its ranks. The name of the program shows which process is a rank."""

    def __init__(self, command, ranks, words, stdout):
        self.ranks, self.program = ranks, os.path.basename(words[0])
        self.launch = launchers.Launch(command(ranks, words), stdout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.launch.status is None:
            os.kill(self.launch.pid, signal.SIGTERM)
            if not self.launch.wait(10):
                self.launch.kill()

    def _split(self):
        found = self.launch.processes()
        ranks = [one for one in found if one.comm == self.program]
        return ranks, [one for one in found if one.comm != self.program]

    def wait_up(self):
        bench.wait_for(lambda: len(self._split()[0]) == self.ranks, f"{self.ranks} ranks", UP_LIMIT, period=0.1)
        time.sleep(1)  # until the work that follows the start is done

    def mib(self):
        """{name of a program of the launcher: MiB of all its processes}."""
        sums = {}
        for one in self._split()[1]:
            sums[one.comm] = sums.get(one.comm, 0) + pss_kib(one.pid) / 1024
        return sums


def idle(command, ranks):
    with World(command, ranks, [shutil.which("sleep"), "600"], subprocess.DEVNULL) as world:
        world.wait_up()
        return world.mib()


def stalled(command, length):
    """[MiB of all processes], one value a second."""
    read_end, write_end = os.pipe()
    try:
        with World(command, STALLED_RANKS, [shutil.which("yes")], write_end) as world:
            world.wait_up()
            time.sleep(STALLED_BEFORE)
            found = []
            for _ in range(length):
                found.append(sum(world.mib().values()))
                if found[-1] > STALLED_MOST:
                    break
                time.sleep(1)
            return found
    finally:
        os.close(read_end)
        os.close(write_end)


def tried(what, *arguments):
    try:
        return what(*arguments)
    except TimeoutError as error:
        return str(error)


def idle_part(options):
    data, rows, notes = {}, [], []
    for ranks in options.np:
        for name, command in launchers.commands("hvdrun", "hydra", *(["mpirun"] if ranks <= MPIRUN_UP_TO else [])).items():
            bench.say(f"memory: {name}, {ranks} sleeping ranks")
            data[f"{name} {ranks}"] = found = tried(idle, command, ranks)
            if isinstance(found, str):
                rows.append([ranks, name, "-", found])
                continue
            total = sum(found.values())
            rows.append([ranks, name, f"{total:.2f}", ", ".join(f"{program} {mib:.2f}" for program, mib in found.items())])
            if name == "hvdrun" and ranks == GOAL_RANKS:
                notes.append(f"- {ranks} ranks: below {GOAL_MIB} MiB: {'met' if total < GOAL_MIB else 'NOT met'}")
    return data, bench.table(["ranks", "launcher", "MiB", "by program"], rows) + "\n\n" + "\n".join(notes)


def stalled_part(options):
    data, rows, notes = {}, [], []
    for name, command in launchers.commands("hvdrun", "hydra", "mpirun").items():
        bench.say(f"memory: {name}, a stalled consumer")
        data[name] = found = tried(stalled, command, options.seconds)
        if isinstance(found, str):
            rows.append([name, "-", "-", "-", "-", found])
            continue
        rows.append([name, len(found), *(f"{value:.2f}" for value in (found[0], found[-1], min(found), max(found)))])
        if name == "hvdrun":
            notes.append(f"- flat within {FLAT_MIB} MiB: {'met' if max(found) - min(found) <= FLAT_MIB else 'NOT met'}")
    head = ["launcher", "seconds", "first MiB", "last MiB", "least", "most"]
    return data, bench.table(head, rows) + "\n\n" + "\n".join(notes)


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--np", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--seconds", type=int, default=20, help="how long nobody reads the output (20)")
    options = parser.parse_args()
    bench.begin()
    report = bench.Report("memory", options)
    data, text = idle_part(options)
    report.add("Proportional memory of the launcher with sleeping ranks", text, "idle", data)
    data, text = stalled_part(options)
    report.add(f"The same with {STALLED_RANKS} ranks that write to a pipe that nobody reads", text, "stalled", data)
    report.finish()


if __name__ == "__main__":
    main()
