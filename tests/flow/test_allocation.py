# SPDX-License-Identifier: Apache-2.0
"""Hosts, slots and np from a scheduler's own variables and files, without the scheduler: --dry-run in
invented environments, and real runs with --transport local. The environments of Slurm are those that
Slurm 22.05 made (tests/unit/model/test_allocation_slurm.c has more of them); test_slurm_*.py look at
the real thing."""

import json
import os
import random
import subprocess

from rig import main, worker
from test_env import WithEnvironment

LOCAL = ["--transport", "local"]
SLURM = {"SLURM_JOB_ID": "812", "SLURM_JOBID": "812", "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_NODELIST": "node[1-2]",
         "SLURM_JOB_NUM_NODES": "2", "SLURM_NNODES": "2", "SLURM_JOB_CPUS_PER_NODE": "4,3",
         "SLURM_TASKS_PER_NODE": "4,3",
         "SLURM_NTASKS": "7", "SLURM_NPROCS": "7", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0",
         "SLURM_GTIDS": "0", "SLURM_TASK_PID": "4711", "SLURMD_NODENAME": "node1", "SLURM_CPUS_ON_NODE": "4"}
SEVEN = [("node1", 4, 4), ("node2", 3, 3)]  # name, slots, ranks


class Allocation(WithEnvironment):

    def dry(self, *args, env, status=0):
        return self.expect(self.run_job("--dry-run=json", *args, "./train", env=env), status)

    def expect_nodes(self, nodes, *args, env):
        plan = json.loads(self.dry(*args, env=env).stdout)
        self.assertEqual([(node["name"], node["slots"], node["local_size"]) for node in plan["nodes"]], nodes)

    def expect_refusal(self, *patterns, args=(), env, status=2):
        """One line that says all of it."""
        result = self.dry(*args, env=env, status=status)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.describe())
        self.assertEqual(result.stdout, "")
        for pattern in patterns:
            self.expect_said(result, pattern)


