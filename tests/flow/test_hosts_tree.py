# SPDX-License-Identifier: Apache-2.0
"""--tree-from over SSH: agents connect to each other with TLS, and do without where they cannot."""
# ctest waits
# ctest plain

import json

from ground import worker
from hosts import Hosts, main

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
                                         f"until [ -e {gate} ]; do sleep 0.1; done; exec {worker('mpi_fence')} 3 4096"))
        job.wait_output(r"hvdrun: 4 of 6 agents are below others", name="stderr", timeout=60)
        return job, let_go

    def test_fences(self):
        job, let_go = self.start_below()
        let_go()
        self.expect(job.wait(60), 0)
        tree = self.tree()
        self.assertEqual((tree["hosts"], tree["through_others"]), (6, 4))
        self.assertGreater(tree["frames"], 0)

    def test_hosts_that_do_not_reach_each_other(self):
        """They go on without, and -v says so."""
        for below, above in PAIRS.items():
            if above == 1:
                self.rig.one_way(below, above)
        result = self.ssh_job(*self.words("--mpi=pmix", worker("mpi_fence"), 3, 4096), timeout=120)
        self.expect(result, 0)
        self.assertEqual(self.tree()["hosts"], 6)
        self.assertLessEqual(self.tree()["through_others"], 2)

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
