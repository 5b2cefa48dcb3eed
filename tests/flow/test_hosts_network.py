# SPDX-License-Identifier: Apache-2.0
"""Which network the workers of several hosts use, and which doors the launcher opens on a host."""

import re
import socket

from ground import wait_until, worker
from hosts import Hosts, main, network
from procfs import process

NAMES = ("HOROVOD_GLOO_IFACE", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
FAST = {1: "ib0", 2: "mlx7"}  # the second interface of a host, by the host's number


def fast_address(number):
    return f"10.88.0.{10 + number}"


class Fast(Hosts):
    """node1 and node2 can have a second network, by interfaces of different names."""

    def plug_fast(self):
        network.call("ip", "link", "add", "fastbr", "type", "bridge")
        self.addCleanup(network.call, "ip", "link", "del", "fastbr")
        network.call("ip", "link", "set", "fastbr", "up")
        for number, name in FAST.items():
            network.call("ip", "link", "add", f"f{number}", "type", "veth", "peer", "name", name, "netns", f"rig{number}")
            self.addCleanup(network.call, "ip", "link", "del", f"f{number}")
            network.call("ip", "link", "set", f"f{number}", "master", "fastbr", "up")
            network.call("ip", "-n", f"rig{number}", "addr", "add", f"{fast_address(number)}/16", "dev", name)
            network.call("ip", "-n", f"rig{number}", "link", "set", name, "up")

    def found(self, *args, hosts="node1:1,node2:1"):
        """{rank: {variable: value}}, and what the ranks were told as MASTER_ADDR."""
        result = self.expect(self.ssh_job("-H", hosts, *args, worker("hello"), *NAMES, "MASTER_ADDR"), 0)
        values = {}
        for rank, name, value in re.findall(r"\[(\d+)\]<stdout>:(\w+)=(\S+)\n", result.stdout):
            values.setdefault(int(rank), {})[name] = value
        masters = {of_rank.pop("MASTER_ADDR") for of_rank in values.values()}
        self.assertEqual(len(masters), 1, result.describe())
        return values, masters.pop()

    def expect_fast(self, found):
        values, master = found
        for rank, name in enumerate(FAST.values()):
            self.assertEqual(values[rank], {variable: name for variable in NAMES})
        self.assertEqual(master, fast_address(1))


class Interfaces(Fast):

    def setUp(self):
        super().setUp()
        self.plug_fast()

    def test_by_default_the_one_we_came_by(self):
        values, master = self.found()
        self.assertEqual(master, self.host(1).address)
        for rank in (0, 1):
            self.assertEqual(values[rank], {name: "eth0" for name in NAMES})

    def test_by_names_of_both_hosts(self):
        self.expect_fast(self.found("--network-interface", "ib0,mlx7"))

    def test_by_patterns(self):
        self.expect_fast(self.found("--network-interfaces", "ib*,mlx*"))

    def test_by_network(self):
        self.expect_fast(self.found("--network-interfaces", "10.88.0.0/16"))

    def test_by_exclusion(self):
        self.expect_fast(self.found("--network-interfaces", "!eth0"))

    def test_a_host_without_such_an_interface_is_named(self):
        result = self.ssh_job("-H", "node1:1,node3:1", "--network-interfaces", "ib0", worker("hello"))
        self.assertNotEqual(result.status, 0)
        self.expect_said(result, r"node3 has no network interface that --network-interfaces allows; it has: [^\n]*eth0")

    def test_a_word_that_means_nothing(self):
        result = self.expect(self.ssh_job("-H", "node1:1", "--network-interfaces", "10.88.0.0/99", worker("hello")), 2)
        self.expect_said(result, "10.88.0.0/99")


class Bridges(Fast):
    """Of containers and guests: docker0 has the same address everywhere, virbr0 one of its own in a
    subnet that all hosts seem to share. Both came up before the second network."""

    def setUp(self):
        super().setUp()
        for number in FAST:
            host = self.host(number)
            self.addCleanup(host.run, "sh", "-c", "ip link del docker0; ip link del virbr0")
            host.run("sh", "-c", "for b in docker0 virbr0; do ip link add $b type bridge; ip link set $b up; done;"
                                 " ip addr add 172.17.0.1/16 dev docker0; ip addr add 169.254.7.7/16 dev virbr0;"
                                 f" ip addr add 192.168.122.{number}/24 dev virbr0")
        self.plug_fast()

    def test_they_are_ignored(self):
        values, master = self.found()
        self.assertEqual(master, self.host(1).address)
        self.assertEqual({name for of_rank in values.values() for name in of_rank.values()}, {"eth0"})

    def test_they_are_ignored_where_the_first_choice_is_excluded(self):
        self.expect_fast(self.found("--network-interfaces", "!eth0"))

    def test_unless_they_are_named(self):
        values, master = self.found("--network-interfaces", "virbr0")
        self.assertEqual(master, "192.168.122.1")
        self.assertEqual({name for of_rank in values.values() for name in of_rank.values()}, {"virbr0"})


class Doors(Hosts):

    def listeners(self, one):
        """(address, port) of all that listens in the network namespace of one process."""
        found = set()
        for table in ("net/tcp", "net/tcp6"):
            for line in one.read(table).decode().splitlines()[1:]:
                words = line.split()
                if words[3] == "0A":
                    address, port = words[1].split(":")
                    found.add((address, int(port, 16)))
        return found

    def test_nothing_of_ours_listens_but_on_loopback(self):
        gate, let_go = self.box.gate()
        job = self.ssh_start("-H", "node1:2,node2:2", worker("hang"), "--until", gate)
        job.wait_output("ready", count=4)
        loopback = "0100007F"
        for number in (1, 2):
            agent = self.host(number).agent()
            found = {(address, port) for address, port in self.listeners(agent) if port != 22}
            self.assertEqual({address for address, _ in found}, {loopback}, found)
            port = int(self.host(number).workers()[2 * (number - 1)].environ()["HOROVOD_GLOO_RENDEZVOUS_PORT"])
            self.assertIn((loopback, port), found)
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection((self.host(number).address, port), 5)
        self.assertEqual(self.listeners(process(job.popen.pid)), set())
        let_go()
        self.expect(job.wait(), 0)

    def test_the_rendezvous_of_one_host_is_not_for_another(self):
        gate, let_go = self.box.gate()
        job = self.ssh_start("-H", "node1:1", worker("hang"), "--until", gate)
        worker_there = wait_until(lambda: self.host(1).workers().get(0), "the worker")
        port = worker_there.environ()["HOROVOD_GLOO_RENDEZVOUS_PORT"]
        probe = ("import socket, sys\ntry: socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)\n"
                 "except ConnectionRefusedError: print('refused')\nelse: print('open')")
        self.assertEqual(self.host(2).run("/usr/bin/python3", "-c", probe, self.host(1).address, port), "refused\n")
        self.assertEqual(self.host(1).run("/usr/bin/python3", "-c", probe, "127.0.0.1", port), "open\n")
        let_go()
        self.expect(job.wait(), 0)


if __name__ == "__main__":
    main()
