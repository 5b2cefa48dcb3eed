#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon do the ranks of a C program with libhvd and Gloo learn that one of four was killed with SIGKILL? What does an
idle rank cost?

- pending: the time until the pending operations of all other ranks have failed. Target: 0.020 s.
- elastic: the time until every survivor has made its next step, with hvd_elastic_run(). Target: 0.150 s.
- idle: the processor time of a rank that does nothing. Target: 1 % of a core.
The job gets the signal from this program, which takes the time just before."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import bench
from ground import BUILD, HVDRUN

CASES = os.path.join(BUILD, "tests/bench/hvd_cases")
RANKS, VICTIM = 4, 3
ENV = {**os.environ, "HVD_MODULES": os.path.join(BUILD, "lib/hvd")}


def command(*words):
    return [HVDRUN, "--controller", "gloo", *map(str, words)]


def after_kill(argv, is_ready, moments, env=None):
    """Runs `argv`, whose {} becomes the file of stamps. Kills the victim when is_ready(stamps). Returns the seconds until the
    last of moments(stamps, time of the kill), which returns None while there are too few."""
    with tempfile.TemporaryDirectory() as folder:
        stamps = bench.Stamps(os.path.join(folder, "stamps"))
        words = [word.replace("{}", stamps.folder) for word in argv]
        job = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env or ENV)
        try:
            bench.wait_for(lambda: is_ready(stamps.update()), "the ranks are ready")
            time.sleep(0.1)  # the others wait
            moment = time.monotonic()
            os.kill(next(one.pid for one in stamps.all if one.rank == VICTIM), signal.SIGKILL)
            return max(bench.wait_for(lambda: moments(stamps, moment), "what follows the kill")) - moment
        finally:
            job.terminate()
            job.wait()


def kill_pending():
    def moments(stamps, moment):
        found = [one.time for one in stamps.since(moment, "failed")]
        return found if len(found) == RANKS - 1 else None

    argv = command("-np", RANKS, "--oversubscribe", CASES, "pending", "{}/all")
    return after_kill(argv, lambda all_: len(all_) == RANKS, moments)


def next_steps(stamps, moment):
    """The times of the first steps of the survivors without the victim. A step may have ended with it after the kill."""
    survivors = {one.pid for one in stamps.all if one.time < moment and one.rank != VICTIM}
    first = {}
    for one in stamps.since(moment, "step"):
        if one.pid in survivors and int(one.rest[0]) == RANKS - 1:
            first.setdefault(one.pid, one.time)
    return list(first.values()) if len(first) == RANKS - 1 else None


def kill_elastic(argv, env=None):
    return after_kill(argv, lambda all_: sum(one.rank == VICTIM for one in all_) > 100, next_steps, env)


def idle(seconds):
    """The largest share of a core that a rank takes."""
    done = subprocess.run(command("--no-label", "-np", RANKS, "--oversubscribe", CASES, "idle", seconds), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=True, env=ENV)
    return max(int(line.split()[1]) for line in done.stdout.splitlines()) / 1e6


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=10, help="of idleness (10)")
    options = parser.parse_args()
    bench.begin()
    if not os.path.exists(CASES):
        sys.exit(f"hvd_failure.py: no {CASES}: build the target bench_engines")
    report, found = bench.Report("hvd_failure", options), {}
    elastic = command("-H", f"a:{RANKS}", "--transport", "local", "--min-np", RANKS - 1, CASES, "elastic", "{}/all")
    for name, kill in (("pending operations have failed", kill_pending), ("next step", lambda: kill_elastic(elastic))):
        bench.say(name)
        found[name] = [kill() for _ in range(options.kills)]
    rows = [[name, len(times), *bench.pair(times).split(" / ")] for name, times in found.items()]
    report.add("SIGKILL of one of four ranks, seconds", bench.table(["until", "n", "median", "worst"], rows), "kill", found)
    share = idle(options.seconds)
    report.add("Idle", f"{share:.2%} of a core", "idle", share)
    report.finish()


if __name__ == "__main__":
    main()
