# SPDX-License-Identifier: Apache-2.0
"""The line between an agent and its workers (docs/internals/libhvd.md): ranks that have ended, stalls, progress."""

import os
import re

from ground import wait_until
from rig import Flow, main, worker

HOSTS = ("-H", "a:2,b:2", "--transport", "local")


class Line(Flow):

    def begin(self, *args, size=4, hosts=HOSTS, launcher=()):
        self.gate, self.let_go = self.box.gate()
        job = self.start(*hosts, *launcher, worker("line_worker"), "--until", self.gate, *args)
        job.wait_output(r"line epoch 1\b", count=size)
        return job

    def test_all_other_ranks_hear_of_a_death(self):
        job = self.begin("--die", "3:9", launcher=("--grace", 60))
        self.let_go()
        result = self.expect(job.wait(), 137)
        for rank in range(3):
            self.assertIn(f"[{rank}]<stdout>:ended 3 1 9 epoch 1", result.stdout, result.describe())
        self.expect_blame(result, 3, signal_number=9, host="b")

    def test_a_rank_that_ends_well(self):
        job = self.begin("--die", "0:x0")
        self.let_go()
        result = self.expect(job.wait(), 0)
        for rank in range(1, 4):
            self.assertIn(f"[{rank}]<stdout>:ended 0 0 0 epoch 1", result.stdout, result.describe())

    def test_a_lost_host(self):
        job = self.begin(launcher=("--min-np", 2, "--on-failure", "restart", "--max-restarts", 1,
                                   "--blacklist-after", 1, "--grace", 60))
        os.kill(int(job.wait_output(r"\[3\]<stdout>:line epoch 1 under (\d+)").group(1)), 9)
        for rank in (0, 1):
            job.wait_output(rf"\[{rank}\]<stdout>:ended 2 2 0 epoch 1")
            job.wait_output(rf"\[{rank}\]<stdout>:ended 3 2 0 epoch 1")
        job.wait_output(r"line epoch 2\b", count=2)
        self.let_go()
        self.expect(job.wait(), 0)

    def test_the_next_epoch_begins_anew(self):
        job = self.begin("--die", "1:9", launcher=("--max-restarts", 1, "--on-failure", "restart", "--grace", 60))
        self.let_go()
        result = self.expect(job.wait(), 0)
        self.assertEqual(len(re.findall(r"ended 1 1 9 epoch 1$", result.stdout, re.M)), 3, result.describe())
        self.assertEqual(len(re.findall(r"line epoch 2 ", result.stdout)), 4, result.describe())
        self.assertIsNone(re.search(r"ended \d+ 1 9 epoch 2", result.stdout), result.describe())

    def test_a_stall_is_shown_and_reported(self):
        path = self.box.path("report.json")
        job = self.begin("--stall", "2", launcher=("--report", path))
        job.wait_output(r"hvdrun: [^\n]*rank 2 waits for ranks 0-1,3 in allreduce 'grad\.17', for 60 s", name="stderr")
        self.let_go()
        self.expect(job.wait(), 0)
        stall, = self.read_json(path)["stalls"]
        self.assertEqual((stall["reported_by"], stall["operation"], stall["name"], stall["seconds"],
                          stall["waiting"], stall["missing"]), (2, "allreduce", "grad.17", 60, [2], [0, 1, 3]))

    def test_a_hang_names_the_ranks_that_are_missing(self):
        job = self.begin("--stall", "2", launcher=("--hang-timeout", 3, "--grace", 1))
        result = self.expect(job.wait(), 119)
        self.expect_said(result, r"the job hangs: [^\n]*; rank 2 waits for ranks 0-1,3 in allreduce 'grad\.17', for 60 s; "
                                 r"rank 0 is on a")

    def test_status_shows_a_stall_until_it_is_over(self):
        job = self.begin("--stall", "0", launcher=("--min-np", 4))
        job.wait_output(r"rank 0 waits for ranks 1-3", name="stderr")
        line = "rank 0 waits for ranks 1-3 in allreduce 'grad.17', for 60 s"
        self.assertIn(line, self.expect(self.run_job("status"), 0).stdout)
        self.write(self.gate + ".goes_on", "")
        wait_until(lambda: line not in self.run_job("status").stdout, "the stall is over")
        self.let_go()
        self.expect(job.wait(), 0)

    def test_progress_in_the_state_of_a_rank(self):
        self.gate = self.box.path("never")
        result = self.run_job("-np", 2, "--timeout", 2, "--grace", 0.2, worker("line_worker"), "--until", self.gate,
                              "--stall", "1")
        self.expect(result, 124)
        self.expect_said(result, r"rank 1 [^\n]*; libhvd has completed 1234 operations")

    def test_a_worker_that_writes_rubbish_and_never_reads(self):
        job = self.begin("--flood", "1", "--die", "2:x0", size=3)
        job.wait_output("flooded")
        self.let_go()
        result = self.expect(job.wait(), 0)
        for rank in (0, 3):  # whichever of the other two ends first
            self.assertRegex(result.stdout, rf"\[{rank}\]<stdout>:ended [12] 0 0 epoch 1", result.describe())
        self.assertLess(result.said.count("flood"), 30, result.describe())


if __name__ == "__main__":
    main()
