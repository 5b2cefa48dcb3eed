# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs whose workers rejoin: the stand-in for @hvd.elastic.run on simulated hosts. Whatever happens, the
survivors keep their processes and their state, and the result of the training is that of an undisturbed one.
test_hosts_elastic.py has real hosts."""
# ctest waits

import os
import re
import signal

from elastic import Elastic
from rig import Flow, is_alive, main, nightly, patient, wait_until, worker

DRAWN = "the simulator draws such losses and hosts 100,000 times"


class Rejoin(Elastic, Flow):

    def expect_survivors(self, before, after, ranks):
        """These ranks of before are the same processes, in the same order."""
        kept = [before[rank].pid for rank in ranks]
        self.assertEqual([after[rank].pid for rank in sorted(after) if after[rank].pid in kept], kept)

    def hosts_of(self, members):
        return [members[rank].host for rank in sorted(members)]


class Undisturbed(Rejoin):

    def test_one_epoch(self):
        job = self.train("-np", 4, *self.discover("a:2", "b:2"))
        members = job.members(4)
        self.assertEqual(self.hosts_of(members), ["a", "a", "b", "b"])
        result = job.finish()
        self.assertEqual([one["epoch"] for one in job.events("epoch")], [1])
        self.expect_not_said(result, "lost|epoch 2")

    def test_discovered_hosts_with_blanks_and_comments(self):
        job = self.train("-np", 3, "--slots-per-host", 2, *self.discover("# all of them", "", "a", "  ", "b:1  # small"))
        self.assertEqual(self.hosts_of(job.members(3)), ["a", "a", "b"])
        job.finish()

    def test_waits_for_the_first_hosts(self):
        job = self.train("-np", 3, *self.discover("a:2"))
        self.pause(1)
        self.assertEqual(job.said(), [])
        self.set_hosts("a:2", "b:1")
        job.members(3)
        job.finish()


class Workers(Rejoin):

    def test_killed(self):
        report = self.box.path("report")
        job = self.train("-H", "a:2,b:2", "--min-np", 2, "--report", report)
        before = job.members(4)
        job.kill(before[3])
        after = job.members(4, but=before)
        self.expect_survivors(before, after, (0, 1, 2))
        self.assertEqual((after[3].host, after[3].local), ("b", before[3].local), "the new one takes the slot")
        event = job.wait_epoch(2, size=3)
        for phase in ("detect_s", "agree_s", "plan_s", "start_s", "resumed_s"):
            self.assertIn(phase, event["phases"])
        job.wait_epoch(3, size=4)
        result = job.finish()
        self.expect_said(result, r"epoch 2: 3 ranks on 2 hosts \(rank 3 on b was killed by SIGKILL; started after .*"
                                 r"epoch 2: all ranks are connected, \S+ s after the failure\n.*"
                                 r"epoch 3: 4 ranks on 2 hosts .*"
                                 r"epoch 3: all ranks are connected, \S+ s after the change\n")
        met = {one["epoch"]: one["met_s"] for one in job.events("epoch_met")}
        told = self.read_json(report)["elastic"]
        self.assertEqual({one["epoch"]: one["lost_s"] for one in told["list"]}, {1: 0, 2: met[2], 3: met[3]})
        self.assertAlmostEqual(told["lost_s"], met[2] + met[3])

    def test_rank_0_killed(self):
        # whoever is rank 0 next must have the state
        job = self.train("-H", "a:2,b:2", "--min-np", 2, faults=("--crash", "0@27"))
        after = job.members(4, since=2)
        self.assertEqual(after[0].host, "a")
        self.assertGreaterEqual(after[0].step, 25, "the last commit")
        job.finish()

    @nightly(DRAWN)
    def test_two_at_once(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2)
        before = job.members(4)
        job.kill(before[1], before[2])
        after = job.members(4, but=before)
        self.expect_survivors(before, after, (0, 3))
        job.finish()

    @nightly(DRAWN)
    def test_all_at_once(self):
        # nobody has the state any more, and it is no host's fault
        job = self.train("-H", "a:2,b:2", "--min-np", 2)
        workers = job.members(4).values()
        for number in (signal.SIGSTOP, signal.SIGKILL):  # none of them outlives another
            job.kill(*workers, number=number)
        self.expect_said(job.ends(137, aborts=True), "every worker failed")

    @nightly(DRAWN)
    def test_one_after_the_other(self):
        job = self.train("-np", 4, "--min-np", 2, *self.discover("a:2", "b:2"))
        members = job.members(4)
        for rank in (1, 3, 0):
            job.kill(members[rank])
            members = job.members(4, but=members)
        job.wait_epoch(7)  # each one costs two
        job.finish()

    def test_exit_with_a_status_is_a_failure_too(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2, faults=("--exit", "2@20:9"))
        job.members(4, since=2)
        job.wait_epoch(2, size=3)
        job.finish()

    def test_dies_before_it_comes_to_the_rendezvous(self):
        # the others wait at its gate: another worker takes the place of the one that died
        job = self.train("-H", "a:2,b:2", "--min-np", 1, faults=("--crash", "3@20", "--crash-answer", "1@1"))
        after, before = job.members(4, since=2), job.round(1)
        self.expect_survivors(before, after, (0, 2))
        self.assertNotIn(before[1].pid, [one.pid for one in after.values()])
        job.finish()

    def test_dies_before_anyone_comes_to_the_first_rendezvous(self):
        # the others come to the gate later, and are not waited for until --rejoin-timeout
        result = self.expect(self.start_elastic(
            "-H", "a:1,b:1", "--min-np", 1, "--on-failure", "rejoin", "--rejoin-timeout", "200s", "sh", "-c",
            'test $HOROVOD_RANK = 1 && mkdir dead && exit 3; sleep 0.5; exec "$0" --steps 5', worker("elastic_horovod")).wait(100), 0)
        self.expect_said(result, "rank 1 on b exited with code 3")
        self.expect_not_said(result, "did not rejoin")

    def test_rank_0_dies_before_it_comes_to_the_rendezvous(self):
        # nobody else can be rank 0 of those that wait: they are ended, and start anew from what they have saved
        job = self.train("-H", "a:2,b:2", "--min-np", 1, faults=("--crash", "3@20", "--crash-answer", "0@1"))
        job.wait_event("epoch", mode="restart", size=4)
        self.expect_said(job.finish(), "no worker that holds the job's state remains")

    def test_dies_in_the_rendezvous(self):
        # the others would wait for it, and abort after five time-outs: they are ended before, and count for nothing
        job = self.train("-H", "a:2,b:2", "--min-np", 1, faults=("--crash", "3@20", "--crash-rejoin", "1@1"))
        job.wait_event("epoch", mode="restart", size=4)
        result = job.finish()
        self.expect_said(result, "no worker that holds the job's state remains")
        self.expect_not_said(result, "blacklist")

    def test_exit_0_right_after_a_failure_is_not_believed(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2, faults=("--crash", "1@20", "--exit0", "2@20"))
        job.members(4, since=2)
        job.finish()

    def test_exit_0_long_before_the_end(self):
        # one rank alone has not finished the job: success is every rank's
        job = self.train("-H", "a:2,b:1", "--min-np", 1, faults=("--exit0", "2@20"))
        job.members(3, since=2)
        job.finish()


class Imports(Rejoin):
    """Nobody waits for the imports of a new process, however long they take, and nobody fails because of them."""

    gloo_timeout = 1

    def train(self, *args, faults=(), **options):
        words, self.hold, self.let_go = self.held_imports()
        return super().train(*args, faults=(*words, *faults), **options)

    def outlast(self, job):
        """A while that is longer than any worker waits for another."""
        job.trains(int(patient(self.gloo_timeout)) + 0.3)

    def test_of_a_replacement(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2)
        before = job.members(4)
        self.hold()
        job.kill(before[3])
        three = job.members(3, but=before)
        self.expect_survivors(before, three, (0, 1, 2))
        job.imports(5)
        self.outlast(job)
        self.let_go()
        after = job.members(4, but=three)
        self.expect_survivors(before, after, (0, 1, 2))
        self.assertGreater(after[0].step, three[0].step, "they went on")
        self.assertNotRegex(job.finish().stdout, r"\blost rank ./3")

    def test_of_a_replacement_while_another_that_waits_dies(self):
        # rank 1 has died before it came to the gate; of those that wait there for its replacement, one dies too
        job = self.train("-H", "a:2,b:2", "--min-np", 1, faults=("--crash-answer", "1@0"))
        before = job.members(4)
        self.hold()
        job.kill(before[3])
        job.imports(5)
        job.kill(before[2])
        job.wait_event("worker_exit", pid=before[2].pid)
        self.let_go()
        after = job.members(4, but={rank: before[rank] for rank in (1, 2, 3)})
        self.expect_survivors(before, after, (0,))
        job.finish()

    @nightly("34 ranks, which an old version of Horovod takes")
    def test_of_a_replacement_with_an_old_gloo(self):
        # its first request has its addresses, of 136 bytes for each peer
        job = super().train("-np", 34, "-H", "a:17,b:17", "--min-np", 2, faults=("--old-gloo",), steps=5)
        before = job.members(34, timeout=60)
        job.kill(before[33])
        self.expect_survivors(before, job.members(34, but=before, timeout=60), range(33))
        job.finish()

    def test_of_a_replacement_that_all_wait_for(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2, "--rejoin", "together")
        before = job.members(4)
        self.hold()
        job.kill(before[3])
        job.imports(5)
        self.outlast(job)
        self.let_go()
        self.expect_survivors(before, job.members(4, but=before), (0, 1, 2))
        job.finish()
        self.assertEqual([one["size"] for one in job.events("epoch")], [4, 4])

    def test_of_a_new_host(self):
        job = self.train("-np", 2, "--min-np", 2, "--max-np", 4, *self.discover("a:2"))
        before = job.members(2)
        self.hold()
        self.set_hosts("a:2", "b:2")
        job.imports(4)
        self.outlast(job)
        self.let_go()
        self.expect_survivors(before, job.members(4), (0, 1))
        self.assertNotRegex(job.finish().stdout, r"\blost rank")

    def test_of_a_replacement_whose_host_leaves(self):
        job = self.train("-np", 2, "--min-np", 1, *self.discover("a:1", "b:1"))
        before = job.members(2)
        self.hold()
        job.kill(before[1])
        newcomer = job.imports(3)
        self.set_hosts("a:1")
        wait_until(lambda: not is_alive(newcomer.pid), "the end of the newcomer")
        self.expect_survivors(before, job.members(1), (0,))
        job.trains()
        self.let_go()
        job.finish()
        self.assertEqual([one["hosts"] for one in job.events("epoch")], [["a", "b"], ["a"]])

    def test_that_fail(self):
        # they count against their slot, and for nobody else
        job = self.train("-H", "a:2,b:2", "--min-np", 2)
        before = job.members(4)
        self.hold()
        job.kill(before[3])
        three = job.members(3, but=before)
        for count in (5, 6):
            job.kill(job.imports(count))
        job.wait_output("blacklist", name="stderr")
        job.trains()
        self.expect_survivors(before, three, (0, 1, 2))
        result = job.finish()
        self.assertEqual([one["size"] for one in job.events("epoch")], [4, 3])
        self.expect_said(result, "it had not joined the job yet")


class Hung(Rejoin):

    def test_survivor_that_never_asks(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2, "--rejoin-timeout", "3s",
                         faults=("--never-ask", "1@15", "--crash", "3@20"))
        after, before = job.members(4, since=2, timeout=60), job.round(1)
        self.expect_survivors(before, after, (0, 2))
        self.assertNotIn(before[1].pid, [one.pid for one in after.values()])
        job.finish()

    def test_hangs_in_a_collective(self):
        # nobody dies: the others find out, and ask
        self.gloo_timeout = 2
        job = self.train("-H", "a:2,b:2", "--min-np", 2, "--rejoin-timeout", "3s", faults=("--hang", "2@20"))
        after = job.members(4, since=2, timeout=60)
        self.expect_survivors(job.round(1), after, (0, 1, 3))
        job.finish()


class Agents(Rejoin):

    def test_killed_and_its_host_returns(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2)
        before = job.members(4)
        os.kill(job.agent_of("b").pid, signal.SIGKILL)
        two = job.members(2, but=before)
        self.expect_survivors(before, two, (0, 1))
        job.wait_epoch(2, cause=r"\bb\b", size=2)
        self.expect_survivors(before, job.members(4, but=two), (0, 1))
        job.finish()

    def test_killed_and_its_host_does_not_return(self):
        job = self.train("-np", 4, "--min-np", 2, *self.discover("a:2", "b:2"))
        before = job.members(4)
        self.crash_for_good(job, "b", "a:2")
        job.members(2, but=before)
        result = job.finish()
        self.expect_said(result, r"epoch \d: 2 ranks on 1 host \((b is not listed any more; )?lost b\b")

    @nightly(DRAWN)
    def test_of_rank_0(self):
        job = self.train("-np", 4, "--min-np", 2, *self.discover("a:2", "b:2"))
        before = job.members(4)
        os.kill(job.agent_of("a").pid, signal.SIGKILL)
        after = job.members(2, but=before)
        self.expect_survivors(before, after, (2, 3))
        job.finish()

    @nightly(DRAWN)
    def test_all_killed(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2)
        before = job.members(4)
        for agent in job.agents():
            os.kill(agent.pid, signal.SIGKILL)
        job.members(4, but=before)
        job.finish()

    def test_frozen(self):
        job = self.train("-np", 4, "--min-np", 2, "--node-timeout", 2, *self.discover("a:2", "b:2"))
        before = job.members(4)
        agent = job.agent_of("b")
        os.kill(agent.pid, signal.SIGSTOP)
        self.set_hosts("a:2")
        job.members(2, but=before, timeout=60)
        job.finish() # it was killed as soon as it was lost


class Growth(Rejoin):

    def test_new_host(self):
        job = self.train("-np", 2, "--min-np", 2, "--max-np", 6, *self.discover("a:2"))
        before = job.members(2)
        self.set_hosts("a:2", "b:2")
        after = job.members(4)
        self.expect_survivors(before, after, (0, 1))
        self.assertEqual([after[0].pid, after[1].pid], [before[0].pid, before[1].pid], "ranks are stable")
        job.wait_epoch(2, cause="b", size=4)
        result = job.finish()
        self.assertNotRegex(result.stdout, r"\blost rank")
        self.assertRegex(result.stdout, r"notified timestamp \d+ result [23]")
        self.expect_said(result, r"epoch 2: 4 ranks on 2 hosts \(added b")

    @nightly(DRAWN)
    def test_several_hosts_come_in_one_epoch(self):
        job = self.train("-np", 1, "--min-np", 1, "--max-np", 9, *self.discover("a:1"), "--grow-delay", "2s")
        job.members(1)
        for count in range(1, 4):
            self.set_hosts("a:1", *(f"n{i}:1" for i in range(count)))
            self.pause(0.3)
        job.members(4)
        self.assertEqual([one["size"] for one in job.events("epoch")], [1, 4])
        job.finish()

    def test_more_slots(self):
        job = self.train("-np", 1, "--min-np", 1, "--max-np", 3, *self.discover("a:1"))
        job.members(1)
        self.set_hosts("a:3")
        job.members(3)
        job.finish()

    @nightly(DRAWN)
    def test_max_np(self):
        job = self.train("-np", 2, "--min-np", 2, "--max-np", 3, *self.discover("a:2"))
        job.members(2)
        self.set_hosts("a:2", "b:2")
        self.assertEqual(self.hosts_of(job.members(3)), ["a", "a", "b"])
        job.trains()
        job.finish()

    def test_hosts_watch(self):
        self.set_hosts("a slots=2")
        job = self.train("-np", 2, "--min-np", 2, "--max-np", 4, "--hosts-watch", self.box.path("hosts"))
        job.members(2)
        self.set_hosts("a slots=2", "b slots=2")
        job.members(4)
        job.finish()

    @nightly(DRAWN)
    def test_a_failure_and_a_new_host_together(self):
        job = self.train("-np", 4, "--min-np", 2, "--max-np", 6, *self.discover("a:2", "b:2"))
        before = job.members(4)
        self.set_hosts("a:2", "b:2", "c:2")
        job.kill(before[2])
        after = job.members(6, timeout=60)
        self.expect_survivors(before, after, (0, 1, 3))
        job.finish(aborts=True)  # the kill may fall into the rendezvous of the growth

    def test_spare(self):
        job = self.train("-np", 2, "--min-np", 1, "--max-np", 2, "--spares", 1, "--grow-delay", "10s",
                         *self.discover("a:1", "b:1", "c:1"))
        stays, goes = self.hosts_of(job.members(2))  # the first two whose agents came up
        spare = ({"a", "b", "c"} - {stays, goes}).pop()
        wait_until(lambda: len(job.agents()) == 3, "the agent of the spare host")
        self.crash_for_good(job, goes, f"{stays}:1", f"{spare}:1")
        wait_until(lambda: sorted(self.hosts_of(job.members(2))) == sorted([stays, spare]), "the spare takes the place")
        job.finish()


class Shrinking(Rejoin):

    def test_host_removed(self):
        job = self.train("-np", 4, "--min-np", 2, *self.discover("a:2", "b:2"))
        before = job.members(4)
        self.set_hosts("a:2")
        after = job.members(2, but=before)
        self.expect_survivors(before, after, (0, 1))
        result = job.finish()
        # in order: nothing is rolled back, and 134 of those who go is no failure
        self.assertNotRegex(result.stdout, r"\blost rank")
        self.expect_not_said(result, r"rank \d+ (failed|exited)|134")

    @nightly(DRAWN)
    def test_host_of_rank_0_removed(self):
        job = self.train("-np", 4, "--min-np", 2, *self.discover("a:2", "b:2"))
        before = job.members(4)
        self.set_hosts("b:2")
        after = job.members(2, but=before)
        self.expect_survivors(before, after, (2, 3))
        self.assertGreaterEqual(after[0].step, before[0].step)
        job.finish()

    @nightly(DRAWN)
    def test_one_goes_and_another_comes(self):
        # never "removed" alone when somebody is new: the survivors would not send their state
        job = self.train("-np", 4, "--min-np", 2, "--max-np", 4, *self.discover("a:2", "b:2"))
        before = job.members(4)
        self.set_hosts("a:2", "c:2")
        wait_until(lambda: self.hosts_of(job.members(4, but=None)) == ["a", "a", "c", "c"], "c takes the place of b", 40)
        self.expect_survivors(before, job.members(4), (0, 1))
        job.finish()

    def test_below_min_np_waits_and_goes_on(self):
        job = self.train("-np", 4, "--min-np", 3, *self.discover("a:2", "b:2"))
        before = job.members(4)
        self.crash_for_good(job, "b", "a:2")
        job.wait_output(r"waiting|too few|not enough", name="stderr")
        self.pause(1)
        self.assertIsNone(job.popen.poll(), job.describe())
        self.set_hosts("a:2", "c:1")
        after = job.members(3, timeout=60)
        self.expect_survivors(before, after, (0, 1))
        self.assertGreaterEqual(after[0].step, before[0].step, "the state outlived the wait")
        job.finish()

    def test_below_min_np_for_too_long(self):
        job = self.train("-np", 4, "--min-np", 3, "--elastic-timeout", "2s", *self.discover("a:2", "b:2"))
        job.members(4)
        self.crash_for_good(job, "b", "a:2")
        result = job.ends()
        self.expect_said(result, "elastic-timeout")

    def test_all_hosts_gone_and_back(self):
        job = self.train("-np", 4, "--min-np", 2, *self.discover("a:2", "b:2"))
        before = job.members(4)
        self.set_hosts()
        for agent in job.agents():
            os.kill(agent.pid, signal.SIGKILL)
        self.pause(1.5)
        self.assertIsNone(job.popen.poll(), job.describe())
        self.set_hosts("b:2", "d:2")
        job.members(4, but=before, timeout=60)
        job.finish()

    def test_flapping_host(self):
        job = self.train("-np", 2, "--min-np", 2, "--max-np", 4, *self.discover("a:2"))
        before = job.members(2)
        for _ in range(5):
            self.set_hosts("a:2", "b:2")
            self.pause(0.7)
            self.set_hosts("a:2")
            self.pause(0.7)
        self.set_hosts("a:2", "b:2")
        after = job.members(4, timeout=60)
        self.expect_survivors(before, after, (0, 1))
        job.finish()


class Discovery(Rejoin):

    def test_failure_of_the_first_run_ends_the_job(self):
        script = self.write("discover.sh", "#!/bin/sh\necho a:2; echo no credentials >&2; exit 3\n", 0o755)
        result = self.train("-np", 2, "--host-discovery-script", script).ends(125)
        self.expect_said(result, "discovery.*(3|no credentials)")

    def test_later_failure_is_a_warning(self):
        job = self.train("-np", 2, "--min-np", 1, "--max-np", 3, *self.discover("a:2"))
        job.members(2)
        os.rename(self.box.path("hosts"), self.box.path("gone"))
        job.wait_output("discovery", name="stderr")
        job.trains()
        self.set_hosts("a:3")
        job.members(3)
        job.finish()

    def test_slow_script_holds_nobody_up(self):
        self.set_hosts("a:2", "b:2")
        script = self.write("discover.sh", f"#!/bin/sh\ncat '{self.box.path('hosts')}'\n[ ! -e slow ] || sleep 60\n", 0o755)
        job = self.train("-np", 4, "--min-np", 2, "--host-discovery-script", script, "--discovery-period", "200ms",
                         "--discovery-timeout", "2s")
        before = job.members(4)
        self.write("slow", "")
        self.pause(0.5)
        job.kill(before[3])
        job.members(4, but=before)
        job.finish()


class Ends(Rejoin):

    def test_reset_limit(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2, "--reset-limit", 1)
        before = job.members(4)
        job.kill(before[3])
        after = job.members(4, but=before)
        job.kill(after[3])
        self.expect_said(job.ends(), "reset-limit")

    def test_program_that_crashes_on_every_host(self):
        job = self.train("-H", "a:1,b:1,c:1", "--min-np", 1, faults=("--crash", "all@10:1000"))
        result = job.ends(aborts=True)
        self.assertGreater(result.status, 128, result.describe())
        self.expect_said(result, "every worker failed|every host")

    def test_on_failure_stop(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2, "--on-failure", "stop")
        job.kill(job.members(4)[2])
        result = job.ends(137)
        self.expect_blame(result, 2, signal_number=signal.SIGKILL)

    def test_host_put_aside_is_not_used_again(self):
        # together: the new worker begins at the step that kills it
        job = self.train("-H", "a:1,b:1", "--min-np", 1, "--rejoin", "together", faults=("--crash", "1@10:1000"))
        members = job.members(1, timeout=60)
        self.assertEqual(members[0].host, "a")
        job.trains()
        result = job.finish()
        self.assertLessEqual(len(set(re.findall(r"crash rank 1/2 host b .* pid (\d+)", result.stdout))), 5)
        self.expect_said(result, r"\bb\b[^\n]*(aside|blacklist)")

    def test_cooldown(self):
        job = self.train("-H", "a:1,b:1", "--min-np", 1, "--blacklist-cooldown-range", "1", "2", "--rejoin", "together",
                         faults=("--crash", "1@10:3"))
        alone = job.members(1, timeout=60)
        job.members(2, but=alone, timeout=60)
        job.finish()

    def test_ctrl_c_while_it_waits_for_hosts(self):
        job = self.train("-np", 4, "--min-np", 3, *self.discover("a:2", "b:2"))
        job.members(4)
        self.crash_for_good(job, "b", "a:2")
        job.wait_output(r"waiting|too few|not enough", name="stderr")
        job.signal(signal.SIGINT)
        self.assertEqual(job.wait(30).status, 130)

    def test_result_waits_for_every_rank(self):
        # one that is slow to end is still part of the job
        job = self.train("-H", "a:1,b:1", "--min-np", 1)
        job.members(2)
        result = job.finish()
        self.assertEqual(len(job.events("epoch")), 1, result.describe())


class Drain(Rejoin):

    def test_sigterm_to_an_agent(self):
        job = self.train("-np", 4, "--min-np", 2, *self.discover("a:2", "b:2"))
        before = job.members(4)
        os.kill(job.agent_of("b").pid, signal.SIGTERM)
        after = job.members(2, but=before)
        self.expect_survivors(before, after, (0, 1))
        job.wait_epoch(2, cause=r"\bb\b", size=2)
        result = job.finish()
        self.assertNotRegex(result.stdout, r"\blost rank")  # it left at a commit, before it died

    def test_probe(self):
        # asked on every host, where the working folder is one: the file names the host that is to go
        probe = self.write("probe.sh", f"#!/bin/sh\n[ -e '{self.box.path('notice')}' ]\n", 0o755)
        job = self.train("-np", 2, "--min-np", 1, "--preempt-probe", probe, "--preempt-period", "200ms",
                         *self.discover("a:2"), "--elastic-timeout", "2s")
        job.members(2)
        self.write("notice", "")
        result = job.ends()
        self.expect_said(result, "preempt|notice|elastic-timeout")


class Many(Rejoin):

    def test_32_ranks_lose_a_host(self):
        names = [f"n{i}" for i in range(4)]
        job = self.train("-np", 32, "--min-np", 8, *self.discover(*(f"{name}:8" for name in names)), step_ms=50, steps=20)
        before = job.members(32, timeout=60)
        self.crash_for_good(job, "n3", *(f"{name}:8" for name in names[:-1]))
        job.members(24, but=before, timeout=60)
        job.finish(timeout=90)

    def test_static_job_has_no_elastic_variable(self):
        result = self.run_job("-np", 1, worker("elastic_horovod"))
        self.assertEqual(result.status, 2)
        self.assertIn("VIOLATION: elastic_horovod: HOROVOD_ELASTIC is not set", result.stderr)


if __name__ == "__main__":
    main()
