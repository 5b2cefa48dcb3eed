# SPDX-License-Identifier: Apache-2.0
"""hvdrun without its features (-DHVDRUN_FEATURES=none): jobs run, and what was left out is said in one line."""

import os
import re

from rig import BUILD, Flow, Job, main, worker

CORE = os.path.join(BUILD, "hvdrun-core")


class Core(Flow):

    def start(self, *args, **options):
        return Job(self.box, [CORE, *args], **options)

    def test_jobs_run(self):
        for more in ([], ["--min-np", 1, "--max-np", 2]):
            with self.subTest(more=more):
                result = self.expect(self.run_job("-np", 2, *more, worker("hello")), 0)
                self.assertEqual(len(re.findall(r"hello from rank \d of 2$", result.stdout, re.M)), 2, result.describe())
                self.assertEqual(result.stderr, "")

    def test_failures_and_reports(self):
        report = self.box.path("report.json")
        result = self.expect(self.run_job("-np", 2, "--report", report, worker("exit_with"), "1:3"), 3)
        self.expect_said(result, "rank 1")
        self.assertTrue(os.path.exists(report))
        result = self.expect(self.run_job("-np", 1, "--timeout", "0.2s", "sleep", 600), 124)
        self.expect_said(result, "--timeout")

    def test_what_was_left_out(self):
        for words, name in ((["check"], "check"), (["top"], "usage"), (["stacks"], "hang"), (["explain"], "evidence"),
                            (["kubernetes", "true"], "kubernetes"),
                            (["debug", "--rank", 0], "debug"), (["shell", "--host", "a"], "debug"),
                            (["-np", 1, "--stop-at-start", "true"], "debug"), (["pmix"], "pmix_tools"),
                            (["--metrics", 0, "-np", 1, "true"], "metrics"),
                            (["-np", 1, "--hang-timeout", "1m", "true"], "hang"),
                            (["-np", 1, "--straggler-time", "1s", "true"], "straggler"),
                            (["-np", 1, "--tree-from", 2, "true"], "tree"),
                            (["-np", 1, "--warm", "true"], "warm"), (["warm", "list"], "warm"),
                            (["-np", 1, "--torch-store", "agent", "true"], "torch_store"),
                            (["--gpu-free", "90%", "-np", 1, "true"], "gpu_free"),
                            (["--stage", ".", "-np", 1, "true"], "stage"),
                            (["--leave-out-bad", "-np", 1, "true"], "check"),
                            (["--bad-hosts", "bad", "-np", 1, "true"], "bad_hosts"),
                            (["torchrun", "t.py"], "torchrun")):
            with self.subTest(words=words):
                result = self.expect(self.run_job(*words), 2)
                self.assertEqual(result.stdout, "")
                self.assertRegex(result.stderr, rf"^hvdrun: \S+: this hvdrun was built without '{name}' "
                                                r"\(HVDRUN_FEATURES of CMake\)\n$")

    def test_it_says_what_it_has(self):
        text = self.expect(self.run_job("--check-build"), 0).stdout
        self.assertRegex(text, r"\[ \] check\n")
        self.assertNotRegex(text.partition("Features that a build")[2], r"\[X\]")


if __name__ == "__main__":
    main()
