# SPDX-License-Identifier: Apache-2.0
"""The launchers that benchmarks compare on one machine, and one measured run of a launcher."""

import os
import select
import shutil
import subprocess
import time

from ground import HVDRUN
from procfs import descendants, kill, process

# without these, Open MPI refuses to run as root, and to run more ranks than cores
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
MPIRUN = ["mpirun.openmpi", "--oversubscribe"]


def _peer(argv, count):
    """Returns a function that adds the number of ranks and a program to a command line. None: it is not installed."""
    if shutil.which(argv[0]) is None:
        return None
    return lambda ranks, words: [*argv, count, str(ranks), *words]


def commands(*names):
    """{name: function(ranks, words of a program) -> words of a command} of the launchers that are installed."""
    known = {"hvdrun": _peer([HVDRUN], "-np"),
             "hydra": _peer(["mpiexec.hydra"], "-np"),
             "mpirun": _peer(MPIRUN, "-np")}
    return {name: known[name] for name in names if known[name] is not None}


class Launch:
    """A command that runs in its own session. Its output is discarded."""

    def __init__(self, argv, stdout=subprocess.DEVNULL):
        self.began = time.monotonic()
        self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.DEVNULL,
                                      start_new_session=True, env=ENV)
        self.pid, self.status, self.usage, self.ended = self.popen.pid, None, None, None

    def wait(self, limit):
        """False: it still runs after `limit` seconds."""
        pidfd = os.pidfd_open(self.pid)
        try:
            if not select.select([pidfd], [], [], limit)[0]:
                return False
        finally:
            os.close(pidfd)
        self.ended = time.monotonic()
        _, status, self.usage = os.wait4(self.pid, 0)
        self.status = self.popen.returncode = os.waitstatus_to_exitcode(status)
        return True

    def cpu(self):
        """CPU seconds of the command and of all processes that it has waited for."""
        return self.usage.ru_utime + self.usage.ru_stime

    def processes(self):
        """The command and its descendants."""
        return [one for one in (process(self.pid), *descendants(self.pid)) if one is not None]

    def kill(self):
        """Kills the command and all its descendants."""
        while self.status is None:
            for one in reversed(self.processes()):
                kill(one.pid)
            self.wait(0.05)


def turns(names, rounds):
    """Yields (round, name), so that each name comes first equally often. Round 0 is for warming up."""
    names = list(names)
    for number in range(rounds + 1):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            yield number, name
