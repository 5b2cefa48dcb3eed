# SPDX-License-Identifier: Apache-2.0
# ctest limit: 5400
"""The package on clean systems, and equal bits from two builds.

    HVDRUN_TEST_SYSTEM   "SUITE MIRROR KEYRING": one more system to build on, such as an Ubuntu
"""

import filecmp
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

from ground import SOURCE, WORKERS, mpi_worker
from rig import BUILD, Flow, main, sanitized
from systems import System, own_suite

sys.path.insert(0, os.path.join(SOURCE, "tests/lint"))
from tree import Tree  # pylint: disable=wrong-import-position

BUILD_THERE = "cmake -S /source -B /build -G Ninja -DHVDRUN_TESTS=ON -DHVDRUN_WARNINGS=ON -DHVDRUN_WERROR=ON"
FLOWS_THERE = ("run", "output", "mpi", "package")


def call(*command, **options):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def copy_sources(place):
    """What git would take along, with its dates; not the repository, whose commits would be older."""
    for name in Tree(SOURCE).files:
        os.makedirs(os.path.join(place, os.path.dirname(name)), exist_ok=True)
        shutil.copy2(os.path.join(SOURCE, name), os.path.join(place, name))


@unittest.skipIf(sanitized(), "a package is not made with sanitizers")
class Reproducible(Flow):

    def make(self, source, build, umask, **env):
        """A package from sources and a build folder of this place, and what it is called."""
        copy_sources(self.box.path(source))
        options = {"umask": umask, "env": {**self.box.environment(), "CCACHE_DISABLE": "1", **env}}
        call("cmake", "-S", self.box.path(source), "-B", self.box.path(build), "-G", "Ninja", **options)
        call("cmake", "--build", self.box.path(build), "--target", "package", **options)
        deb, = (name for name in os.listdir(self.box.path(build)) if name.endswith(".deb"))
        return self.box.path(build, deb)

    def test_equal_bits_from_other_folders_at_another_time(self):
        one = self.make("one", "one/build", 0o022)
        time.sleep(2 - time.time() % 1)  # another second, for whoever writes the time down
        two = self.make("elsewhere/in-a-longer-folder", "made", 0o077, TZ="Asia/Kathmandu", LC_ALL="C")
        self.assertTrue(filecmp.cmp(one, two, shallow=False), self.differences(one, two))

    def differences(self, one, two):
        for name, deb in (("1", one), ("2", two)):
            call("dpkg-deb", "-R", deb, self.box.path(name))
        return subprocess.run(["diff", "-rq", self.box.path("1"), self.box.path("2")], capture_output=True, text=True,
                              check=False).stdout or "the files are equal: dates, order or owners are not"


