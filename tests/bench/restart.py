#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Restart of all workers after one of them is killed: hvdrun and torchrun, on the same script, in turns.

The clock starts with the SIGKILL to rank 1. There are three times of the restarted ranks: when all are at the beginning
of the script ("begin": the interpreter runs and has imported nothing), when the last one has its imports, and when all
have made their first step. "meeting" is the time between the last two. The script runs with torch (gloo), whose import
takes most of the time, and without. With "no launcher", Python's subprocess starts the ranks of the script one after
the other, and nothing watches or ends them.

A restart without a first step within 60 s is left out: "n" counts the others.

By default, torchrun looks at its workers every 5 s, so the benchmark chooses the moment of the kill at random.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

import bench
from box import Box
from ground import HVDRUN
from jobs import Job

SCRIPT = os.path.join(bench.HERE, "restart_worker.py")
PERIOD = 5.0  # torchrun's default for --monitor_interval


def find_python():
    """Returns a Python interpreter and whether it has torch. Prefers one that has it."""
    for path in (sys.executable, "/usr/bin/python3"):
        if os.access(path, os.X_OK) and subprocess.run([path, "-c", "import torch"], capture_output=True,
                                                       check=False).returncode == 0:
            return path, True
    return sys.executable, False


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def torchrun_words(python, has_torch):
    """The command line of torchrun on this machine. None: it is not installed."""
    if not has_torch:
        return None
    program = shutil.which("torchrun")
    words = [program] if program else [python, "-m", "torch.distributed.run"]
    said = subprocess.run([*words, "--help"], capture_output=True, text=True, check=False).stdout
    if "--max_restarts" not in said and "--max-restarts" not in said:
        return None
    # torch 1.13 under Python 3.11 cannot read its own defaults of these two; a rank that does not exist changes nothing
    return words + (["--redirects", "9:3", "--tee", "9:3"] if "--redirects" in said else [])


def launchers(ranks, torchrun):
    """{name: (the words before the script, the longest time until the launcher notices a change)}"""
    found = {"hvdrun": (lambda: [HVDRUN, "-np", ranks, "--max-restarts", 3], 0.0)}
    found["hvdrun, agent"] = (lambda: [HVDRUN, "-np", ranks, "--max-restarts", 3, "--torch-store", "agent"], 0.0)
    found["hvdrun, agent, warm"] = (lambda: [*found["hvdrun, agent"][0](), "--warm=torch.distributed"], 0.0)
    if torchrun:
        def words(*more):
            return [*torchrun, "--standalone", "--nproc_per_node", ranks, "--max_restarts", 3, *more]
        found["torchrun, 0.1 s"] = (lambda: words("--monitor_interval", 0.1), 0.1)
        found["torchrun, default"] = (words, PERIOD)
    return found


