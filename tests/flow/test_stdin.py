# SPDX-License-Identifier: Apache-2.0
"""stdin: which rank gets it, that every byte arrives, flow control, and jobs in the background that do not stop."""

import os
import random
import time
import zlib

from rig import HVDRUN, Flow, Job, main, plain, sanitized, state, worker


def summed(data):
    return f"stdin {len(data)} {zlib.crc32(data):08x}"


class Stdin(Flow):

    def test_rank_0_by_default_others_none(self):
        result = self.expect(self.run_job("-np", 3, worker("stdin_sum"), stdin=b"some text\n"), 0)
        self.expect_lines(result, [f"[0]<stdout>:{summed(b'some text' + bytes([10]))}",
                                   f"[1]<stdout>:{summed(b'')}", f"[2]<stdout>:{summed(b'')}"])

    def test_the_others_have_dev_null(self):
        result = self.expect(self.run_job("-np", 2, worker("fds"), stdin=b"x"), 0)
        self.assertIn("[1]<stdout>:fd 0 -> /dev/null", result.lines, result.describe())

    def test_chosen_rank(self):
        result = self.expect(self.run_job("-np", 3, "--stdin", 2, worker("stdin_sum"), stdin=b"abc"), 0)
        self.expect_lines(result, [f"[{r}]<stdout>:{summed(b'abc' if r == 2 else b'')}" for r in range(3)])

    def test_all(self):
        data = random.Random(1).randbytes(3_000_000)
        result = self.expect(self.run_job("-np", 4, "--stdin", "all", worker("stdin_sum"), stdin=data), 0)
        self.expect_lines(result, [f"[{r}]<stdout>:{summed(data)}" for r in range(4)])

    def test_all_over_two_agents(self):
        data = random.Random(2).randbytes(1_000_000)
        result = self.run_job("-H", "a:2,b:1", "--transport", "local", "--stdin", "all", worker("stdin_sum"),
                              stdin=data)
        self.expect_lines(self.expect(result, 0), [f"[{r}]<stdout>:{summed(data)}" for r in range(3)])

    def test_none(self):
        job = self.start("-np", 2, "--stdin", "none", worker("stdin_sum"), stdin="pipe")
        result = self.expect(job.wait(), 0)  # our end is still open: nobody may wait for it
        self.expect_lines(result, [f"[{r}]<stdout>:{summed(b'')}" for r in range(2)])

    def test_a_rank_that_does_not_exist(self):
        self.expect_said(self.expect(self.run_job("-np", 2, "--stdin", 5, "true"), 2), "stdin.*5")

    @plain
    def test_100_megabytes_byte_exact(self):
        size = 8_000_000 if sanitized() else 100_000_000
        data = random.Random(3).randbytes(1 << 20) * (size >> 20)
        path = self.write("large", data)
        with open(path, "rb") as file:
            result = self.run_job("-np", 2, worker("stdin_sum"), stdin=file.fileno(), timeout=120)
        self.assertIn(f"[0]<stdout>:{summed(data)}", self.expect(result, 0).lines)
        result = self.run_job("-np", 1, worker("stdin_sum"), stdin=data, timeout=120)
        self.assertIn(f"[0]<stdout>:{summed(data)}", self.expect(result, 0).lines, "through a pipe")

    def test_every_byte_value_and_no_newline(self):
        data = bytes(range(256)) * 3 + b"no newline at the end"
        result = self.run_job("-np", 1, "--no-label", "cat", stdin=data)
        self.assertTrue(self.expect(result, 0).out.startswith(data), result.describe())

    def test_through_cat_and_back(self):
        data = "".join(f"line {i}\n" for i in range(20000)).encode()
        result = self.run_job("-np", 1, "--no-label", "cat", stdin=data)
        self.assertEqual(self.expect(result, 0).out, data)

    def test_end_of_file_comes_when_it_comes(self):
        job = self.start("-np", 1, worker("stdin_sum"), stdin="pipe")
        job.type("one")
        time.sleep(0.5)
        self.assertIsNone(job.popen.poll(), "an end of file came by itself")
        job.type("two")
        job.close_stdin()
        self.assertIn(summed(b"onetwo"), self.expect(job.wait(), 0).stdout)

    def test_empty_stdin(self):
        result = self.expect(self.run_job("-np", 1, worker("stdin_sum"), stdin=b""), 0)
        self.assertIn(summed(b""), result.stdout)

    def test_closed_stdin(self):
        script = self.write("closed", '#!/bin/sh\nexec "$@" <&-\n', 0o755)
        result = self.expect(Job(self.box, [script, HVDRUN, "-np", 1, worker("stdin_sum")]).wait(), 0)
        self.assertIn(summed(b""), result.stdout)

    def run_with(self, path, flags, *args):
        descriptor = os.open(path, flags)
        try:
            return self.run_job(*args, stdin=descriptor)
        finally:
            os.close(descriptor)

    def test_a_folder(self):
        for wanted in (0, "all"):
            result = self.expect(self.run_with("/", os.O_RDONLY, "-np", 2, "--stdin", wanted, "cat"), 125)
            self.expect_said(result, "the standard input is a folder")
            self.assertEqual(len(result.stderr.splitlines()), 1, result.describe())
        self.expect(self.run_with("/", os.O_RDONLY, "-np", 1, "--stdin", "none", "cat"), 0)

    def test_a_file_that_cannot_be_read_to_its_end(self):
        # nothing of us is at address 0: EIO
        result = self.run_with("/proc/self/mem", os.O_RDONLY, "-np", 2, "--stdin", "all", worker("stdin_sum"))
        self.expect_said(self.expect(result, 125), "cannot read the standard input")
        self.assertNotIn("<stdout>", result.stdout, "a rank took it for the end of its input")

    def test_not_open_for_reading(self):
        # as nohup leaves it
        result = self.expect(self.run_with("/dev/null", os.O_WRONLY, "-np", 1, worker("stdin_sum")), 0)
        self.expect_lines(result, [f"[0]<stdout>:{summed(b'')}"])
        self.assertEqual(result.stderr, "", result.describe())

    def test_a_rank_that_does_not_read_costs_no_memory(self):
        gate, let_go = self.box.gate()
        data = bytes(200_000_000)
        job = self.start("-np", 2, worker("hang"), "--until", gate, stdin=data)
        job.wait_output("ready", count=2)
        before, largest, taken = job.memory_kb(), 0, -1
        for _ in range(20):
            time.sleep(0.1)
            largest, taken = max(largest, job.memory_kb()), job.feeder.taken
        self.assertLess(taken, 16_000_000, "the launcher reads ahead of what the rank takes")
        self.assertLess(largest - before, 24 * 1024, f"{before} kB grew to {largest} kB")
        let_go()
        self.expect(job.wait(), 0)

    def test_a_rank_that_ends_with_stdin_unread(self):
        result = self.expect(self.run_job("-np", 2, "true", stdin=bytes(50_000_000)), 0)
        self.assertEqual(result.stderr, "", result.describe())

    def test_a_rank_that_closes_stdin(self):
        result = self.run_job("-np", 1, "sh", "-c", "exec <&-; sleep 0.3; echo fine", stdin=bytes(50_000_000))
        self.assertIn("fine", self.expect(result, 0).stdout)

    def test_a_rank_that_takes_only_some(self):
        data = b"first line\n" + bytes(20_000_000)
        result = self.run_job("-np", 1, "head", "-n", 1, stdin=data)
        self.assertEqual(self.expect(result, 0).stdout, "[0]<stdout>:first line\n")

    def test_the_launcher_does_not_eat_a_script(self):
        # `while read line; do hvdrun --stdin none ...; done < list` must see all the lines
        script = self.write("loop", f"#!/bin/sh\nwhile read line; do '{HVDRUN}' --stdin none -np 1 --no-label "
                                    f"echo got $line; done\n", 0o755)
        result = self.expect(Job(self.box, [script], stdin=b"1\n2\n3\n").wait(), 0)
        self.assertEqual(result.lines, ["got 1", "got 2", "got 3"])


