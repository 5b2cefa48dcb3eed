# SPDX-License-Identifier: Apache-2.0
"""Draining a host, by SIGTERM to its agent, a preemption probe or hvdrun drain. What do its workers learn, and
what does not count as a failure? The hosts are simulated. test_elastic_control.py has more tests, and
test_hosts_elastic.py has real hosts."""
# ctest waits

import os
import re
import signal
import time

from elastic import Elastic
from rig import Flow, is_alive, main, process, wait_until

NOTICED = """#!/bin/sh
# asked by the agent of every made-up host; the one whose pid is in the file is told
[ "$(cat '{notice}' 2>/dev/null)" = "$PPID" ] || exit 1
{says}
"""

TERM_TELLER = """#!/bin/bash
# says what it knows when it is asked to end
echo "start rank $RANK of $WORLD_SIZE restart $TORCHELASTIC_RESTART_COUNT host $HVDRUN_HOSTNAME"
trap 'echo "rank $RANK restart $TORCHELASTIC_RESTART_COUNT host $HVDRUN_HOSTNAME told: $(cat "$HVDRUN_DEADLINE_FILE" 2>&1)"; exit 0' TERM
while [ ! -e may-end ]; do sleep 0.2; done
"""


class Drain(Elastic, Flow):

    gloo_timeout = 60  # so long may a worker be frozen

    def setUp(self):
        super().setUp()
        self.report = self.box.path("report")

    def agent_pid(self, member):
        return process(member.pid).ppid

    def probe(self, says="echo 30 maintenance soon"):
        """The options for a probe that finds a notice on one host; see give_notice()."""
        script = self.write("probe.sh", NOTICED.format(notice=self.box.path("notice"), says=says), 0o755)
        return ["--preempt-probe", script, "--preempt-period", "200ms"]

    def give_notice(self, member):
        self.write("notice.new", f"{self.agent_pid(member)}\n")
        os.rename(self.box.path("notice.new"), self.box.path("notice"))

    def drain(self, host, *words):
        self.expect(self.start("drain", host, *words).wait(), 0)

    def deadline_file(self, member):
        return process(member.pid).environ()["HVDRUN_DEADLINE_FILE"]

    def freeze_training(self, job, members):
        """Nobody gets to a commit; ends with the function that is returned."""
        job.kill(members[1], number=signal.SIGSTOP)
        return lambda: job.kill(members[1], number=signal.SIGCONT)

    def expect_survivors(self, before, after, ranks):
        self.assertEqual([after[rank].pid for rank in range(len(ranks))], [before[rank].pid for rank in ranks])

    def expect_deadline(self, text, seconds, why, since):
        """One line: until when, and why; the notice came between `since` and now."""
        found = re.fullmatch(r"(\d+\.\d{3}) (.*)\n", text)
        self.assertTrue(found, repr(text))
        self.assertTrue(since + seconds - 1 <= float(found[1]) <= time.time() + seconds + 1, (text, since, time.time()))
        self.assertRegex(found[2], why)

    def check_counts(self, preemptions, hosts_lost, crashes=0):
        """In the report; a loss that was announced is a preemption."""
        elastic = self.read_json(self.report)["elastic"]
        self.assertEqual((elastic["preemptions"], elastic["hosts_lost"], elastic["crashes"]),
                         (preemptions, hosts_lost, crashes), elastic)

    def finish_quietly(self, job):
        """Nothing was rolled back, and nobody has failed."""
        result = job.finish()
        self.assertNotRegex(result.stdout, r"\blost rank")
        self.expect_not_said(result, r"rank \d+ (failed|exited|was killed)|\b134\b|\blost [ab]\b")
        return result


