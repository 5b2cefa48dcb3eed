# SPDX-License-Identifier: Apache-2.0
"""Time limits: --timeout with the state and the Python stack of each rank, --grace, --start-timeout."""

import os
import re
import sys
import time

import hanging
from hostile import Hostile
from rig import Flow, is_alive, main, wait_until, worker


class Timeout(Flow):

    def test_status_124_and_where_each_rank_was(self):
        result = self.expect(self.run_job("-np", 3, "--timeout", 1, "--grace", 1, worker("hang")), 124)
        self.expect_said(result, "timeout|longer than|time limit")
        # "ranks 0-2 do the same, here rank 0 ... sleeping ... do_sys_pause": the state letter or word
        self.expect_said(result, r"ranks 0-2 do the same, here rank 0 on [^\n]*(sleep|\bS\b|pause|wait)")

    def test_state_of_a_stopped_and_of_a_busy_rank(self):
        busy = self.write("busy", "#!/bin/sh\nwhile :; do :; done\n", 0o755)
        stopped = self.write("stopped", "#!/bin/sh\nkill -STOP $$\n", 0o755)
        result = self.run_job("-np", 1, "--timeout", 1, "--grace", 1, busy, ":", "-np", 1, stopped)
        self.expect(result, 124)
        self.expect_said(result, r"rank 0\b[^\n]*(running|\bR\b)")
        self.expect_said(result, r"rank 1\b[^\n]*(stopped|\bT\b)")

    def test_ranks_that_had_ended_are_not_shown_as_hanging(self):
        result = self.run_job("-np", 2, "--timeout", 2, "--grace", 1, worker("exit_with"), "0:0")
        self.expect(result, 124)
        self.expect_said(result, r"rank 1\b[^\n]*(sleep|\bS\b|pause|wait)")
        self.expect_not_said(result, r"rank 0\b[^\n]*(sleeping|pause)")

    def test_stubborn_ranks_too(self):
        self.expect(self.run_job("-np", 2, "--timeout", 1, "--grace", 1, worker("stubborn")), 124)

    def test_a_job_in_time(self):
        result = self.expect(self.run_job("-np", 2, "--timeout", "1h", worker("hello")), 0)
        self.assertEqual(result.stderr, "", result.describe())

    def test_start_timeout_names_who_was_waited_for(self):
        # no time at all: whatever the agents have done by then, the job is not running yet
        result = self.expect(self.run_job("-np", 2, "-H", "a:1,b:1", "--transport", "local", "--start-timeout", 0,
                                          worker("hello")), 122)
        self.expect_said(result, r"did not come up within.*no answer from.* (a|b) \(")
        self.assertEqual(result.stdout, "")

    def test_spellings_of_times(self):
        for text in ("1", "1.5", "1500ms", "0.02m"):
            with self.subTest(text=text):
                self.expect(self.run_job("-np", 1, "--timeout", text, "--grace", 1, worker("hang")), 124)
        for text in ("soon", "-1", "1x", "", "1e400"):
            with self.subTest(text=text):
                self.expect(self.run_job("-np", 1, f"--timeout={text}", "true"), 2)

    def test_a_failure_before_the_limit_is_the_cause(self):
        result = self.run_job("-np", 2, "--timeout", 20, "--grace", 1, worker("exit_with"), "1:3:300")
        self.expect(result, 3)

    def test_no_stack_traces(self):
        result = self.run_job("-np", 1, "--timeout", 1, "--grace", 1, "--no-stack-traces", worker("hang"))
        self.expect(result, 124)


