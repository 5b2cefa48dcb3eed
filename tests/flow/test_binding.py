# SPDX-License-Identifier: Apache-2.0
"""Binding to cores, GPUs and network adapters: what workers get on this machine, and what is planned on machines that
hwloc makes up (HWLOC_SYNTHETIC, HWLOC_XMLFILE), where nobody can be bound."""

import os
import re

from ground import SOURCE
from procfs import cpu_set
from rig import Flow, main, parse_self, worker

EIGHT_GPUS = {"HWLOC_XMLFILE": os.path.join(SOURCE, "tests/unit/node/data/eight_gpus.xml")}
TWO_BY_FOUR = {"HWLOC_SYNTHETIC": "package:2 [numa] l3:2 core:2 pu:2"}
NEAREST = ["mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11"]
LEGEND = "B bound, b partly, . free, x not available"


class Here(Flow):
    """Workers are really bound."""

    def cpus(self, *args, size=2, **options):
        self.result = self.expect(self.run_job("-np", size, *args, worker("self"), **options), 0)
        return [cpu_set(parse_self(self.result.stdout, rank)["Cpus_allowed_list"]) for rank in range(size)]

    def under(self, cpus):
        """What is started from now on may use these alone."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cpus)
        self.addCleanup(os.sched_setaffinity, 0, before)

    def test_every_unit_keeps_to_what_is_ours(self):
        one = {min(os.sched_getaffinity(0))}
        self.under(one)
        for args in (["--bind-to", "core"], ["--bind-to", "numa"], ["--bind-to", "l3"], ["--cpus-per-proc", 1],
                     ["--map-by", "numa"]):
            self.assertEqual(self.cpus(*args, size=3), [one] * 3, args)

    def test_all_cores_for_one(self):
        allowed = os.sched_getaffinity(0)
        found, = self.cpus("--cpus-per-proc", 100000, "--report-bindings", size=1)
        self.assertEqual(found, allowed)
        self.expect_said(self.result, "--cpus-per-proc 100000: a worker has fewer cores")
        first, second = self.cpus("--bind-to", "core", "--cpus-per-proc", 1)
        self.assertTrue(first and second and first | second <= allowed)
        self.expect_not_said(self.result, "fewer cores")

    def test_sharing_is_said_once(self):
        size = 2 * len(os.sched_getaffinity(0)) + 1
        self.cpus("--bind-to", "core", size=size)
        self.assertEqual(len(re.findall("share their cores", self.result.said)), 1, self.result.describe())
        self.cpus("--bind-to", "core", size=1)
        self.expect_not_said(self.result, "share")

    def test_threads_follow_the_binding(self):
        def threads(*args, size=1, **options):
            result = self.expect(self.run_job("-np", size, *args, worker("show_env"), **options), 0)
            return re.findall(r"^(?:\[\d+\]<stdout>:)?OMP_NUM_THREADS=(.*)$", result.stdout, re.M)
        none = {"OMP_NUM_THREADS": None}
        self.assertEqual(threads("--bind-to", "core", env=none), ["1"])
        self.assertEqual(threads("--bind-to", "core", size=3, env=none), ["1"] * 3)
        self.assertEqual(threads("--bind-to", "core", env={"OMP_NUM_THREADS": "7"}), ["7"])
        self.assertEqual(threads("--bind-to", "core", "-x", "OMP_NUM_THREADS=5", env=none), ["5"])

    def test_two_nodes_have_a_block_each(self):
        result = self.expect(self.run_job("--transport", "local", "-H", "one:1,two:1", "--bind-to", "core",
                                          "--report-bindings", "true"), 0)
        for rank, host in enumerate(("one", "two")):
            self.expect_said(result, rf"{host}: \d+ package.*; bound to: core; {re.escape(LEGEND)}")
            self.expect_said(result, rf"{host}: rank {rank}  CPUs \S+  (GPU \S+  )?\[")

    def test_no_gpu(self):
        hidden = {"CUDA_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
        result = self.expect(self.run_job("-np", 2, "--bind-to", "gpu", "true", env=hidden), 2)
        self.expect_said(result, "--bind-to gpu: no GPU was found on this host; use --bind-to numa")
        result = self.expect(self.run_job("-np", 2, "--gpus-per-proc", 1, "true", env=hidden), 123)
        self.expect_said(result, "--gpus-per-proc 1: no GPU was found")
        self.expect(self.run_job("-np", 2, "--nic-hints", "true", env=hidden), 0)

    def test_rankfile(self):
        allowed = sorted(os.sched_getaffinity(0))
        path = self.write("ranks", "rank 0=localhost slot=0\nrank 1=localhost slot=0:*\n")
        if allowed[0] != 0:
            self.skipTest("the first core is not ours")
        first, second = self.cpus("--rankfile", path)
        self.assertIn(0, first)
        self.assertTrue(first <= second <= set(allowed))
        path = self.write("far", "rank 0=localhost slot=4000\n")
        result = self.expect(self.run_job("--rankfile", path, "true"), 2)
        self.expect_said(result, "'4000': this host does not have all of these cores")


class MadeUp(Flow):
    """Plans for machines that are not here."""

    def report(self, *args, env, size):
        result = self.expect(self.run_job("-np", size, *args, "--report-bindings", worker("show_env"), env=env), 0)
        self.result = result
        return [line.removeprefix("hvdrun: localhost: ") for line in result.said.split("\n") if ": " in line
                and "describes another machine" not in line]

    def variables(self, name):
        """By rank; ranks without it are left out."""
        found = re.findall(rf"^\[(\d+)\]<stdout>:{name}=(.*)$", self.result.stdout, re.M)
        return {int(rank): value for rank, value in found}

    def test_core_by_core(self):
        machine = f"2 packages, 2 memory nodes, 8 cores, 16 CPUs; bound to: core; {LEGEND}"
        self.assertEqual(self.report("--bind-to", "core", env=TWO_BY_FOUR, size=3), [
            machine, "rank 0  CPUs 0-1  [B./..][../..]", "rank 1  CPUs 2-3  [.B/..][../..]",
            "rank 2  CPUs 4-5  [../B.][../..]"])
        self.expect_said(self.result, "HWLOC_SYNTHETIC or HWLOC_XMLFILE describes another machine: hvdrun does not bind workers")
        self.assertEqual(self.report("--bind-to", "core", "--map-by", "numa", env=TWO_BY_FOUR, size=3), [
            machine, "rank 0  CPUs 0-1  [B./..][../..]", "rank 1  CPUs 8-9  [../..][B./..]",
            "rank 2  CPUs 2-3  [.B/..][../..]"])

    def test_a_machine_that_cannot_be_read(self):
        for env in ({"HWLOC_SYNTHETIC": "rubbish"}, {"HWLOC_XMLFILE": "/no/such/file"}):
            result = self.expect(self.run_job("-np", 1, "--report-bindings", "true", env=env), 0)
            self.expect_said(result, "hwloc cannot read the description in HWLOC_SYNTHETIC or HWLOC_XMLFILE")

    def test_caches_and_memory_nodes(self):
        self.assertEqual(self.report("--bind-to", "l3", env=TWO_BY_FOUR, size=2)[1:], [
            "rank 0  CPUs 0-3  [BB/..][../..]", "rank 1  CPUs 4-7  [../BB][../..]"])
        for args in (["--map-by", "numa"], ["--bind-to", "numa"]):
            self.assertEqual(self.report(*args, env=TWO_BY_FOUR, size=2), [
                f"2 packages, 2 memory nodes, 8 cores, 16 CPUs; bound to: numa; {LEGEND}",
                "rank 0  CPUs 0-7   [BB/BB][../..]", "rank 1  CPUs 8-15  [../..][BB/BB]"])
        self.assertEqual(self.report("--map-by", "numa", "--bind-to", "none", env=TWO_BY_FOUR, size=1)[1:], [
            "rank 0  CPUs 0-15  [BB/BB][BB/BB]"])

    def test_cores_for_each(self):
        self.assertEqual(self.report("--cpus-per-proc", 3, env=TWO_BY_FOUR, size=2), [
            f"2 packages, 2 memory nodes, 8 cores, 16 CPUs; bound to: core; {LEGEND}",
            "rank 0  CPUs 0-5   [BB/B.][../..]", "rank 1  CPUs 8-13  [../..][BB/B.]"])

    def test_rankfile(self):
        path = self.write("ranks", "rank 0=localhost slot=1:0-1\nrank 1=localhost slot=0,3\n")
        self.assertEqual(self.report("--rankfile", path, env=TWO_BY_FOUR, size=2), [
            f"2 packages, 2 memory nodes, 8 cores, 16 CPUs; bound to: the rankfile's CPUs; {LEGEND}",
            "rank 0  CPUs 8-11     [../..][BB/..]", "rank 1  CPUs 0-1,6-7  [B./.B][../..]"])

    def test_eight_gpus(self):
        lines = self.report("--bind-to", "gpu", env={**EIGHT_GPUS, "CUDA_VISIBLE_DEVICES": None}, size=8)
        with open(os.path.join(SOURCE, "tests/flow/golden/bindings/eight_gpus.txt"), encoding="utf-8") as golden:
            self.assertEqual("\n".join(lines) + "\n", golden.read(), self.result.describe())
        self.assertEqual(self.variables("CUDA_VISIBLE_DEVICES"), {}, "left alone")
        self.assertEqual(self.variables("NCCL_IB_HCA"), {}, "only on request")

    def test_parts_of_the_gpus(self):
        unset = {**EIGHT_GPUS, "CUDA_VISIBLE_DEVICES": None}
        self.report("--gpus-per-proc", 2, env=unset, size=4)
        self.assertEqual(self.variables("CUDA_VISIBLE_DEVICES"), {0: "0,1", 1: "2,3", 2: "4,5", 3: "6,7"})
        self.report("--gpus-per-proc", 1, env={**EIGHT_GPUS, "CUDA_VISIBLE_DEVICES": "7,MIG-x,2"}, size=3)
        self.assertEqual(self.variables("CUDA_VISIBLE_DEVICES"), {0: "7", 1: "MIG-x", 2: "2"})
        self.report("--gpus-per-proc", 1, "-x", "CUDA_VISIBLE_DEVICES=5,4", env=unset, size=2)
        self.assertEqual(self.variables("CUDA_VISIBLE_DEVICES"), {0: "5", 1: "4"})
        self.report(env={**EIGHT_GPUS, "CUDA_VISIBLE_DEVICES": "1,2"}, size=2)
        self.assertEqual(self.variables("CUDA_VISIBLE_DEVICES"), {0: "1,2", 1: "1,2"})

    def test_more_gpus_than_there_are(self):
        env = {**EIGHT_GPUS, "CUDA_VISIBLE_DEVICES": "1,2,3"}
        result = self.expect(self.run_job("-np", 2, "--gpus-per-proc", 2, "--report-bindings", "true", env=env), 123)
        self.expect_said(result, "--gpus-per-proc 2: 2 workers need 4 GPUs and this host shows 3; .*"
                                 "CUDA_VISIBLE_DEVICES")
        # the list of the second program ends before its workers' parts begin
        result = self.run_job("--gpus-per-proc", 1, "--report-bindings", "-np", 1, "true", ":",
                              "-np", 2, "-x", "CUDA_VISIBLE_DEVICES=5,6", "true", env=env)
        self.expect(result, 123)
        self.expect_said(result, "--gpus-per-proc 1: 3 workers need 3 GPUs and this host shows 2; ")

    def test_nearest_adapter(self):
        unset = {**EIGHT_GPUS, "CUDA_VISIBLE_DEVICES": None, "NCCL_IB_HCA": None, "UCX_NET_DEVICES": None}
        self.report("--nic-hints", env=unset, size=8)
        self.assertEqual(self.variables("NCCL_IB_HCA"), {i: f"={name}:1" for i, name in enumerate(NEAREST)})
        self.assertEqual(self.variables("UCX_NET_DEVICES"), {i: f"{name}:1" for i, name in enumerate(NEAREST)})
        self.report("--nic-hints", "--gpus-per-proc", 4, env=unset, size=2)
        self.assertEqual(self.variables("UCX_NET_DEVICES"), {
            i: ",".join(f"{name}:1" for name in NEAREST[4 * i:4 * i + 4]) for i in range(2)})

    def test_the_users_own_adapters(self):
        env = {**EIGHT_GPUS, "CUDA_VISIBLE_DEVICES": None, "NCCL_IB_HCA": "mlx5_bond", "UCX_NET_DEVICES": None}
        self.report("--nic-hints", "-x", "UCX_NET_DEVICES=all", env=env, size=2)
        self.assertEqual(self.variables("NCCL_IB_HCA"), {0: "mlx5_bond", 1: "mlx5_bond"})
        self.assertEqual(self.variables("UCX_NET_DEVICES"), {0: "all", 1: "all"})


if __name__ == "__main__":
    main()
