# SPDX-License-Identifier: Apache-2.0
"""How runs in Slurm jobs end: the status, scancel, and the death of any one of the processes, after
which nothing is left on any node."""
# ctest waits
# ctest long
# ctest plain

import os
import shutil
import signal

from box import leftovers
from ground import mpi_worker, wait_until, worker
from slurm import HVDRUN, Runs, main, run_tool

QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_mpi_yield_when_idle": "1"}


class End(Runs):

    def test_the_status_is_the_programs(self):
        result = self.expect(self.batch(self.hvdrun(worker("exit_with"), "5:9"), "-N3", "--ntasks-per-node=2"), 9)
        self.assertEqual(result.state, "FAILED")
        self.expect_blame(result, 5, code=9, host="node3")

    def test_scancel(self):
        job = self.hang("-N3", "--ntasks-per-node=2", count=6)
        job.cancel()
        job.wait()
        self.wait_no_workers()

    def test_scancel_with_a_batch_script_above(self):
        job = self.submit(f"{HVDRUN} --grace 1 {worker('hang')}\necho never", "-N3", "--ntasks-per-node=1")
        job.wait_output("ready", count=3)
        job.cancel()
        result = job.wait()
        self.assertNotIn("never", result.stdout)
        self.wait_no_workers()

    def test_scancel_with_stubborn_workers(self):
        job = self.submit(self.hvdrun("--grace", 1, worker("stubborn")), "-N2", "--ntasks-per-node=1")
        wait_until(lambda: all(len(self.host(n).workers()) == 1 for n in (1, 2)), "workers run")
        job.cancel()
        job.wait()
        self.wait_no_workers()

    def test_driver_killed(self):
        job = self.hang("-N3", "--ntasks-per-node=1", count=3)
        drivers = [one for one in self.host(1).processes() if os.path.basename(one.exe()) == "hvdrun"]
        os.kill(min(drivers, key=lambda one: one.started).pid, signal.SIGKILL)
        self.wait_no_workers(timeout=30)
        job.wait()

    def test_driver_killed_on_the_login_node(self):
        job = self.salloc(["-N2", "--ntasks-per-node=1"], HVDRUN, worker("hang"))
        job.wait_output("ready", count=2)
        drivers = [one for one in job.tree() if os.path.basename(one.exe()) == "hvdrun"]
        os.kill(min(drivers, key=lambda one: one.started).pid, signal.SIGKILL)
        job.wait()  # its status says nothing: salloc 22.05 takes death by a signal for success
        self.wait_no_workers(timeout=30)

    def test_salloc_ended_on_the_login_node(self):
        """salloc passes TERM on to its command."""
        job = self.salloc(["-N2", "--ntasks-per-node=1"], HVDRUN, "--grace", 1, worker("hang"))
        job.wait_output("ready", count=2)
        job.signal(signal.SIGTERM)
        job.wait()
        self.wait_no_workers()

    def sruns_of(self, number):
        """srun forks: its processes on a host, the parent first."""
        return sorted((one for one in self.host(number).processes() if one.comm == "srun"), key=lambda one: one.pid)

    def test_srun_killed(self):
        """Slurm kills all of the step at once, without a word: who is left cleans the nodes at the next run."""
        for name in ("SIGKILL", "SIGTERM"):
            with self.subTest(signal=name):
                job = self.hang("-w", "node[1-3]", "--ntasks-per-node=1", count=3)
                os.kill(self.sruns_of(1)[0].pid, getattr(signal, name))
                result = self.expect(job.wait(), 121)
                self.expect_said(result, r"(node2|node3)\b.*lost|lost.*(node2|node3)")
                self.expect_said(result, r"srun|the connection to its agent ended")  # whichever is seen first
                self.wait_no_workers()
                self.expect(self.batch(self.hvdrun(worker("hello")), "-w", "node[1-3]", "--ntasks-per-node=1"), 0)

    def test_agent_killed(self):
        job = self.hang("-w", "node[1-3]", "--ntasks-per-node=1", count=3)
        os.kill(self.host(3).workers()[2].ppid, signal.SIGKILL)
        result = self.expect(job.wait(), 121)
        self.expect_said(result, r"node3\b[^\n]*lost")
        self.expect_not_said(result, r"node2\b[^\n]*lost")
        self.wait_no_workers()

    def test_time_limit_of_hvdrun(self):
        result = self.batch(self.hvdrun("--timeout", 1, "--grace", 1, worker("hang")), "-N2", "--ntasks-per-node=1")
        self.expect(result, 124)

    def test_a_shared_temporary_folder(self):
        """TMPDIR is the same folder on all nodes, by the network."""
        shared = self.box.path("shared-tmp")
        os.mkdir(shared)
        result = self.batch(self.hvdrun(mpi_worker("mpi_hello", "openmpi")), "-N3", "--ntasks-per-node=2",
                            env={"TMPDIR": shared, **QUIET})
        self.expect(result, 0)
        self.assertEqual(leftovers(shared), [])

    def test_a_temporary_folder_that_other_nodes_lack(self):
        """Slurm hands the login node's TMPDIR to every node; there it does not exist."""
        self.box_only = os.path.join("/tmp", "login-only")
        os.mkdir(self.box_only)
        self.addCleanup(shutil.rmtree, self.box_only)
        result = self.salloc(["-N2", "--ntasks-per-node=1"], HVDRUN, worker("hello"), env={"TMPDIR": self.box_only}).wait()
        self.assertEqual(self.expect(result, 0).stdout.count("hello from rank"), 2, result.describe())
        self.assertEqual(leftovers(self.box_only), [])


class UsualTimes(Runs):

    settings = {"KillWait": 30}  # Slurm's default

    def test_scancel_leaves_time_to_save_on_every_node(self):
        """srun says at once that it forces the end of the step, whose processes have until KillWait is over."""
        saver = self.write("saver", "#!/bin/bash\nend() { trap '' TERM; sleep 7; echo saved; exit 0; }\ntrap end TERM\n"
                                    "echo ready\nwhile :; do sleep 0.1; done\n", 0o755)
        job = self.submit(self.hvdrun(saver), "-N3", "--ntasks-per-node=1")
        job.wait_output("ready", count=3)
        job.cancel()
        result = job.wait()
        self.assertEqual((result.stdout.count("saved"), result.state), (3, "CANCELLED"), result.describe())
        self.expect_not_said(result, r"\blost\b")
        self.wait_no_workers()

    def test_scancel_with_stubborn_workers(self):
        """All is over before Slurm kills what is left, agents too, and nothing has to wait for the next run."""
        job = self.submit(self.hvdrun(worker("stubborn")), "-N2", "--ntasks-per-node=1")
        wait_until(lambda: all(len(self.host(n).workers()) == 1 for n in (1, 2)), "workers run")
        job.cancel()
        job.wait()
        self.wait_no_workers()


if __name__ == "__main__":
    main()
