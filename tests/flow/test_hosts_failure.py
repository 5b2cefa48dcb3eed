# SPDX-License-Identifier: Apache-2.0
"""What happens when: each way in which a worker, an agent, a host, a network or the driver can fail.

After each of them, the exit status is the right one, and the error report names the host and the cause.
No worker remains on a host that can be reached, and a host that is cut off cleans up on its own. No
namespace has its own clock, so only the tests of model/liveness make the clock jump.
"""
# ctest waits
# ctest long
# ctest plain

import os
import re
import signal
import time

from ground import wait_until, worker
from hosts import Hosts, freeze, main, thaw

LOST = 121


class Failure(Hosts):

    timeout = 8  # --node-timeout, in seconds: a busy machine may keep a process waiting for some of them

    def train(self, *more, hosts="node1:2,node2:2", driver=None, count=None):
        """A job whose workers hang, once they all run."""
        args = ["--node-timeout", self.timeout, "--grace", 1, "-H", hosts, *more, worker("hang")]
        job = self.ssh_start(*args) if driver is None else self.start_on(driver, *args)
        job.wait_output("ready", count=count or sum(int(n) for n in re.findall(r":(\d+)", hosts)))
        return job

    def expect_lost(self, result, host, cause):
        """The block at the end: which host, why, how many of its ranks were running."""
        self.expect(result, LOST)
        self.expect_said(result, rf"{host}\b[^\n]*lost[^\n]*{cause}")
        self.expect_said(result, rf"{host}\b.*2 (of its )?ranks were running|2 .*ranks.*{host}\b")
        self.expect_not_said(result, r"rank \d+ (failed|exited with)")

    def expect_silence(self, job, host):
        result = job.wait(30)
        self.expect_lost(result, host, r"no heartbeat for \d+(\.\d+)? s")
        return result


class Worker(Failure):

    def test_death(self):
        job = self.train()
        os.kill(self.host(2).workers()[3].pid, signal.SIGKILL)
        result = self.expect(job.wait(), 137)
        self.expect_blame(result, 3, signal_number=signal.SIGKILL, host="node2")
        self.wait_no_workers()

    def test_a_stopped_worker_is_no_failure(self):
        job = self.train()
        stopped = self.host(2).workers()[3]
        freeze(stopped)
        time.sleep(self.timeout + 2)
        self.assertIsNone(job.popen.poll(), job.describe())
        thaw(stopped)
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 143)


class Agent(Failure):

    def test_killed(self):
        job = self.train()
        os.kill(self.host(2).agent().pid, signal.SIGKILL)
        self.expect_lost(job.wait(10), "node2", "")
        self.wait_no_workers()

    def test_keeper_killed(self):
        job = self.train()
        agent = self.host(2).agent()
        for one in self.host(2).agents():
            if one.pid != agent.pid:
                os.kill(one.pid, signal.SIGKILL)
        # whether the job goes on is the agent's affair; it must end, and clean
        job.signal(signal.SIGTERM)
        self.assertIn(job.wait(20).status, (LOST, 143))
        self.wait_no_workers()

    def test_frozen(self):
        job = self.train()
        agent = self.host(2).agent()
        freeze(agent)
        self.expect_silence(job, "node2")
        thaw(agent)
        self.wait_no_workers()

    def test_frozen_for_a_moment(self):
        job = self.train("--node-timeout", 10)
        agent = self.host(2).agent()
        freeze(agent)
        time.sleep(3)
        thaw(agent)
        time.sleep(1)
        self.assertIsNone(job.popen.poll(), job.describe())
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 143)

    def test_its_ssh_session_killed(self):
        job = self.train()
        for one in self.host(2).sessions():
            os.kill(one.pid, signal.SIGKILL)
        self.expect_lost(job.wait(10), "node2", "")
        self.wait_no_workers()


class Machine(Failure):

    def test_crash_is_noticed_before_any_silence(self):
        job = self.train("--node-timeout", 120)
        self.host(2).crash()
        self.expect_lost(job.wait(20), "node2", "")
        self.wait_no_workers(1)

    def test_power_cut(self):
        job = self.train()
        self.host(2).power_off()
        self.expect_silence(job, "node2")
        self.wait_no_workers(1)

    def test_power_cut_of_two(self):
        job = self.train(hosts="node1:1,node2:2,node3:2")
        self.host(2).power_off()
        self.host(3).power_off()
        result = self.expect(job.wait(30), LOST)
        self.expect_said(result, "node[23]\\b[^\n]*lost")
        self.wait_no_workers(1)

    def test_it_comes_back_and_the_next_job_runs_there(self):
        job = self.train()
        self.host(2).power_off()
        self.expect_silence(job, "node2")
        self.host(2).power_on()
        self.expect(self.ssh_job("-H", "node1:1,node2:1", worker("hello")), 0)


