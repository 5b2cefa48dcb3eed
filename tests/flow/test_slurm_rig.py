# SPDX-License-Identifier: Apache-2.0
"""The Slurm cluster of the tests itself: what the other tests on it build upon. No hvdrun here."""
# ctest harness
# ctest waits
# ctest long
# ctest plain

import signal

from ground import wait_until
from slurm import Slurm, main, run_tool


class Jobs(Slurm):

    def test_a_batch_job_runs_on_all_its_nodes(self):
        result = self.expect(self.batch("srun hostname; exit 7", "-N4"), 7)
        self.expect_lines(result, [f"node{number}" for number in (1, 2, 3, 4)])
        self.assertEqual(result.state, "FAILED")

    def test_a_batch_job_killed_by_a_signal(self):
        result = self.expect(self.batch("kill -KILL $$", "-N1"), -signal.SIGKILL)
        self.assertEqual(result.state, "FAILED")

    def test_variables_of_a_batch_job(self):
        result = self.expect(self.batch("env", "-N4", "--ntasks-per-node=2"), 0)
        for line in ("SLURM_JOB_NODELIST=node[1-4]", "SLURM_TASKS_PER_NODE=2(x4)", "SLURM_NTASKS=8", "SLURMD_NODENAME=node1",
                     f"SLURM_SUBMIT_DIR={self.box.work}", "SLURM_SUBMIT_HOST=launcher", "TMPDIR=/tmp"):
            self.assertIn(line, result.lines, result.describe())

    def test_gpus_are_given(self):
        result = self.batch("srun -l sh -c 'echo $CUDA_VISIBLE_DEVICES'", "-N2", "--gpus-per-node=2")
        self.expect_lines(self.expect(result, 0), ["0: 0,1", "1: 0,1"])

    def test_salloc_and_srun_from_the_login_node(self):
        result = self.expect(self.salloc(["-N2"], "srun", "hostname").wait(), 0)
        self.expect_lines(result, ["node1", "node2"])
        self.expect_lines(self.srun("-N3", "hostname").wait(), ["node1", "node2", "node3"])

    def test_without_ssh(self):
        self.no_ssh()
        self.assertEqual(self.plain_ssh("node1", "true")[0], 255)
        self.expect_lines(self.srun("-N2", "hostname").wait(), ["node1", "node2"])


class Faults(Slurm):

    def begin(self, *options):
        """A job of nodes 1 and 2 whose batch script stands on node1, and a step on each of them."""
        job = self.submit("for n in 1 2; do\n"
                          "  srun --no-kill --overlap -N1 -n1 -w node$n sh -c 'echo begun; sleep 1000' &\n"
                          "done\nwait", "-w", "node[1-2]", "-N2", *options)
        job.wait_output("begun", count=2)
        return job

    def test_a_node_fails_for_slurm(self):
        job = self.begin("--no-kill")
        self.node_down(2)
        wait_until(lambda: job.nodes() == ["node1"], "the job has lost its node")
        job.cancel()
        self.assertEqual(job.wait().state, "CANCELLED")

    def test_a_job_is_put_back(self):
        job = self.begin("--requeue")
        self.node_down(2)
        wait_until(lambda: job.show()["Restarts"] == "1", "the job is put back")
        job.cancel()
        job.wait()

    def test_a_node_without_power_and_back(self):
        job = self.begin("--no-kill")
        self.host(2).power_off()
        self.node_down(2)
        wait_until(lambda: job.nodes() == ["node1"], "the job has lost its node")
        job.cancel()
        job.wait()
        self.host(2).power_on()
        self.cluster.wait_idle()
        self.expect_lines(self.srun("-w", "node2", "hostname").wait(), ["node2"])

    def test_preemption(self):
        """The steps get TERM; a job that has ended within the time of grace has ended, another is put back."""
        for script, restarts in (("srun --overlap -n1 sleep 1000; exit 5", 0), ("sleep 1000", 1)):
            with self.subTest(script=script):
                job = self.submit(f"echo begun; {script}", "-w", "node1", "--requeue")
                job.wait_output("begun")
                self.expect(self.batch("true", "-p", "urgent", "-w", "node1", "-c4"), 0)
                wait_until(lambda job=job: job.state() != "RUNNING", "the job has ended")
                self.assertEqual(job.show()["Restarts"], str(restarts), job.describe())
                job.cancel()
                job.wait()


class Checks(Slurm):

    def test_a_job_left_is_seen_and_ended(self):
        job = self.submit("sleep 1000", "-N1")
        job.wait_state("RUNNING")
        with self.assertRaisesRegex(AssertionError, rf"(?s){job.id} job0.sh RUNNING.*sleep 1000"):
            self._end_jobs(timeout=0.5)
        job.wait()

    def test_what_a_daemon_starts_is_seen(self):
        job = self.submit("setsid sleep 1000 & sleep 1000", "-N1", "-w", "node1")
        wait_until(lambda: sum(one.comm == "sleep" for one in self.host(1).processes()) == 2, "two sleepers run")
        with self.assertRaisesRegex(AssertionError, "node1: process left: .*sleep 1000"):
            self.check_hosts(timeout=0.5)
        job.cancel()
        job.wait()


class Settings(Slurm):
    """Names of nodes that are not those of the hosts, and a setting."""

    settings = {"KillWait": 1}

    def node_names(self):
        return [f"n{number:03}" for number in range(1, self.count)]

    def test_names(self):
        result = self.expect(self.batch("echo $SLURM_JOB_NODELIST $SLURMD_NODENAME; srun hostname", "-N3"), 0)
        self.expect_lines(result, ["n[001-003] n001", "node1", "node2", "node3"])

    def test_the_setting_holds(self):
        self.assertRegex(run_tool("scontrol", "show", "config"), r"KillWait\s+= 1 sec")


if __name__ == "__main__":
    main()