class InATerminal(Flow):

    def test_foreground_reads_the_terminal(self):
        job = self.terminal("-np", 2, worker("prompt"))
        job.wait_output(r"\[0\]<stdout>:name\? ")
        job.type("Grace\n\x04")
        job.wait_output("hello Grace")
        job.wait_output("end of stdin")
        self.assertEqual(job.wait(), 0, job.describe())

    def test_background_is_not_stopped(self):
        gate, let_go = self.box.gate()
        job = self.terminal("-np", 2, worker("hang"), "--until", gate, place="bg")
        job.wait_output("ready", count=2)
        time.sleep(1)
        self.assertFalse([line for line in job.reported() if line.startswith("stopped")],
                         "stopped in the background: SIGTTIN" + job.describe())
        self.assertNotEqual(state(job.pid), "T", job.describe())
        let_go()
        self.assertEqual(job.wait(), 0, job.describe())

    def test_background_then_foreground_reads_again(self):
        job = self.terminal("-np", 1, worker("prompt"), place="bg")
        job.wait_output(r"name\? ")
        time.sleep(0.5)
        self.assertFalse([line for line in job.reported() if line.startswith("stopped")], job.describe())
        job.command("f")
        job.type("Edsger\n\x04")
        job.wait_output("hello Edsger")
        self.assertEqual(job.wait(), 0, job.describe())

    def test_terminal_is_as_it_was(self):
        job = self.terminal("-np", 2, worker("hello"))
        self.assertEqual(job.wait(), 0, job.describe())
        self.assertEqual(job.modes, job.modes_after)


if __name__ == "__main__":
    main()
