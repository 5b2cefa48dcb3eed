# SPDX-License-Identifier: Apache-2.0
"""MPI, Horovod, torch and JAX over several hosts: unmodified programs find each other."""
# ctest waits
# ctest long
# ctest plain

import re
import signal
import subprocess

from ground import mpi_worker, nightly, sanitized, worker
from hosts import Hosts, main, network

KINDS = ("openmpi", "mpich")
# Debian's MPICH 4.0.2 (over UCX) now and then spins in MPI_Finalize between hosts, under its own
# launcher too (2 of 8 runs of mpi_hello): of it is asked that all ranks say what they found out.
FINALIZES_IN_MS = 5000
SURE_TO_END = ("openmpi",)
# more ranks than cores, and no complaint about it
QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_mpi_yield_when_idle": "1"}
PYTHON = "/usr/bin/python3"  # the one that Debian's python3-torch belongs to

GLOO = """
import datetime, os, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
value = torch.full((1000,), float(dist.get_rank() + 1))
dist.all_reduce(value)
print("rank", dist.get_rank(), "of", dist.get_world_size(), "sum", int(value[7]), flush=True)
dist.destroy_process_group()
"""


class Mpi(Hosts):

    def where(self, hosts, slots=2):
        return ",".join(f"node{number}:{slots}" for number in range(1, hosts + 1))

    def mpi(self, *args, **options):
        return self.ssh_job(*args, env=QUIET, timeout=120, **options)

    def world(self, kind, *args):
        limit = ("--timeout", f"{FINALIZES_IN_MS}ms") if kind not in SURE_TO_END else ()
        return self.mpi(*limit, *args)

    def expect_world(self, result, size, kind):
        if kind in SURE_TO_END or result.status != 124:
            self.expect(result, 0)
        self.expect_lines(result, [f"[{r}]<stdout>:rank {r} of {size} sum {size * (size - 1) // 2}" for r in range(size)])

    def test_hello_on_two_and_four_hosts(self):
        for kind in KINDS:
            for hosts in (2, 4):
                with self.subTest(kind=kind, hosts=hosts):
                    self.expect_world(self.world(kind, "-H", self.where(hosts), mpi_worker("mpi_hello", kind), 5),
                                      2 * hosts, kind)

    def test_uneven_hosts(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.expect_world(self.world(kind, "-H", "node1:1,node2:3", mpi_worker("mpi_hello", kind)), 4, kind)

    def test_ranks_round_the_hosts(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.expect_world(self.world(kind, "--map-by", "node", "-H", "node1:3,node2:2",
                                             mpi_worker("mpi_hello", kind), 5), 5, kind)

    def test_ranks_that_spawn_others(self):
        """Children on both hosts talk with rank 0, and worlds that know only a name of each other meet."""
        place = ("--map-by", "node", "-H", "node1:3,node2:3", "-np", 2, mpi_worker("mpi_worlds", "openmpi"))
        result = self.expect(self.mpi(*place, "talk", 3), 0)
        self.assertIn("[0]<stdout>:parent heard 6 from 3 children", result.lines, result.describe())
        self.assertIn("[1.2]<stdout>:child 2 of 3 with 2 parents got 102", result.lines, result.describe())
        result = self.expect(self.mpi(*place, "names", 2), 0)
        self.assertIn("[1.0]<stdout>:server got 77", result.lines, result.describe())

    def test_ranks_that_spawn_others_on_another_host(self):
        place = ("-H", "node1:1,node2:3", "--idle-hosts", "-np", 1, "--label", "%r@%h ")
        result = self.expect(self.mpi(*place, mpi_worker("mpi_worlds", "openmpi"), "talk", 3), 0)
        self.assertIn("0@node1 parent heard 6 from 3 children", result.lines, result.describe())
        self.assertIn("1.2@node2 child 2 of 3 with 1 parents got 102", result.lines, result.describe())

    def test_messages_large_and_small(self):
        for kind in SURE_TO_END:
            for size, count in ((1 << 10, 20), (4 << 20, 2)):
                with self.subTest(kind=kind, size=size):
                    result = self.mpi("-H", self.where(2), mpi_worker("mpi_ring", kind), size, count)
                    self.expect_lines(self.expect(result, 0), ["[0]<stdout>:ring of 4 ok"])

    def test_publish_and_lookup_between_hosts(self):
        for kind in SURE_TO_END:
            with self.subTest(kind=kind):
                result = self.expect(self.mpi("-H", "node1:1,node2:2", mpi_worker("mpi_publish", kind)), 0)
                self.expect_lines(result, ["[1]<stdout>:rank 1 found the port", "[2]<stdout>:rank 2 found the port",
                                           "[2]<stdout>:rank 2 gone"])

    def test_abort(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                result = self.expect(self.mpi("-H", self.where(2), mpi_worker("mpi_abort", kind), 3, 7, "told\n"), 7)
                for rank in range(4):
                    self.assertIn(f"[{rank}]<stdout>:told", result.lines, result.describe())
                self.expect_said(result, r"\brank 3\b.*abort.*\b7\b|abort.*\brank 3\b.*\b7\b")
                self.wait_no_workers()

    def test_death_in_and_after_init(self):
        for kind in KINDS:
            for when in ("in", "after"):
                with self.subTest(kind=kind, when=when):
                    result = self.mpi("-H", self.where(2), "--grace", 2, mpi_worker("mpi_die", kind), when, 2, 6)
                    self.expect_blame(self.expect(result, 6), 2, code=6, host="node2")

    @nightly("jobs on one host tell it every day")
    def test_a_rank_that_has_left(self):
        """It has exited with 0 without MPI_Finalize: the job ends, unless the others may yet go on. Hosts may have no ranks."""
        jobs = [self.ssh_start(*where, "--grace", 2, mpi_worker("mpi_left", kind), "barrier", 0, env=QUIET)
                for kind in KINDS for where in (("-H", self.where(2)), ("-np", 4, "-H", self.where(3)),
                                                ("-np", 4, "-H", self.where(3), "--idle-hosts"))]
        for job in jobs:
            self.expect_said(self.expect(job.wait(240), 119), "rank 3 has exited with 0 without MPI_Finalize, and all ranks that run have "
                                                              "waited for 60 s: ranks 0-2 in MPI_Barrier")

    @nightly("unit tests count the data")
    def test_a_large_message_after_a_rank_has_left(self):
        self.host(1).slow()
        jobs = {kind: self.ssh_start("-H", "node1:1,node2:2", mpi_worker("mpi_left", kind), "large", 100, env=QUIET) for kind in KINDS}
        for kind, job in jobs.items():
            with self.subTest(kind=kind):
                result = self.expect(job.wait(400), 0)
                self.expect_said(result, "rank 2 has exited with 0 without MPI_Finalize")
                self.assertIn("[0]<stdout>:done", result.lines)

    def test_local_host_and_a_remote_one(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.expect_world(self.world(kind, "-H", "launcher:2,node1:2", mpi_worker("mpi_hello", kind)), 4, kind)

    def test_two_agents_that_share_a_kernel(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.expect_world(self.world(kind, "-H", "a:2,b:2", "--transport", "local", mpi_worker("mpi_hello", kind)), 4, kind)

    def test_two_names_of_one_host(self):
        self.rig.alias(1, ["twin-a", "twin-b"])
        self.write_known_hosts(self.read_known_hosts().replace("node1,", "twin-*,node1,"))
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.expect_world(self.world(kind, "-H", "twin-a:2,twin-b:2", mpi_worker("mpi_hello", kind)), 4, kind)


class Horovod(Hosts):

    def train(self, hosts, slots, *args):
        size = hosts * slots
        where = ",".join(f"node{number}:{slots}" for number in range(1, hosts + 1))
        result = self.expect(self.ssh_job("-H", where, worker("horovod_worker"), *args, timeout=120), 0)
        sums = re.findall(r"rank (\d+) of (\d+): sum (\d+)", result.stdout)
        self.assertEqual(sorted((int(r), int(n), int(s)) for r, n, s in set(sums)),
                         [(r, size, size * (size - 1) // 2) for r in range(size)], result.describe())

    def test_four_hosts(self):
        self.train(4, 2)

    def test_init_again(self):
        self.train(2, 2, "--reinit", 2)

    def test_64_ranks_on_four_hosts(self):
        if sanitized():
            self.skipTest("64 ranks are too many under sanitizers")
        self.train(4, 16)

    def test_death_of_one(self):
        result = self.ssh_job("-H", "node1:2,node2:2", worker("horovod_worker"), "--exit-rank", 3, "--exit-code", 9)
        self.expect_blame(self.expect(result, 9), 3, code=9, host="node2")

    def test_death_before_the_first_address(self):
        result = self.ssh_job("-H", "node1:2,node2:2", worker("horovod_worker"), "--die-before-put", 3)
        self.assertEqual(result.status, 128 + signal.SIGKILL, result.describe())
        self.expect_blame(result, 3, host="node2")

    def test_the_rendezvous_is_on_loopback(self):
        result = self.expect(self.ssh_job("-H", "node1:1,node2:1", worker("hello"), "HOROVOD_GLOO_RENDEZVOUS_ADDR"), 0)
        self.assertEqual(result.stdout.count("HOROVOD_GLOO_RENDEZVOUS_ADDR=127.0.0.1\n"), 2, result.describe())


class Network(Hosts):

    NAMES = ("HOROVOD_GLOO_IFACE", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")

    def interfaces(self, *args, hosts="node1:1,node2:1"):
        """{rank: {variable: value}}"""
        result = self.expect(self.ssh_job("-H", hosts, *args, worker("hello"), *self.NAMES), 0)
        found = {}
        for rank, name, value in re.findall(r"\[(\d+)\]<stdout>:(\w+)=(\S+)\n", result.stdout):
            found.setdefault(int(rank), {})[name] = value
        return found

    def test_the_one_that_leads_to_the_other_hosts(self):
        # a bridge with an address of its own, as docker makes, and one that leads nowhere
        self.host(1).run("sh", "-c", "ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0;"
                                     " ip link set docker0 up; ip link add aaa0 type bridge;"
                                     " ip addr add 192.168.9.1/24 dev aaa0; ip link set aaa0 up")
        try:
            found = self.interfaces()
        finally:
            self.host(1).run("sh", "-c", "ip link del docker0; ip link del aaa0")
        for rank in (0, 1):
            self.assertEqual(found[rank], {name: "eth0" for name in self.NAMES})

    def test_names_may_differ_between_hosts(self):
        self.host(2).run("sh", "-c", "ip link set eth0 down; ip link set eth0 name ib7; ip link set ib7 up")
        try:
            found = self.interfaces()
        finally:
            self.host(2).run("sh", "-c", "ip link set ib7 down; ip link set ib7 name eth0; ip link set eth0 up")
        self.assertEqual([found[0]["GLOO_SOCKET_IFNAME"], found[1]["GLOO_SOCKET_IFNAME"]], ["eth0", "ib7"])

    def test_the_users_choice(self):
        found = self.interfaces("--network-interface", "lo,eth0")
        self.assertIn(found[0]["NCCL_SOCKET_IFNAME"], ("eth0", "lo,eth0"))

    def test_master_and_coordinator_addresses(self):
        names = ("MASTER_ADDR", "MASTER_PORT", "JAX_COORDINATOR_ADDRESS")
        result = self.expect(self.ssh_job("-H", "node1:1,node2:1", worker("hello"), *names), 0)
        address = self.host(1).address
        for rank in (0, 1):
            port = re.search(rf"\[{rank}\]<stdout>:MASTER_PORT=(\d+)", result.stdout).group(1)
            self.assertRegex(result.stdout, rf"\[{rank}\]<stdout>:MASTER_ADDR=({re.escape(address)}|node1)\n")
            coordinator = re.search(rf"\[{rank}\]<stdout>:JAX_COORDINATOR_ADDRESS=(\S+):(\d+)\n", result.stdout)
            self.assertIn(coordinator.group(1), (address, "node1"))
            self.assertNotEqual(coordinator.group(2), port)

    def test_rank_0_on_the_launchers_host(self):
        # what the others are told must not be 127.0.0.1
        result = self.expect(self.ssh_job("-H", "launcher:1,node1:1", worker("hello"), "MASTER_ADDR"), 0)
        self.assertRegex(result.stdout, rf"\[1\]<stdout>:MASTER_ADDR=({re.escape(network.LAUNCHER)}|launcher)\n")


class Torch(Hosts):

    def setUp(self):
        super().setUp()
        known = subprocess.run([PYTHON, "-c", "import torch.distributed as d, sys; sys.exit(not d.is_gloo_available())"],
                               capture_output=True, check=False)
        if known.returncode != 0:
            self.skipTest("no python3-torch with gloo on this machine")

    def test_gloo_on_two_hosts(self):
        path = self.write("gloo.py", GLOO)
        result = self.ssh_job("-H", "node1:1,node2:1", PYTHON, path, env={"OMP_NUM_THREADS": "1"}, timeout=120)
        self.expect(result, 0)
        self.expect_lines(result, [f"[{r}]<stdout>:rank {r} of 2 sum 3" for r in (0, 1)])


if __name__ == "__main__":
    main()
