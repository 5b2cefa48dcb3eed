# SPDX-License-Identifier: Apache-2.0
# ctest limit: 10800
# ctest plain
"""Spawn and mpi4py on clean systems, under hvdrun and under the launcher of the MPI: the same must come of it.
Debian's MPICH can spawn on 32-bit x86 only.

    HVDRUN_MPI4PY   sources of mpi4py, of the version that the systems have: its whole suite runs, too,
                    file by file, and each test must come to the same on each rank
"""

import collections
import glob
import os
import pathlib
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
HVDRUN = f"{BUILD}/hvdrun -H localhost:64 --start-timeout 5m -np"
OUTCOMES = "/srv/outcomes"
BINDS = [(place, place) for place in (SOURCE, BUILD, *filter(None, [os.environ.get("HVDRUN_MPI4PY")]))]


def ended(outcomes, ranks):
    return sum("all" in tests for tests in outcomes.values()) == ranks


@unittest.skipIf(sanitized(), "a clean system has no sanitizers")
class Mpich(Flow):

    suite, arch = "trixie", "i386"
    packages = ("mpich", "libmpich-dev")
    compiler, launcher = "mpicc.mpich", "mpiexec.hydra -n"
    ENV = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"

    def setUp(self):
        super().setUp()
        self.system = System(self.suite, arch=self.arch)
        self.addCleanup(self.system.close)
        self.expect_libc()
        self.system.install("python3-mpi4py", "python3-numpy", "gcc", "libc6-dev", *self.packages)
        if self.arch == "i386":  # hvdrun itself is not
            self.system.run("dpkg", "--add-architecture", "amd64")
            self.system.run("apt-get", "-q", "update")
            self.system.install("libc6:amd64")
        self.system.run("sh", "-c", f"echo 127.0.0.1 $(hostname) >> /etc/hosts; cd /srv; cat > pool.py <<'END'\n{POOL}END")
        self.system.run("sh", "-c", f"cd /srv; {self.compiler} -w -o worlds {SOURCE}/tests/workers/mpi_worlds.c", binds=BINDS)

    def expect_libc(self):
        """hvdrun was built here, and needs a libc there that is as new."""
        ours, theirs = os.confstr("CS_GNU_LIBC_VERSION"), self.system.run("ldd", "--version").splitlines()[0]
        if tuple(map(int, re.findall(r"\d+", ours))) > tuple(map(int, theirs.split()[-1].split("."))):
            self.skipTest(f"{ours} is newer than that of {self.suite}")

    def there(self, command):
        """What it prints, without labels, in the order of the text, and its status. Only what no launcher decides."""
        line = f"cd /srv; {self.ENV} timeout -k 10 1200 {command} 2>stderr; echo status $?"
        said = self.system.run("sh", "-c", line, binds=BINDS)
        lines = [re.sub(r"^\[[\d.]+\]<std\w+>:", "", line) for line in said.splitlines()]
        self.assertRegex(lines[-1], "^status (?!124|137)", said)
        return sorted(line for line in lines[:-1] if not re.match("universe|memory in", line)), lines[-1]

    def see(self, ranks, command):
        """Both launchers come to the same, also where the tests of others fail."""
        theirs, ours = (self.there(f"{launcher} {ranks} {command}") for launcher in (self.launcher, HVDRUN))
        said = self.system.run("tail", "-c", 4000, "/srv/stderr")
        self.assertTrue(theirs[0], f"{command}\n{said}")
        self.assertEqual(ours, theirs, f"{command}\n{said}")

    def outcomes(self, launcher, ranks, path, limit):
        """What comes of each test of a file of mpi4py, by rank and test, and whether the job fails. It may hang: then
        the last test of a rank only begins."""
        job = f"{launcher} {ranks} python3 -B {SOURCE}/tests/flow/mpi4py_outcomes.py {path} {OUTCOMES}"
        job = f"PYTHONPATH={os.path.dirname(path)} {self.ENV} timeout -k 10 {limit} {job} >said 2>&1; echo $?"
        failed = self.system.run("sh", "-c", f"rm -rf {OUTCOMES}; mkdir {OUTCOMES}; cd /srv; {job}", binds=BINDS) != "0\n"
        places = pathlib.Path(self.system.root + OUTCOMES).iterdir()
        return failed, {place.name: dict(line.rsplit(": ", 1) for line in place.read_text("utf-8").splitlines()) for place in places}

    def see_file(self, path, ranks):
        """Where only their launcher does not come to the end, as Open MPI's may hang in spawn, what it came to is the same,
        and no other test fails under hvdrun. hvdrun has more time: both are slow on a busy machine."""
        (they_fail, theirs), (we_fail, ours) = self.outcomes(self.launcher, ranks, path, 300), self.outcomes(HVDRUN, ranks, path, 900)
        pairs = {f"{rank} {test}": (ours.get(rank, {}).get(test), theirs.get(rank, {}).get(test))
                 for rank in {*ours, *theirs} for test in {*ours.get(rank, {}), *theirs.get(rank, {})}}
        unlike = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        if ended(theirs, ranks) or not ended(ours, ranks):
            unlike.update({"job fails": (we_fail, they_fail)} if we_fail != they_fail else {})
        else:
            print(f"{self.launcher} {ranks} {os.path.basename(path)}: has no end")
            unlike = {name: (our, their) for name, (our, their) in unlike.items()
                      if their not in ("begins", None) or our not in ("ok", "skip", "end")}
        said = self.system.run("tail", "-c", 4000, "/srv/said")
        self.assertEqual(unlike, {}, f"{path}\n{said}")  # without the rest: a comparison of all takes minutes
        return ours

    def see_suite(self, sources):
        counts = collections.Counter()
        for path in sorted(glob.glob(f"{sources}/test/test_*.py")):
            for ranks in (1, 2, 3, 4):
                with self.subTest(file=os.path.basename(path), ranks=ranks):
                    ours = self.see_file(path, ranks)
                    counts.update(outcome.split()[0] for tests in ours.values() for outcome in tests.values())
        print(self.launcher, dict(counts))
        self.assertGreater(counts["ok"], 0)

    def see_what_is_refused(self):
        """Other launchers start any number of ranks, or end."""
        for task in ("try 99", "try 1 /no/such/program"):
            with self.subTest(task=task):
                lines, status = self.there(f"{HVDRUN} 1 ./worlds {task}")
                self.assertIn(f"spawn of {task.split()[1]}: error", lines)
                self.assertEqual((lines.count("spawn of 1: success"), status), (1, "status 0"), lines)

    def test_the_same_comes_of_it(self):
        for task in TASKS:
            with self.subTest(task=task):
                self.see(2, f"./worlds {task}")
        with self.subTest(task="pool"):
            self.see(1, "python3 pool.py")
        self.see_what_is_refused()
        if os.environ.get("HVDRUN_MPI4PY"):
            self.see_suite(os.environ["HVDRUN_MPI4PY"])


class OpenMpi(Mpich):

    suite, arch = own_suite() or "bookworm", None
    packages = ("openmpi-bin", "libopenmpi-dev", "libpmix2")
    compiler, launcher = "mpicc.openmpi", "mpirun.openmpi --oversubscribe -np"


if __name__ == "__main__":
    main()
