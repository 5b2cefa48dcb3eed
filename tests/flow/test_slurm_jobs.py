# SPDX-License-Identifier: Apache-2.0
"""hvdrun's commands about a job in Slurm, from the login node: --slurm-job (docs/slurm.md)."""
# ctest waits

import json
import re
import subprocess

from ground import limit, worker
from jobs import Terminal
from slurm import HVDRUN, Runs, main


class Jobs(Runs):

    def ask(self, *words, env=None):
        return subprocess.run([HVDRUN, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=limit(60), env=self.batch_environment(env), cwd=self.box.work)

    def expect_stopped(self, done):
        """The last job of the script has ended, so Slurm ends the script's other steps. That of the command may be one, which
        its slurmstepd then says."""
        said = re.sub(r"slurmstepd-\w+: error: \*\*\* STEP \d+\.\d+ ON \w+ [^\n]*\*\*\*\n", "", done.stderr)
        self.assertEqual((done.returncode, said), (0, ""), done)
        self.assertIn(" ended with status ", done.stdout)

    def test_from_the_login_node(self):
        """The Slurm job has a TMPDIR of its own, as on many clusters."""
        script = f'mkdir -p /tmp/own$SLURM_JOB_ID; TMPDIR=/tmp/own$SLURM_JOB_ID {HVDRUN} --grace 1 {worker("hang")}; ' \
                 "status=$?; rm -rf /tmp/own$SLURM_JOB_ID; exit $status"
        job = self.submit(script, "-N2", "--ntasks-per-node=1")
        job.wait_output("ready", count=2)
        there = ("--slurm-job", job.id)
        done = self.ask("status", *there)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertIn(": running, 2 ranks", done.stdout)
        facts = json.loads(self.ask("status", "--json", *there).stdout)
        self.assertEqual([host["host"] for host in facts["hosts"]], ["node1", "node2"])
        self.assertIn(facts["job"], self.ask("ps", *there).stdout)
        self.assertIn("ready", self.ask("logs", "-n", "all", *there).stdout)
        self.assertIn("[0-1] process hang", self.ask("stacks", *there).stdout)
        self.assertIn("  node2  ", self.ask("top", "--once", *there).stdout)
        self.expect_stopped(self.ask("stop", *there))
        job.wait()
        self.wait_no_workers()

    def test_two_jobs_with_a_tmpdir_each(self):
        """Without the name of one, a command ends none of them."""
        script = 'for i in 1 2; do mkdir -p /tmp/own$SLURM_JOB_ID.$i; TMPDIR=/tmp/own$SLURM_JOB_ID.$i ' \
                 f'{HVDRUN} -H localhost:1 --job-name job$i --grace 1 {worker("hang")} & done; wait; ' \
                 "rm -rf /tmp/own$SLURM_JOB_ID.*"
        job = self.submit(script, "-N1")
        job.wait_output("ready", count=2)
        there = ("--slurm-job", job.id)
        facts = json.loads(self.ask("ps", "--json", *there).stdout)
        self.assertEqual(sorted(one["name"] for one in facts), ["job1", "job2"])
        done = self.ask("stop", *there)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(f"2 jobs run in Slurm job {job.id}; name one of them: ", done.stderr)
        for name in "job1", "job2":
            self.expect_stopped(self.ask("stop", name, *there))
            done = self.ask("stop", name, *there)
            self.assertNotEqual(done.returncode, 0, done)
        job.wait()
        self.wait_no_workers()

    def test_in_a_terminal(self):
        """Keys reach the command on the node, and it sees the size of the terminal."""
        job = self.hang("-N2", "--ntasks-per-node=1", count=2)
        top = Terminal(self.box, [HVDRUN, "top", "--slurm-job", job.id], rows=24, columns=80)
        top.wait_output("node2")
        top.type("q")
        self.assertEqual(top.wait(), 0)
        logs = Terminal(self.box, [HVDRUN, "logs", "-f", "--slurm-job", job.id])
        logs.wait_output("ready", count=2)
        logs.type("\x03")
        logs.wait()
        self.assertEqual(job.state(), "RUNNING")
        job.cancel()
        job.wait()
        self.wait_no_workers()

    def test_what_is_wrong(self):
        done = self.ask("status")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr,
                         "found no running job .*; for a job in Slurm, add --slurm-job and the number that squeue shows")
        done = self.ask("status", "--slurm-job", "7_1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--slurm-job: '7_1' is not a number; 'squeue --me -o %A' shows", done.stderr)
        done = self.ask("status", "--slurm-job", "999999")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Invalid job id", done.stderr)
        done = self.ask("status", "--slurm-job", "1", env={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("--slurm-job needs srun", done.stderr)

    def test_a_slurm_job_without_hvdrun(self):
        job = self.submit("echo here; exec sleep 600", "-N1")
        job.wait_output("here")
        done = self.ask("status", "--slurm-job", job.id)
        self.assertEqual(done.returncode, 1)
        self.assertIn("found no running job of this user in ", done.stderr)
        job.cancel()
        job.wait()


if __name__ == "__main__":
    main()