class FromSlurm(Allocation):

    def test_all_of_it(self):
        self.expect_nodes(SEVEN, env=SLURM)
        self.expect_nodes(SEVEN, "--scheduler", "slurm", env=SLURM)
        self.expect_nodes(SEVEN, "--min-np", 2, env=SLURM)

    def test_np(self):
        self.expect_nodes([("node1", 4, 4), ("node2", 3, 1)], "-np", 5, env=SLURM)
        self.expect_refusal(r"Slurm job 812: .*9 ranks wanted, 7 slots found \(node1: 4, node2: 3\)", args=("-np", 9),
                            env=SLURM, status=123)
        self.expect_nodes([("node1", 4, 6), ("node2", 3, 3)], "-np", 9, "--oversubscribe", env=SLURM)

    def test_gpus(self):
        env = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[08-09]", "SLURM_TASKS_PER_NODE": "1(x2)",
               "SLURM_JOB_CPUS_PER_NODE": "64(x2)", "SLURM_GPUS_PER_NODE": "a100:4"}
        self.expect_nodes([("n08", 4, 4), ("n09", 4, 4)], env=env)
        uneven = {**env, "SLURM_GPUS_PER_NODE": "", "SLURM_GPUS": "7", "SLURM_GPUS_ON_NODE": "4"}
        self.expect_refusal("SLURM_GPUS: 7 GPUs on 2 nodes", "--gpus-per-node", env=uneven)

    def test_some_of_its_hosts(self):
        self.expect_nodes([("node2", 3, 3)], "-H", "node2", env=SLURM)
        self.expect_nodes([("node2", 2, 2), ("node1", 1, 1)], "-H", "node2:2,node1:1", env=SLURM)
        self.expect_nodes([("node2", 1, 1)], "--hostfile", self.write("hosts", "node2 slots=1\n"), env=SLURM)
        self.expect_nodes([("localhost", 4, 4)], "-H", "localhost", env=SLURM)

    def test_hosts_that_are_not_its_own(self):
        self.expect_refusal(r"not in Slurm job 812 \(node1, node2\): node3, other;", "--scheduler none",
                            args=("-H", "node1,node3,other:2"), env=SLURM)
        self.expect_refusal(r"node2: 4 slots wanted, but .* has only 3 there", "--oversubscribe",
                            args=("-H", "node2:4"), env=SLURM)
        self.expect_nodes([("node2", 4, 4)], "-H", "node2:4", "--oversubscribe", env=SLURM)
        self.expect_nodes([("node3", 1, 1)], "-H", "node3:1", "--scheduler", "none", env=SLURM)
        self.expect_nodes([("localhost", 2, 2)], "-np", 2, "--scheduler", "none", env=SLURM)

    def test_a_job_that_is_not_there(self):
        self.expect_refusal(r"--scheduler: .*hvdrun does not run in a job of Slurm.*SLURM_JOB_NODELIST",
                            args=("--scheduler", "slurm"), env={"SLURM_JOB_ID": "812"})
        self.expect_refusal(r"--scheduler: .*PBS_NODEFILE", args=("--scheduler", "pbs"), env=SLURM)
        self.expect_nodes([("localhost", 1, 1)], env={"SLURM_JOB_ID": "812"})

    def test_parts_of_different_kinds(self):
        self.expect_refusal("heterogeneous", "--scheduler none",
                            env={**SLURM, "SLURM_HET_SIZE": "2", "SLURM_JOB_NODELIST_HET_GROUP_0": "node1"})

    def test_several_launchers_of_one_srun(self):
        step = {**SLURM, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_TASKS_PER_NODE": "1(x2)"}
        self.expect_refusal("srun started several", "start hvdrun without srun", env=step)
        second = self.expect(self.run_job("./train", env={**step, "SLURM_PROCID": "1"}), 2)
        self.assertEqual(second.stderr + second.stdout, "", "the first one says it")
        self.expect_nodes([("localhost", 1, 1)], "--scheduler", "none", env=step)
        alone = {**step, "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "1", "SLURM_TASKS_PER_NODE": "1"}
        self.expect_nodes(SEVEN, env=alone)  # by CPUs: the counts of tasks are those of the step

    def test_rubbish_names_its_variable(self):
        for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE", "SLURM_STEP_ID",
                     "SLURM_RESTART_COUNT", "SLURM_JOB_END_TIME", "SLURM_NTASKS_PER_NODE"):
            for value in ("?", "-1", "1(x", "node[1-", "9" * 30, "\x1b[31m", "é", "%s%n", "1" * 100000):
                with self.subTest(name=name, value=value[:20]):
                    if name == "SLURM_JOB_NODELIST" and value in ("9" * 30, "%s%n"):
                        continue  # such a name is allowed
                    self.expect_refusal(name, env={**SLURM, name: value})

    def test_ten_thousand_nodes(self):
        env = {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[00001-10000]", "SLURM_NTASKS": "19999",
               "SLURM_TASKS_PER_NODE": "2(x9999),1"}
        plan = json.loads(self.dry(env=env).stdout)
        self.assertEqual([plan["size"], len(plan["nodes"])], [19999, 10000])
        self.assertEqual([plan["nodes"][0]["name"], plan["nodes"][-1]["name"]], ["n00001", "n10000"])

    def test_workers_know_their_place(self):
        found = self.environments(*LOCAL, size=7, env={**SLURM, "SLURM_SRUN_COMM_PORT": "1", "SLURM_PMIX_X": "1"})
        for rank, env in enumerate(found):
            node, local = (0, rank) if rank < 4 else (1, rank - 4)
            self.has(env, SLURM_PROCID=rank, SLURM_LOCALID=local, SLURM_NODEID=node, SLURM_NTASKS=7, SLURM_NNODES=2,
                     SLURM_GTIDS="0,1,2,3" if node == 0 else "4,5,6", SLURM_TASKS_PER_NODE="4,3", SLURM_JOB_ID=812,
                     SLURM_JOB_NODELIST="node[1-2]", RANK=rank, WORLD_SIZE=7, HVDRUN_HOSTNAME=f"node{node + 1}")
            self.lacks(env, "SLURM_TASK_PID", "SLURM_SRUN_COMM_PORT", "SLURM_PMIX_X")

    def test_a_schedulers_variables_can_be_kept(self):
        given = {**SLURM, "SLURM_SRUN_COMM_PORT": "1", "PBS_TASKNUM": "5"}
        for env in self.environments(*LOCAL, "--keep-scheduler-env", "-np", 5, size=5, env=given):
            self.has(env, **given)

    def test_fewer_ranks_than_it_has(self):
        for rank, env in enumerate(self.environments(*LOCAL, "-np", 2, size=2, env=SLURM)):
            self.has(env, SLURM_PROCID=rank, SLURM_NTASKS=2, SLURM_NNODES=1, SLURM_JOB_NUM_NODES=2,
                     SLURM_TASKS_PER_NODE="2")


class FromOthers(Allocation):

    def pbs(self, content):
        return {"PBS_JOBID": "814.head", "PBS_NODEFILE": self.write("nodefile", content)}

    def test_pbs(self):
        env = self.pbs("n1.cluster\nn1.cluster\nn2.cluster\n")
        self.expect_nodes([("n1.cluster", 2, 2), ("n2.cluster", 1, 1)], env=env)
        self.expect_nodes([("n2", 1, 1)], "-H", "n2", env=env)
        self.expect_refusal(r"not in PBS job 814.head", args=("-H", "n3"), env=env)
        self.expect_nodes([("localhost", 1, 1)], "--scheduler", "none", env=env)
        for rank, found in enumerate(self.environments(*LOCAL, size=3, env={**env, "PBS_NODENUM": "0",
                                                                            "PBS_TASKNUM": "1"})):
            self.has(found, PBS_NODENUM=rank // 2, PBS_JOBID="814.head")
            self.lacks(found, "PBS_TASKNUM")

    def test_lsf(self):
        env = {"LSB_JOBID": "815", "LSB_MCPU_HOSTS": "h1 2 h2 3", "LSB_HOSTS": "h1 h1 h2 h2 h2"}
        self.expect_nodes([("h1", 2, 2), ("h2", 3, 3)], env=env)
        path = self.write("djob", "h9\nh9\n")
        self.expect_nodes([("h9", 2, 2)], env={**env, "LSB_DJOB_HOSTFILE": path})
        self.expect_nodes([("h1", 2, 2), ("h2", 3, 3)], env={"LSB_JOBID": "815", "LSB_HOSTS": env["LSB_HOSTS"]})
        self.expect_refusal("LSB_MCPU_HOSTS", env={**env, "LSB_MCPU_HOSTS": "h1 2 h2"})

    def test_sge(self):
        path = self.write("pe", "h1 2 all.q@h1 UNDEFINED\nh2 1 all.q@h2 <NULL>\n")
        self.expect_nodes([("h1", 2, 2), ("h2", 1, 1)], env={"JOB_ID": "816", "PE_HOSTFILE": path})
        self.expect_refusal(r"pe:1: .*slot", env={"JOB_ID": "816", "PE_HOSTFILE": self.write("pe", "h1\n")})

    def test_kubernetes(self):
        path = self.write("hostfile", "pi-worker-0.pi.default.svc slots=2\npi-worker-1.pi.default.svc slots=1\n")
        env = {"K_MPI_JOB_ROLE": "launcher", "OMPI_MCA_orte_default_hostfile": path}
        self.expect_nodes([("pi-worker-0.pi.default.svc", 2, 2), ("pi-worker-1.pi.default.svc", 1, 1)], env=env)
        self.expect_nodes([("pi-worker-1", 1, 1)], "-H", "pi-worker-1", env=env)
        mine = {"OMPI_MCA_orte_default_hostfile": path}  # of a user, outside of Kubernetes
        self.expect_nodes([("localhost", 1, 1)], env=mine)
        self.expect_refusal("--scheduler", args=("--scheduler", "kubernetes"), env=mine)

    def test_files_that_are_none(self):
        for path, why in ((self.box.path("missing"), "no such file"), (self.box.work, "is a folder"),
                          (self.write("binary", b"\x7fELF\0\0"), "NUL"), (self.write("empty", b"\n\n"), "no host"),
                          (self.write("words", "a b c\n"), "words:1"), (self.write("option", "-oX\n"), "option:1")):
            with self.subTest(path=path):
                self.expect_refusal(why, env={"PBS_JOBID": "1", "PBS_NODEFILE": path})
        self.expect_refusal("--scheduler none", env={"PBS_JOBID": "1", "PBS_NODEFILE": self.box.path("missing")})
        os.mkfifo(self.box.path("pipe"))
        for path in (self.box.path("pipe"), "/dev/zero"):
            self.expect_refusal(os.path.basename(path), args=("--start-timeout", "200ms"),
                                env={"PBS_JOBID": "1", "PBS_NODEFILE": path})


class AgainstScontrol(Allocation):
    """Slurm's own program says what a list of nodes is; it asks no daemon for that."""

    def names(self, text):
        conf = self.write("slurm.conf",
                          "ClusterName=x\nSlurmctldHost=nowhere\nNodeName=n1\nPartitionName=p Nodes=ALL\n")
        done = subprocess.run(["scontrol", "show", "hostnames", text], env={**os.environ, "SLURM_CONF": conf},
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def ours(self, text):
        plan = json.loads(self.dry(env={"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": text}).stdout)
        return [node["name"] for node in plan["nodes"]]

    def test_lists(self):
        for text in ("n1", "n[1-3,7],gpu[001-003]", "r[1-2]n[1-4]", "n[08-11]", "n[9-10]", "n[0-1,08-11]", "a,b,c-d.e",
                     "n[098-101]", "n[00-3]", "x[5],y[6-6],z[07]", "n[1-300]"):
            with self.subTest(text=text):
                self.assertEqual(self.ours(text), self.names(text))

    def test_random_lists(self):
        source = random.Random(812)
        for _ in range(40):
            parts, width = [], source.randint(1, 4)
            for letter in "abcd"[:source.randint(1, 4)]:
                numbers, at = [], source.randint(0, 20)
                for _ in range(source.randint(1, 5)):
                    last = at + source.randint(0, 12)
                    numbers.append(f"{at:0{width}}" + (f"-{last:0{width}}" if last > at else ""))
                    at = last + source.randint(1, 9)
                parts.append(f"{letter}[{','.join(numbers)}]")
            text = ",".join(parts)
            with self.subTest(text=text):
                self.assertEqual(self.ours(text), self.names(text))


if __name__ == "__main__":
    main()
