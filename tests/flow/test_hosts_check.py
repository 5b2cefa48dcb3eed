# SPDX-License-Identifier: Apache-2.0
"""`hvdrun check` on hosts: what is wrong with each of them, and with the network between them."""
# ctest waits
# ctest long
# ctest plain

import json
import re

from ground import wait_until
from hosts import Hosts, freeze, main, network, ssh_files


class Checks(Hosts):

    def check(self, hosts, *args, status=0, **options):
        return self.expect(self.run_job("check", *self.ssh_words(), "-H", hosts, *args, **options), status)

    def report(self, hosts, *args, status=0):
        return json.loads(self.check(hosts, "--json", *args, status=status).stdout)

    def line(self, result, host):
        lines = [line for line in result.lines if re.match(rf"{host} ", line)]
        self.assertTrue(lines, result.describe())
        return lines[0]

    def expect_problem(self, result, host, pattern):
        self.assertRegex(result.stdout, re.compile(rf"^problem: ([^:\n]*, )?{host}(,[^:\n]*)?: [^\n]*{pattern}", re.M),
                         result.describe())

    def expect_warning(self, result, host, pattern):
        self.assertRegex(result.stdout, re.compile(rf"^warning: ([^:\n]*, )?{host}(,[^:\n]*)?: [^\n]*{pattern}", re.M),
                         result.describe())

    def block(self, source, target):
        """From one host to the other no connection begins; what was begun from there goes on."""
        ends = [network.address(number) for number in (source, target)]
        self.rig.add_rules(f"ip saddr {ends[0]} ip daddr {ends[1]} tcp flags & (syn | ack) == syn drop")


class Reached(Checks):

    def test_all_is_well(self):
        result = self.check("node1,node2,node3")
        for number in (1, 2, 3):
            address = re.escape(self.host(number).address)
            self.assertRegex(self.line(result, f"node{number}"), rf"^node\d +(ok|warning) +known +{address} +eth0 ")
        self.assertIn("network: 6 of 6 connections between hosts succeeded", result.stdout)
        self.assertRegex(result.stdout, r"\non all hosts: hvdrun \d")
        self.assertLessEqual(max(len(line) for line in result.lines[:4]), 100)

    def test_the_same_twice(self):
        def stable(result):
            return [re.sub(r"[<+-]?\d[\d.]*( ms|[KMGT])?|  +", " ", line) for line in result.lines[:4]]
        self.assertEqual(stable(self.check("node3,node1,node2")), stable(self.check("node3,node1,node2")))

    def test_clocks_of_one_kernel_are_the_same(self):
        for host in self.report("node1,node2")["hosts"]:
            self.assertGreater(host["clock"]["error_s"], 0)
            self.assertLessEqual(abs(host["clock"]["offset_s"]), host["clock"]["error_s"] + 0.001, host["clock"])

    def test_login_and_host_key_in_json(self):
        host = self.report("node1")["hosts"][0]
        self.assertEqual(host["host_key"], "known")
        self.assertIn("SHA256:", host["login"])
        self.assertEqual(host["reached_by"], self.host(1).address)

    def test_an_unknown_host_key_is_added_and_told(self):
        self.write_known_hosts("")
        self.assertEqual(self.report("node1")["hosts"][0]["host_key"], "added")
        self.assertEqual(self.report("node1")["hosts"][0]["host_key"], "known")

    def test_nothing_listens_afterwards(self):
        self.check("node1,node2")
        for number in (1, 2):
            self.assertFalse(self.host(number).agents())


class Failing(Checks):

    def test_every_host_wrong_in_its_own_way_and_one_right(self):
        self.host(1).refuse()
        self.write_known_hosts(f"node2 {ssh_files.public(ssh_files.server_key('ed25519', 'other'))}\n" +
                               ssh_files.known_hosts_lines("node3") + ssh_files.known_hosts_lines("node4"))
        self.write_ssh_config(f"Host node3\n  IdentityFile {ssh_files.client_key(trusted=False)}\n  IdentitiesOnly yes\n"
                              f"Host node1 node2 node4 nowhere\n  IdentityFile {ssh_files.client_key()}\n",
                              identity=False)
        result = self.check("node1,node2,node3,nowhere,node4", status=125)
        for host, stage in (("node1", "connect"), ("node2", "host key"), ("node3", "auth"), ("nowhere", "resolve")):
            self.assertRegex(self.line(result, host), rf"^{host} +{stage}\b")
            self.expect_problem(result, host, f"{stage}: ")
        self.assertRegex(self.line(result, "node4"), r"^node4 +(ok|warning) ")
        self.assertRegex(result.lines[-1], r"^5 hosts: .*4 with problems; a job would not run$")
        self.assertEqual(result.stderr, "", result.describe())

    def test_a_silent_host_does_not_hold_the_others(self):
        self.host(1).drop()
        result = self.check("node1,node2", "--start-timeout", 3, status=125)
        self.expect_problem(result, "node1", "connect: ")
        self.assertRegex(self.line(result, "node2"), r"^node2 +(ok|warning) ")

    def test_a_host_that_hangs_in_the_middle(self):
        self.host(1).slow("200kbit")
        job = self.start("check", *self.ssh_words(), "-H", "node1,node2,node3", "--net", "--node-timeout", 4)
        freeze(wait_until(lambda: self.host(2).agents()[1:], "a keeper and its agent on node2")[-1])
        result = self.expect(job.wait(120), 125)
        self.assertRegex(self.line(result, "node2"), r"^node2 +(start|agent|lost)\b")
        self.expect_problem(result, "node2", "")

    def test_ctrl_c_while_a_host_is_silent(self):
        self.host(1).drop()
        job = self.start("check", *self.ssh_words(), "-H", "node1,node2")
        wait_until(lambda: self.host(2).agents(), "an agent on node2")
        job.signal(2)
        result = self.expect(job.wait(), 130)
        self.expect_problem(result, "node1", "connect: no answer before the check ended")