class Ways(Drain):

    def test_sigterm_to_an_agent(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2, "--report", self.report)
        before = job.members(4)
        os.kill(self.agent_pid(before[2]), signal.SIGTERM)
        self.expect_survivors(before, job.members(2, but=before), (0, 1))
        result = self.finish_quietly(job)
        self.expect_said(result, r"epoch 2: 2 ranks on 1 host \(.*\bb\b")
        self.expect_said(result, r"2 epochs: 0 crashes, 0 hosts lost, 1 preempted")
        self.check_counts(1, 0)

    def test_sigterm_to_the_agent_of_rank_0(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2)
        before = job.members(4)
        os.kill(self.agent_pid(before[0]), signal.SIGTERM)
        after = job.members(2, but=before)
        self.expect_survivors(before, after, (2, 3))
        self.assertGreaterEqual(after[0].step, before[0].step, "its state was handed on")
        self.finish_quietly(job)

    def test_probe_with_a_time(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2, "--report", self.report, *self.probe())
        before = job.members(4)
        self.give_notice(before[2])
        self.expect_survivors(before, job.members(2, but=before), (0, 1))
        result = self.finish_quietly(job)
        self.expect_said(result, "maintenance soon")
        self.check_counts(1, 0)

    def test_probe_without_a_time(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2, "--report", self.report, *self.probe("echo rebalance"))
        before = job.members(4)
        self.give_notice(before[2])
        self.expect_survivors(before, job.members(2, but=before), (0, 1))
        self.expect_said(self.finish_quietly(job), "rebalance")
        self.check_counts(1, 0)

    def test_probe_that_fails_is_a_warning(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2, *self.probe("echo no metadata service >&2; exit 2"))
        before = job.members(4)
        self.give_notice(before[2])
        job.wait_output("preemption probe .*no metadata service", name="stderr")
        job.trains()
        result = self.finish_quietly(job)
        self.assertEqual(len(re.findall("no metadata service", result.stderr)), 1, "once")
        self.assertEqual(len(job.events("epoch")), 1)

    def test_two_hosts_one_after_the_other(self):
        job = self.train("-np", 6, "-H", "a:2,b:2,c:2", "--min-np", 2, "--report", self.report)
        before = job.members(6)
        self.drain("b")
        four = job.members(4, but=before)
        self.drain("a")
        self.expect_survivors(four, job.members(2, but=four), (2, 3))
        self.finish_quietly(job)
        self.check_counts(2, 0)

    def test_two_hosts_at_once(self):
        job = self.train("-np", 6, "-H", "a:2,b:2,c:2", "--min-np", 2, "--report", self.report)
        before = job.members(6)
        thaw = self.freeze_training(job, before)
        self.drain("b")
        self.drain("c")
        thaw()
        self.expect_survivors(before, job.members(2, but=before), (0, 1))
        self.finish_quietly(job)
        self.check_counts(2, 0)

    def test_its_place_is_taken_by_another(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2, "--max-np", 4)
        before = job.members(4)
        self.drain("b")
        self.expect(self.start("add", "c:2").wait(), 0)
        wait_until(lambda: [one.host for one in job.members(4).values()].count("c") == 2, "c takes the place of b", 40)
        self.expect_survivors(before, job.members(4), (0, 1))
        self.finish_quietly(job)


class Deadline(Drain):

    def test_file_of_a_probes_notice(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2, *self.probe())
        before = job.members(4)
        files = {rank: self.deadline_file(before[rank]) for rank in before}
        self.assertEqual([rank for rank in files if os.path.exists(files[rank])], [])
        thaw, since = self.freeze_training(job, before), time.time()
        self.give_notice(before[2])
        wait_until(lambda: os.path.exists(files[2]) and os.path.exists(files[3]), "the deadline is told")
        for rank in (2, 3):
            with open(files[rank], encoding="utf-8") as file:
                self.expect_deadline(file.read(), 30, r"\Amaintenance soon\Z", since)
        self.assertFalse(os.path.exists(files[0]) or os.path.exists(files[1]), "of another host")
        thaw()
        self.expect_survivors(before, job.members(2, but=before), (0, 1))
        self.finish_quietly(job)

    def test_file_of_hvdrun_drain(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2)
        before = job.members(4)
        path = self.deadline_file(before[3])
        thaw, since = self.freeze_training(job, before), time.time()
        self.drain("b", "--within", "90s")
        wait_until(lambda: os.path.exists(path), "the deadline is told")
        with open(path, encoding="utf-8") as file:
            self.expect_deadline(file.read(), 90, r"drain", since)
        thaw()
        job.members(2, but=before)
        self.finish_quietly(job)

    def test_no_file_without_a_time(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2)
        before = job.members(4)
        path = self.deadline_file(before[3])
        thaw = self.freeze_training(job, before)
        self.drain("b")
        self.pause(0.5)
        self.assertFalse(os.path.exists(path))
        thaw()
        job.members(2, but=before)
        self.finish_quietly(job)

    def test_undrain_takes_the_file_back(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2)
        before = job.members(4)
        path = self.deadline_file(before[3])
        thaw = self.freeze_training(job, before)
        self.drain("b", "--within", "90s")
        wait_until(lambda: os.path.exists(path), "the deadline is told")
        self.expect(self.start("undrain", "b").wait(), 0)
        wait_until(lambda: not os.path.exists(path), "the deadline is taken back")
        thaw()
        after = job.members(4)
        self.assertEqual({one.pid for one in after.values()}, {one.pid for one in before.values()})
        self.finish_quietly(job)

    def test_workers_that_do_not_leave_in_time_are_ended(self):
        # no commit comes before the deadline: the host is left all the same, and that is no loss
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2, "--report", self.report)
        before = job.members(4)
        thaw = self.freeze_training(job, before)
        self.drain("b", "--within", "1s")
        wait_until(lambda: not is_alive(before[3].pid), "rank 3 is ended", 30)
        thaw()
        self.expect_survivors(before, job.members(2, but=before), (0, 1))
        job.finish()
        self.check_counts(1, 0)


