# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs on real hosts: crashes, power cuts, cables, and hosts that come back, also as another
machine under the same name."""
# ctest waits
# ctest long
# ctest plain

import os
import re
import signal

from elastic import Elastic
from ground import nightly, wait_until, worker
from hosts import Hosts, main

ALSO = "the same on simulated hosts: flow.elastic_horovod, flow.elastic_drain, and the simulator"


class ElasticHosts(Elastic, Hosts):

    gloo_timeout = 3
    where = ()

    def start_elastic(self, *args, **options):
        return self.ssh_start("--node-timeout", 3, *args, **options)

    def process_of(self, member):
        for one in self.host(int(member.host.removeprefix("node"))).processes():
            if re.search(rb"^NSpid:.*\t%d$" % member.pid, one.read("status"), re.M):
                return one.pid
        raise AssertionError(f"no such process on its host: {member}")

    def on(self, members, number):
        """The ranks on a host. The lowest are on the host that was up first, whichever that was."""
        return [rank for rank in sorted(members) if members[rank].host == f"node{number}"]

    def expect_survivors(self, before, after, ranks):
        kept = [(before[rank].host, before[rank].pid) for rank in ranks]
        now = [(after[rank].host, after[rank].pid) for rank in sorted(after)]
        self.assertEqual([one for one in now if one in kept], kept)


class Loss(ElasticHosts):

    @nightly(ALSO)
    def test_worker_killed(self):
        job = self.train("-H", "node1:2,node2:2", "--min-np", 2)
        before = job.members(4)
        job.kill(before[3])
        self.expect_survivors(before, job.members(4, but=before), (0, 1, 2))
        job.finish()

    def test_crash_and_return(self):
        job = self.train("-H", "node1:2,node2:2", "--min-np", 2)
        before = job.members(4)
        self.host(2).crash()
        two = job.members(2, but=before)
        self.expect_survivors(before, two, self.on(before, 1))
        self.host(2).power_on()
        self.expect_survivors(before, job.members(4, but=two, timeout=90), self.on(before, 1))
        result = job.finish()
        self.expect_said(result, r"epoch \d+: 2 ranks on 1 host \(lost node2\b.*; started after .*\)")

    def test_power_cut(self):
        job = self.train("-H", "node1:2,node2:2", "--min-np", 2)
        before = job.members(4)
        self.host(2).power_off()
        self.expect_survivors(before, job.members(2, but=before, timeout=60), self.on(before, 1))
        event = job.wait_event("epoch", cause="lost node2", size=2)
        self.assertIn("detect_s", event["phases"])
        job.finish()

    @nightly(ALSO)
    def test_power_cut_of_the_host_of_rank_0(self):
        job = self.train("-H", "node1:2,node2:2", "--min-np", 2)
        before = job.members(4)
        self.host(1).power_off()
        self.expect_survivors(before, job.members(2, but=before, timeout=60), self.on(before, 2))
        job.finish()

    @nightly(ALSO)
    def test_agent_killed(self):
        job = self.train("-H", "node1:2,node2:2", "--min-np", 2)
        before = job.members(4)
        os.kill(self.host(2).agent().pid, signal.SIGKILL)
        two = job.members(2, but=before)
        job.members(4, but=two, timeout=90)
        job.finish()

    def test_cable_out_and_in_again(self):
        # its workers end themselves; the host comes back as the same machine
        job = self.train("-H", "node1:2,node2:2", "--min-np", 2)
        before = job.members(4)
        self.host(2).cut()
        two = job.members(2, but=before, timeout=60)
        self.wait_no_workers(2, timeout=30)
        self.host(2).heal()
        after = job.members(4, but=two, timeout=90)
        self.expect_survivors(before, after, self.on(before, 1))
        for rank in self.on(before, 2):
            self.assertNotIn(before[rank].pid, [after[other].pid for other in self.on(after, 2)])
        job.finish()

    @nightly(ALSO)
    def test_all_hosts_gone_and_back(self):
        job = self.train("-H", "node1:2,node2:2", "--min-np", 2)
        before = job.members(4)
        self.host(1).crash()
        self.host(2).crash()
        self.pause(2)
        self.assertIsNone(job.popen.poll(), job.describe())
        self.host(1).power_on()
        self.host(2).power_on()
        job.members(4, but=before, timeout=120)
        job.finish()

    @nightly(ALSO)
    def test_flapping(self):
        job = self.train("-H", "node1:2,node2:2", "--min-np", 2)
        before = job.members(4)
        for _ in range(3):
            self.host(2).crash()
            self.pause(0.5)
            self.host(2).power_on()
            self.pause(1)
        self.expect_survivors(before, job.members(4, but=before, timeout=120), self.on(before, 1)[:1])
        job.finish(aborts=True)

    @nightly(ALSO)
    def test_lost_host_that_discovery_still_lists(self):
        job = self.train("-np", 4, "--min-np", 2, *self.discover("node1:2", "node2:2"))
        before = job.members(4)
        self.host(2).power_off()
        job.members(2, but=before, timeout=60)
        self.pause(3)  # it is called again and again, in vain
        self.assertIsNone(job.popen.poll(), job.describe())
        job.finish()


    def test_loss_of_packets_is_no_loss_of_a_host(self):
        # With 20 %, an agent sometimes hears nothing from hvdrun for five seconds, and gives up. It cannot look a
        # second time, as the driver does.
        job = self.ssh_start("--grace", 1, "-H", "node1:1,node2:1,node3:1,node4:1", "--min-np", 1,
                             "sh", "-c", "echo ready; exec sleep 30")
        job.wait_output("ready", count=4)
        self.rig.loss(10)
        self.pause(26)
        self.rig.rules.clear()
        self.rig.add_rules()
        result = self.expect(job.wait(60), 0)
        self.expect_none_lost(result)


class Change(ElasticHosts):

    @nightly(ALSO)
    def test_grows(self):
        job = self.train("-np", 2, "--min-np", 2, "--max-np", 6, *self.discover("node1:2"))
        before = job.members(2)
        self.set_hosts("node1:2", "node2:2", "node3:2")
        self.expect_survivors(before, job.members(6, timeout=60), self.on(before, 1))
        job.finish()

    @nightly(ALSO)
    def test_lost_host_is_replaced_by_another(self):
        job = self.train("-np", 4, "--min-np", 2, "--max-np", 4, *self.discover("node1:2", "node2:2"))
        before = job.members(4)
        self.host(2).power_off()
        self.set_hosts("node1:2", "node3:2")
        wait_until(lambda: [one.host for one in sorted(job.members(4).values(), key=lambda m: m.rank)] ==
                   ["node1", "node1", "node3", "node3"], "node3 takes the place of node2", 60)
        self.expect_survivors(before, job.members(4), self.on(before, 1))
        job.finish()

    @nightly(ALSO)
    def test_drain_by_sigterm(self):
        job = self.train("-np", 4, "--min-np", 2, *self.discover("node1:2", "node2:2"))
        before = job.members(4)
        os.kill(self.host(2).agent().pid, signal.SIGTERM)
        self.expect_survivors(before, job.members(2, but=before), self.on(before, 1))
        result = job.finish()
        self.assertNotRegex(result.stdout, r"\blost rank")

    def test_probe_on_one_host(self):
        probe = self.write("probe.sh", f"#!/bin/sh\n[ \"$(hostname)\" = node2 ] && [ -e '{self.box.path('notice')}' ]\n", 0o755)
        job = self.train("-H", "node1:2,node2:2", "--min-np", 2, "--preempt-probe", probe, "--preempt-period", "200ms")
        before = job.members(4)
        self.write("notice", "")
        self.expect_survivors(before, job.members(2, but=before, timeout=60), self.on(before, 1))
        result = job.finish()
        self.assertNotRegex(result.stdout, r"\blost rank")

    def test_unreachable_host_holds_nobody_up(self):
        self.host(3).drop()
        job = self.train("-np", 2, "--min-np", 2, "--max-np", 6, *self.discover("node1:2", "node3:2"))
        before = job.members(2, timeout=60)
        self.set_hosts("node1:2", "node3:2", "node2:2")
        self.expect_survivors(before, job.members(4, timeout=60), self.on(before, 1))
        job.finish()


class Driver(ElasticHosts):

    def test_killed(self):
        job = self.train("-H", "node1:2,node2:2", "--min-np", 2)
        job.members(4)
        job.signal(signal.SIGKILL)
        job.wait()
        self.wait_no_workers(1, 2, timeout=30)
        self.start_elastic("--min-np", 1, "-H", "node1:1", "true").wait() # sweeps the control socket of the dead one

    def test_its_own_host_shrinks(self):
        # the driver's host is one of the hosts; it goes on there without workers
        hosts = self.box.path("hosts")
        args = self.discover("node0:2", "node1:2")
        gate, let_go = self.box.gate("may-end")
        job = self.start_on(0, "-np", 4, "--min-np", 2, *args, worker("elastic_horovod"), "--steps", 60, "--until", gate)
        wait_until(lambda: job.output().count("epoch-round 1 ") == 4, "four ranks")
        self.assertTrue(os.path.exists(hosts))
        self.set_hosts("node1:2")
        wait_until(lambda: len(re.findall(r"epoch-round 2 rank \d/2 host node1", job.output())) == 2, "two ranks", 60)
        let_go()
        result = self.expect(job.wait(), 0)
        self.assertNotIn("VIOLATION", result.stdout + result.stderr)


if __name__ == "__main__":
    main()
