# SPDX-License-Identifier: Apache-2.0
"""Starts in Slurm jobs: by one srun, without ssh and without a list of hosts, whatever the job and the
environment look like."""
# ctest waits

import os
import re

from ground import worker
from slurm import HVDRUN, Runs, main


class Start(Runs):

    def test_one_srun_starts_all_nodes_without_ssh(self):
        self.no_ssh()
        env, path = self.counted()
        result = self.batch(self.hvdrun(worker("hello")), "-N4", "--ntasks-per-node=2", env=env)
        self.expect(result, 0)
        self.assertEqual(result.stdout.count("hello from rank"), 8, result.describe())
        self.assertEqual(len(self.sruns(path)), 1, self.sruns(path))

    def test_one_node_needs_no_srun(self):
        env, path = self.counted()
        result = self.expect(self.batch(self.hvdrun(worker("hello")), "-N1", "-n2", env=env), 0)
        self.assertEqual(result.stdout.count("hello from rank"), 2, result.describe())
        self.assertEqual(self.sruns(path), [])

    def test_from_the_login_node(self):
        self.no_ssh()
        result = self.expect(self.salloc(["-N3", "--ntasks-per-node=2"], HVDRUN, worker("hello"), "HVDRUN_HOSTNAME").wait(), 0)
        for rank in range(6):
            self.assertIn(f"[{rank}]<stdout>:HVDRUN_HOSTNAME=node{1 + rank // 2}", result.lines, result.describe())
        self.check_hosts()

    def test_a_subset_of_the_allocation(self):
        env, path = self.counted()
        result = self.batch(self.hvdrun("-H", "node3:1,node2:2", worker("hello"), "HVDRUN_HOSTNAME"), "-N4",
                            "--ntasks-per-node=2", env=env)
        self.expect(result, 0)
        hosts = re.findall(r"HVDRUN_HOSTNAME=(\S+)", "\n".join(sorted(result.lines)))
        self.assertEqual(hosts, ["node3", "node2", "node2"], result.describe())
        self.assertEqual(len(self.sruns(path)), 1, self.sruns(path))

    def test_a_host_outside_of_the_allocation(self):
        result = self.batch(self.hvdrun("-H", "node1:1,node4:1", worker("hello")), "-w", "node[1-2]", "--ntasks-per-node=1")
        self.expect(result, 2)
        self.expect_said(result, r"not in Slurm job \d+ \(node1, node2\): node4;")

    def test_a_scheduler_that_is_ignored(self):
        env, path = self.counted()
        result = self.batch(self.hvdrun("--scheduler", "none", "--transport", "local", "-H", "a:1,b:1", worker("hello")), "-N1",
                            env=env)
        self.assertEqual(self.expect(result, 0).stdout.count("hello from rank"), 2, result.describe())
        self.assertEqual(self.sruns(path), [])

    def test_a_step_of_one_task(self):
        for more in ("--overlap", "--exact"):
            with self.subTest(srun=more):
                result = self.batch(f"srun -N1 -n1 {more} {HVDRUN} {worker('hello')}", "-N3", "--ntasks-per-node=1")
                self.assertEqual(self.expect(result, 0).stdout.count("hello from rank"), 3, result.describe())

    def test_jobs_of_many_shapes(self):
        """What sbatch was told is in srun's environment, and is not meant for the srun of the agents."""
        shapes = {("-n", "7"): 7, ("-n", "5", "-N3", "--ntasks-per-node=3"): 5, ("-N3", "-c2", "--ntasks-per-node=2"): 6,
                  ("-N2", "-n2", "--gpus-per-task=1"): 2, ("-N2", "--gpus-per-node=2", "--gpu-bind=single:1"): 4,
                  ("-N2", "-n2", "--mem-per-cpu=100"): 2, ("-N2", "-n4", "--distribution=cyclic", "--hint=nomultithread"): 4,
                  ("-N3", "-n3", "--export=NONE"): 3, ("-N3", "--exclusive", "--ntasks-per-node=1"): 3,
                  ("-N2", "-n3", "--array=7"): 3, ("-N2", "-n2", "--threads-per-core=1", "--overcommit"): 2,
                  ("-N2", "-n2", "--wait-all-nodes=1", "--no-kill", "--signal=USR1@10"): 2}
        for options, ranks in shapes.items():
            with self.subTest(options=options):
                result = self.batch(self.hvdrun(worker("hello")), *options)
                self.assertEqual(self.expect(result, 0).stdout.count("hello from rank"), ranks, result.describe())
                self.assertEqual(result.said, "", result.describe())

    def test_settings_of_srun_in_the_environment(self):
        """What a user has set for his own sruns does not change how agents start."""
        for name, value in {"SLURM_NTASKS": "9", "SLURM_CPU_BIND": "map_cpu:0", "SLURM_LABELIO": "1", "SLURM_EXCLUSIVE": "1",
                            "SLURM_EXPORT_ENV": "NONE", "SLURM_MPI_TYPE": "pmix", "SLURM_NNODES": "1", "SLURM_WAIT": "1",
                            "SLURM_HINT": "nomultithread", "SLURM_DISTRIBUTION": "arbitrary", "SLURM_OPEN_MODE": "truncate",
                            "SLURM_STEP_GRES": "gpu:1", "SLURM_OVERCOMMIT": "1", "SLURM_TIMELIMIT": "1"}.items():
            with self.subTest(variable=name):
                words = ["-np", 3] if name == "SLURM_NTASKS" else []
                line = self.hvdrun(*words, worker("hello"))
                result = self.batch(f"export {name}={value}\n{line}", "-N3", "--ntasks-per-node=1")
                self.assertEqual(self.expect(result, 0).stdout.count("hello from rank"), 3, result.describe())

    def test_a_step_of_several_tasks_is_an_error(self):
        result = self.batch(f"srun --overlap {HVDRUN} {worker('hello')}", "-N2", "--ntasks-per-node=2")
        self.expect(result, 2)
        self.assertNotIn("hello", result.stdout, result.describe())
        said = [line for line in result.stderr.splitlines() if line.startswith("hvdrun:")]
        self.assertEqual(len(said), 1, result.describe())
        self.assertRegex(said[0], r"srun started several hvdrun.*srun -n1", result.describe())

    def test_srun_args(self):
        env, path = self.counted()
        result = self.batch(self.hvdrun("--srun-args=--comment='two words'", worker("hello")), "-N2",
                            "--ntasks-per-node=1", env=env)
        self.expect(result, 0)
        self.assertIn("--comment=two words", self.sruns(path)[0])

    def test_hvdrun_that_the_nodes_do_not_have(self):
        """A launcher on a folder of one node: the remedy is in the message."""
        self.host(1).run("sh", "-c", f"cp -r {os.path.dirname(HVDRUN)}/hvdrun* {os.path.dirname(HVDRUN)}/lib /tmp/")
        result = self.batch(f"/tmp/hvdrun {worker('hello')}", "-w", "node[1-2]", "--ntasks-per-node=1")
        self.host(1).run("sh", "-c", "rm -rf /tmp/hvdrun* /tmp/lib")
        self.expect(result, 125)
        self.expect_said(result, r"node2\b.*(--bcast|share)")

    def test_output_and_input(self):
        result = self.batch(f"seq 1000 | {HVDRUN} {worker('stdin_sum')}", "-N2", "--ntasks-per-node=1")
        self.expect(result, 0)
        self.assertRegex(result.stdout, r"\[0\]<stdout>:.*", result.describe())

    def test_two_jobs_on_the_same_nodes(self):
        jobs = [self.submit(self.hvdrun(worker("hello")), "-N4", "--ntasks-per-node=1") for _ in range(3)]
        for job in jobs:
            self.assertEqual(self.expect(job.wait(), 0).stdout.count("hello from rank"), 4)

    def test_two_runs_at_once_in_one_job(self):
        script = f"{HVDRUN} {worker('hello')} & a=$!; {HVDRUN} {worker('hello')} & b=$!; wait $a && wait $b"
        result = self.batch(script, "-N3", "--ntasks-per-node=1")
        self.assertEqual(self.expect(result, 0).stdout.count("hello from rank"), 6, result.describe())

    def test_gpus_are_seen_on_every_node(self):
        result = self.batch(self.hvdrun("--env", "X=1", "sh", "-c", "echo gpus $CUDA_VISIBLE_DEVICES"), "-N2",
                            "--gpus-per-node=2")
        self.expect(result, 0)
        self.expect_lines(result, [f"[{rank}]<stdout>:gpus 0,1" for rank in range(4)])


class OtherNames(Runs):
    """Slurm's names of the nodes are no host names that anything could look up."""

    def node_names(self):
        return [f"n{number:03}" for number in range(1, self.count)]

    def test_a_run(self):
        with open(os.path.join(self.rig.top, "etc/hosts"), encoding="ascii") as file:
            known = file.read()
        with open(os.path.join(self.rig.top, "etc/hosts"), "w", encoding="ascii") as file:
            file.write(re.sub(r" n\d+$", "", known, flags=re.M))
        result = self.batch(self.hvdrun(worker("hello"), "HVDRUN_HOSTNAME"), "-N3", "--ntasks-per-node=1")
        self.expect(result, 0)
        for rank in range(3):
            self.assertIn(f"[{rank}]<stdout>:HVDRUN_HOSTNAME=n00{rank + 1}", result.lines, result.describe())


if __name__ == "__main__":
    main()