class Net(Failure):

    def test_cut_host_cleans_itself(self):
        job = self.train()
        self.host(2).cut()
        self.expect_silence(job, "node2")
        # nobody can tell it: it must notice by itself
        self.wait_no_workers(1, 2)

    def test_cut_and_healed_in_time(self):
        job = self.train("--node-timeout", 15)
        self.host(2).cut()
        time.sleep(3)
        self.host(2).heal()
        time.sleep(3)
        self.assertIsNone(job.popen.poll(), job.describe())
        self.assertEqual(len(self.host(2).workers()), 2)
        job.signal(signal.SIGTERM)
        result = self.expect(job.wait(), 143)
        self.expect_not_said(result, "counts as lost|was lost")

    def test_cut_and_healed_too_late(self):
        job = self.train()
        self.host(2).cut()
        self.expect_silence(job, "node2")
        self.host(2).heal()
        self.wait_no_workers()

    def test_suspect_before_lost(self):
        job = self.train("--node-timeout", 15)
        self.host(2).cut()
        job.wait_output(r"node2: no heartbeat for \d+\.\d s", name="stderr")
        self.assertIsNone(job.popen.poll(), job.describe())
        self.expect_silence(job, "node2")

    def test_one_way_to_the_host(self):
        job = self.train()
        self.rig.one_way(None, 2)
        self.expect_silence(job, "node2")
        self.wait_no_workers(1, 2)

    def test_one_way_from_the_host(self):
        job = self.train()
        self.rig.one_way(2, None)
        self.expect_silence(job, "node2")
        self.wait_no_workers(1, 2)

    def test_partition_between_workers_only_is_the_programs_affair(self):
        job = self.train()
        self.rig.one_way(1, 2)
        self.rig.one_way(2, 1)
        time.sleep(self.timeout + 2)
        self.assertIsNone(job.popen.poll(), job.describe())
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 143)

    def test_slow_link_is_no_failure(self):
        # output fills the link for longer than the limit: control frames and heartbeats still get through
        self.host(2).slow("4mbit")
        result = self.ssh_job("--node-timeout", self.timeout, "-H", "node1:1,node2:1", worker("spew"), "--lines", 7000,
                              "--length", 1000, "--rank", 1, timeout=90)
        self.expect(result, 0)
        self.assertEqual(len(result.lines), 7000)
        self.expect_not_said(result, "lost|no heartbeat")

    def test_loss_is_no_failure(self):
        job = self.train("--node-timeout", 10)
        self.rig.loss(20, 2)
        time.sleep(8)
        self.assertIsNone(job.popen.poll(), job.describe())
        self.rig.rules.clear()
        self.rig.add_rules()
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 143)


class Driver(Failure):

    def test_killed(self):
        job = self.train()
        job.signal(signal.SIGKILL)
        job.wait()
        self.wait_no_workers()

    def test_killed_while_hosts_come_up(self):
        self.host(3).drop()
        job = self.ssh_start("-v", "-H", "node1:1,node2:1,node3:1", worker("hang"))
        wait_until(lambda: self.host(1).agents() and self.host(2).agents(), "two agents")
        job.signal(signal.SIGKILL)
        job.wait()
        self.wait_no_workers()

    def test_frozen_for_a_moment_is_no_failure(self):
        job = self.train("--node-timeout", 14)
        job.signal(signal.SIGSTOP)
        time.sleep(7)
        job.signal(signal.SIGCONT)
        time.sleep(1.5)
        self.assertIsNone(job.popen.poll(), job.describe())
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 143)

    def test_frozen_for_too_long_blames_itself(self):
        job = self.train()
        job.signal(signal.SIGSTOP)
        self.wait_no_workers(timeout=self.timeout + 10)
        job.signal(signal.SIGCONT)
        result = self.expect(job.wait(), LOST)
        self.expect_said(result, r"node[12] was lost: hvdrun itself stood still for \d+\.\d s, and its agent there gave up")
        self.expect_not_said(result, "ssh session")

    def test_frozen_for_ever(self):
        job = self.train()
        job.signal(signal.SIGSTOP)
        self.wait_no_workers(timeout=self.timeout + 10)
        job.signal(signal.SIGKILL)
        job.wait()

    def test_power_cut_of_its_host(self):
        job = self.train(driver=0)
        self.host(0).power_off()
        job.wait()
        self.wait_no_workers(1, 2)

    def test_crash_of_its_host(self):
        job = self.train("--node-timeout", 120, driver=0)
        self.host(0).crash()
        job.wait()
        self.wait_no_workers(1, 2)

    def test_all_hosts_lost_at_once(self):
        # the driver's own cable
        job = self.train(driver=0)
        self.host(0).cut()
        result = self.expect(job.wait(30), LOST)
        self.expect_said(result, r"node[12]\b[^\n]*lost")
        self.wait_no_workers(1, 2)


class Both(Failure):

    def test_worker_death_and_host_loss_in_one_breath(self):
        job = self.train(hosts="node1:2,node2:2")
        os.kill(self.host(1).workers()[0].pid, signal.SIGSEGV)
        self.host(2).crash()
        result = job.wait(20)
        self.assertIn(result.status, (139, LOST), result.describe())
        self.wait_no_workers(1)

    def test_ctrl_c_while_a_host_is_silent(self):
        job = self.train("--node-timeout", 20)
        self.host(2).cut()
        job.signal(signal.SIGINT)
        job.signal(signal.SIGINT)
        # whichever counts as the first: the signal, or the host that was last heard of before it
        result = job.wait(30)
        self.assertIn(result.status, (130, LOST), result.describe())
        self.wait_no_workers(1)


if __name__ == "__main__":
    main()