class Run:
    """One run of the script."""

    def __init__(self, python, torch):
        self.box = Box()
        os.mkdir(self.box.path("stamps"))
        self.stamps, self.python = bench.Stamps(self.box.path("stamps")), python
        self.script = [python, "-B", SCRIPT, "--stamp", self.box.path("stamps", "all"), "--meet", self.box.work,
                       *(["--torch"] if torch else [])]
        self.env = {"OMP_NUM_THREADS": "1"}
        self.job = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.job is not None and self.job.popen.poll() is None:
            self.job.signal(signal.SIGTERM)
            try:
                self.job.popen.wait(10)
            except subprocess.TimeoutExpired:
                self.job.kill()
        self.box.kill_strays()
        self.box.close()

    def last(self, what, ranks, restart, since):
        """The time of the last rank's stamp after a restart, and the stamps of all ranks."""
        def there():
            found = [one for one in self.stamps.since(since, what) if one.rest == [str(restart)]]
            if len(found) >= ranks:
                return found
            if self.job is not None and self.job.popen.poll() is not None:
                raise AssertionError(f"it ended{self.job.describe()}")
            return None
        try:
            found = bench.wait_for(there, f"{what} of {ranks} ranks after {restart} restarts", 60)
        except TimeoutError as error:
            raise AssertionError(f"{error}{self.job.describe() if self.job else ''}") from error
        return max(one.time for one in found), found

    def killed(self, words, period, ranks):
        arguments = [*words, self.python, *self.script[1:]] if words[0] == HVDRUN else [*words, *self.script[2:]]
        self.job = Job(self.box, arguments, env=self.env)
        _, first = self.last("first-step", ranks, 0, 0)
        time.sleep(0.3 + random.uniform(0, max(period, 0.3)))
        pid = next(one.pid for one in first if one.rank == 1)
        moment = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        return self.times(ranks, 1, moment)

    def times(self, ranks, restart, moment):
        return {name: self.last(what, ranks, restart, moment)[0] - moment
                for name, what in (("first_step", "first-step"), ("imported", "imported"), ("begin", "begin"))}

    def alone(self, ranks):
        """Without a launcher."""
        port, moment = free_port(), time.monotonic()
        for rank in range(ranks):
            env = self.box.environment({**self.env, "RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1",
                                        "MASTER_PORT": port})
            self.box.helpers.append(Alone(self.script, env))
        return self.times(ranks, 0, moment)


class Alone:
    """A process with the interface that the box expects of a helper."""

    def __init__(self, argv, env):
        self.popen = subprocess.Popen([str(word) for word in argv], env=env, stdin=subprocess.DEVNULL)

    def close(self):
        """Does nothing: the box has killed it."""


def rounds(options, python, torchrun, torch, ranks):
    """{launcher: [sample]}. The launchers take turns."""
    ways = launchers(ranks, torchrun)
    found = {name: [] for name in [*ways, "no launcher"]}
    for number in range(options.rounds):
        bench.say(f"{'torch' if torch else 'plain'}, {ranks} ranks, round {number + 1} of {options.rounds}")
        for name, (words, period) in ways.items():
            with Run(python, torch) as run:
                try:
                    found[name].append(run.killed(words(), period, ranks))
                except AssertionError as error:
                    bench.say(f"{name}: no sample: {error}")
        with Run(python, torch) as run:
            found["no launcher"].append(run.alone(ranks))
    return found


def as_table(found):
    def median(name, what):
        return bench.summary([one[what] for one in found[name]])["median"]

    rows = []
    for name, samples in found.items():
        if not samples:
            rows.append([name, 0] + ["never"] * 6)
            continue
        ratios = {what: f"{median(name, what) / median('hvdrun', what):.2f}" for what in ("begin", "first_step")}
        rows.append([name, len(samples), bench.pair([one["begin"] for one in samples]), ratios["begin"],
                     bench.pair([one["imported"] - one["begin"] for one in samples]),
                     bench.pair([one["first_step"] - one["imported"] for one in samples]),
                     bench.pair([one["first_step"] for one in samples]), ratios["first_step"]])
    return bench.table(["launcher", "n", "kill to last begin", "hvdrun = 1", "imports", "meeting", "kill to last first step",
                        "hvdrun = 1"], rows)


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="values of each kind (10)")
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 8], help="numbers of ranks without torch (2 8)")
    parser.add_argument("--torch-ranks", type=int, nargs="*", default=[2], help="numbers of ranks with torch (2)")
    options = parser.parse_args()
    bench.begin()
    python, has_torch = find_python()
    torchrun = torchrun_words(python, has_torch)
    report = bench.Report("restart", options)
    note = "Seconds, median / worst.\n\n"
    for ranks in options.torch_ranks if has_torch else []:
        found = rounds(options, python, torchrun, True, ranks)
        report.add(f"Script with torch, {ranks} ranks", note + as_table(found), f"torch_{ranks}", found)
    for ranks in options.ranks:
        found = rounds(options, python, torchrun, False, ranks)
        report.add(f"Script without torch, {ranks} ranks", note + as_table(found), f"plain_{ranks}", found)
    report.finish()


if __name__ == "__main__":
    main()