class Restart(Drain):

    def run_teller(self, *args):
        script = self.write("worker.sh", TERM_TELLER, 0o755)
        return self.start_elastic("--grace", 2, "--grow-delay", "200ms", "--report", self.report, *args, script)

    def wait_start(self, job, size, restart):
        job.wait_output(rf"start rank \d of {size} restart {restart}", count=size)

    def finish_teller(self, job):
        self.write("may-end", "")
        return self.expect(job.wait(), 0)

    def test_sigterm_and_the_time(self):
        job = self.run_teller("-np", 4, "-H", "a:2,b:2", "--min-np", 2)
        self.wait_start(job, 4, 0)
        since = time.time()
        self.drain("b", "--within", "90s")
        self.wait_start(job, 2, 1)
        result = self.finish_teller(job)
        told = dict(re.findall(r"rank (\d) restart 0 host . told: (.*)", result.stdout))
        self.assertEqual(sorted(told), ["0", "1", "2", "3"], "all got SIGTERM")
        for rank in "23":
            self.expect_deadline(told[rank] + "\n", 90, "drain", since)
        for rank in "01":
            self.assertIn("No such file", told[rank])
        self.check_counts(1, 0)
        self.expect_not_said(result, r"rank \d+ (failed|exited|was killed)")

    def test_probe(self):
        job = self.run_teller("-np", 4, "-H", "a:2,b:2", "--min-np", 2, *self.probe())
        self.wait_start(job, 4, 0)
        shells = {one.pid: one for one in job.tree() if "worker.sh" in str(one)}
        agents = {one.environ().get("HVDRUN_HOSTNAME"): one.ppid for one in shells.values()
                  if one.ppid not in shells}  # a shell that has just forked looks like its parent
        since = time.time()
        self.write("notice.new", f"{agents['b']}\n")
        os.rename(self.box.path("notice.new"), self.box.path("notice"))
        self.wait_start(job, 2, 1)
        result = self.finish_teller(job)
        self.expect_deadline(re.search(r"rank 3 restart 0 host b told: (.*\n)", result.stdout)[1], 30, "maintenance soon",
                             since)
        self.check_counts(1, 0)

    def test_costs_no_restart_of_the_crashes(self):
        job = self.run_teller("-np", 3, "-H", "a:1,b:1,c:1", "--min-np", 1, "--max-restarts", 0, "--on-failure", "restart")
        self.wait_start(job, 3, 0)
        self.drain("c")
        self.wait_start(job, 2, 1)
        self.drain("b")
        self.wait_start(job, 1, 2)
        self.finish_teller(job)
        self.check_counts(2, 0)

    def test_max_preemptions(self):
        job = self.run_teller("-np", 3, "-H", "a:1,b:1,c:1", "--min-np", 1, "--max-preemptions", 1)
        self.wait_start(job, 3, 0)
        self.drain("c")
        self.wait_start(job, 2, 1)
        self.drain("b")
        result = self.expect(job.wait(), 121)
        self.expect_said(result, "max-preemptions")


class Hurry(Drain):

    def test_a_drained_host_dies_before_the_commit(self):
        job = self.train("-np", 4, "--min-np", 2, "--report", self.report, *self.discover("a:2", "b:2"))
        before = job.members(4)
        thaw = self.freeze_training(job, before)
        self.set_hosts("a:2")
        self.drain("b", "--within", "60s")
        os.kill(self.agent_pid(before[2]), signal.SIGKILL)
        wait_until(lambda: not is_alive(before[2].pid), "b is gone")
        thaw()
        self.expect_survivors(before, job.members(2, but=before), (0, 1))
        result = job.finish()
        self.check_counts(1, 0)
        self.expect_said(result, r"2 epochs: 0 crashes, 0 hosts lost, 1 preempted")

    def test_a_worker_crashes_while_its_host_drains(self):
        job = self.train("-np", 4, "-H", "a:2,b:2", "--min-np", 2, "--report", self.report)
        before = job.members(4)
        thaw = self.freeze_training(job, before)
        self.drain("b", "--within", "60s")
        job.kill(before[3])
        thaw()
        after = job.members(2, but=before, timeout=90)
        self.expect_survivors(before, after, (0, 1))
        job.finish()

    def test_the_last_host(self):
        # nobody is left who has the state: the job waits, then begins anew with the same result
        job = self.train("-np", 2, "--min-np", 1, "--max-np", 2, "--report", self.report, *self.discover("a:2"))
        before = job.members(2)
        self.drain("a")
        wait_until(lambda: not job.workers(), "a is left")
        wait_until(lambda: "waiting" in self.start("status").wait().stdout, "the job waits for hosts")
        self.pause(0.5)
        self.assertIsNone(job.popen.poll(), job.describe())
        self.set_hosts("a:2", "b:2")
        after = job.members(2, but=before)
        self.assertEqual([after[0].host, after[1].host], ["b", "b"], "a is drained still")
        job.finish()
        self.check_counts(1, 0)

    def test_below_min_np(self):
        job = self.train("-np", 4, "--min-np", 3, *self.discover("a:2", "b:2"))
        before = job.members(4)
        self.drain("b")
        job.wait_output(r"waiting|too few|not enough", name="stderr")
        self.set_hosts("a:2", "b:2", "c:2")
        after = job.members(4, but=before, timeout=60)
        self.expect_survivors(before, after, (0, 1))
        self.assertEqual([after[2].host, after[3].host], ["c", "c"])
        job.finish()


if __name__ == "__main__":
    main()
