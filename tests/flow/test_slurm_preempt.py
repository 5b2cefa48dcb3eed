# SPDX-License-Identifier: Apache-2.0
"""A Slurm job whose end is near: the warning signal, the time limit, preemption, scancel; what reaches hvdrun, its agents
and the workers, and how the job comes back."""
# ctest waits
# ctest long
# ctest plain

import json
import os

from ground import wait_until
from slurm import HVDRUN, Slurm, main, worker

# Saves on USR1 or TERM and ends; goes on from what was saved.
SAVER = """#!/bin/bash
save() { trap '' USR1 TERM; echo "step 5" > "$SAVED.$RANK"; echo "saved on $1, $(cut -d' ' -f2- "$HVDRUN_DEADLINE_FILE")"; exit 0; }
if test -e "$SAVED.$RANK"; then echo "rank $RANK goes on at $(cat "$SAVED.$RANK"), restart $SLURM_RESTART_COUNT"; exit 0; fi
trap 'save USR1' USR1
trap 'save TERM' TERM
echo ready
while :; do sleep 0.2; done
"""
APPEND = ("--requeue", "--open-mode=append")


class Warned(Slurm):
    nodes = 2
    options = ("-N2", "--ntasks-per-node=2", "-t5", *APPEND)

    def start_job(self, *words, options=(), program=None, ranks=4):
        saver = program or self.write("saver", SAVER, 0o755)
        line = " ".join(map(str, [HVDRUN, "--grace", 2, *words, saver]))
        job = self.submit(f"exec {line}", *self.options, *options, env={"SAVED": self.box.path("saved")})
        job.wait_output("ready", count=ranks)
        return job

    def expect_comes_back(self, job, ranks=4):
        result = self.expect(job.wait(90), 0)
        self.assertEqual((result.state, result.shown["Restarts"]), ("COMPLETED", "1"), result.describe())
        self.assertEqual(result.stdout.count("goes on at step 5, restart 1"), ranks, result.describe())
        return result

    def test_warned_and_put_back(self):
        report, events, files = (self.box.path(name) for name in ("report", "events", "files"))
        job = self.start_job("--slurm-requeue", "--report", report, "--events", events, "--output-filename", files)
        job.cancel("--signal=USR1", "--batch")
        result = self.expect_comes_back(job)
        self.assertEqual(result.stdout.count("saved on USR1, warning signal SIGUSR1"), 4, result.describe())
        self.expect_said(result, f"warning signal SIGUSR1: requeuing the Slurm job {job.id}")
        self.assertEqual(self.read_json(report)["scheduler"]["restart_count"], 1)
        self.assertEqual(self.read_json(report)["scheduler"]["job_id"], job.id)
        with open(events, encoding="utf-8") as file:
            ends = [line for line in map(json.loads, file) if line["event"] == "job_end"]
        self.assertEqual([end["status"] for end in ends], [120, 0])
        with open(os.path.join(files, "rank.3/stdout"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"^ready\nsaved on USR1.*\nrank 3 goes on at step 5, restart 1\n$")

    def test_the_steps_alone_are_warned(self):
        # as --signal=USR1@120 without B: does; the batch script gets nothing, the agent of node2 tells
        job = self.start_job("--slurm-requeue")
        job.cancel("--signal=USR1")
        self.expect_comes_back(job)

    def test_every_process_is_warned(self):
        job = self.start_job("--slurm-requeue")
        job.cancel("--signal=USR1", "--full")
        self.expect_comes_back(job)

    def test_before_the_time_limit(self):
        job = self.start_job("--slurm-requeue", "--map-signal", "USR1:TERM", options=("-t1", "--signal=B:USR1@60"))
        job.wait_output("saved on TERM, warning signal SIGUSR1", count=4, timeout=90)
        self.expect_comes_back(job)

    def test_the_time_limit_without_a_warning(self):
        # Slurm's TERM is the first word; the agents of other nodes are gone with it
        job = self.start_job("--slurm-requeue", options=("-t1", "-N1", "-n2", "--ntasks-per-node=2"), ranks=2)
        job.wait_output("warning signal SIGTERM", name="stderr", timeout=150)
        result = self.expect_comes_back(job, ranks=2)
        self.assertEqual(result.stdout.count("saved on TERM"), 2, result.describe())

    def test_a_worker_that_stays(self):
        job = self.start_job("--slurm-requeue", program=worker("stubborn"), options=("-t1", "--signal=B:USR1@60"))
        job.wait_output("the workers' time is over: sending SIGTERM", name="stderr", timeout=120)
        job.wait_output("requeuing the Slurm job", name="stderr", timeout=30)
        wait_until(lambda: job.show()["Restarts"] == "1", "the job is back")
        job.cancel()
        self.assertEqual(job.wait().state, "CANCELLED")

    def test_an_elastic_job(self):
        job = self.start_job("--slurm-requeue", "--min-np", 2, "--max-restarts", 3)
        job.cancel("--signal=USR1", "--batch")
        self.expect_comes_back(job)

    def test_it_may_not_be_put_back(self):
        job = self.start_job("--slurm-requeue", options=("--no-requeue",))
        job.cancel("--signal=USR1", "--batch")
        result = self.expect(job.wait(), 125)
        self.expect_said(result, f"cannot requeue the Slurm job {job.id}: .*--requeue")

    def test_usr1_alone_ends_nothing(self):
        job = self.start_job(program=worker("signals") + " --exit-on USR2")
        job.cancel("--signal=USR1", "--batch")
        job.wait_output("got SIGUSR1", count=4)
        job.wait_output("warning signal SIGUSR1: the job's time ends at", name="stderr")
        self.assertEqual(job.state(), "RUNNING")
        job.cancel("--signal=USR2", "--batch")
        self.expect(job.wait(), 0)

    def test_cancelled_jobs_stay_away(self):
        job = self.start_job("--slurm-requeue", program=worker("hang"))
        job.cancel()
        result = job.wait()
        self.assertEqual((result.state, result.shown["Restarts"]), ("CANCELLED", "0"), result.describe())
        self.assertNotIn("requeu", result.stderr)

    def test_a_failure_is_a_failure(self):
        result = self.batch(f"exec {HVDRUN} --slurm-requeue {worker('exit_with')} 0:7", *self.options)
        self.expect(result, 7)
        self.assertEqual((result.state, result.shown["Restarts"]), ("FAILED", "0"))


class PutBackBySlurm(Slurm):
    """Another job takes the nodes; Slurm puts ours back by itself, when GraceTime is over."""

    nodes = 2
    options = ("-N2", "--ntasks-per-node=2", "-t5", "--exclusive", *APPEND)

    def test_the_job_comes_back(self):
        job = Warned.start_job(self, "--slurm-requeue")
        self.submit("true", "-N2", "--exclusive", "-p", "urgent").wait()
        Warned.expect_comes_back(self, job)

    def test_a_job_of_one_node(self):
        # nothing is sent before GraceTime is over; then Slurm has put it back already
        self.options = ("-N1", "-w", "node1", *self.options[1:])
        job = Warned.start_job(self, "--slurm-requeue", ranks=2)
        self.submit("true", "-N1", "-w", "node1", "--exclusive", "-p", "urgent").wait()
        Warned.expect_comes_back(self, job, ranks=2)


class Preempted(Slurm):
    """Another job takes the nodes; Slurm would cancel ours."""

    nodes = 2
    settings = {"PreemptMode": "CANCEL"}
    options = ("-N2", "--ntasks-per-node=2", "-t5", "--exclusive", *APPEND)

    def test_the_job_comes_back(self):
        job = Warned.start_job(self, "-v", "--slurm-requeue")
        urgent = self.submit("true", "-N2", "--exclusive", "-p", "urgent")
        urgent.wait()
        result = Warned.expect_comes_back(self, job)
        self.assertEqual(result.stdout.count("saved on TERM"), 4, result.describe())


if __name__ == "__main__":
    main()
