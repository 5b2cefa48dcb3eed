# SPDX-License-Identifier: Apache-2.0
"""What hosts lack or share: no PMIx library, one kernel and one home for two agents; what --events
and --report say about hosts."""
# ctest waits

import json
import os
import re
import signal
import subprocess

from ground import HVDRUN, mpi_worker, wait_until, worker
from hosts import Hosts, main

QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_mpi_yield_when_idle": "1"}


def library(program, name):
    """Where the loader finds a library that the program or one of its own needs."""
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return os.path.realpath(re.search(rf"{re.escape(name)}\S* => (\S+)", text).group(1))


class Pmix(Hosts):

    def hide(self, number):
        """As if the package of the PMIx library were not installed there."""
        path = library(os.path.join(os.path.dirname(HVDRUN), "lib/hvdrun/hvdrun-pmix.so"), "libpmix.so")
        self.host(number).run("mount", "--bind", "/dev/null", path)
        self.addCleanup(self.host(number).run, "umount", path)

    def mpi(self, *args):
        return self.ssh_job(*args, env=QUIET, timeout=120)

    def test_a_host_without_it_is_named_with_the_package(self):
        self.hide(2)
        result = self.expect(self.mpi("-H", "node1:1,node2:1", mpi_worker("mpi_hello", "openmpi")), 125)
        self.expect_said(result, r"node2: [^\n]*libpmix2")
        self.expect_not_said(result, r"node1: [^\n]*libpmix")
        self.wait_no_workers()

    def test_all_hosts_without_it_are_named(self):
        self.hide(2)
        self.hide(3)
        result = self.expect(self.mpi("-H", "node1:1,node2:1,node3:1", mpi_worker("mpi_hello", "openmpi")), 125)
        for host in ("node2", "node3"):
            self.expect_said(result, rf"{host}: [^\n]*libpmix2")

    def test_jobs_that_do_not_need_it_run_there(self):
        self.hide(2)
        self.expect(self.ssh_job("-H", "node1:1,node2:1", worker("hello")), 0)
        result = self.mpi("--timeout", 20, "-H", "node1:1,node2:1", mpi_worker("mpi_hello", "mpich"))
        self.assertEqual(result.stdout.count("of 2 sum 1"), 2, result.describe())


class Twins(Hosts):
    """Two agents of one job on one kernel, with one home and one /tmp."""

    HOSTS = "twin-a:2,twin-b:2"

    def setUp(self):
        super().setUp()
        self.rig.alias(1, ["twin-a", "twin-b"])
        self.write_known_hosts(self.read_known_hosts().replace("node1,", "twin-*,node1,"))

    def test_each_counts_its_own_ranks(self):
        names = ["HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK", "HOROVOD_HOSTNAME"]
        result = self.expect(self.ssh_job("-H", self.HOSTS, worker("hello"), *names), 0)
        for rank, values in enumerate(((0, 2, 0, "twin-a"), (1, 2, 0, "twin-a"), (0, 2, 1, "twin-b"), (1, 2, 1, "twin-b"))):
            for name, value in zip(names, values):
                self.assertIn(f"[{rank}]<stdout>:{name}={value}", result.lines, result.describe())

    def test_the_agent_is_sent_once_and_not_torn(self):
        self.host(1).forget_agent()
        self.expect(self.ssh_job("-H", self.HOSTS, worker("hello")), 0)
        kept = [os.path.join(folder, name) for top in ("/tmp", f"{self.rig.top}/home")
                for folder, _, files in os.walk(self.host(1).path(top)) for name in files if "hvdrun-agent-" in name]
        self.assertEqual(len(kept), 1, kept)

    def test_one_is_killed_and_both_are_cleaned(self):
        job = self.ssh_start("-H", self.HOSTS, "--grace", 1, worker("hang"))
        job.wait_output("ready", count=4)
        workers = self.host(1).workers()
        self.assertEqual(workers[0].ppid, workers[1].ppid)
        self.assertNotEqual(workers[0].ppid, workers[2].ppid)
        os.kill(workers[2].ppid, signal.SIGKILL)
        result = self.expect(job.wait(), 121)
        self.expect_said(result, r"twin-b\b[^\n]*lost")
        self.expect_not_said(result, r"twin-a\b[^\n]*lost")
        self.wait_no_workers()

    def test_one_worker_fails_on_the_right_one(self):
        result = self.expect(self.ssh_job("-H", self.HOSTS, worker("exit_with"), "3:9"), 9)
        self.expect_blame(result, 3, code=9, host="twin-b")


class Told(Hosts):
    """What programs can read about the hosts."""

    def events(self, path):
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_silence_and_loss(self):
        path, report = self.box.path("events"), self.box.path("report.json")
        job = self.ssh_start("--events", path, "--report", report, "--node-timeout", 7, "--grace", 1, "-H",
                             "node1:1,node2:1", worker("hang"))
        job.wait_output("ready", count=2)
        self.host(2).cut()
        self.expect(job.wait(40), 121)
        told = [(event["event"], event.get("host")) for event in self.events(path)]
        self.assertLess(told.index(("node_suspect", "node2")), told.index(("node_lost", "node2")))
        self.assertNotIn(("node_suspect", "node1"), told)
        self.assertNotIn(("node_lost", "node1"), told)
        states = {node["host"]: node["state"] for node in self.read_json(report)["nodes"]}
        self.assertEqual(states, {"node1": "gone", "node2": "lost"})

    def test_heard_again(self):
        path = self.box.path("events")
        job = self.ssh_start("--events", path, "--node-timeout", 30, "-H", "node1:1,node2:1", worker("hang"))
        job.wait_output("ready", count=2)
        self.host(2).cut()
        job.wait_output("node2: no heartbeat for", name="stderr")
        self.host(2).heal()
        wait_until(lambda: ("node_heard", "node2") in [(e["event"], e.get("host")) for e in self.events(path)],
                   "node2 to be heard again", 30)
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 143)

    def test_unreached(self):
        path = self.box.path("events")
        self.host(2).refuse()
        self.expect(self.ssh_job("--events", path, "-H", "node1:1,node2:1", worker("hello")), 125)
        told = [event for event in self.events(path) if event["event"] == "node_unreached"]
        self.assertEqual([event["host"] for event in told], ["node2"])


if __name__ == "__main__":
    main()