class PythonStacks(Hostile, Flow):

    def hang(self, start, patterns, *program):
        """The result of a job whose ranks all hang when the time is over, as the patterns say. A busy machine needs more
        time, and may have too little for all stacks."""
        report = self.box.path("report.json")
        os.mkfifo(self.box.path("pipe"))
        for seconds in (1, 4, 16, 16):
            result = start("-np", hanging.RANKS, "--timeout", seconds, "--grace", 1, "--report", report, *program,
                           self.box.path("pipe")).wait(120)
            self.expect(result, 124)
            missing = self.missing_branch(result, patterns)
            if result.stdout.count("ready") == hanging.READY and missing is None:
                break
        self.assertIsNone(missing, f"not there, or earlier{result.describe()}")
        return self.read_json(report)

    @staticmethod
    def missing_branch(result, patterns):
        """The first of the patterns that does not follow those before it; None: they come in this order."""
        at = result.said.find("hvdrun: Python stacks, main threads:")
        for pattern in patterns:
            found = re.compile(pattern, re.M).search(result.said, at) if at >= 0 else None
            if found is None:
                return pattern
            at = found.start()
        return None

    def test_one_tree_of_all_ranks(self):
        script = self.write("train.py", hanging.PROGRAM)
        report = self.hang(self.start, (hanging.TRUNK, *hanging.WAYS, *hanging.BESIDE), sys.executable, script)
        stacks = {(stack["thread"], stack["frames"][-1]["function"]): stack for stack in report["stacks"]}
        self.assertEqual(stacks["main", "all_reduce"]["ranks"], [0, 6])
        self.assertEqual(stacks["main", "spin"]["gil_ranks"], [3])
        self.assertEqual(stacks["child", "nap"]["ranks"], [6])
        self.assertEqual(stacks["main", "nap"]["frames"],
                         [{"function": "<module>", "file": script, "line": 36},
                          {"function": "step", "file": script, "line": 26},
                          {"function": "nap", "file": script, "line": 19}])

    def test_a_user_without_privileges_and_a_shell_around_it(self):
        script = self.write("train.py", hanging.PROGRAM)
        python = "/usr/bin/python3"
        if not os.access(python, os.X_OK):
            self.skipTest(f"no {python}, which other users can run")
        self.hang(self.start_as_stranger, (*hanging.WAYS, *hanging.BESIDE), "/bin/sh", "-c", f'{python} {script} "$@"; exit 3', "sh")

    def test_no_python(self):
        result = self.expect(self.run_job("-np", 1, "--timeout", 1, "--grace", 1, worker("hang")), 124)
        self.expect_not_said(result, "Python")


class Grace(Flow):

    def test_ranks_have_the_grace_to_clean_up(self):
        script = self.write("tidy", "#!/bin/sh\ntrap 'sleep 1; echo tidied up; exit 0' TERM\necho ready\n"
                                    "while :; do sleep 0.05; done\n", 0o755)
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, "--grace", 20, worker("exit_with"), "--gate", gate, "0:3", ":", "-np", 2, script)
        job.wait_output("ready", count=2)
        let_go()
        result = self.expect(job.wait(), 3)
        self.assertEqual(result.stdout.count("tidied up"), 2, result.describe())

    def test_and_no_more_than_that(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, "--grace", "500ms", worker("exit_with"), "--gate", gate, "0:3", ":",
                         "-np", 1, worker("stubborn"))
        job.wait_output("ready")
        let_go()
        self.expect(job.wait(), 3)

    def test_no_grace(self):
        job = self.start("-np", 1, "--grace", 0, worker("exit_with"), "0:3:500", ":", "-np", 1, worker("stubborn"))
        self.expect(job.wait(), 3)

    def test_nobody_is_killed_early(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, "--grace", 60, worker("exit_with"), "--gate", gate, "0:3", ":",
                         "-np", 1, worker("signals"))
        job.wait_output("ready")
        other = wait_until(lambda: job.workers().get(1), "rank 1")
        let_go()
        job.wait_output("got SIGTERM")
        time.sleep(1)
        self.assertTrue(is_alive(other.pid), "killed before the grace was over")
        # the user's patience ends first: INT now only sharpens the end
        for _ in range(3):
            job.signal(2)
            time.sleep(0.2)
        self.expect(job.wait(), 3)


if __name__ == "__main__":
    main()
