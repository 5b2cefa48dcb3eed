# SPDX-License-Identifier: Apache-2.0
"""`hvdrun check` in a Slurm job: all its nodes, reached as a job would reach them."""

import json

from ground import HVDRUN
from slurm import Slurm, main


class Check(Slurm):

    def test_the_nodes_of_the_allocation(self):
        result = self.expect(self.batch(f"{HVDRUN} check --json", "-N3"), 0)
        report = json.loads(result.stdout)
        self.assertEqual([host["name"] for host in report["hosts"]], ["node1", "node2", "node3"])
        self.assertEqual({host["host_key"] for host in report["hosts"]}, {None}, "no SSH between nodes")
        links = {(link["from"], link["to"]): link["outcome"] for link in report["connections"]}
        self.assertEqual(len(links), 6)
        self.assertEqual(set(links.values()), {"reached"})
        addresses = {host["address"] for host in report["hosts"]}
        self.assertEqual(addresses, {self.host(number).address for number in (1, 2, 3)})

    def test_a_table_with_speeds(self):
        result = self.expect(self.batch(f"{HVDRUN} check --net", "-N2"), 0)
        self.assertIn("network: 2 of 2 connections between hosts succeeded", result.stdout)
        self.assertRegex(result.stdout, r"\nnode1 +- +[\d.]+\nnode2 +[\d.]+ +-\n")

    def test_hosts_that_are_not_in_the_allocation(self):
        result = self.expect(self.batch(f"{HVDRUN} check -H node1,node3", "-w", "node1,node2"), 2)
        self.assertRegex(result.stderr, r"node3.*--scheduler")


if __name__ == "__main__":
    main()