@unittest.skipIf(sanitized(), "a package is not made with sanitizers")
class CleanSystem(Flow):

    def setUp(self):
        super().setUp()
        if not own_suite():
            self.skipTest("the package is for this machine's system, and it is no Debian")
        call("cpack", "-G", "DEB", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", self.box.path("made"))
        self.deb, = (self.box.path("made", name) for name in os.listdir(self.box.path("made")) if name.endswith(".deb"))
        self.system = System(own_suite())
        self.addCleanup(self.system.close)

    def traces(self):
        """What hvdrun has left, by name, without the records and logs that jobs keep for a day."""
        left = self.system.run("find", "/", "-xdev", "(", "-path", "/proc", "-o", "-path", "/sys", "-o", "-path", "/package",
                               "-o", "-path", "/var/log", "-o", "-path", "/var/cache/apt", ")", "-prune", "-o",
                               "-name", "*hvdrun*", "-print").split()
        return [name for name in left if not re.fullmatch(r"/tmp/hvdrun-\d+(/\.jobs-[^/]+/[^/]+\.(json|log))?", name)]

    def job(self, *args):
        return self.system.run("hvdrun", *args, binds=[(WORKERS, "/workers")])

    def as_user(self, command):
        return self.system.run("su", "-", "tester", "-c", command, binds=[(WORKERS, "/workers")])

    def test_life_of_the_package(self):
        self.assertEqual(self.traces(), [])
        os.mkdir(os.path.join(self.system.root, "package"))
        self.system.take(self.deb, "/package/hvdrun.deb")
        self.system.install("/package/hvdrun.deb", recommended=True)
        for look in (self.see_installation, self.see_jobs, self.see_jobs_of_a_user, self.see_mpi):
            with self.subTest(look.__name__):
                look()
        self.system.run("apt-get", "-q", "-y", "purge", "hvdrun")
        self.assertEqual(self.traces(), [])
        self.assertEqual(self.system.run("dpkg-query", "-W", "-f", "${db:Status-Status}", "hvdrun", status=1).strip()[:3], "dpk")

    def see_installation(self):
        self.assertEqual(self.system.run("dpkg", "--verify", "hvdrun"), "")
        told = self.system.run("hvdrun", "--version")
        self.assertNotIn("cannot be loaded", told)
        self.assertEqual(len(re.findall(r"^  \w+ +\d\S*(?: \(API \d+\.\d+\))?  +(?:API )?\d", told, re.M)), 6, told)
        offered = self.system.run("bash", "-c", "source /usr/share/bash-completion/completions/hvdrun; complete -p hvdrun")
        self.assertIn("hvdrun", offered)
        self.system.run("gzip", "-t", "/usr/share/man/man1/hvdrun.1.gz")

    def see_jobs(self):
        self.job("-np", 2, "true")
        self.job("-np", 2, "--bind-to", "core", "/workers/hello")
        text = self.job("-H", "a:1,b:1", "--transport", "local", "/workers/hello")
        self.assertIn("hello from rank 1 of 2", text)
        text = self.job("-H", "a:1,b:1", "--launch-agent", "env TMPDIR=/dev/shm HOST=%h", "/workers/hello")
        self.assertIn("hello from rank 1 of 2", text)
        self.assertIn("on all hosts" if "on all" in (text := self.job("check")) else "HOST", text)

    def see_jobs_of_a_user(self):
        self.system.run("useradd", "-m", "tester")
        self.assertIn("hello from rank 1 of 2", self.as_user("hvdrun -np 2 /workers/hello"))
        self.as_user("hvdrun check")

    def see_mpi(self):
        program = mpi_worker("mpi_hello", "openmpi")
        self.system.install("openmpi-bin")
        self.assertIn("rank 1 of 2", self.job("-np", 2, f"/workers/{os.path.basename(program)}"))


class OtherSystem(Flow):
    """Another release builds all of it without a warning, and its unit tests and some jobs pass there."""

    def build_and_test(self, *which):
        system = System(*which)
        self.addCleanup(system.close)
        needed = call("bash", "-c", f". {SOURCE}/cmake/packages.sh; echo ${{packages_to_build[@]}}").split()
        system.install(*needed, "libcmocka-dev", "mpich", "libmpich-dev", "python3", "git", "procps", "file")
        copy_sources(os.path.join(system.root, "source"))
        system.run("sh", "-c", f"{BUILD_THERE} && cmake --build /build")
        flows = "|".join(FLOWS_THERE)
        told = system.run("ctest", "--test-dir", "/build", "--output-on-failure", "-R", f"^unit|^flow\\.({flows})$")
        self.assertIn("100% tests passed", told)
        self.assertNotIn("cannot be loaded", system.run("/build/hvdrun", "--version"))

    @unittest.skipIf(own_suite() == "trixie", "this machine runs it")
    def test_debian_13(self):
        self.build_and_test("trixie")

    @unittest.skipUnless(os.environ.get("HVDRUN_TEST_SYSTEM"), "HVDRUN_TEST_SYSTEM is not set")
    def test_one_more(self):
        self.build_and_test(*os.environ["HVDRUN_TEST_SYSTEM"].split())


if __name__ == "__main__":
    main()
