#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a launcher still runs after one of its ranks has failed. 8 ranks sleep. Then one exits with 3, or
SIGKILL kills it.

  obeys     the other ranks end at SIGTERM
  ignores   the other ranks ignore SIGTERM; the launcher kills them after its grace period (hvdrun: 5 s, the default)

Compares hvdrun with hydra and mpirun, if they are installed. The rank that exits records the time itself. For
SIGKILL, the time is that of the kill. If a rank exits with 3, hydra does not react, so that case is not measured.
srun -K is not measured either, because it needs an allocation. Status is the exit status of the launcher."""

import os
import signal
import sys
import time

import bench
import launchers
from box import Box

RANKS, VICTIM = 8, 5
GRACE = 5  # s, hvdrun's default
GOALS = {"obeys": 0.025, "ignores": GRACE + 0.050}  # s
LIMIT = 30
WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "failure_worker.py")


def pids(folder):
    found = sorted(int(name) for name in os.listdir(folder) if name.isdigit())
    return found if len(found) == RANKS else None


def fail(what, folder):
    """Makes a rank fail. Returns a function that returns the time of the failure."""
    victim = pids(folder)[VICTIM]
    if what == "SIGKILL":
        when = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        return lambda: when
    os.kill(victim, signal.SIGUSR1)

    def noted():
        with open(os.path.join(folder, "failed"), encoding="ascii") as file:
            return float(file.read())
    return noted


def measure(command, what, manner):
    """{"s", "status"}, or a text that says what went wrong."""
    box = Box()
    folder = box.path("ranks")
    os.mkdir(folder)
    launch = launchers.Launch(command(RANKS, [sys.executable, "-S", WORKER, folder, manner]))
    try:
        bench.wait_for(lambda: pids(folder), f"{RANKS} ranks", LIMIT)
        when = fail(what, folder)
        if not launch.wait(LIMIT):
            return f"still running after {LIMIT} s"
        return {"s": launch.ended - when(), "status": launch.status}
    except TimeoutError as error:
        return str(error)
    finally:
        launch.kill()
        box.kill_strays()
        box.close()


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--stubborn-rounds", type=int, default=3, help="rounds with ranks that ignore SIGTERM (3)")
    options = parser.parse_args()
    bench.begin()
    report = bench.Report("failure", options)
    rows, notes, data = [], [], {}
    for manner, rounds in (("obeys", options.rounds), ("ignores", options.stubborn_rounds)):
        for what in ("exit 3", "SIGKILL") if rounds > 0 else ():
            bench.say(f"failure: {what}, the others' SIGTERM: {manner}")
            commands = launchers.commands("hvdrun", *(["hydra"] if what == "SIGKILL" else []), "mpirun")
            found = {name: [] for name in commands}
            for number, name in launchers.turns(commands, rounds):
                value = measure(commands[name], what, manner) if number > 0 or manner == "obeys" else None
                if number > 0:
                    found[name].append(value)
            data[f"{what}, {manner}"] = found
            for name, values in found.items():
                there = [value for value in values if not isinstance(value, str)]
                said = sorted({value["status"] for value in there})
                rows.append([what, manner, name, len(there), bench.pair([value["s"] for value in there]),
                             " ".join(map(str, said)), len(values) - len(there)])
                notes += [f"- {what}, {manner}, {name}: {value}" for value in values if isinstance(value, str)][:1]
            mine = bench.summary([value["s"] for value in found["hvdrun"] if not isinstance(value, str)])["median"]
            if mine is not None:
                notes.append(f"- {what}, {manner}: hvdrun below {GOALS[manner] * 1e3:.0f} ms: "
                             f"{'met' if mine < GOALS[manner] else 'NOT met'} ({mine * 1e3:.1f} ms)")
    head = ["failure", "SIGTERM", "launcher", "n", "median / worst s", "status", "failed"]
    report.add("From the failure of a rank to the end of the launcher", bench.table(head, rows) + "\n\n" + "\n".join(notes),
               "failure", data)
    report.finish()


if __name__ == "__main__":
    main()
