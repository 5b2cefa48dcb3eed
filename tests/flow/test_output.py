# SPDX-License-Identifier: Apache-2.0
"""Output: whole lines, labels, partial lines, files, full disks, slow and closed readers."""

import os
import re
import signal
import subprocess
import time

from rig import Flow, is_alive, main, plain, sanitized, wait_until, worker


class Labels(Flow):

    def test_label_template(self):
        result = self.run_job("-np", 4, "-H", "a:2,b:2", "--transport", "local", "--label",
                              "%r@%h/%l %s| ", worker("hello"), "--err")
        self.expect(result, 0)
        hosts = ["a/0", "a/1", "b/0", "b/1"]
        self.expect_lines(result, [f"{r}@{hosts[r]} stdout| hello from rank {r} of 4" for r in range(4)])
        self.assertEqual(sorted(result.stderr.splitlines()),
                         [f"{r}@{hosts[r]} stderr| complaint of rank {r}" for r in range(4)], result.describe())

    def test_label_with_time(self):
        result = self.expect(self.run_job("-np", 1, "--label", "%t %r: ", worker("hello")), 0)
        self.assertRegex(result.stdout, r"^\S*\d\d:\d\d:\d\d\S* 0: hello|^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S* 0: hello")

    def test_bad_template(self):
        result = self.expect(self.run_job("-np", 1, "--label", "%q ", worker("hello")), 2)
        self.expect_said(result, "label.*%q")

    def test_no_label(self):
        result = self.expect(self.run_job("-np", 3, "--no-label", worker("hello"), "--err"), 0)
        self.expect_lines(result, [f"hello from rank {r} of 3" for r in range(3)])
        self.assertEqual(sorted(result.stderr.splitlines()), [f"complaint of rank {r}" for r in range(3)])

    def test_prefix_timestamp(self):
        for option in ("-prefix-timestamp", "--prefix-output-with-timestamp"):
            with self.subTest(option=option):
                result = self.expect(self.run_job("-np", 1, option, worker("hello")), 0)
                self.assertRegex(result.stdout, r"^\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\[0\]<stdout>:hello from rank 0 of 1\n$")

    def test_ranks(self):
        result = self.expect(self.run_job("-np", 6, "--ranks", "0,3-4", worker("hello"), "--err"), 0)
        self.expect_lines(result, [f"[{r}]<stdout>:hello from rank {r} of 6" for r in (0, 3, 4)])
        self.assertEqual(len(result.stderr.splitlines()), 3, result.describe())

    def test_ranks_of_a_failed_rank_that_is_not_shown(self):
        result = self.run_job("-np", 3, "--ranks", "0", worker("exit_with"), "--say", "hidden but quoted", "2:3")
        self.expect(result, 3)
        self.expect_blame(result, 2, code=3)
        self.expect_said(result, "hidden but quoted 3")

    def test_bad_ranks(self):
        for text in ("3-1", "x", "0,,1", "-1"):
            with self.subTest(ranks=text):
                self.expect_said(self.expect(self.run_job("-np", 4, f"--ranks={text}", "true"), 2), "ranks")

    def test_collapse(self):
        script = self.write("same", "#!/bin/sh\necho the same line\necho \"mine is $RANK\"\n", 0o755)
        result = self.expect(self.run_job("-np", 8, "--collapse", script), 0)
        self.assertEqual(len(re.findall("the same line", result.stdout)), 1, result.describe())
        self.assertRegex(result.stdout, r"(?m)^\[0-7\](<stdout>)?: ?the same line$")
        for rank in range(8):
            self.assertRegex(result.stdout, rf"(?m)^\[{rank}\](<stdout>)?: ?mine is {rank}$")

    def test_collapse_of_some_ranks(self):
        script = self.write("odd", '#!/bin/sh\nif [ $((RANK % 2)) = 1 ]; then echo odd; else echo even; fi\n', 0o755)
        result = self.expect(self.run_job("-np", 6, "--collapse", script), 0)
        self.assertRegex(result.stdout, r"(?m)^\[1,3,5\](<stdout>)?: ?odd$")
        self.assertRegex(result.stdout, r"(?m)^\[0,2,4\](<stdout>)?: ?even$")

    def test_no_colour_without_a_terminal(self):
        result = self.expect(self.run_job("-np", 2, worker("hello")), 0)
        self.assertNotIn("\x1b", result.stdout)
        result = self.expect(self.run_job("-np", 2, "--color=always", worker("hello")), 0)
        self.assertIn("\x1b[", result.stdout)
        plain = re.sub(r"\x1b\[[\d;]*m", "", result.stdout)
        self.assertEqual(sorted(plain.splitlines()), [f"[{r}]<stdout>:hello from rank {r} of 2" for r in range(2)])

    def test_merge_stderr(self):
        script = self.write("both", "#!/bin/sh\nfor i in 1 2 3; do echo out $i; echo err $i >&2; done\n", 0o755)
        result = self.expect(self.run_job("-np", 1, "--merge-stderr", "--no-label", script), 0)
        self.assertEqual(result.lines, [f"{w} {i}" for i in (1, 2, 3) for w in ("out", "err")], result.describe())
        self.assertEqual(result.stderr, "")


