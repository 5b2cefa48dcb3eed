#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a job of N ranks of `true` takes on this machine, from the start of the launcher to its end.

  floor    a C program that makes two pipes for each rank, does vfork and exec, reads both pipes to their end
           and waits: no launcher that takes output can do less
  hvdrun   one driver, one agent
  hydra    MPICH's mpiexec.hydra        (if installed)
  mpirun   Open MPI's; it hangs with programs as short as this one, so it gets only a few rounds; a time
           limit ends a hang, which counts as a failure    (if installed)

They take turns, and a first round for warming up does not count. slurm_start.py has srun, because it needs an
allocation. restart.py has torchrun, because its start is seconds of Python. CPU is the time of the launcher and all its
ranks."""

import os
import shutil

import bench
import launchers
from ground import BUILD

GOAL_FLOOR, GOAL_FROM = 1.3, 16  # hvdrun / floor; the smallest number of ranks for which it is a goal
SIZES = (1, 16, 64, 256, 1024)
LIMIT = 60  # s
SLOW = ("mpirun",)


def floor(ranks, words):
    return [os.path.join(BUILD, "tests", "bench", "floor_spawn"), str(ranks), *words]


def measure(command, ranks, limit):
    """{"s", "cpu"}, or a text that says what went wrong."""
    launch = launchers.Launch(command(ranks, [shutil.which("true")]))
    if not launch.wait(limit):
        launch.kill()
        return f"still running after {limit} s"
    if launch.status != 0:
        return f"status {launch.status}"
    return {"s": launch.ended - launch.began, "cpu": launch.cpu()}


def one_size(commands, ranks, options):
    found = {name: [] for name in commands}
    for number, name in launchers.turns(commands, options.rounds):
        rounds = min(options.rounds, options.slow_rounds) if name in SLOW else options.rounds
        if number > rounds or (number == 0 and name in SLOW):
            continue
        value = measure(commands[name], ranks, options.limit if name in SLOW else LIMIT)
        if number > 0:
            found[name].append(value)
    return found


def median(values, key):
    return bench.summary([value[key] for value in values if not isinstance(value, str)])["median"]


def ratio(of, to):
    return "-" if of is None or to is None else f"{of / to:.2f}"


def rows_of(ranks, found):
    base, hydra = median(found["floor"], "s"), median(found.get("hydra", []), "s")
    for name, values in found.items():
        there = [value["s"] for value in values if not isinstance(value, str)]
        mine = median(values, "s")
        yield [ranks, name, len(there), *(milliseconds(value) for value in (mine, min(there, default=None))),
               ratio(mine, base), ratio(mine, hydra), milliseconds(median(values, "cpu")), len(values) - len(there)]


def milliseconds(value):
    return "-" if value is None else f"{value * 1e3:.1f}"


def verdict(ranks, found):
    """A line about the goals of hvdrun with so many ranks."""
    mine, base, hydra = (median(found.get(name, []), "s") for name in ("hvdrun", "floor", "hydra"))
    if mine is None or base is None:
        return f"- {ranks} ranks: hvdrun or the floor did not run"
    words = []
    if hydra is not None:
        words.append(f"at most the time of hydra: {'met' if mine <= hydra else 'NOT met'}")
    if ranks >= GOAL_FROM:
        words.append(f"at most {GOAL_FLOOR} x the floor: {'met' if mine <= GOAL_FLOOR * base else 'NOT met'}"
                     f" ({mine / base:.2f})")
    return f"- {ranks} ranks: " + "; ".join(words)


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--np", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--slow-rounds", type=int, default=3, help="rounds of mpirun (3)")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that one run of mpirun may take")
    parser.add_argument("--mpirun-up-to", type=int, default=256, help="the largest np at which mpirun runs")
    options = parser.parse_args()
    bench.begin()
    report = bench.Report("start", options)
    rows, notes, data = [], [], {}
    for ranks in options.np:
        bench.say(f"start: {ranks} ranks")
        names = ["hvdrun", "hydra"] + (["mpirun"] if ranks <= options.mpirun_up_to else [])
        data[ranks] = found = one_size({"floor": floor, **launchers.commands(*names)}, ranks, options)
        rows += rows_of(ranks, found)
        notes.append(verdict(ranks, found))
        notes += [f"- {ranks} ranks, {name}: {value}" for name, values in found.items()
                  for value in values if isinstance(value, str)][:3]
    head = ["ranks", "launcher", "n", "median ms", "best ms", "/ floor", "/ hydra", "CPU ms", "failed"]
    report.add("Start and end of N ranks of `true`, milliseconds", bench.table(head, rows) + "\n\n" + "\n".join(notes),
               "start", data)
    report.finish()


if __name__ == "__main__":
    main()
