# SPDX-License-Identifier: Apache-2.0
"""Hosts, slots and np from real allocations: --dry-run in jobs of many shapes, held against what
scontrol and Slurm's own variables say.

The rule is written down here once more: the tasks of each node if tasks were asked for, else its GPUs
if there are any, else its CPUs by those of a task.
"""
# ctest waits

import json
import re

from slurm import HVDRUN, Slurm, main, nodes

NAMES = ("SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE",
         "SLURM_CPUS_PER_TASK", "SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE")

SHAPES = (
    ["-N4", "--ntasks-per-node=2"],
    ["-N2", "-n", "4"],
    ["-n", "7"],
    ["-n", "9", "-N3"],
    ["-n", "5", "-N3", "--ntasks-per-node=3"],
    ["-N1"],
    ["-N3"],
    ["-N2", "-c2"],
    ["-n", "4", "-c2"],
    ["-N2", "--exclusive"],
    ["-w", "node2,node4"],
    ["-w", "node[1,3-4]", "-n", "6"],
    ["-N2", "--gpus-per-node=2"],
    ["-N2", "--gres=gpu:1"],
    ["-N2", "--ntasks-per-node=1", "--gpus-per-node=2"],
    ["-N2", "--gpus=4"],
)


def repeated(text):
    """[2, 2, 2, 1] from "2(x3),1"."""
    found = []
    for word in text.split(","):
        count, times = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", word).groups()
        found += [int(count)] * int(times or 1)
    return found


def expected(environment):
    """[(host, slots)] and np by the rule."""
    hosts = nodes(environment["SLURM_JOB_NODELIST"])
    tasks = repeated(environment["SLURM_TASKS_PER_NODE"])
    if "SLURM_NTASKS" in environment:
        slots = tasks
    elif "SLURM_GPUS_ON_NODE" in environment:
        slots = [int(environment["SLURM_GPUS_ON_NODE"])] * len(hosts)  # those of this rig are all alike
    else:
        per_task = int(environment.get("SLURM_CPUS_PER_TASK", 1))
        slots = [cpus // per_task for cpus in repeated(environment["SLURM_JOB_CPUS_PER_NODE"])]
    return list(zip(hosts, slots)), int(environment.get("SLURM_NTASKS", sum(slots)))


def used(hosts, size):
    """Those that so many ranks fill from the first on: the others are not in the plan."""
    found = []
    for name, slots in hosts:
        if sum(count for _, count in found) < size:
            found.append((name, slots))
    return found


class Shapes(Slurm):

    def plan(self, options, *words, status=0):
        """What --dry-run prints in a batch job, and the job's own variables."""
        shown = "; ".join(f'echo "{name}=${{{name}-unset}}"' for name in NAMES)
        path = self.box.path("plan.json")
        result = self.batch(f"{shown}\nexec {HVDRUN} --dry-run=json {' '.join(words)} ./train > '{path}'", *options)
        self.expect(result, status)
        environment = dict(line.split("=", 1) for line in result.lines if "=" in line)
        environment = {name: value for name, value in environment.items() if value != "unset"}
        return (self.read_json(path) if status == 0 else None), environment, result

    def check(self, options):
        plan, environment, result = self.plan(options)
        hosts, size = expected(environment)
        self.assertEqual([(node["name"], node["slots"]) for node in plan["nodes"]], used(hosts, size),
                         (environment, result.describe()))
        self.assertEqual(plan["size"], size, environment)
        return hosts

    def test_shapes(self):
        for options in SHAPES:
            with self.subTest(options=options):
                self.check(options)

    def test_np_and_hosts_of_the_user(self):
        plan, _, _ = self.plan(["-N3", "--ntasks-per-node=2"], "-np", "3")
        self.assertEqual([node["local_size"] for node in plan["nodes"]], [2, 1])
        plan, _, _ = self.plan(["-N3", "--ntasks-per-node=2"], "-H", "node3:1,node2:2")
        self.assertEqual([(node["name"], node["local_size"]) for node in plan["nodes"]], [("node3", 1), ("node2", 2)])

    def test_more_than_the_allocation_has(self):
        _, _, result = self.plan(["-N2", "--ntasks-per-node=2"], "-np", "5", status=123)
        self.expect_said(result, r"Slurm job \d+.*\b5 ranks.*\b4 slots")
        _, _, result = self.plan(["-N2", "--ntasks-per-node=2"], "-H", "node1:2,node2:3", status=2)
        self.expect_said(result, r"node2\b")
        _, _, result = self.plan(["-w", "node1,node2", "--ntasks-per-node=2"], "-H", "node1:2,node4:2", status=2)
        self.expect_said(result, r"not in Slurm job \d+ \(node1, node2\): node4;.*--scheduler none")

    def test_scheduler_none(self):
        plan, _, _ = self.plan(["-N2", "--ntasks-per-node=2"], "--scheduler", "none", "-H", "node1:3,node4:3")
        self.assertEqual([(node["name"], node["slots"]) for node in plan["nodes"]], [("node1", 3), ("node4", 3)])
        plan, _, _ = self.plan(["-N2", "--ntasks-per-node=2"], "--scheduler", "none", "-np", "1")
        self.assertEqual([node["name"] for node in plan["nodes"]], ["localhost"])

    def test_a_heterogeneous_job(self):
        """No single srun reaches its parts: the message is clear."""
        result = self.batch(f"#!/bin/sh\n#SBATCH -N1 -n3\n#SBATCH hetjob\n#SBATCH -N2 -n2\n{HVDRUN} --dry-run ./train\n")
        self.expect(result, 2)
        self.expect_said(result, "heterogeneous")

    def test_salloc(self):
        for options in (["-N2"], ["-n", "3"], ["-N2", "--ntasks-per-node=2"]):
            with self.subTest(options=options):
                shown = "; ".join(f'echo "{name}=${{{name}-unset}}" >&2' for name in NAMES)
                result = self.expect(self.salloc(options, "sh", "-c", f"{shown}; exec {HVDRUN} --dry-run=json ./train").wait(), 0)
                pairs = [line.split("=", 1) for line in result.stderr.splitlines() if line.startswith("SLURM")]
                hosts, size = expected({name: value for name, value in pairs if value != "unset"})
                plan = json.loads(result.stdout)
                self.assertEqual([(node["name"], node["slots"]) for node in plan["nodes"]], hosts, result.describe())
                self.assertEqual(plan["size"], size)


class PaddedNames(Shapes):
    """The same where the nodes are n001, n002..."""

    def node_names(self):
        return [f"n{number:03}" for number in range(1, self.count)]

    def test_shapes(self):
        self.assertEqual([name for name, _ in self.check(["-N4", "--ntasks-per-node=2"])], ["n001", "n002", "n003", "n004"])
        self.assertEqual([name for name, _ in self.check(["-w", "n[001,003-004]"])], ["n001", "n003", "n004"])

    test_np_and_hosts_of_the_user = test_more_than_the_allocation_has = test_scheduler_none = None
    test_salloc = test_a_heterogeneous_job = None


class MixedNames(Slurm):
    """Two families of names in one list."""

    def node_names(self):
        return ["cpu7", "gpu01", "gpu02", "login-x"]

    def test_all_of_them(self):
        result = self.batch(f"scontrol show hostnames; {HVDRUN} --dry-run=json ./train", "-N4", "--ntasks-per-node=1")
        self.expect(result, 0)
        names, plan = result.stdout.split("{", 1)
        self.assertEqual([node["name"] for node in json.loads("{" + plan)["nodes"]], names.split(), result.describe())


if __name__ == "__main__":
    main()
