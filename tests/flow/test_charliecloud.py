# SPDX-License-Identifier: Apache-2.0
"""Workers in containers of Charliecloud, which each worker enters on its own, without root and without a daemon."""

import os
import shutil
import subprocess
import unittest

from rig import WORKERS, Flow, main, mpi_worker

OF_ETC = ("passwd", "group", "hosts", "nsswitch.conf", "ld.so.cache", "alternatives", "openmpi")


class Charliecloud(Flow):

    def setUp(self):
        super().setUp()
        if shutil.which("ch-run") is None:
            raise unittest.SkipTest("no ch-run (Debian: charliecloud-runtime)")
        self.image = self.box.path("image")
        for name in ("usr", "etc", "proc", "sys", "dev", "tmp", "home", "root", "run", "workers"):
            os.makedirs(os.path.join(self.image, name))
        for name in ("bin", "sbin", "lib", "lib64"):
            os.symlink(f"usr/{name}", os.path.join(self.image, name))
        for name in OF_ETC:
            place = os.path.join("/etc", name)
            if os.path.isdir(place):
                shutil.copytree(place, self.image + place, symlinks=True)
            elif os.path.exists(place):
                shutil.copy(place, self.image + place)
        probe = subprocess.run(self.inside("true"), env={**os.environ, "USER": "root"}, capture_output=True, text=True,
                               check=False)
        if probe.returncode != 0:
            raise unittest.SkipTest(f"ch-run makes no container here: {probe.stderr.strip()}")

    def inside(self, *command):
        return ["ch-run", "-b", "/usr:/usr", "-b", f"{WORKERS}:/workers", self.image, "--", *command]

    def job(self, *args):
        return self.run_job("-np", "2", "-x", "USER=root", "-x", "TMPDIR=/tmp", *args)

    def test_variables_and_streams(self):
        result = self.job(*self.inside("sh", "-c", "test -d /workers && echo $RANK of $WORLD_SIZE"))
        self.expect_lines(self.expect(result, 0), ["[0]<stdout>:0 of 2", "[1]<stdout>:1 of 2"])

    def test_status(self):
        result = self.expect(self.job(*self.inside("sh", "-c", "test $RANK = 0 || exit 7; sleep 1000")), 7)
        self.expect_blame(result, 1, code=7)

    def hello(self, kind, *args):
        name = os.path.basename(mpi_worker("mpi_hello", kind))
        result = self.expect(self.job(*args, *self.inside(f"/workers/{name}")), 0)
        self.expect_lines(result, ["[0]<stdout>:rank 0 of 2 sum 1", "[1]<stdout>:rank 1 of 2 sum 1"])

    def test_open_mpi(self):
        self.hello("openmpi")

    def test_mpich(self):
        """Its UCX may not open the memory of a process in another user namespace. The program is mounted: no image has it."""
        self.hello("mpich", "--mpi=pmi1", "-x", "UCX_POSIX_USE_PROC_LINK=n")


if __name__ == "__main__":
    main()
