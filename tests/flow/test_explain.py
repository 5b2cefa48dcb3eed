# SPDX-License-Identifier: Apache-2.0
"""`hvdrun explain`: why a job failed (docs/failures.md)."""
# ctest waits
# ctest warm

import json
import os
import re
import signal
import sys

from rig import Flow, main, wait_until, worker

FAIL = """\
import os, sys, time
print("ready", flush=True)
if os.environ["RANK"] == "1":
    time.sleep(0.5)
    raise ValueError("row 7 is \\x1b[31m broken")
time.sleep(1000)
"""


class Explain(Flow):

    def fail(self, *options):
        job = self.start("-np", 2, "-H", "a:1,b:1", "--transport", "local", "--grace", 1, *options, sys.executable,
                         self.write("train.py", FAIL))
        return self.expect(job.wait(60), 1)

    def explain(self, *words, status=0):
        return self.expect(self.start("explain", *words).wait(60), status)

    def folder(self, result):
        return re.search(r"failure is in (\S+);", result.said).group(1)

    def check_story(self, text):
        for pattern in (r"^hvdrun-\S+ failed with status 1, after \d+\.\d s\n", r"\nwhat happened first:\n    rank 1 ",
                        r"\n    its stderr: ValueError: row 7 is [^\x1b]* broken\n", r"\nwhere:\n    rank 1 on b\n    \d+\.\d s after",
                        r"\nwhat followed:\n    1 other rank ended because of that\n", r"\nwhat to do:\n    train.py:5 raised it; "):
            self.assertRegex(text, pattern)
        self.assertLessEqual(len(text.splitlines()), 20)

    def test_a_record(self):
        self.fail()
        self.check_story(self.explain().stdout)
        job = self.explain("--json")
        story = json.loads(job.stdout)
        self.assertEqual((story["status"], story["rank"]), (1, 1))
        self.assertEqual(story["where"][0], "rank 1 on b")
        self.check_story(self.explain(story["job"]).stdout)

    def test_a_folder(self):
        result = self.fail("--evidence", self.box.path("evidence"))
        text = self.explain(self.folder(result)).stdout
        self.check_story(text)
        self.assertIn("rank 1 on b exited with code 1\n", text)
        self.check_story(self.explain().stdout)  # the record knows the folder
        self.assertIn("lines.txt", self.explain().stdout)

    def test_a_folder_without_the_end_of_the_job(self):
        folder = self.folder(self.fail("--evidence", self.box.path("evidence")))
        for name in ("report.json", "lines.txt"):
            os.unlink(os.path.join(folder, name))
        text = self.explain(folder).stdout
        self.assertIn(": how it ended is not known\n", text)
        self.assertIn("    rank 1 on b exited with code 1\n", text)

    def test_ranks_that_the_last_look_left_out(self):
        folder = self.folder(self.fail("--evidence", self.box.path("evidence")))
        path = os.path.join(folder, "report.json")
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        report["libraries"] = {"files": [{"title": "MPI", "path": "/libmpi.so.40", "build_id": None, "ranks": [0]}],
                               "differences": [], "missing": [1, 2]}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(report, file)
        self.assertIn("\nwhat the ranks have loaded:\n    rank 0: MPI /libmpi.so.40\n    ranks 1-2: left out by the last look\n",
                      self.explain(folder).stdout)

    def test_a_damaged_folder(self):
        folder = self.folder(self.fail("--evidence", self.box.path("evidence")))
        facts = os.path.join(folder, "facts.json")
        with open(facts) as file:
            whole = file.read()
        for text in ("", "{", whole[:len(whole) // 2], "[]", "\0" * 100, '{"ranks": 7, "hosts": [3, null], "rank": "x"}',
                     '{"ranks": [{}, {"rank": 1e9, "host": 3}], "rank": 99999999999, "environment": {"A": 3, "B": {"a": []}}}'):
            with open(facts, "w") as file:
                file.write(text)
            with self.subTest(text=text[:60]):
                damaged = not text.startswith('{"')
                result = self.explain(folder, status=1 if damaged else 0)
                if damaged:
                    self.expect_said(result, r"^hvdrun: '\S+/facts.json' is damaged: it is not a JSON object\n$")
        os.unlink(facts)
        os.mkfifo(facts)
        self.expect_said(self.explain(folder, status=1), "cannot read")
        self.expect_said(self.explain("/nowhere/else", status=1), r"^hvdrun: cannot read '/nowhere/else/facts.json': No such file")

    def test_an_error_on_stdout(self):
        """Also if the other ranks have written a lot since."""
        script = self.write("train.py", "import os, sys, time\nif os.environ['RANK'] == '1':\n    print('no such file: shard-17')\n"
                                        "    sys.stdout.flush()\n    time.sleep(2)\n    os._exit(2)\n"
                                        "for i in range(20000): print('line', i)\nsys.stdout.flush()\ntime.sleep(1000)\n")
        job = self.start("-np", 3, "--grace", 1, "--evidence", self.box.path("evidence"), sys.executable, script)
        text = self.explain(self.folder(self.expect(job.wait(60), 2))).stdout
        self.assertIn("    its stdout: no such file: shard-17\n", text)

    def test_a_crash_of_python(self):
        """It names the line, which Python writes below the name of the signal."""
        script = self.write("train.py", "import ctypes, time\ndef read_batch():\n    ctypes.string_at(0)\nread_batch()\n")
        self.expect(self.start("-np", 1, sys.executable, script).wait(60), 139)
        text = self.explain().stdout
        self.assertIn("    its stderr: Fatal Python error: Segmentation fault\n", text)
        self.assertRegex(text, r'    its stderr: File "\S+train.py", line 3 in read_batch\n')

    def test_the_line_that_decides(self):
        """What every error of CUDA says stands below it; without evidence, too, and whatever other ranks write."""
        script = self.write("train.py", "import os, sys, time\nif os.environ['RANK'] == '1':\n    time.sleep(0.3)\n"
                                        "    raise RuntimeError('CUDA error: device-side assert triggered\\nCUDA kernel errors might be "
                                        "asynchronously reported\\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\\n')\n"
                                        "for i in range(400):\n    print('step', i, flush=True)\n    time.sleep(0.01)\ntime.sleep(60)\n")
        self.expect(self.start("-np", 2, "--grace", 1, sys.executable, script).wait(60), 1)
        text = self.explain().stdout
        self.assertRegex(text, r"\n    rank 1 exited with code 1: a check in a GPU kernel failed, ")
        self.assertIn("    its stderr: RuntimeError: CUDA error: device-side assert triggered\n", text)
        self.assertNotIn("asynchronously", text)
        self.assertIn("what to do:\n    check the labels and indices", text)

    def test_the_rank_that_is_behind(self):
        """By the numbers of the operations in which NCCL's watchdogs gave up."""
        script = self.write("train.py", "import os, sys, time\nrank = int(os.environ['RANK'])\n"
                                        "print('Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, OpType=ALLREDUCE)' "
                                        "% (120 - rank), file=sys.stderr, flush=True)\nopen('told%d' % rank, 'w').close()\n"
                                        "while rank == 1 and not os.path.exists('told0'): time.sleep(0.05)\ntime.sleep(0.5)\n"
                                        "os.abort() if rank == 1 else time.sleep(600)\n")
        for options in ([], ["--evidence", self.box.path("evidence")]):
            with self.subTest(options=options):
                self.expect(self.start("-np", 2, "--grace", 1, *options, sys.executable, script).wait(60), 134)
                os.unlink(self.box.path("told0"))
                text = self.explain().stdout
                self.assertIn("because rank 1 is behind\n", text)
                self.assertIn("rank 1 is behind, in operation 119, while others wait in operation 120", text)

    def test_an_exit_without_a_word(self):
        """That the last lines of the job have none of the rank does not mean that it wrote none."""
        self.expect(self.start("-np", 2, "sh", "-c", "test $RANK = 0 || exit 4; sleep 60").wait(60), 4)
        self.assertIn("rank 1 exited with code 4: it wrote nothing\n", self.explain().stdout)
        self.expect(self.start("-np", 2, "sh", "-c", "test $RANK = 0 || { echo hello; sleep 0.5; exit 4; }; "
                               "sleep 0.2; seq 1000; sleep 60").wait(60), 4)
        self.assertNotIn("it wrote nothing", self.explain().stdout)

    def test_a_signal_by_request(self):
        job = self.start("-np", 2, worker("hang"))
        job.wait_output("ready", count=2)
        jobs = wait_until(lambda: json.loads(self.start("ps", "--json").wait(60).stdout), "the record")
        self.expect(self.start("signal", jobs[0]["job"], "USR1", "--ranks", "1").wait(60), 0)
        result = self.expect(job.wait(60), 138)
        who = r"'hvdrun signal' \(user \S+, \d\d:\d\d:\d\d\)"
        self.expect_said(result, rf"hvdrun: {who} sends SIGUSR1 to rank 1\n")
        self.expect_said(result, rf"hvdrun: {who} had sent it that signal\n")
        text = self.explain().stdout
        self.assertRegex(text, rf"    rank 1 was killed by SIGUSR1: {who} had sent it that signal\n")
        self.assertIn("what to do:\n    nothing, if that was meant", text)

    def test_the_terminal_closes(self):
        job = self.start("-np", 1, worker("hang"))
        job.wait_output("ready")
        job.signal(signal.SIGHUP)
        self.expect(job.wait(60), 129)
        text = self.explain().stdout
        self.assertIn("    interrupted (SIGHUP): most likely, its terminal or SSH session has ended\n", text)
        self.assertIn("start it with --on-hangup detach or with --detach\n", text)

    def test_a_hang(self):
        script = self.write("train.py", "import os, time\nprint('ready', flush=True)\ndef load(): time.sleep(1001)\n"
                                        "def wait(): time.sleep(1000)\nload() if os.environ['RANK'] == '2' else wait()\n")
        where = r"    the job hangs: no rank has shown progress [^\n]*; rank 2 on \S+ is elsewhere: in train.py:3 load"
        for limit in (2, 8, 16):  # on a busy machine, a rank may still be on its way
            self.expect(self.start("-np", 3, "--hang-timeout", limit, "--grace", 1, sys.executable, script).wait(60), 119)
            text = self.explain().stdout
            if re.search(where, text):
                break
        self.assertRegex(text, where)
        self.assertRegex(text, r"what to do:\n    stacks.txt has two stacks of rank 2, one second apart, unless it had ended by then; the other ranks "
                               "most likely wait for it")

    def test_jobs_without_a_story(self):
        self.expect_said(self.explain(status=1), "no job has ended here in the last day")
        self.expect_said(self.explain("nobody", status=1), "nobody")
        self.start("-np", 1, "--detach", worker("hang")).wait(60)
        jobs = json.loads(self.start("ps", "--json").wait(60).stdout)
        self.expect_said(self.explain(jobs[0]["job"], status=1), r"job \S+ still runs; 'hvdrun status' and 'hvdrun stacks' show")
        self.start("stop", *self.start("ps", "-q").wait().lines, "--grace", 1).wait(60)

    def test_a_record_that_cannot_be_read(self):
        folder = self.box.jobs_folder()
        for path in (os.path.dirname(folder), folder):
            os.mkdir(path, 0o700)
        with open(os.path.join(folder, "hvdrun-a-1.json"), "w", encoding="ascii") as file:
            file.write("{")
        self.expect_said(self.explain(status=1), "cannot read the record of any job that has ended here")


if __name__ == "__main__":
    main()
