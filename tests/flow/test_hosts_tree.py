# SPDX-License-Identifier: Apache-2.0
"""--tree-from over SSH: agents connect to each other with TLS, and do without where they cannot."""
# ctest waits
# ctest plain

import json
import re
import subprocess

from ground import wait_until, worker
from hosts import Hosts, main
from network import LAUNCHER, address

HOSTS = [f"node{number}" for number in range(1, 7)]  # node1 and node2 are below the driver; the others below these
PAIRS = {3: 1, 4: 1, 5: 2, 6: 2}


class Tree(Hosts):
    count = 7

    def words(self, *more):
        return ("-H", ",".join(HOSTS), "--tree-from", 4, "--report", self.box.path("report.json"), "-v", *more)

    def tree(self):
        with open(self.box.path("report.json"), encoding="utf-8") as file:
            return json.load(file).get("tree")

    def start_below(self, *words):
        """Fences begin when the caller lets them, and agents are below others."""
        gate, let_go = self.box.gate()
        job = self.ssh_start(*self.words(*words, "--mpi=pmix", "sh", "-c",
                                         f"until [ -e {gate} ]; do sleep 0.1; done; exec {worker('mpi_fence')} 3 4096 random"))
        job.wait_output(r"hvdrun: 4 of 6 agents are below others", name="stderr", timeout=60)
        return job, let_go

    def test_fences(self):
        job, let_go = self.start_below()
        let_go()
        self.expect(job.wait(60), 0)
        tree = self.tree()
        self.assertEqual((tree["hosts"], tree["through_others"]), (6, 4))
        self.assertGreater(tree["frames"], 0)

    def run_alone(self, *says, until=None):
        """Agents have tried to connect before the fences begin. These do without, and nothing was lost on the way."""
        gate, let_go = self.box.gate()
        job = self.ssh_start(*self.words("--mpi=pmix", "sh", "-c",
                                         f"until [ -e {gate} ]; do sleep 0.1; done; exec {worker('mpi_fence')} 3 4096 random"))
        if until is None:
            job.wait_output("hvdrun: 0 of 6 agents are below others", name="stderr", timeout=60)
        else:
            until()
        let_go()
        result = job.wait(120)
        self.expect(result, 0)
        for text in says:
            self.assertEqual(len(re.findall(text, result.stderr)), 1, result.describe())
        self.assertEqual({key: self.tree()[key] for key in ("hosts", "through_others", "again")},
                         {"hosts": 6, "through_others": 0, "again": 0})

    def drop(self, rule):
        """Of what goes between hosts. Returns what waits until something was dropped."""
        self.rig.add_rules(f"ip saddr != {LAUNCHER} ip daddr != {LAUNCHER} {rule} counter drop")
        self.rig.silence = True

        def dropped():
            rules = subprocess.run(["nft", "list", "table", "bridge", "rig"], stdout=subprocess.PIPE, check=True, text=True).stdout
            return any(int(packets) > 0 for packets in re.findall(r"counter packets (\d+)", rules))

        return lambda: wait_until(dropped, "a packet that is dropped", 60)

    def test_some_hosts_do_not_reach_others(self):
        for below, above in PAIRS.items():
            if above == 1:
                self.rig.one_way(below, above)
        result = self.ssh_job(*self.words("--mpi=pmix", worker("mpi_fence"), 3, 4096, "random"), timeout=120)
        self.expect(result, 0)
        self.assertEqual(self.tree()["hosts"], 6)
        self.assertLessEqual(self.tree()["through_others"], 2)

    def test_a_firewall_that_drops(self):
        self.run_alone(until=self.drop("tcp flags & (syn | ack) == syn"))

    def test_a_firewall_that_refuses(self):
        """-v says so in one line for all."""
        for number in range(1, 7):
            self.host(number).refuse("!= 22 iifname eth0 tcp flags & (syn | ack) == syn")
        self.run_alone(r"node\d: not below another agent: Connection refused", "hvdrun: 0 of 6 agents are below others")

    def test_hosts_of_other_networks(self):
        for below, above in PAIRS.items():
            way = ("unreachable", address(above))
            self.host(below).run("ip", "route", "add", *way)
            self.addCleanup(self.host(below).run, "ip", "route", "del", *way)
        self.run_alone("node\\d: not below another agent: .*", "hvdrun: 0 of 6 agents are below others")

    def test_a_network_that_loses_large_packets(self):
        """Agents do not count as connected because small packets arrive."""
        self.run_alone(until=self.drop("ip length > 1200"))

    def test_ipv6(self):
        """The hosts know each other by IPv6 alone."""
        for number in range(1, 7):
            self.host(number).run("ip", "addr", "add", f"fd77::{number}/64", "dev", "eth0", "nodad")
            self.addCleanup(self.host(number).run, "ip", "addr", "del", f"fd77::{number}/64", "dev", "eth0")
        job, let_go = self.start_below("--network-interfaces", "fd77::/64")
        let_go()
        self.expect(job.wait(60), 0)
        self.assertEqual(self.tree()["through_others"], 4)
        self.assertGreater(self.tree()["frames"], 0)

    def test_a_cable_between_two_hosts_is_cut(self):
        """What is lost on that way comes on the other."""
        job, let_go = self.start_below("--node-timeout", "60s")
        self.rig.one_way(3, 1)
        self.rig.one_way(1, 3)
        let_go()
        self.expect(job.wait(120), 0)
        self.assertEqual(self.tree()["returned"], 1)
        self.assertGreater(self.tree()["again"], 0)


if __name__ == "__main__":
    main()
