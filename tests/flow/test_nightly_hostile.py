# SPDX-License-Identifier: Apache-2.0
"""What test_hostile.py does, in numbers that take minutes: 4,000 ranks, floods of lines."""

import os
import resource
import signal
import subprocess

from hostile import Hostile
from rig import Flow, main, sanitized, worker

RANKS = 400 if sanitized() else 4000


class ManyRanks(Hostile, Flow):

    left_timeout = 60

    def setUp(self):
        super().setUp()
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4 * RANKS:
            self.skipTest(f"the hard limit of open files is too low for {RANKS} ranks")

    def expect_hello(self, result):
        self.expect_lines(self.expect(result, 0), [f"[{r}]<stdout>:hello from rank {r} of {RANKS}" for r in range(RANKS)])
        self.assertEqual(result.stderr, "", result.describe())

    def test_all_say_hello(self):
        self.expect_hello(self.run_job("-np", RANKS, worker("hello"), timeout=300))

    def test_under_a_low_soft_limit(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.expect_hello(self.run_job("-np", RANKS, worker("hello"), limits={resource.RLIMIT_NOFILE: (64, hard)}, timeout=300))

    def test_on_four_hosts(self):
        hosts = ",".join(f"{name}:{RANKS // 4}" for name in "abcd")
        self.expect_hello(self.run_job("-H", hosts, "--transport", "local", worker("hello"), timeout=300))

    def test_a_hard_limit_that_is_too_low(self):
        result = self.run_job("-np", RANKS, worker("hello"), limits={resource.RLIMIT_NOFILE: (1024, 1024)}, timeout=300)
        self.expect_said(self.expect(result, 125), rf"{RANKS} ranks here need about \d+ open files and the limit is 1024")
        self.assertEqual(result.stdout, "")

    def test_one_fails_while_all_run(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", RANKS - 1, worker("hang"), ":", "-np", 1, worker("exit_with"), "--gate", gate, f"{RANKS - 1}:3")
        job.wait_output("ready", count=RANKS - 1, timeout=200)
        let_go()
        self.expect_blame(self.expect(job.wait(300), 3), RANKS - 1, code=3)
        self.box.check_nothing_left(self.left_timeout)

    def test_driver_and_agent_killed_while_all_run(self):
        for who in ("driver", "agent"):
            with self.subTest(killed=who):
                job = self.start("-np", RANKS, "--grace", 1, worker("hang"))
                job.wait_output("ready", count=RANKS, timeout=200)
                os.kill(job.pid if who == "driver" else job.agents()[0].pid, signal.SIGKILL)
                self.assertEqual(job.wait(300).status, -signal.SIGKILL if who == "driver" else 121)
                self.box.check_nothing_left(self.left_timeout)


class Floods(Hostile, Flow):

    def verified(self, *args, ranks, lines):
        read, write = os.pipe()
        reader = self.helper(worker("lines_verify"), "--ranks", ranks, "--lines", lines, stdin=read,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.close(read)
        job = self.start("-np", ranks, worker("spew"), "--lines", lines, *args, stdout=write)
        os.close(write)
        result = job.wait(900)
        said = reader.communicate(timeout=120)[0].decode()
        self.assertEqual(reader.popen.returncode, 0, said + result.describe())
        self.expect(result, 0)

    def test_a_hundred_thousand_lines_of_64_ranks_each(self):
        self.verified("--chunk", 4000, ranks=64, lines=2_000 if sanitized() else 100_000)

    def test_single_lines_in_writes_of_their_own(self):
        self.verified("--chunk", 100, ranks=64, lines=500 if sanitized() else 20_000)

    def test_lines_of_ten_million_bytes_from_all(self):
        ranks = 8
        result = self.run_job("-np", ranks, "--output-filename", "files", worker("noise"), "--never", 10, "--bytes",
                              10_000_000, timeout=600)
        self.expect(result, 0)
        for rank in range(ranks):
            with open(self.box.path("files", f"rank.{rank}", "stdout"), "rb") as file:
                self.expect_noise(result.stderr, rank, file.read())

    def test_noise_from_all(self):
        ranks = 16
        result = self.expect(self.run_job("-np", ranks, "--output-filename", "files", worker("noise"), timeout=600), 0)
        for rank in range(ranks):
            with open(self.box.path("files", f"rank.{rank:02}", "stdout"), "rb") as file:
                self.expect_noise(result.stderr, rank, file.read())


if __name__ == "__main__":
    main()
