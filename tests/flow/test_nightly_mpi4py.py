# SPDX-License-Identifier: Apache-2.0
# ctest limit: 5400
# ctest plain
"""Spawn and mpi4py on clean systems, under hvdrun and under the launcher of the MPI: the same must come of it.
Debian's MPICH can spawn on 32-bit x86 only.

    HVDRUN_MPI4PY   sources of mpi4py, of the version that the systems have: its whole suite runs, too
"""

import os
import re
import unittest

from ground import SOURCE
from rig import BUILD, Flow, main, sanitized
from systems import System, own_suite

POOL = """
from mpi4py import MPI
from mpi4py.futures import MPIPoolExecutor
def square(x):
    return x * x, MPI.COMM_WORLD.rank
if __name__ == "__main__":
    for workers in (3, 2):
        with MPIPoolExecutor(max_workers=workers) as pool:
            done = list(pool.map(square, range(20)))
        print(sum(number for number, _ in done), max(rank for _, rank in done) < workers, flush=True)
"""
TASKS = ("talk 3", "again 2 3", "nest 2 2", "many 2 1", "names 2")
HVDRUN = f"{BUILD}/hvdrun -H localhost:16 -np"


@unittest.skipIf(sanitized(), "a clean system has no sanitizers")
class Mpich(Flow):

    suite, arch = "trixie", "i386"
    packages = ("mpich", "libmpich-dev")
    compiler, launcher = "mpicc.mpich", "mpiexec.hydra -n"

    def setUp(self):
        super().setUp()
        self.system = System(self.suite, arch=self.arch)
        self.addCleanup(self.system.close)
        self.system.install("python3-mpi4py", "python3-numpy", "gcc", "libc6-dev", *self.packages)
        if self.arch == "i386":  # hvdrun itself is not
            self.system.run("dpkg", "--add-architecture", "amd64")
            self.system.run("apt-get", "-q", "update")
            self.system.install("libc6:amd64")
        self.system.run("sh", "-c", f"echo 127.0.0.1 $(hostname) >> /etc/hosts; cd /srv; cat > pool.py <<'END'\n{POOL}END")
        self.there(f"{self.compiler} -w -o /srv/worlds {SOURCE}/tests/workers/mpi_worlds.c")

    def there(self, command):
        """What it prints, without labels, in the order of the text; only what no launcher decides."""
        binds = [(place, place) for place in (SOURCE, BUILD, *filter(None, [os.environ.get("HVDRUN_MPI4PY")]))]
        said = self.system.run("sh", "-c", f"cd /srv; OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 1200 {command} 2>&1", binds=binds)
        lines = [re.sub(r"^\[[\d.]+\]<std\w+>:", "", line) for line in said.splitlines()]
        return sorted(line for line in lines if not re.match("universe|memory in|hwloc/", line))

    def see(self, ranks, command, pattern=""):
        """Both launchers come to the same."""
        theirs, ours = (self.there(f"{launcher} {ranks} {command}") for launcher in (self.launcher, HVDRUN))
        for lines in (theirs, ours):
            lines[:] = [found[0] for found in (re.search(pattern, line) for line in lines) if found] if pattern else lines
        self.assertTrue(theirs, command)
        self.assertEqual(ours, theirs, command)

    def test_the_same_comes_of_it(self):
        for task in TASKS:
            with self.subTest(task=task):
                self.see(2, f"./worlds {task}")
        with self.subTest(task="pool"):
            self.see(1, "python3 pool.py")
        sources = os.environ.get("HVDRUN_MPI4PY")
        for ranks in (1, 2, 3) if sources else ():
            with self.subTest(suite=ranks):
                self.see(ranks, f"python3 -B {sources}/test/main.py", r"^(Ran \d+ tests?|OK.*|FAILED.*)")


class OpenMpi(Mpich):

    suite, arch = own_suite() or "bookworm", None
    packages = ("openmpi-bin", "libopenmpi-dev", "libpmix2")
    compiler, launcher = "mpicc.openmpi", "mpirun.openmpi --oversubscribe -np"


if __name__ == "__main__":
    main()