class Lines(Flow):

    def spewed(self, *args, ranks, lines, length=100, verify=()):
        """Runs spew into lines_verify, which reads hvdrun's stdout itself."""
        read, write = os.pipe()
        reader = self.helper(worker("lines_verify"), "--ranks", ranks, "--lines", lines, *verify,
                             stdin=read, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.close(read)
        job = self.start("-np", ranks, *args, worker("spew"), "--lines", lines, "--length", length, stdout=write)
        os.close(write)
        result = job.wait(120)
        said = reader.communicate()[0].decode()
        self.assertEqual(reader.popen.returncode, 0, said + result.describe())
        return self.expect(result, 0)

    @plain
    def test_no_line_is_torn(self):
        self.spewed(ranks=8, lines=2000 if sanitized() else 40000)

    def test_no_line_is_torn_without_labels(self):
        self.spewed("--no-label", ranks=4, lines=5000, verify=["--plain"])

    def test_long_lines(self):
        self.spewed(ranks=4, lines=200, length=30000)

    def test_very_long_lines_come_complete(self):
        # longer than any buffer may be: cut at most where no line ends, never lost
        result = self.run_job("-np", 1, "--no-label", worker("spew"), "--lines", 3, "--length", 5_000_000)
        self.expect(result, 0)
        self.assertEqual(len(result.out), 15_000_000)

    def test_last_line_without_newline(self):
        result = self.run_job("-np", 4, worker("spew"), "--lines", 3, "--no-newline")
        self.expect(result, 0)
        self.assertEqual(len([line for line in result.lines if re.match(r"\[\d\]<stdout>:spew r=\d s=1 n=\d ", line)]),
                         12, result.describe())

    def test_stdout_and_stderr_of_many_ranks(self):
        lines = 3000
        result = self.run_job("-np", 4, worker("spew"), "--stream", "both", "--lines", lines, "--chunk", 997)
        self.expect(result, 0)
        for text, stream in ((result.out, 1), (result.err, 2)):
            checked = subprocess.run([worker("lines_verify"), "--ranks", "4", "--lines", str(lines), "--stream",
                                      str(stream)], input=text, capture_output=True, check=False)
            self.assertEqual(checked.returncode, 0, checked.stderr.decode())

    def test_empty_lines_and_control_bytes(self):
        result = self.run_job("-np", 1, "printf", r"\n\na\tb\033[1mc\n\0d\n")
        self.expect(result, 0)
        label = b"[0]<stdout>:"
        self.assertEqual(result.out, label + b"\n" + label + b"\n" + label + b"a\tb\x1b[1mc\n" + label + b"\0d\n")

    def test_a_partial_line_is_shown(self):
        for stream, more in (("stdout", []), ("stderr", ["--err"])):
            with self.subTest(stream=stream):
                job = self.start("-np", 1, worker("prompt"), *more, stdin="pipe")
                job.wait_output(r"\[0\]<%s>:name\? " % stream, name=stream)
                job.type("Ada\n")
                job.close_stdin()
                result = self.expect(job.wait(), 0)
                self.assertIn("hello Ada\n", result.stdout)
                self.assertIn("end of stdin\n", result.stdout)

    def test_partial_lines_of_two_ranks_stay_apart(self):
        script = self.write("slow", "#!/bin/sh\nprintf \"start-$RANK \"; sleep 0.7; echo \"end-$RANK\"\n", 0o755)
        result = self.expect(self.run_job("-np", 2, script), 0)
        for rank in range(2):
            own = [line for line in result.lines if f"start-{rank}" in line or f"end-{rank}" in line]
            self.assertTrue(all(f"start-{1 - rank}" not in line and f"end-{1 - rank}" not in line for line in own),
                            result.describe())
            self.assertTrue(any(f"start-{rank} " in line for line in own), result.describe())

    def test_progress_bar_is_live(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, worker("progress"), "--gate", gate)
        job.wait_output(r"work 50%")
        self.assertNotIn("60%", job.output())
        let_go()
        result = self.expect(job.wait(), 0)
        for percent in range(0, 101, 10):
            self.assertIn(f"work {percent}%", result.stdout, result.describe())
        self.assertNotIn("\r", result.stdout)  # into a pipe each state is a line of its own
        self.assertTrue(result.stdout.endswith("work 100%\n"), repr(result.stdout[-100:]))

    def test_utf8_is_never_split(self):
        job = self.start("-np", 2, worker("utf8"))
        result = self.expect(job.wait(), 0)
        for chunk in job.pumps["stdout"].chunks:
            chunk.decode("utf-8")  # raises when a chunk begins or ends inside a character
        joined = re.sub(r"\[\d\]<stdout>:", "", result.stdout).replace("\n", "")
        for character in "öß€😀漢字":
            self.assertEqual(joined.count(character), 2, result.describe())

    def test_bytes_that_are_no_utf8_arrive(self):
        result = self.expect(self.run_job("-np", 1, "--no-label", worker("utf8"), "--bad"), 0)
        self.assertTrue(result.out.startswith(b"bad \xff\xfe\xc3( end\ncut \xe2\x82"), result.out)

    def test_a_worker_that_closes_its_streams_lives_on(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 2, worker("close_stdout"), "--until", gate)
        job.wait_output("closing", count=2)
        workers = job.wait_workers(2)
        self.assertIsNone(job.popen.poll())
        self.assertTrue(all(is_alive(one.pid) for one in workers.values()))
        let_go()
        self.expect(job.wait(), 0)


class Files(Flow):

    def read(self, *names):
        with open(self.box.path(*names), "rb") as file:
            return file.read()

    def tree(self, name):
        top = self.box.path(name)
        return sorted(os.path.relpath(os.path.join(folder, file), top)
                      for folder, _, files in os.walk(top) for file in files)

    def test_layout_for_one_rank(self):
        result = self.expect(self.run_job("-np", 1, "--output-filename", "out", worker("hello"), "--err"), 0)
        self.assertEqual(self.tree("out"), ["rank.0/stderr", "rank.0/stdout"])
        self.assertEqual(self.read("out/rank.0/stdout"), b"hello from rank 0 of 1\n")
        self.assertEqual(self.read("out/rank.0/stderr"), b"complaint of rank 0\n")
        self.assertIn("[0]<stdout>:hello from rank 0 of 1\n", result.stdout)

    def test_numbers_are_padded_as_horovodrun_does(self):
        for size, names in ((2, ["0", "1"]), (10, [str(r) for r in range(10)]),
                            (11, [f"{r:02}" for r in range(11)])):
            with self.subTest(size=size):
                self.expect(self.run_job("-np", size, "--output-filename", f"out{size}", worker("hello")), 0)
                self.assertEqual(sorted(os.listdir(self.box.path(f"out{size}"))), [f"rank.{n}" for n in names])

    def test_files_hold_what_the_ranks_wrote(self):
        self.expect(self.run_job("-np", 3, "--output-filename", self.box.path("out"), worker("spew"), "--lines",
                                 2000, "--no-newline"), 0)
        for rank in range(3):
            text = self.read(f"out/rank.{rank}/stdout")
            checked = subprocess.run([worker("lines_verify"), "--plain", "--ranks", "3", "--only", str(rank),
                                      "--lines", "2000"], input=text, capture_output=True, check=False)
            self.assertEqual(checked.returncode, 0, checked.stderr.decode())
            self.assertFalse(text.endswith(b"\n"))

    def test_ranks_not_shown_are_in_the_files(self):
        result = self.run_job("-np", 2, "--ranks", "0", "--output-filename", "out", worker("hello"))
        self.expect_lines(self.expect(result, 0), ["[0]<stdout>:hello from rank 0 of 2"])
        self.assertEqual(self.read("out/rank.1/stdout"), b"hello from rank 1 of 2\n")

    def test_pattern(self):
        result = self.run_job("-np", 4, "-H", "a:2,b:2", "--transport", "local", "--output-filename",
                              "logs/%h-%l-%r.%s", worker("hello"), "--err")
        self.expect(result, 0)
        self.assertEqual(self.tree("logs"), sorted(f"{place}.{stream}" for stream in ("stdout", "stderr")
                                                   for place in ("a-0-0", "a-1-1", "b-0-2", "b-1-3")))
        self.assertEqual(self.read("logs/b-0-2.stdout"), b"hello from rank 2 of 4\n")

    def test_pattern_without_stream_holds_both(self):
        self.expect(self.run_job("-np", 2, "--output-filename", "log.%r", worker("hello"), "--err"), 0)
        for rank in range(2):
            self.assertEqual(sorted(self.read(f"log.{rank}").splitlines()),
                             sorted([b"hello from rank %d of 2" % rank, b"complaint of rank %d" % rank]))

    def test_files_of_a_failed_job_are_complete(self):
        self.expect(self.run_job("-np", 2, "--output-filename", "out", worker("exit_with"), "--say", "bad", "1:3"), 3)
        self.assertEqual(self.read("out/rank.1/stderr"), b"bad 1\nbad 2\nbad 3\n")

    def test_folder_that_cannot_be_made(self):
        self.write("file", "")
        result = self.run_job("-np", 2, "--output-filename", "file/out", worker("hello"))
        self.expect(result, 2)
        self.expect_said(result, "file/out.*not a directory")

    def test_one_job_at_a_time(self):
        job = self.start("-np", 1, "--output-filename", "out", worker("hang"))
        job.wait_output("ready")
        result = self.expect(self.run_job("-np", 1, "--output-filename", "out", worker("hello")), 2)
        self.expect_said(result, "another job writes to the folder out now")
        # neither agents nor what a worker leaves behind hold the lock
        job.signal(signal.SIGKILL)
        job.wait()
        self.expect(self.run_job("-np", 1, "--output-filename", "out", worker("hello")), 0)
        self.assertEqual(self.read("out/rank.0/stdout"), b"hello from rank 0 of 1\n")

    def test_full_disk(self):
        place = self.box.path("small")
        os.mkdir(place)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True,
                                 check=False)
        if mounted.returncode != 0:
            self.skipTest("cannot mount a small file system: " + mounted.stderr.decode().strip())
        try:
            lines = 5000
            result = self.run_job("-np", 4, "--output-filename", os.path.join(place, "out"), worker("spew"),
                                  "--lines", lines)
            checked = subprocess.run([worker("lines_verify"), "--ranks", "4", "--lines", str(lines)],
                                     input=result.out, capture_output=True, check=False)
        finally:
            subprocess.run(["umount", "-l", place], check=True)
        self.expect(result, 0)
        self.assertEqual(checked.returncode, 0, checked.stderr.decode())
        self.assertEqual(result.said.lower().count("no space left"), 1, result.describe())

    def test_console_on_a_full_device(self):
        with open("/dev/full", "wb", buffering=0) as full:
            job = self.start("-np", 2, worker("spew"), "--lines", 20000, stdout=full)
            result = job.wait()
        self.assertTrue(0 <= result.status < 128, result.describe())
        self.assertEqual(result.said.lower().count("no space left"), 1, result.describe())


