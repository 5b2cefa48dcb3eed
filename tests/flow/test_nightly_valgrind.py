# SPDX-License-Identifier: Apache-2.0
"""Driver, agent and keeper under valgrind's memcheck, in every kind of run: no error, and nothing lost.

The driver kills an agent of this machine as soon as the agent has done its part. Memcheck cannot count the
agent's memory then. So there are also agents behind a relay (test_keeper.py), which end on their own.
tests/lint/valgrind.supp lists the findings in third-party libraries.
"""

import glob
import os
import re
import shutil
import signal
import sys

from elastic import Elastic
from ground import HVDRUN, SOURCE, mpi_worker, sanitized, worker
from hosts import Hosts, main
from jobs import Job
from test_keeper import RELAY, Host

FAULT = re.compile(r"Invalid (read|write|free)|Conditional jump|Use of uninitialised|Syscall param|Mismatched free|"
                   r"Source and destination overlap|(definitely|indirectly) lost: [1-9]")
OURS = re.compile(r"Command: \S*/hvdrun")
ENDED = re.compile(r"ERROR SUMMARY: (\d+) errors")
ONE_WORLD = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


class Valgrind(Elastic, Hosts):

    hosts = 2
    left_timeout = 30

    def setUp(self):
        super().setUp()
        if shutil.which("valgrind") is None:
            self.skipTest("no valgrind on this machine")
        if sanitized():
            self.skipTest("a program with sanitizers does not run under valgrind")
        self.logs = self.box.path("memcheck")
        os.mkdir(self.logs)

    def memcheck(self, skipped="*/tests/workers/*,/bin/*,/usr/*"):
        """The words before a program that is watched, with all that it starts but these."""
        return ["valgrind", "--vgdb=no", "--leak-check=full", "--show-leak-kinds=definite,indirect", "--num-callers=30",
                "--errors-for-leak-kinds=definite,indirect", "--trace-children=yes", f"--trace-children-skip={skipped}",
                f"--suppressions={SOURCE}/tests/lint/valgrind.supp", f"--log-file={self.logs}/%p.%n"]

    def start(self, *args, **options):
        return Job(self.box, [*self.memcheck(), HVDRUN, *args], **options)

    def watch(self, *args, status=0, timeout=240, env=None, **options):
        result = self.start("--grace", 60, "--node-timeout", 60, *args, env={**ONE_WORLD, **(env or {})},
                            **options).wait(timeout)
        self.expect(result, status)
        self.expect_clean(1)
        return result

    def expect_clean(self, counted):
        """No log shows a fault, and at least so many of them were counted to the end."""
        ended = 0
        for path in glob.glob(f"{self.logs}/*"):
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            if not OURS.search(text):
                continue
            self.assertFalse(FAULT.search(text), f"{path}:\n" + "\n".join(
                line for line in text.split("\n") if not line.startswith("--"))[:8000])
            ended += len(ENDED.findall(text))
        self.assertGreaterEqual(ended, counted, os.listdir(self.logs))


class Driver(Valgrind):
    """And the agents below it, as far as they come."""

    def test_plain(self):
        self.watch("-np", 3, "--report", "report", "--events", "events", worker("hello"), "--err")
        self.watch("-np", 2, "--output-filename", "files", "--collapse", worker("spew"), "--lines", 2000)
        self.watch("-np", 2, "--stdin", "all", "--no-label", "cat", stdin=b"x" * 300_000)

    def test_failures(self):
        self.watch("-np", 3, worker("exit_with"), "--say", "no", "1:3", status=3)
        self.watch("-np", 2, worker("crash"), "--rank", 1, "--how", "segv", status=139)
        self.watch("-np", 2, "--timeout", 3, worker("hang"), status=124)
        self.watch("-np", 2, "./none", status=127)
        self.watch("-np", 2, worker("orphan"), "--kind", "daemon")
        self.watch("-np", 2, "--no-such-option", "true", status=2)

    def test_signal(self):
        job = self.start("-np", 2, worker("hang"))
        job.wait_output("ready", count=2, timeout=60)
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 143)
        self.expect_clean(1)

    def test_many_agents(self):
        self.watch("-H", "a:2,b:2,c:1", "--transport", "local", worker("hello"))

    def test_mpi(self):
        for kind in ("openmpi", "mpich"):
            self.watch("-H", "a:2,b:1", "--transport", "local", mpi_worker("mpi_hello", kind))
            self.watch("-np", 2, mpi_worker("mpi_abort", kind), status=None)

    def test_horovod(self):
        self.watch("-H", "a:2,b:1", "--transport", "local", worker("horovod_worker"), "--reinit", 2)

    def test_elastic(self):
        job = self.train(*self.discover("a:1", "b:1"), "--min-np", 1)
        before = job.members(2, timeout=120)
        job.kill(before[1])
        job.members(2, but=before, timeout=120)
        self.set_hosts("a:1", "b:1", "c:1")
        job.members(3, timeout=120)
        job.finish(timeout=240)
        self.expect_clean(1)

    def test_words(self):
        for args in (["--help"], ["--version"], ["--dry-run", "-np", 3, "true"], ["--dry-run=json", "-np", 3, "true"],
                     ["check"], ["check", "--json"], ["status"]):
            self.watch(*args, status=None)

    def test_ssh(self):
        self.watch(*self.ssh_words(), "-H", "node1:2,node2:1", worker("hello"))
        self.watch(*self.ssh_words(), "-H", "node1:2,node2:1", worker("exit_with"), "2:3", status=3)
        self.watch(*self.ssh_words(), "-H", "node1:1,node2:1", mpi_worker("mpi_hello", "openmpi"))

    def expect(self, result, status):
        if status is None:
            self.assertNotIn(-result.status, (signal.SIGSEGV, signal.SIGABRT), result.describe())
            return result
        return super().expect(result, status)


class Agent(Valgrind):
    """On a host that is not below the driver: agent and keeper come to their own end."""

    def start(self, *args, **options):
        return Job(self.box, [HVDRUN, *args], **options)

    def far(self, *args, **options):
        host = Host(self.box, [*self.memcheck(), "/bin/sh"])
        relay = self.write("relay.py", RELAY)
        try:
            self.watch_far(["--launch-agent", f"{sys.executable} {relay} {host.path} %h", "-H", "far:3"], *args, **options)
            for shell in host.shells:
                shell.wait(120)
        finally:
            host.close()
        self.expect_clean(2)

    def watch_far(self, where, *args, status=0):
        self.expect(Job(self.box, [HVDRUN, *where, "--grace", 60, "--node-timeout", 60, "--start-timeout", 200, *args],
                        env=ONE_WORLD).wait(240), status)

    def test_plain(self):
        self.far(worker("hello"), "--err")

    def test_failure(self):
        self.far(worker("exit_with"), "1:3", status=3)

    def test_left_behind(self):
        self.far(worker("orphan"), "--kind", "daemon")

    def test_output(self):
        self.far(worker("spew"), "--lines", 3000)

    def test_open_mpi(self):
        self.far(mpi_worker("mpi_hello", "openmpi"))

    def test_mpich(self):
        self.far(mpi_worker("mpi_hello", "mpich"))

    def test_horovod(self):
        self.far(worker("horovod_worker"), "--reinit", 1)


del Valgrind  # is no test

if __name__ == "__main__":
    main()