class Between(Checks):

    def test_one_direction_is_dropped(self):
        self.block(1, 2)
        result = self.check("node1,node2,node3", status=125)
        self.expect_problem(result, "node1", r"it cannot reach node2 at \S+, although the other direction works: no answer")
        self.assertEqual(result.stdout.count("problem: "), 1, result.describe())
        self.assertIn("network: 5 of 6 connections", result.stdout)

    def test_a_host_behind_a_firewall_is_one_finding(self):
        network.host_rules(3, ["tcp dport != 22 ct state new reject with tcp reset"])
        self.host(3).ruled = True
        result = self.check("node1,node2,node3,node4", status=125)
        self.expect_problem(result, "node3", r"none of 3 hosts can reach it at \S+: refused: most likely a firewall")
        self.assertEqual(result.stdout.count("problem: "), 1, result.describe())

    def test_a_host_without_a_route(self):
        self.host(2).run("ip", "route", "add", "unreachable", self.host(1).address)
        self.addCleanup(self.host(2).run, "ip", "route", "del", "unreachable", self.host(1).address)
        result = self.check("node1,node2,node3", status=125)
        self.expect_problem(result, "node2", r"it cannot reach node1 at \S+.*: no route")

    def test_an_address_that_is_used_twice(self):
        """node1's packets to node2 end at node1 itself: somebody refuses, or a stranger answers."""
        address = self.host(2).address
        self.host(1).run("ip", "addr", "add", f"{address}/32", "dev", "lo")
        self.addCleanup(self.host(1).run, "ip", "addr", "del", f"{address}/32", "dev", "lo")
        report = self.report("node1,node2,node3", status=125)
        bad = [(link["from"], link["to"]) for link in report["connections"] if link["outcome"] != "reached"]
        self.assertIn(("node1", "node2"), bad)

    def test_speed_of_a_slow_host(self):
        """The slow way has a limit that no luck can break; of the others only that they were measured."""
        self.host(1).slow("10mbit")
        report = self.report("node1,node2,node3", "--net")
        self.assertEqual(len(report["connections"]), 6)
        for link in report["connections"]:
            self.assertGreater(link["bits_per_s"], 0, link)
            if "node1" in (link["from"], link["to"]):
                self.assertLess(link["bits_per_s"], 20e6, link)

    def test_the_interface_that_is_asked_for(self):
        report = self.report("node1,node2", "--network-interfaces", "eth*")
        self.assertEqual([host["interface"] for host in report["hosts"]], ["eth0", "eth0"])


class State(Checks):

    def test_a_full_folder(self):
        self.host(1).fill_tmp()
        result = self.check("node1,node2")
        self.expect_warning(result, "node1", r"no space left in /tmp \(TMPDIR names the place\)")
        self.assertRegex(self.line(result, "node1"), "^node1 +warning")

    def test_a_folder_from_which_nothing_runs(self):
        self.host(1).mount_tmp("mode=1777,noexec")
        result = self.check("node1,node2")
        self.expect_warning(result, "node1", r"/tmp is mounted noexec")

    def test_little_shared_memory(self):
        host = self.host(1)
        host.run("mount", "-t", "tmpfs", "-o", "size=64m,mode=1777", "tmpfs", "/dev/shm")
        self.addCleanup(host.run, "umount", "/dev/shm")
        self.expect_warning(self.check("node1,node2"), "node1", r"/dev/shm holds only 64M: NCCL")

    def test_two_names_of_one_machine(self):
        self.rig.alias(1, ["other1"])
        self.write_known_hosts(self.read_known_hosts() + "".join(ssh_files.known_hosts_lines("other1")))
        result = self.check("node1,other1,node2")
        self.expect_warning(result, "other1", "it is the same machine as node1")
        self.assertNotRegex(result.stdout, r"warning: node2[^\n]*same machine")
        result = self.expect(self.ssh_job("-H", "node1,other1,node2", "true"), 0)
        self.expect_said(result, "other1 is the same machine as node1: the job uses its CPUs")
        self.expect_not_said(result, "node2 is")


if __name__ == "__main__":
    main()
