# SPDX-License-Identifier: Apache-2.0
"""Input, output, exit codes and signals across hosts."""

import os
import signal
import subprocess
import zlib

from ground import plain, sanitized, worker
from hosts import Hosts, main
from rig import Helper


class Streams(Hosts):

    def test_stdin_goes_to_rank_0(self):
        data = os.urandom(3_000_000)
        result = self.ssh_job("-H", "node1:1,node2:1", "--no-label", "sh", "-c", "cat", stdin=data)
        self.assertEqual(self.expect(result, 0).out, data)

    def test_stdin_to_a_rank_on_the_other_host(self):
        result = self.ssh_job("-H", "node1:1,node2:1", "--stdin", 1, "sh", "-c", 'echo "$HOROVOD_RANK $(cat)"', stdin=b"x")
        self.expect_lines(self.expect(result, 0), ["[0]<stdout>:0 ", "[1]<stdout>:1 x"])

    @plain
    def test_hundred_megabytes_from_two_hosts_byte_exact(self):
        lines = 5_000 if sanitized() else 50_000
        job = self.ssh_start("-H", "node1:1,node2:1", worker("spew"), "--lines", lines, "--length", 1000, stdout="hold")
        reader = Helper(self.box, [worker("lines_verify"), "--ranks", 2, "--lines", lines], stdin=job.held.pop("stdout"),
                        stdout=subprocess.PIPE)
        out, _ = reader.communicate()
        self.expect(job.wait(), 0)
        self.assertEqual((reader.popen.returncode, out.decode().split()[0]), (0, "ok"))

    def test_every_byte_value(self):
        result = self.ssh_job("-H", "node1:1", "--no-label", "/usr/bin/python3", "-c",
                              "import sys; sys.stdout.buffer.write(bytes(range(256)) * 4000)")
        self.assertEqual(zlib.crc32(self.expect(result, 0).out), zlib.crc32(bytes(range(256)) * 4000))

    def test_stderr_stays_apart(self):
        result = self.expect(self.ssh_job("-H", "node1:1,node2:1", worker("hello"), "--err"), 0)
        self.assertEqual(sorted(result.stderr.splitlines()), [f"[{r}]<stderr>:complaint of rank {r}" for r in (0, 1)])

    def test_a_terminal_for_each_rank(self):
        script = 'test -t 1 && ! test -t 0 && ! test -t 2 && echo "rank $RANK" && seq 1 1000'
        result = self.expect(self.ssh_job("-H", "node1:1,node2:1", "--pty", "all", "sh", "-c", script), 0)
        for rank in (0, 1):
            self.assertEqual([line for line in result.lines if line.startswith(f"[{rank}]")],
                             [f"[{rank}]<stdout>:{text}" for text in (f"rank {rank}", *range(1, 1001))], result.describe())

    def test_host_in_the_label(self):
        result = self.expect(self.ssh_job("-H", "node1:1,node2:1", "--label", "%h %r: ", worker("hello")), 0)
        self.expect_lines(result, [f"node{r + 1} {r}: hello from rank {r} of 2" for r in (0, 1)])


class Ends(Hosts):

    def test_exit_code(self):
        result = self.expect(self.ssh_job("-H", "node1:2,node2:2", worker("exit_with"), "2:42"), 42)
        self.expect_blame(result, 2, code=42, host="node2")
        self.wait_no_workers()

    def test_death_by_signal(self):
        result = self.ssh_job("-H", "node1:1,node2:1", worker("crash"), "--rank", 1, "--how", "segv")
        self.expect_blame(self.expect(result, 139), 1, signal_number=signal.SIGSEGV, host="node2")

    def test_last_lines_of_stderr(self):
        result = self.expect(self.ssh_job("-H", "node1:1,node2:1", worker("exit_with"), "--say", "out of luck", "1:3"), 3)
        self.expect_said(result, "out of luck 3")

    def test_ctrl_c(self):
        job = self.ssh_start("-H", "node1:2,node2:2", worker("hang"))
        job.wait_output("ready", count=4)
        job.signal(signal.SIGINT)
        self.expect(job.wait(), 130)
        self.wait_no_workers()

    def test_ctrl_c_on_a_terminal_reaches_only_us(self):
        terminal = self.terminal(*self.ssh_words(), "-H", "node1:1,node2:1", worker("hang"))
        terminal.wait_output("ready", count=2)
        terminal.type("\x03")
        self.assertEqual(terminal.wait(), 130)
        self.wait_no_workers()

    def test_ctrl_c_while_connecting(self):
        self.host(2).drop()
        job = self.ssh_start("-v", "-H", "node1:1,node2:1", worker("hang"))
        job.wait_output("node1", name="stderr")
        job.signal(signal.SIGINT)
        self.expect(job.wait(), 130)
        self.wait_no_workers()

    def test_terminate(self):
        job = self.ssh_start("-H", "node1:1,node2:1", worker("hang"))
        job.wait_output("ready", count=2)
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 143)

    def test_workers_get_term_and_time(self):
        job = self.ssh_start("-H", "node1:1,node2:1", "--grace", 20, "sh", "-c",
                             'trap "echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done')
        job.wait_output("ready", count=2)
        job.signal(signal.SIGTERM)
        self.assertEqual(job.wait().stdout.count("saved"), 2)

    def test_stubborn_ones_are_killed(self):
        job = self.ssh_start("-H", "node1:1,node2:1", "--grace", 0.5, "sh", "-c",
                             'trap "" TERM INT HUP; echo ready; while :; do sleep 0.05; done')
        job.wait_output("ready", count=2)
        job.signal(signal.SIGINT)
        self.expect(job.wait(), 130)
        self.wait_no_workers()

    def test_children_of_workers_end_too(self):
        job = self.ssh_start("-H", "node1:1", "sh", "-c", "setsid sleep 1000 & echo ready; sleep 1000")
        job.wait_output("ready")
        job.signal(signal.SIGINT)
        self.expect(job.wait(), 130)

    def test_timeout(self):
        result = self.expect(self.ssh_job("-H", "node1:1,node2:1", "--timeout", 1, "--grace", 0, worker("hang")), 124)
        self.expect_said(result, r"\branks 0-1 do the same|\bnode2\b")
        self.wait_no_workers()

    def test_report_names_the_hosts(self):
        path = self.box.path("report.json")
        self.expect(self.ssh_job("-H", "node1:1,node2:1", "--report", path, worker("hello")), 0)
        report = self.read_json(path)
        self.assertEqual([rank["host"] for rank in report["ranks"]], ["node1", "node2"])


if __name__ == "__main__":
    main()
