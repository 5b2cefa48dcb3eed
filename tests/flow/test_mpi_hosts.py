# SPDX-License-Identifier: Apache-2.0
"""MPI over several simulated hosts: each has an agent and an MPI server, and the driver connects the servers."""
# ctest busy

import os
import pathlib
import re
import signal
import time

from hostile import lacks
from rig import HVDRUN, Flow, Job, main, mpi_worker, nightly, plain, sanitized, worker

KINDS = ("openmpi", "mpich")
QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
TWO = "a:2,b:2"
FOUR = "a:2,b:2,c:2,d:2"


class Hosts(Flow):

    left_timeout = 10

    def mpi(self, hosts, *args, **options):
        return self.run_job("-H", hosts, "--transport", "local", *args, env={**QUIET, **options.pop("env", {})},
                            timeout=120, **options)

    def expect_world(self, result, size):
        self.expect(result, 0)
        self.expect_lines(result, [f"[{r}]<stdout>:rank {r} of {size} sum {size * (size - 1) // 2}" for r in range(size)])


class World(Hosts):

    @nightly("test_who_shares_a_node_and_a_large_sum sums too")
    def test_one_world_over_two_and_four_hosts(self):
        for kind in KINDS:
            for hosts, size in ((TWO, 4), (FOUR, 8), ("a:1,b:1", 2)):
                self.expect_world(self.mpi(hosts, mpi_worker("mpi_hello", kind), 10), size)

    def test_nothing_is_said(self):
        for kind in KINDS:
            self.assertEqual(self.expect(self.mpi(TWO, mpi_worker("mpi_hello", kind)), 0).stderr, "")

    def expect_places(self, result, sizes):
        """Each rank shares a node with those of its host, and the sum over all came out right."""
        self.expect(result, 0)
        total, rank = sum(sizes), 0
        for size in sizes:
            for local in range(size):
                pattern = rf"^\[{rank}\]<stdout>:rank {rank} of {total}, {local} of {size} on "
                self.assertTrue(any(re.match(pattern, line) for line in result.lines), result.describe())
                rank += 1
        self.assertIn("[0]<stdout>:sum ok", result.lines, result.describe())

    def test_who_shares_a_node_and_a_large_sum(self):
        for kind in KINDS:
            self.expect_places(self.mpi(FOUR, mpi_worker("mpi_nodes", kind), 8), (2, 2, 2, 2))

    @plain
    def test_the_data_of_a_fence_is_in_the_driver_once(self):
        """40 hosts get 1.25 MiB each. The driver keeps them once, and not once for each host."""
        hosts = ",".join(f"h{number}:1" for number in range(40))
        if sanitized():
            self.skipTest("sanitizers use memory of their own")
        job = self.start("-H", hosts, "--transport", "local", "--mpi=pmix", "--mpi-compress", 0, worker("mpi_fence"), "stay", "32768")
        job.wait_output("there", count=40, timeout=120)
        peak = int(re.search(r"^VmHWM:\s+(\d+) kB$", pathlib.Path(f"/proc/{job.pid}/status").read_text(encoding="utf-8"), re.M)[1])
        job.signal(signal.SIGTERM)
        job.wait(120)
        self.assertLess(peak, 30 << 10, "KiB of the driver at its peak")

    @plain
    def test_what_a_fence_makes_the_driver_send(self):
        """20 hosts with 64 KiB each: all of it to all, or one result compressed, or what the ranks ask for, a 20th."""
        hosts = ",".join(f"h{number}:1" for number in range(20))
        whole = 20 * 20 * 65536
        for options, words, least, most in (((), ("random",), whole, 2 * whole), ((), (), 0, whole / 4),
                                            (("--mpi-direct", 0), ("random",), 19 * 65536, whole / 4)):
            job = self.start("-H", hosts, "--transport", "local", "--mpi=pmix", *options, worker("mpi_fence"), "stay", "65536", *words)
            job.wait_output("there", count=20, timeout=120)
            sent = int(re.search(r"^wchar: (\d+)$", pathlib.Path(f"/proc/{job.pid}/io").read_text(encoding="utf-8"), re.M)[1])
            job.signal(signal.SIGTERM)
            job.wait(120)
            self.assertTrue(least < sent < most, f"{options} {words}: {sent} bytes")

    def test_open_mpi_shares_memory_within_a_host_only(self):
        result = self.mpi(TWO, "-x", "OMPI_MCA_btl_base_verbose=100", mpi_worker("mpi_nodes", "openmpi"))
        self.expect(result, 0)
        used = re.findall(r"^\[(\d)\]<stderr>:.*Using (\w+) btl for send to \[\[\d+,\d+\],(\d)\]", result.stderr, re.M)
        want = [(str(a), "self" if a == b else "vader" if a // 2 == b // 2 else "tcp", str(b))
                for a in range(4) for b in range(4)]
        self.assertLessEqual(set(used), set(want), result.describe())
        self.assertTrue({how for _, how, _ in used} >= {"vader", "tcp"}, result.describe())

    def test_a_machine_without_a_network(self):
        """Loopback is its only interface, and Open MPI leaves that out unless it is told."""
        alone = ("unshare", "--user", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
        why = lacks(*alone, "true")
        if why:
            self.skipTest(f"cannot make a network without interfaces: {why}")
        for kind in KINDS:
            job = Job(self.box, [*alone, HVDRUN, "-H", TWO, "--transport", "local", mpi_worker("mpi_hello", kind)], env=QUIET)
            self.expect_world(job.wait(120), 4)

    def test_the_users_network_stays(self):
        for own in ("OMPI_MCA_btl_tcp_if_include=192.0.2.0/24", "OMPI_MCA_btl_tcp_if_exclude=192.0.2.0/24"):
            for how in ("-x", "inherited"):
                name, _, value = own.partition("=")
                result = self.mpi("a:1,b:1", *(("-x", own) if how == "-x" else ()), "env",
                                  env={} if how == "-x" else {name: value})
                found = [line.split(":", 1)[1] for line in self.expect(result, 0).lines if "btl_tcp_if" in line]
                self.assertEqual(found, [own, own], how)

    @nightly("flow.mapping has such layouts")
    def test_unequal_slots(self):
        for kind in KINDS:
            self.expect_places(self.mpi("a:3,b:1", mpi_worker("mpi_nodes", kind)), (3, 1))
            self.expect_places(self.mpi("a:1,b:3,c:2", mpi_worker("mpi_nodes", kind)), (1, 3, 2))

    def test_names_of_all_sorts(self):
        for kind in KINDS:
            for hosts in ("127.0.0.1:2,127.0.0.2:2", "n1.example.org:2,n2.example.org:2", "n01:1,n2:1,n10:1,x-7-y:1"):
                sizes = [int(word.rpartition(":")[2]) for word in hosts.split(",")]
                self.expect_places(self.mpi(hosts, mpi_worker("mpi_nodes", kind)), sizes)

    def test_messages(self):
        for kind in KINDS:
            for size, count in ((1 << 10, 20), (4 << 20, 3)):
                result = self.mpi(TWO, mpi_worker("mpi_ring", kind), size, count)
                self.expect_lines(self.expect(result, 0), ["[0]<stdout>:ring of 4 ok"])

    def test_mpmd(self):
        for kind in KINDS:
            program = mpi_worker("mpi_hello", kind)
            self.expect_world(self.mpi(TWO, "-np", 1, program, ":", "-np", 3, program), 4)

    def test_from_a_script(self):
        path = self.write("run", f'#!/bin/sh\nexec "{mpi_worker("mpi_hello", "openmpi")}"\n', 0o755)
        self.expect_world(self.mpi(TWO, path), 4)
        path = self.write("run2", f'#!/bin/sh\nexec "{mpi_worker("mpi_hello", "mpich")}"\n', 0o755)
        self.expect_world(self.mpi(TWO, "--mpi=pmi1", path), 4)

    def test_data_are_fetched_when_they_are_needed(self):
        env = {"OMPI_MCA_pmix_base_async_modex": "1", "OMPI_MCA_mpi_add_procs_cutoff": "0",
               "OMPI_MCA_pmix_base_collect_data": "0"}
        # one rank each: libpmix does not wait for what a rank of the same host has yet to commit, under mpirun neither
        result = self.mpi("a:1,b:1,c:1", mpi_worker("mpi_ring", "openmpi"), env=env)
        self.expect_lines(self.expect(result, 0), ["[0]<stdout>:ring of 3 ok"])


class OnDemand(Hosts):
    """Fences bring no data, so that ranks fetch what they need."""

    def test_open_mpi_with_all_and_with_spawned_ranks(self):
        hosts = ("a:2,b:2,c:2", "--mpi-direct", 0)
        result = self.expect(self.mpi(*hosts, mpi_worker("mpi_direct", "openmpi")), 0)
        self.expect_lines(result, [f"[{r}]<stdout>:all 6 ok" for r in range(6)])
        result = self.mpi(*hosts, "-np", 3, "--map-by", "node", mpi_worker("mpi_direct", "openmpi"), 3)
        self.expect_lines(self.expect(result, 0), [f"[{r}]<stdout>:all 6 ok" for r in (0, 1, 2, "1.0", "1.1", "1.2")])

    def test_clients(self):
        """Large values for many, values of two fences, and of a rank that has left."""
        for test in ("large", "rounds", "gone"):
            result = self.mpi(FOUR, "--mpi=pmix", "--timeout", 60, "--mpi-direct", 0, worker("mpi_pmix"), test, 4)
            self.expect_lines(self.expect(result, 0), [f"[{r}]<stdout>:rank {r} {test} ok" for r in range(8)])


class Names(Hosts):

    def test_publish_and_lookup(self):
        for kind in KINDS:
            for hosts in ("a:2,b:1", "a:1,b:1,c:1"):
                result = self.expect(self.mpi(hosts, mpi_worker("mpi_publish", kind)), 0)
                self.expect_lines(result, ["[1]<stdout>:rank 1 found the port", "[2]<stdout>:rank 2 found the port",
                                           "[2]<stdout>:rank 2 gone"])

    def test_connect_through_a_published_port(self):
        result = self.expect(self.mpi("a:1,b:1", mpi_worker("mpi_publish", "openmpi"), "connect"), 0)
        self.assertIn("[0]<stdout>:rank 0 met 41", result.lines, result.describe())
        self.assertIn("[1]<stdout>:rank 1 met 40", result.lines, result.describe())


class Client(Hosts):
    """A PMIx client without MPI asks for one thing after the other."""

    def test_conversations(self):
        for test in ("publish", "timeout", "modex", "fetch", "some", "keys", "query", "group", "connect", "notify",
                     "large", "silent", "told", "rounds", "change", "gone"):
            for hosts, nodes, size in (("a:1,b:1", 2, 2), (FOUR, 4, 8)):
                with self.subTest(test=test, hosts=hosts):
                    result = self.mpi(hosts, "--mpi=pmix", "--timeout", 60, worker("mpi_pmix"), test, nodes)
                    self.expect(result, 0)
                    self.expect_lines(result, [f"[{r}]<stdout>:rank {r} {test} ok" for r in range(size)])

    def test_a_limit_of_one_of_two_ranks_that_wait(self):
        result = self.mpi(TWO, "--mpi=pmix", "--timeout", 60, worker("mpi_pmix"), "patience", 2)
        self.expect_lines(self.expect(result, 0), [f"[{r}]<stdout>:rank {r} patience ok" for r in range(4)])

    def test_groups_carry_data(self):
        """What their members have put, and their local ids, without a fence."""
        for test in ("data", "many", "halves", "plain", "large"):
            for hosts, size in (("a:1,b:1", 2), ("a:3,b:1", 4)):
                with self.subTest(test=test, hosts=hosts):
                    result = self.mpi(hosts, "--mpi=pmix", "--timeout", 60, worker("mpi_group"), test)
                    self.expect_lines(self.expect(result, 0), [f"[{r}]<stdout>:rank {r} {test} ok" for r in range(size)])

    def test_groups_of_one_name(self):
        """They have different members, on different hosts: libpmix mixes up those of one host."""
        result = self.mpi("a:1,b:1,c:1,d:1", "--mpi=pmix", "--timeout", 60, worker("mpi_group"), "same")
        self.expect_lines(self.expect(result, 0), [f"[{r}]<stdout>:rank {r} same ok" for r in range(4)])

    def test_a_member_of_a_group_dies_before_it_is_made(self):
        result = self.mpi("a:1,b:1", "--mpi=pmix", "--timeout", 60, worker("mpi_group"), "die")
        self.expect(result, 128 + signal.SIGALRM)
        self.expect_blame(result, 0, signal_number=signal.SIGALRM)

    def test_a_rank_of_another_node_is_signalled(self):
        result = self.mpi("a:1,b:1", "--mpi=pmix", worker("mpi_pmix"), "control", 2)
        self.expect(result, 128 + signal.SIGUSR1)
        self.expect_blame(result, 1, signal_number=signal.SIGUSR1)

    def test_all_ranks_of_all_worlds_are_signalled(self):
        result = self.mpi("a:2,b:2", "--mpi=pmix", "--map-by", "node", "-np", 2, worker("mpi_pmix"), "every", 2)
        self.expect_lines(self.expect(result, 0), ["[0]<stdout>:rank 0 every ok", "[1]<stdout>:rank 1 every ok",
                                                   "[1.0]<stdout>:rank 0 called ok", "[1.1]<stdout>:rank 1 called ok"])

    def test_the_end_of_a_rank_is_told_to_other_nodes(self):
        result = self.mpi("a:1,b:1,c:1", "--mpi=pmix", "--timeout", 60, worker("mpi_pmix"), "leave", 3)
        self.expect(result, 0)
        self.expect_lines(result, ["[0]<stdout>:rank 0 leave ok", "[2]<stdout>:rank 2 leave ok"])

    def test_abort(self):
        result = self.expect(self.mpi("a:1,b:1", "--mpi=pmix", worker("mpi_pmix"), "abort", 2), 5)
        self.expect_said(result, "rank 1.*abort.*5.*no more coal")


class Ends(Hosts):

    def test_abort_on_another_host(self):
        for kind in KINDS:
            for rank, code in ((3, 7), (0, 1)):
                result = self.expect(self.mpi(TWO, mpi_worker("mpi_abort", kind), rank, code), code)
                self.expect_said(result, rf"rank {rank}\b.*abort.*\b{code}\b")

    def test_death_before_in_and_after_init(self):
        for kind in KINDS:
            # right after MPI_Init others may still be in it: MPICH over UCX then aborts too, and which of
            # the two ends came first is for two agents on a busy machine to tell
            for when in ("before", "in", "late") + (("after",) if kind == "openmpi" else ()):
                result = self.mpi(TWO, "--grace", 2, mpi_worker("mpi_die", kind), when, 3, 6)
                self.expect(result, 6)
                self.expect_blame(result, 3, code=6, host="b")

    @plain
    def test_lost_agent(self):
        for kind in KINDS:
            job = self.start("-H", TWO, "--transport", "local", "--grace", 2, mpi_worker("mpi_hello", kind),
                             1_000_000_000, env=QUIET)
            workers = job.wait_workers(4)
            if not sanitized():
                time.sleep(0.5)  # they may be in MPI_Init or beyond it: either must end well
            os.kill(workers[2].ppid, signal.SIGKILL)
            result = self.expect(job.wait(), 121)
            self.expect_said(result, r"\bb\b.*lost")

    def test_interrupted(self):
        for kind in KINDS:
            job = self.start("-H", TWO, "--transport", "local", "--grace", 2, mpi_worker("mpi_hello", kind),
                             1_000_000_000, env=QUIET)
            job.wait_workers(4)
            os.kill(job.pid, signal.SIGINT)
            self.expect(job.wait(), 130)

    def test_a_rank_that_left_and_is_waited_for(self):
        for kind in KINDS:
            result = self.mpi("a:1,b:1", "--timeout", 8, "--grace", 0, mpi_worker("mpi_die", kind), "before", 1, 0)
            self.expect(result, 124)
            self.expect_said(result, r"rank 1 on b has exited, but MPI ranks on a wait")

    def test_a_host_without_mpi_is_told_of(self):
        for kind in KINDS:
            result = self.mpi("a:1,b:1", "--timeout", 2, "--grace", 0, "-np", 1, mpi_worker("mpi_hello", kind),
                              ":", "-np", 1, worker("hang"))
            self.expect(result, 124)
            self.expect_said(result, r"/hang does not use MPI and .*mpi_hello.* does")

    def test_two_mpi_families(self):
        result = self.mpi("a:1,b:1", "-np", 1, mpi_worker("mpi_hello", "openmpi"),
                          ":", "-np", 1, mpi_worker("mpi_hello", "mpich"))
        self.expect(result, 125)
        self.expect_said(result, "same MPI")


class WrongKind(Hosts):

    def test_mpich_under_pmix_is_noticed(self):
        path = self.write("slow", f'#!/bin/sh\n"{mpi_worker("mpi_ring", "mpich")}" 1048576 100000 &\nsleep 4\nkill $!\n'
                                  f'wait 2>/dev/null\nexit 0\n', 0o755)
        self.expect_said(self.mpi("a:1,b:1", path), "--mpi=pmi1")


if __name__ == "__main__":
    main()
