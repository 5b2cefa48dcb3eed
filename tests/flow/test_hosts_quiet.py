# SPDX-License-Identifier: Apache-2.0
"""Trouble that is not a failure must not look like one: loss, overload, stalls, slow links, short cuts, clocks.

Of two failures on two hosts, hvdrun names the first one. News of it may come last, and the clocks of the hosts
have nothing to do with each other.
"""
# ctest waits
# ctest long
# ctest plain

import os
import shlex
import signal
import subprocess
import time

from ground import wait_until, worker
from hosts import Hosts, freeze, main, thaw

BUSY = 8  # processes that never sleep: four for each core of a small machine
AHEAD = 5000  # seconds that a clock is ahead

# Waits at the gate, holds a lock until it dies, by a signal.
LEADER = 'exec 9>"$1"; flock 9; echo held; until [ -e "$2" ]; do sleep 0.01; done; kill -9 $$'
# Gets that lock when the kernel has ended the leader, so that its own end comes later than the other's.
FOLLOWER = 'exec 9>"$1"; echo waiting; until [ -e "$3" ]; do sleep 0.01; done; flock 9; sleep 0.05; ' \
           'echo x >"$2"; kill -9 $$'


class Quiet(Hosts):

    def nap(self, seconds, *more, hosts="node1:2,node2:2"):
        """A job that only sleeps, once it runs."""
        job = self.ssh_start("--grace", 1, "-H", hosts, *more, "sh", "-c", f"echo ready; exec sleep {seconds}")
        job.wait_output("ready", count=4)
        return job

    def expect_quiet(self, *jobs, gaps=False):
        """They end as they like, and nobody was found missing on the way. `gaps`: nor for good."""
        for job in jobs:
            result = self.expect(job.wait(60), 0)
            self.expect_none_lost(result)
            if not gaps:
                self.expect_not_said(result, r"\blost\b|no heartbeat")


class Weather(Quiet):

    def test_a_fifth_of_all_packets_is_lost(self):
        # TCP waits twice as long after each loss of the same segment: five in a row are 6 s
        jobs = [self.nap(20), self.nap(20, "--node-timeout", 10)]  # the first one waits for the second to come up
        self.rig.loss(20)
        time.sleep(14)
        for job in jobs:
            self.assertIsNone(job.popen.poll(), job.describe())
        self.rig.rules.clear()
        self.rig.add_rules()
        self.expect_quiet(*jobs, gaps=True)  # 5 s without a heartbeat are possible, and told then

    def test_a_busy_machine(self):
        jobs = [self.nap(8), self.nap(8, "--node-timeout", 5)]
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(BUSY)]
        try:
            self.expect_quiet(*jobs, gaps=True)
        finally:
            for one in busy:
                one.kill()
                one.wait()

    def test_stalls(self):
        # of the driver of one job and of an agent of another, for three fifths of the limit
        stalled = self.nap(24, "--node-timeout", 15)
        other = self.nap(24, "--node-timeout", 15, hosts="node3:2,node4:2")
        agent = self.host(4).agent()
        stalled.signal(signal.SIGSTOP)
        freeze(agent)
        time.sleep(9)
        stalled.signal(signal.SIGCONT)
        thaw(agent)
        self.expect_quiet(stalled)
        self.expect_quiet(other, gaps=True)  # a gap of 5 s is told

    def test_the_cable_is_out_for_a_moment(self):
        job = self.nap(8)
        self.host(2).cut()
        time.sleep(6)
        job.wait_output(r"node2: no heartbeat for \d", name="stderr")
        self.host(2).heal()
        job.wait_output(r"node2: answers again", name="stderr")
        result = self.expect(job.wait(60), 0)
        self.expect_not_said(result, r"was lost|node1: ")

    def test_a_flood_on_a_slow_link(self):
        # more output than the link carries: heartbeats get through, and so does the news of both hosts
        self.host(2).slow("10mbit")
        for failing in (0, 1):
            gate = self.box.path(f"gate{failing}")
            job = self.ssh_start("--node-timeout", 8, "--grace", 1, "-H", "node1:1,node2:2",
                                 "-np", 2, worker("exit_with"), "--gate", gate, f"{failing}:7", ":",
                                 "-np", 1, worker("spew"), "--rank", 2, "--for-ever")
            wait_until(lambda: len(job.pumps["stdout"].bytes()) > 1 << 20, "a megabyte of output", 30)
            time.sleep(10 if failing == 0 else 0.5)  # longer than the limit, or not
            self.assertIsNone(job.popen.poll(), job.output("stderr"))
            self.write(os.path.basename(gate), "")
            result = self.expect(job.wait(30), 7)
            self.expect_blame(result, failing, code=7, host=f"node{1 + failing}")
            self.expect_not_said(result, r"\blost\b|no heartbeat")


class Order(Quiet):

    def two_failures(self, first, hosts="node1:1,node2:1"):
        """Two ranks die, one 50 ms after the other, while the driver cannot see it. The verdict."""
        names = [self.box.path(f"{name}{first}") for name in ("lock", "done", "go")]
        lock, done, go = names
        programs = {first: ["sh", "-c", LEADER, "sh", lock, go],
                    1 - first: ["sh", "-c", FOLLOWER, "sh", lock, done, go]}
        job = self.ssh_start("-H", hosts, "-np", 1, *programs[0], ":", "-np", 1, *programs[1])
        job.wait_output("held")
        job.wait_output("waiting")
        time.sleep(1.5)  # two heartbeats, of which the faster tells how the clocks differ
        job.signal(signal.SIGSTOP)
        self.write(os.path.basename(go), "")
        wait_until(lambda: os.path.exists(done), "both are dead")
        time.sleep(0.2)
        job.signal(signal.SIGCONT)
        result = self.expect(job.wait(), 137)
        self.expect_blame(result, first, signal_number=signal.SIGKILL, host=f"node{1 + first}")
        self.expect_not_said(result, "within .* of each other|at the same moment")

    def test_the_first_of_two_hosts(self):
        self.two_failures(0)
        self.two_failures(1)

    def test_the_clocks_have_nothing_to_do_with_each_other(self):
        if subprocess.run(["unshare", "--time", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("there are no time namespaces here")
        shifted = f"unshare --time --monotonic {AHEAD} --fork"
        self.host(2).server(2222, f'ForceCommand {shifted} /bin/sh -c "$SSH_ORIGINAL_COMMAND"')
        self.write_ssh_config("Host node2\n  Port 2222\n")
        self.write_known_hosts(self.read_known_hosts() + self.read_known_hosts().replace("node2,", "[node2]:2222,"))
        ahead = "import time; print(time.monotonic())"
        result = self.expect(self.ssh_job("-H", "node1:1,node2:1", "python3", "-I", "-S", "-c", ahead), 0)
        clocks = sorted(float(line.split(":")[-1]) for line in result.lines)
        self.assertGreater(clocks[1] - clocks[0], AHEAD - 60, f"the clock of node2 is as it was: {shlex.join(result.lines)}")
        self.two_failures(0)
        self.two_failures(1)


if __name__ == "__main__":
    main()
