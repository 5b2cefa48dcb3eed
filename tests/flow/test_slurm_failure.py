# SPDX-License-Identifier: Apache-2.0
# ctest waits
# ctest long
# ctest plain
"""A node of a Slurm job fails: a static job ends and names it, an elastic one with --no-kill goes on
with the rest, and takes in a node that is added to the job."""

import re
import shlex

from elastic import Elastic
from ground import Later, wait_until, worker
from slurm import HVDRUN, Runs, main, run_tool

LOST = 121


class Jobs(Runs):

    def clean(self, names):
        """Where Slurm has killed agent and keeper at once, the next run cleans what they had to leave."""
        self.cluster.wait_idle()
        self.expect(self.batch(self.hvdrun(worker("hello")), "-w", names, "--ntasks-per-node=1"), 0)


class Static(Jobs):

    def train(self, *options):
        job = self.submit(f"exec {HVDRUN} --grace 1 --node-timeout 3 {worker('hang')}", "-w", "node[1-3]",
                          "--ntasks-per-node=2", *options)
        job.wait_output("ready", count=6)
        return job

    def expect_lost(self, job, status=LOST):
        result = job.wait(60)
        self.expect(result, status)
        self.expect_said(result, r"node3\b[^\n]*lost")
        self.expect_not_said(result, r"node2\b[^\n]*lost")
        self.wait_no_workers(1, 2)

    def test_crash(self):
        job = self.train("--no-kill")
        self.host(3).crash()
        self.expect_lost(job)

    def test_power_cut(self):
        job = self.train("--no-kill")
        self.host(3).power_off()
        self.expect_lost(job)

    def test_cable_out(self):
        job = self.train("--no-kill")
        self.host(3).cut()
        self.expect_lost(job)
        self.wait_no_workers(3, timeout=30)
        self.host(3).heal()
        wait_until(lambda: self.host(3).left() == [], "Slurm has ended the step on the node that was cut off", 180)

    def test_slurm_says_that_the_node_is_down(self):
        """The step ends everywhere on it, though the node lives."""
        job = self.train("--no-kill")
        self.node_down(3)
        result = self.expect(job.wait(60), LOST)
        self.expect_said(result, r"node\d\b[^\n]*lost")
        self.wait_no_workers()
        self.clean("node[1-3]")

    def test_slurm_ends_the_whole_job(self):
        """Without --no-kill the loss of a node is the end of the job; nothing is left on the others."""
        job = self.train("--no-requeue")
        self.node_down(3)
        result = job.wait(60)
        self.assertIn(result.state, ("NODE_FAIL", "FAILED", "CANCELLED"), result.describe())
        self.wait_no_workers()


class FromTheLoginNode(Elastic, Jobs):

    gloo_timeout = 3

    def start_elastic(self, *args, **options):
        return self.salloc(["-w", "node[1-3]", "-N3", "--ntasks-per-node=2", "--no-kill"], HVDRUN,
                           "--node-timeout", 3, *args, **options)

    def process_of(self, member):
        for one in self.host(int(member.host.removeprefix("node"))).processes():
            if re.search(rb"^NSpid:.*\t%d$" % member.pid, one.read("status"), re.M):
                return one.pid
        raise AssertionError(f"no such process on its host: {member}")

    def expect_survivors(self, before, after, ranks):
        kept = [(before[rank].host, before[rank].pid) for rank in ranks]
        now = [(after[rank].host, after[rank].pid) for rank in sorted(after)]
        self.assertEqual([one for one in now if one in kept], kept)

    def test_hosts_come_from_the_allocation(self):
        job = self.train("--min-np", 2)
        members = job.members(6)
        self.assertEqual([members[rank].host for rank in range(6)], ["node1", "node1", "node2", "node2", "node3", "node3"])
        job.finish()

    def test_worker_killed(self):
        job = self.train("--min-np", 2)
        before = job.members(6)
        job.kill(before[5])
        self.expect_survivors(before, job.members(6, but=before), range(5))
        job.finish()

    def test_crash(self):
        job = self.train("--min-np", 2)
        before = job.members(6)
        self.host(3).crash()
        self.expect_survivors(before, job.members(4, but=before), range(4))
        self.tell_dead_nodes()
        job.finish()

    def test_power_cut(self):
        job = self.train("--min-np", 2)
        before = job.members(6)
        self.host(3).power_off()
        self.expect_survivors(before, job.members(4, but=before, timeout=60), range(4))
        self.tell_dead_nodes()
        job.finish()

    def test_slurm_says_that_the_node_is_down(self):
        job = self.train("--min-np", 2)
        before = job.members(6)
        self.node_down(3)
        self.expect_survivors(before, job.members(4, but=before, timeout=60), range(4))
        job.finish()
        self.clean("node3")

    def test_two_nodes_are_lost_one_after_the_other(self):
        job = self.train("--min-np", 2)
        before = job.members(6)
        self.host(3).crash()
        four = job.members(4, but=before)
        self.host(2).crash()
        self.expect_survivors(before, job.members(2, but=four), range(2))
        self.tell_dead_nodes()
        job.finish()


class InABatchScript(Jobs):
    """The same where hvdrun is the batch script: the first node is that of the driver."""

    def elastic_batch(self, *words):
        gate, let_go = self.box.gate("may-end")
        script = shlex.join(map(str, [HVDRUN, "--node-timeout", 3, "--grace", 1, "--min-np", 2, *words, worker("elastic_horovod"),
                                      "--steps", 60, "--until", gate, "--once", self.box.path(), "--alarm", 100]))
        job = self.submit(f"exec {script}", "-w", "node[1-3]", "--ntasks-per-node=2", "--no-kill",
                          env={"HOROVOD_GLOO_TIMEOUT_SECONDS": "3"})
        self.ranks(job, 1, 6)
        return job, let_go

    def ranks(self, job, number, size):
        """Waits until all ranks have said that they are in a round of this size."""
        wait_until(lambda: len(set(re.findall(rf"epoch-round {number} rank (\d+)/{size} ", job.output()))) == size,
                   Later(f"round {number} of {size}", job.describe), 60)

    def expect_end(self, job):
        result = self.expect(job.wait(), 0)
        self.assertNotIn("VIOLATION", result.stdout + result.stderr, result.describe())
        self.assertEqual(result.stdout.count("final steps=60"), 1, result.describe())
        return result

    def test_goes_on_with_the_rest(self):
        job, let_go = self.elastic_batch()
        self.host(3).power_off()
        self.ranks(job, 2, 4)
        let_go()
        self.expect_end(job)

    def test_grows_by_a_node_that_is_added_to_the_job(self):
        job, let_go = self.elastic_batch()
        environment = {name: value for name, value in self.batch_environment().items() if not name.startswith("SLURM")}
        text = run_tool("sh", "-c", f"salloc --no-shell -N1 -x "
                        f"{job.show()['NodeList']} --ntasks-per-node=2 --dependency=expand:{job.id} 2>&1", env=environment)
        helper = re.search(r"Granted job allocation (\d+)", text).group(1)
        self.scontrol("update", f"jobid={helper}", "NumNodes=0")
        wait_until(lambda: job.nodes() == ["node1", "node2", "node3", "node4"], "the job has the node")
        self.host(1).run(HVDRUN, "add", "node4:2")
        self.ranks(job, 2, 8)
        let_go()
        self.expect_end(job)


if __name__ == "__main__":
    main()
