# SPDX-License-Identifier: Apache-2.0
"""Nothing survives (D6): orphans, daemons, stubborn ranks, and the SIGKILL of any one of us."""
# ctest waits

import os
import re
import signal
import time

from rig import Flow, is_alive, main, wait_until, worker

KINDS = ("child", "daemon", "closed")


def left_behind(text):
    return [int(pid) for pid in re.findall(r"left (\d+) behind", text)]


class Cleanup(Flow):

    left_timeout = 5

    def test_what_ranks_leave_behind_is_gone_after_a_clean_end(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                result = self.expect(self.run_job("-np", 2, worker("orphan"), "--kind", kind), 0)
                pids = left_behind(result.stdout)
                self.assertEqual(len(pids), 2, result.describe())
                self.assertFalse([pid for pid in pids if is_alive(pid)])

    def test_and_after_a_failure(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                result = self.run_job("-np", 1, worker("orphan"), "--kind", kind, "--code", 3, ":",
                                      "-np", 2, worker("hang"))
                self.expect(result, 3)
                self.expect_blame(result, 0, code=3)

    def test_a_grandchild_that_holds_stdout_does_not_hold_the_job(self):
        self.expect(self.run_job("-np", 3, worker("orphan"), "--kind", "child", timeout=30), 0)
        self.expect(self.run_job("-np", 3, worker("orphan"), "--kind", "daemon", "--code", 3, timeout=30), 3)

    def test_an_orphan_lives_while_its_rank_lives(self):
        # a helper process of a running rank is the rank's own business
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, worker("orphan"), "--kind", "daemon", "--gate", gate)
        pid = int(job.wait_output(r"left (\d+) behind").group(1))
        time.sleep(0.5)
        self.assertTrue(is_alive(pid), "a daemon of a running rank was killed")
        let_go()
        self.expect(job.wait(), 0)
        self.assertFalse(is_alive(pid))

    def test_an_orphan_of_an_ended_rank_does_not_outlive_the_job_of_the_others(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, worker("orphan"), "--kind", "daemon", ":", "-np", 1, worker("hang"), "--until", gate)
        job.wait_output("ready")
        job.wait_output("left")
        let_go()
        self.expect(job.wait(), 0)
        self.box.check_nothing_left()

    def test_stubborn_ranks_at_a_failure(self):
        result = self.run_job("-np", 1, "--grace", 1, worker("exit_with"), "0:3:700", ":", "-np", 3, worker("stubborn"))
        self.expect(result, 3)

    def test_stopped_ranks_at_a_failure(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 3, "--grace", 1, worker("exit_with"), "--gate", gate, "0:3")
        workers = job.wait_workers(3)
        os.kill(workers[1].pid, signal.SIGSTOP)
        let_go()
        self.expect(job.wait(), 3)

    def test_driver_killed(self):
        for name in ("hang", "stubborn"):
            with self.subTest(worker=name):
                job = self.start("-np", 4, "--grace", 1, worker(name))
                job.wait_output("ready", count=4)
                job.signal(signal.SIGKILL)
                self.assertEqual(job.wait().status, -signal.SIGKILL)
                self.box.check_nothing_left(20)

    def test_driver_killed_with_orphans(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                gate, _ = self.box.gate()
                job = self.start("-np", 2, "--grace", 1, worker("orphan"), "--kind", kind, "--gate", gate)
                job.wait_output("left", count=2)
                job.signal(signal.SIGKILL)
                job.wait()
                self.box.check_nothing_left(20)

    def test_driver_killed_with_two_agents(self):
        job = self.start("-H", "a:2,b:2", "--transport", "local", "--grace", 1, worker("hang"))
        job.wait_output("ready", count=4)
        job.signal(signal.SIGKILL)
        job.wait()
        self.box.check_nothing_left(20)

    def test_driver_killed_while_it_starts(self):
        for delay in (0.001, 0.003, 0.006, 0.01, 0.02, 0.04):
            with self.subTest(delay=delay):
                job = self.start("-np", 16, "--grace", 1, worker("hang"))
                time.sleep(delay)
                job.signal(signal.SIGKILL)
                job.wait()
                self.box.check_nothing_left(20)

    def test_agent_killed_while_it_starts(self):
        # a shell gets PMIx, so there are folders before the driver has heard of them
        for step in range(24):
            with self.subTest(delay=step * 0.0015):
                job = self.start("-np", 3, "sh", "-c", "sleep 60; true")
                agents = wait_until(job.agents, "an agent") if step else []
                time.sleep(step * 0.0015)
                for agent in agents:
                    os.kill(agent.pid, signal.SIGKILL)
                if not agents:
                    job.signal(signal.SIGTERM)
                self.assertIn(job.wait(20).status, (121,) if agents else (143, -signal.SIGTERM))
                self.box.check_nothing_left()

    def test_agent_killed(self):
        job = self.start("-np", 4, "--grace", 1, worker("stubborn"))
        job.wait_output("ready", count=4)
        agents = job.agents()
        self.assertEqual(len(agents), 1, job.describe())
        os.kill(agents[0].pid, signal.SIGKILL)
        result = self.expect(job.wait(), 121)
        self.expect_said(result, r"node \S+ was lost: its agent was killed by SIGKILL; 4 of its 4 ranks were running")

    def test_agent_killed_with_orphans(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                gate, _ = self.box.gate()
                job = self.start("-np", 2, "--grace", 1, worker("orphan"), "--kind", kind, "--gate", gate)
                job.wait_output("left", count=2)
                os.kill(job.agents()[0].pid, signal.SIGKILL)
                self.expect(job.wait(), 121)
                self.box.check_nothing_left()

    def test_one_of_two_agents_killed(self):
        job = self.start("-H", "a:2,b:2", "--transport", "local", "--grace", 1, worker("hang"))
        job.wait_output("ready", count=4)
        agents = job.agents()
        self.assertEqual(len(agents), 2, job.describe())
        os.kill(job.workers()[3].ppid, signal.SIGKILL)
        result = self.expect(job.wait(), 121)
        self.expect_said(result, r"\bb\b.*lost|lost.*\bb\b")

    def test_agent_stopped_for_a_moment_is_not_lost(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 2, worker("hang"), "--until", gate)
        job.wait_output("ready", count=2)
        agent = job.agents()[0]
        os.kill(agent.pid, signal.SIGSTOP)
        time.sleep(2)
        os.kill(agent.pid, signal.SIGCONT)
        let_go()
        self.expect(job.wait(), 0)

    def test_agent_that_falls_silent_is_lost(self):
        job = self.start("-np", 2, "--node-timeout", 6, "--grace", 1, worker("hang"))
        job.wait_output("ready", count=2)
        os.kill(job.agents()[0].pid, signal.SIGSTOP)
        result = self.expect(job.wait(60), 121)
        self.expect_said(result, "silent|not answer|no sign|lost")

    def test_workers_die_with_the_agent_even_before_the_driver_acts(self):
        job = self.start("-np", 3, worker("hang"))
        job.wait_output("ready", count=3)
        workers, agent = job.wait_workers(3), job.agents()[0]
        os.kill(job.pid, signal.SIGSTOP)
        os.kill(agent.pid, signal.SIGKILL)
        wait_until(lambda: not any(is_alive(one.pid) for one in workers.values()), "the ranks' end by PDEATHSIG")
        os.kill(job.pid, signal.SIGCONT)
        self.expect(job.wait(), 121)

    def test_files_are_where_they_should_be_and_then_gone(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 2, "--mpi=pmix", worker("hang"), "--until", gate)
        job.wait_output("ready", count=2)
        self.assertTrue(self.box.litter(), "a job with PMIx has its folder below TMPDIR or XDG_RUNTIME_DIR")
        let_go()
        self.expect(job.wait(), 0)
        self.box.check_nothing_left()

    def test_the_folder_is_there_while_a_process_of_the_job_is(self):
        # the rank has ended, and what it left behind is still at work
        wrote = self.box.path("wrote")
        left = ('trap \'echo last > "$HVDRUN_DEADLINE_FILE.words" && echo yes > "$0" || echo no > "$0"; exit\' TERM; '
                'echo > "$0.ready"; while :; do sleep 0.02; done')
        script = 'sh -c "$1" "$2" >/dev/null 2>&1 & while [ ! -e "$2.ready" ]; do sleep 0.02; done'
        self.expect(self.run_job("-np", 1, "sh", "-c", script, "rank", left, wrote), 0)
        with open(wrote, encoding="utf-8") as file:
            self.assertEqual(file.read(), "yes\n")

    def test_folders_of_a_killed_driver_with_pmix(self):
        job = self.start("-np", 2, "--grace", 1, "--mpi=pmix", worker("hang"))
        job.wait_output("ready", count=2)
        job.signal(signal.SIGKILL)
        job.wait()
        self.box.check_nothing_left(20)

    def test_folders_of_a_killed_agent_with_pmix(self):
        job = self.start("-np", 2, "--grace", 1, "--mpi=pmix", worker("hang"))
        job.wait_output("ready", count=2)
        os.kill(job.agents()[0].pid, signal.SIGKILL)
        self.expect(job.wait(), 121)
        self.box.check_nothing_left(10)


if __name__ == "__main__":
    main()
