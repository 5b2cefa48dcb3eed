# SPDX-License-Identifier: Apache-2.0
"""--tree-from over SSH, with large values of MPI on 12 hosts, of which some are slow, lose packets, or are gone for a while."""
# ctest waits
# ctest plain

import json

from ground import worker
from hosts import Hosts, main
from network import LAUNCHER

HOSTS = 12  # node1 and node2 are below the driver, node3 and node4 below node1, node7 and node8 below node3


class Tree(Hosts):
    count = HOSTS + 1

    def start_below(self, rounds, size, pause_ms, *words, below=HOSTS - 2):
        """Each rank checks what the others have put. Fences begin when the caller lets them, and agents are below others."""
        gate, let_go = self.box.gate()
        job = self.ssh_start("-H", f"node[1-{HOSTS}]", "--tree-from", 2, "--report", self.box.path("report.json"), "-v", *words,
                             "--mpi=pmix", "--mpi-compress", 0, "sh", "-c",
                             f"until [ -e {gate} ]; do sleep 0.1; done; exec {worker('mpi_order')} {rounds} {size} {pause_ms}")
        job.wait_output(rf"hvdrun: {below} of {HOSTS} agents are below others", name="stderr", timeout=120)
        return job, let_go

    def expect_right(self, job, below=HOSTS - 2):
        """Every rank got what others had put, and most of it by way of others."""
        result = self.expect(job.wait(240), 0)
        self.assertEqual(len(result.lines), HOSTS)
        with open(self.box.path("report.json"), encoding="utf-8") as file:
            tree = json.load(file)["tree"]
        self.assertEqual((tree["hosts"], tree["through_others"]), (HOSTS, below))
        self.assertEqual(tree["frames"] > 0, below > 0)
        return tree

    def part_hosts(self):
        """From now on, agents reach the launcher only. Their connections get no end."""
        self.rig.add_rules(f"ip saddr != {LAUNCHER} ip daddr != {LAUNCHER} drop")
        self.rig.silence = True

    def expect_sums(self, job, rounds, size):
        """As with the star."""
        star = self.ssh_job("-H", f"node[1-{HOSTS}]", "--tree-from", 0, "--mpi=pmix", worker("mpi_order"), rounds, size, timeout=120)
        self.expect(star, 0)
        self.assertEqual(sorted(job.wait(1).lines), sorted(star.lines))

    def test_hosts_that_never_reach_each_other(self):
        self.part_hosts()
        job, let_go = self.start_below(6, 50_000, 0, below=0)
        let_go()
        tree = self.expect_right(job, below=0)
        self.assertEqual((tree["returned"], tree["again"]), (0, 0))
        self.expect_sums(job, 6, 50_000)

    def test_hosts_that_do_not_reach_each_other_any_more(self):
        """Each way is given up, also those below one that was."""
        job, let_go = self.start_below(20, 50_000, 300, "--node-timeout", "60s")
        let_go()
        job.wait_output("round 2$", name="stderr", timeout=120)
        self.part_hosts()
        tree = self.expect_right(job)
        self.assertEqual(tree["returned"], HOSTS - 2)
        self.assertGreater(tree["again"], 0)
        self.expect_sums(job, 20, 50_000)

    def test_a_slow_host(self):
        """Others are below it."""
        job, let_go = self.start_below(4, 300_000, 0)
        self.host(1).slow("20mbit")
        self.host(3).slow("10mbit")
        let_go()
        self.expect_right(job)

    def test_a_network_that_loses_packets(self):
        job, let_go = self.start_below(4, 300_000, 0)
        self.rig.loss(2)
        self.rig.loss(10, 3)
        let_go()
        self.expect_right(job)

    def test_a_host_that_is_cut_off_for_a_while(self):
        job, let_go = self.start_below(8, 50_000, 300, "--node-timeout", "60s")
        let_go()
        job.wait_output("round 2$", name="stderr", timeout=120)
        self.host(3).cut()
        job.wait_output("hvdrun: node3: no heartbeat for", name="stderr", timeout=60)
        self.host(3).heal()
        self.assertGreater(self.expect_right(job)["returned"], 0)

    def test_a_host_that_loses_its_power(self):
        """It is named, and none of those below it."""
        job, let_go = self.start_below(100, 50_000, 100, "--node-timeout", "6s")
        let_go()
        job.wait_output("round 2$", name="stderr", timeout=120)
        self.host(1).power_off()
        result = self.expect(job.wait(120), 121)
        self.expect_said(result, r"node node1 was lost")
        self.expect_not_said(result, r"node node([2-9]|1\d) was lost")
        self.wait_no_workers(*range(2, HOSTS + 1))

    def test_results_that_do_not_go_through_others(self):
        """More than 16 MiB."""
        job, let_go = self.start_below(2, 3_500_000, 0)
        let_go()
        self.expect_right(job)


if __name__ == "__main__":
    main()
