# SPDX-License-Identifier: Apache-2.0
"""--pty RANK: a terminal for one rank."""

import os
import re
import time

from rig import Flow, main, worker


class Pty(Flow):

    def test_only_that_rank_has_a_terminal(self):
        job = self.terminal("-np", 3, "--pty", 1, worker("winch"), rows=33, columns=101)
        job.wait_output("tty 1 1 1")
        job.wait_output("size 33 101")
        job.type("done\n")
        job.wait_output("typed done")
        self.assertEqual(job.wait(), 0, job.describe())
        text = job.output()
        self.assertEqual(text.count("tty 1 1 1"), 1, job.describe())
        self.assertEqual(len(re.findall(r"\[[02]\]<stdout>:tty 0 0 0", text)), 2, job.describe())

    def test_window_size_changes_reach_it(self):
        job = self.terminal("-np", 1, "--pty", 0, worker("winch"), rows=24, columns=80)
        job.wait_output("size 24 80")
        for rows, columns in ((40, 120), (10, 30)):
            job.resize(rows, columns)
            job.wait_output(f"size {rows} {columns}")
        job.type("\n")
        self.assertEqual(job.wait(), 0, job.describe())

    def test_ctrl_c_is_the_programs(self):
        job = self.terminal("-np", 1, "--pty", 0, worker("winch"))
        job.wait_output("size ")
        job.type("\x03")
        job.wait_output("got SIGINT")
        time.sleep(0.3)
        job.type("still here\n")
        job.wait_output("typed still here")
        self.assertEqual(job.wait(), 0, job.describe())

    def test_the_terminal_is_as_it_was(self):
        for args, status in ((["-np", 1, "--pty", 0, "true"], 0), (["-np", 1, "--pty", 0, worker("exit_with"), "0:3"], 3)):
            with self.subTest(status=status):
                job = self.terminal(*args)
                self.assertEqual(job.wait(), status, job.describe())
                self.assertEqual(job.modes, job.modes_after)

    def test_the_terminal_is_as_it_was_after_term(self):
        job = self.terminal("-np", 1, "--grace", 1, "--pty", 0, worker("winch"))
        job.wait_output("size ")
        os.kill(job.pid, 15)
        self.assertIn(job.wait(), (143, -15))
        self.assertEqual(job.modes, job.modes_after)

    def test_input_is_echoed_once(self):
        job = self.terminal("-np", 1, "--pty", 0, "sh", "-c", "echo ready; read x; echo got $x")
        job.wait_output("ready")  # hvdrun's own terminal, which does not echo any more then
        job.type("abc\n")
        job.wait_output("got abc")
        self.assertEqual(job.wait(), 0, job.describe())
        self.assertEqual(len(re.findall(r"(?m)^abc$", job.output())), 1, job.describe())

    def test_without_a_terminal_of_our_own(self):
        result = self.expect(self.run_job("-np", 2, "--pty", 0, "sh", "-c", "test -t 0 && test -t 1 && echo terminal || echo none",
                                          stdin=b""), 0)
        self.assertEqual(result.stdout.replace("\r", "").count("terminal"), 1, result.describe())
        self.assertIn("[1]<stdout>:none", result.lines, result.describe())

    def test_a_rank_that_does_not_exist(self):
        self.expect_said(self.expect(self.run_job("-np", 2, "--pty", 4, "true"), 2), "pty.*4")


if __name__ == "__main__":
    main()