class Readers(Flow):

    def test_closed_reader_ends_the_job(self):
        read, write = os.pipe()
        head = self.helper("head", "-n", 1, stdin=read, stdout=subprocess.PIPE)
        os.close(read)
        job = self.start("-np", 2, worker("spew"), "--for-ever", stdout=write)
        os.close(write)
        self.assertRegex(head.communicate()[0].decode(), r"^\[\d\]<stdout>:spew r=\d s=1 n=0 ")
        result = job.wait()
        self.assertNotEqual(result.status, 0, result.describe())
        self.assertLess(len(result.stderr.splitlines()), 20, result.describe())

    def test_closed_reader_of_stderr(self):
        read, write = os.pipe()
        os.close(read)
        job = self.start("-np", 1, worker("hello"), "--err", stderr=write)
        os.close(write)
        self.assertIn("hello from rank 0", job.wait().stdout)

    @plain
    def test_slow_reader_costs_no_memory(self):
        # 8 x 10 GB, and nobody reads. A reader that was never fast has earned no more credit than at the start,
        # so what waits is the queue of 4 MiB and little more, not the budget of 64 MiB.
        limit = (200 if sanitized() else 32) * 1024
        job = self.start("-np", 8, worker("spew"), "--lines", 100000000, stdout="hold")
        workers = job.wait_workers(8)
        seen = 0
        for _ in range(30):
            seen = max(seen, job.memory_kb())
            time.sleep(0.1)
        self.assertLess(seen, limit, f"{seen} kB with a reader that does not read")
        self.assertTrue(all(is_alive(one.pid) for one in workers.values()), "nobody held the ranks back")
        job.signal(15)
        job.release()
        job.wait()

    @plain
    def test_slow_but_steady_reader_earns_no_credit(self):
        # it takes 48 MiB, always slower than they come: that must not raise what is under way, up to the budget
        limit = (200 if sanitized() else 32) * 1024
        read, write = os.pipe()
        job = self.start("-np", 4, worker("spew"), "--for-ever", stdout=write)
        os.close(write)
        job.wait_workers(4)
        taken = 0
        while taken < 48 << 20:
            taken += len(os.read(read, 1 << 16))
            time.sleep(0.002)
        seen = job.memory_kb()
        self.assertLess(seen, limit, f"{seen} kB with a slow reader")
        job.signal(15)
        while os.read(read, 1 << 16):
            pass
        os.close(read)
        job.wait()

    @plain
    def test_all_arrives_at_a_reader_that_pauses(self):
        lines = 5000 if sanitized() else 100000
        read, write = os.pipe()
        job = self.start("-np", 4, worker("spew"), "--lines", lines, stdout=write)
        os.close(write)
        time.sleep(1)
        reader = self.helper(worker("lines_verify"), "--ranks", 4, "--lines", lines, stdin=read,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.close(read)
        result = job.wait(120)
        said = reader.communicate()[0].decode()
        self.assertEqual(reader.popen.returncode, 0, said)
        self.expect(result, 0)

    def test_slow_reader_does_not_delay_the_verdict_of_a_signal(self):
        # control frames never wait for credit: a blocked console does not keep the workers alive
        job = self.start("-np", 2, "--grace", 1, worker("spew"), "--for-ever", stdout="hold")
        workers = job.wait_workers(2)
        time.sleep(0.5)
        job.signal(15)
        wait_until(lambda: not any(is_alive(one.pid) for one in workers.values()), "the ranks' end")
        job.release()
        self.expect(job.wait(), 143)

    def test_descriptors_of_the_shell_stay_blocking(self):
        read, write = os.pipe()
        job = self.start("-np", 1, worker("hang"), stdout=write)
        job.wait_workers(1)
        self.assertTrue(os.get_blocking(write), "descriptor 1 was set non-blocking; the shell shares it")
        job.signal(15)
        os.close(write)
        job.wait()
        os.close(read)


if __name__ == "__main__":
    main()
