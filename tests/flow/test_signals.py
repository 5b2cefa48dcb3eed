# SPDX-License-Identifier: Apache-2.0
"""Signals to the launcher: forwarded as they are, Ctrl-C in three steps, suspend and resume."""

import os
import pathlib
import signal
import time

from rig import Flow, descendants, is_alive, main, state, wait_until, worker


class Forwarded(Flow):

    def test_each_signal_arrives_as_itself(self):
        for name in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2"):
            with self.subTest(signal=name):
                job = self.start("-np", 3, "--grace", 30, worker("signals"), "--exit-on", name)
                job.wait_output("ready", count=3)
                job.signal(getattr(signal, "SIG" + name))
                result = job.wait()
                for rank in range(3):
                    self.assertEqual(result.lines.count(f"[{rank}]<stdout>:got SIG{name}"), 1, result.describe())
                # every rank dealt with it and exited with 0
                self.expect(result, 0)

    def test_usr1_does_not_end_the_job(self):
        job = self.start("-np", 2, worker("signals"), "--exit-on", "USR2")
        job.wait_output("ready", count=2)
        for count in (1, 2, 3):
            job.signal(signal.SIGUSR1)
            job.wait_output("got SIGUSR1", count=2 * count)
        self.assertIsNone(job.popen.poll())
        job.signal(signal.SIGUSR2)
        self.expect(job.wait(), 0)

    def test_status_after_a_signal_that_ends_the_ranks(self):
        for name in ("INT", "TERM", "HUP", "QUIT"):
            with self.subTest(signal=name):
                job = self.start("-np", 2, worker("hang"))
                job.wait_output("ready", count=2)
                number = getattr(signal, "SIG" + name)
                job.signal(number)
                self.expect(job.wait(), 128 + number)

    def test_ranks_that_leave_with_their_own_code_on_term(self):
        job = self.start("-np", 2, worker("signals"), "--exit-on", "TERM", "--code", 9)
        job.wait_output("ready", count=2)
        job.signal(signal.SIGTERM)
        result = self.expect(job.wait(), 143)
        self.assertEqual(result.stdout.count("got SIGTERM"), 2)

    def test_default_deadly_usr1(self):
        job = self.start("-np", 2, worker("hang"))
        job.wait_output("ready", count=2)
        job.signal(signal.SIGUSR1)
        self.expect(job.wait(), 128 + signal.SIGUSR1)

    def test_stubborn_ranks_are_killed_after_the_grace(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                job = self.start("-np", 2, "--grace", 1, worker("stubborn"))
                job.wait_output("ready", count=2)
                job.signal(number)
                self.expect(job.wait(), 128 + number)

    def test_signal_before_the_job_runs(self):
        # whatever the moment, the launcher ends and leaves nothing
        for step in range(40):
            delay = step * 0.00025 if step < 30 else (step - 28) * 0.005
            hosts = ["-H", "a:2,b:2,c:1", "--transport", "local"] if step % 3 == 0 else ["-np", 4]
            with self.subTest(delay=delay, hosts=hosts):
                job = self.start(*hosts, "--grace", "1h", worker("hang"))
                time.sleep(delay)
                job.signal(signal.SIGTERM)
                # far less than the grace: an END that overtakes PREPARE must be answered
                self.assertIn(job.wait().status, (143, -signal.SIGTERM))
                self.box.check_nothing_left()

    def test_the_workers_get_a_terminals_signals_once(self):
        # Ctrl-C goes to the whole foreground group: only the launcher is in it
        job = self.terminal("-np", 2, "--grace", 30, worker("signals"), "--exit-on", "TERM")
        job.wait_output("ready", count=2)
        job.type("\x03")
        job.wait_output("got SIGINT", count=2)
        time.sleep(0.5)
        self.assertEqual(job.output().count("got SIGINT"), 2, job.describe())
        job.type("\x03")
        job.wait_output("got SIGTERM", count=2)
        job.wait()


class ThreeTimesCtrlC(Flow):

    def test_int_then_term_then_kill(self):
        job = self.start("-np", 2, "--grace", 60, worker("signals"))  # stays whatever comes
        job.wait_output("ready", count=2)
        workers = job.wait_workers(2)
        job.signal(signal.SIGINT)
        job.wait_output("got SIGINT", count=2)
        self.assertTrue(all(is_alive(one.pid) for one in workers.values()))
        job.signal(signal.SIGINT)
        job.wait_output("got SIGTERM", count=2)
        self.assertTrue(all(is_alive(one.pid) for one in workers.values()))
        job.signal(signal.SIGINT)
        result = self.expect(job.wait(30), 130)
        self.assertEqual(result.stdout.count("got SIGINT"), 2, result.describe())

    def test_it_is_said_what_the_next_one_does(self):
        job = self.start("-np", 1, "--grace", 60, worker("signals"))
        job.wait_output("ready")
        job.signal(signal.SIGINT)
        job.wait_output("(?i)again|once more|ctrl-c", name="stderr")
        job.signal(signal.SIGINT)
        job.wait_output("got SIGTERM")
        job.signal(signal.SIGINT)
        self.expect(job.wait(), 130)

    def test_in_a_terminal(self):
        job = self.terminal("-np", 2, "--grace", 60, worker("hang"))
        job.wait_output("ready", count=2)
        job.type("\x03")
        self.assertIn(job.wait(), (130, -signal.SIGINT), job.describe())


class Suspend(Flow):

    def all_in(self, workers, letters):
        return all(state(one.pid) in letters for one in workers.values())

    def test_stop_and_continue_the_whole_job(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 3, worker("hang"), "--until", gate)
        job.wait_output("ready", count=3)
        workers = job.wait_workers(3)
        for _ in range(3):
            job.signal(signal.SIGTSTP)
            wait_until(lambda: self.all_in(workers, "T"), "stopped ranks")
            wait_until(lambda: state(job.pid) == "T", "a stopped launcher")
            os.kill(job.pid, signal.SIGCONT)
            wait_until(lambda: self.all_in(workers, "RSD"), "running ranks")
            wait_until(lambda: state(job.pid) != "T", "a running launcher")
        let_go()
        self.expect(job.wait(), 0)

    def test_ctrl_z_and_fg(self):
        gate, let_go = self.box.gate()
        job = self.terminal("-np", 2, worker("hang"), "--until", gate)
        job.wait_output("ready", count=2)
        job.type("\x1a")
        job.wait_report(r"stopped \d+")
        below = [one for one in descendants(job.pid) if one.exe() == worker("hang")]
        self.assertEqual(len(below), 2, job.describe())
        wait_until(lambda: all(state(one.pid) == "T" for one in below), "stopped ranks")
        job.command("f")
        job.wait_report("continued 0")
        wait_until(lambda: all(state(one.pid) in "RSD" for one in below), "running ranks")
        let_go()
        self.assertEqual(job.wait(), 0, job.describe())

    def test_children_of_ranks_stop_too(self):
        gate, let_go = self.box.gate()
        script = self.write("family", f"#!/bin/sh\n'{worker('hang')}' --until {gate} & wait\n", 0o755)
        job = self.start("-np", 1, script)
        job.wait_output("ready")
        child = wait_until(lambda: [one for one in job.tree() if one.exe() == worker("hang")], "the child")[0]
        job.signal(signal.SIGTSTP)
        wait_until(lambda: state(child.pid) == "T", "a stopped child of a rank")
        wait_until(lambda: state(job.pid) == "T", "a stopped launcher")
        os.kill(job.pid, signal.SIGCONT)
        wait_until(lambda: state(child.pid) in "RSD", "a running child")
        let_go()
        self.expect(job.wait(), 0)

    def test_deadlines_pause(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 2, "--timeout", 12, worker("hang"), "--until", gate)
        job.wait_output("ready", count=2)
        job.signal(signal.SIGTSTP)
        wait_until(lambda: state(job.pid) == "T", "a stopped launcher")
        time.sleep(13)
        os.kill(job.pid, signal.SIGCONT)
        time.sleep(0.5)
        self.assertIsNone(job.popen.poll(), "the time of the suspension counted" + job.describe())
        let_go()
        self.expect(job.wait(), 0)

    def test_kill_while_stopped(self):
        job = self.start("-np", 2, worker("hang"))
        job.wait_output("ready", count=2)
        workers = job.wait_workers(2)
        job.signal(signal.SIGTSTP)
        wait_until(lambda: self.all_in(workers, "T"), "stopped ranks")
        wait_until(lambda: state(job.pid) == "T", "a stopped launcher")
        job.signal(signal.SIGTERM)
        os.kill(job.pid, signal.SIGCONT)
        self.expect(job.wait(), 143)

    def test_driver_killed_while_stopped(self):
        job = self.start("-np", 2, worker("stubborn"))
        job.wait_output("ready", count=2)
        workers = job.wait_workers(2)
        job.signal(signal.SIGTSTP)
        wait_until(lambda: self.all_in(workers, "T"), "stopped ranks")
        job.signal(signal.SIGKILL)
        job.wait()
        self.box.check_nothing_left(20)

    def test_agent_killed_while_it_stops(self):
        """The last agent: nothing is left that could be continued."""
        events = self.box.path("events")
        job = self.start("-np", 1, "--events", events, worker("hang"))
        job.wait_output("ready")
        agent = job.agents()[0]
        os.kill(agent.pid, signal.SIGSTOP)
        wait_until(lambda: state(agent.pid) == "T", "a stopped agent")
        job.signal(signal.SIGTSTP)
        wait_until(lambda: "job_suspended" in pathlib.Path(events).read_text("utf-8"), "the stop has begun")
        os.kill(agent.pid, signal.SIGKILL)
        self.expect(job.wait(), 121)


if __name__ == "__main__":
    main()
