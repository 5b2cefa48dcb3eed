# SPDX-License-Identifier: Apache-2.0
"""`hvdrun stacks`: where all ranks of a running job are, in one tree (docs/hangs.md)."""
# ctest waits
# ctest warm

import json
import os
import re
import sys

import hanging
from asked import Asked
from rig import main, worker


class Stacks(Asked):

    def hang(self):
        pipe = self.box.path("pipe")
        os.mkfifo(pipe)
        script = self.write("train.py", hanging.PROGRAM)
        return self.begin("-np", hanging.RANKS, "-H", "a:4,b:4", "--transport", "local", "--grace", 1, sys.executable,
                          script, pipe, count=hanging.READY)

    def test_every_rank_in_another_way(self):
        job = self.hang()
        text = self.until([hanging.TRUNK, *hanging.WAYS, *hanging.BESIDE])
        places = [re.search(pattern, text, re.M).start() for pattern in hanging.WAYS]
        self.assertEqual(places, sorted(places), "the odd ones first")
        some = self.ask("--ranks", "2,4").stdout
        self.assertRegex(some, r"(?m)^    \[2,4\] train.py:36 <module>")
        three = self.until([r"^rank 1 is elsewhere: in train.py:10 read_socket; 2 others are in train.py:7 all_reduce$"],
                           "--ranks", "0,1,6")
        odd = json.loads(self.ask("--ranks", "0,1,6", "--json").stdout)["odd"]
        self.assertEqual(odd, three.strip().split("\n")[-1])
        self.assertNotRegex(some, r"all_reduce|child processes")
        self.assertEqual(self.ask("--ranks", "7", status=1).stdout, "")
        self.end(job)

    def test_twice_and_json(self):
        mover = self.write("move.py", "import os, time\nos.write(1, b'ready\\n')\n"
                           "def a(): time.sleep(0.03)\ndef b(): time.sleep(0.03)\n"
                           "if os.environ['RANK'] == '0': time.sleep(1000)\nwhile True: a(), b()\n")
        job = self.begin("-np", 2, "--grace", 1, sys.executable, mover, count=2)
        for _ in range(60):
            answer = json.loads(self.ask("--twice", "0.04", "--json").stdout)
            if answer["moved"] == [1] and answer["still"] == [0]:
                break
        self.assertEqual((answer["moved"], answer["still"]), ([1], [0]))
        ranks = {rank for stack in answer["second"]["stacks"] for rank in stack["ranks"]}
        self.assertEqual(ranks, {0, 1})
        self.assertRegex(self.ask("--twice", "0.01").stdout, r"in the same place after 0 s: ranks? 0")
        self.end(job)

    def test_programs_that_are_not_python(self):
        job = self.begin("-np", 2, "--grace", 1, worker("hang"), count=2)
        self.until([r"^main threads:\n    \[0-1\] process hang; calls (pause|rt_sigsuspend|\w+)"])
        self.end(job)

    def test_no_job(self):
        result = self.ask(status=1)
        self.assertRegex(result.stderr, r"\Ahvdrun: [^\n]*no[^\n]*\n\Z")


WAITING = """\
import os, socket, sys
one, other = socket.socketpair()
def all_reduce():
    one.recv(1)
os.write(1, b"ready\\n")
if os.environ["RANK"] == "1":
    with open(sys.argv[1]): sys.exit(3)
all_reduce()
"""


class Dump(Asked):

    def fail(self, *options):
        script = self.write("train.py", WAITING)
        gate = self.box.path("gate")
        if not os.path.exists(gate):
            os.mkfifo(gate)
        job = self.begin("-np", 3, "--grace", 1, *options, sys.executable, script, gate, count=3)
        self.until([r"\[0,2\] .*all_reduce; calls recvfrom"])
        with open(gate, "w"):
            return self.expect(job.wait(60), 3)

    def test_the_others_are_shown_before_they_end(self):
        report = self.box.path("report.json")
        result = self.fail("--dump-on-failure", "--report", report)
        self.expect_said(result, r"(?m)^    \[0,2\] train.py:8 <module> > train.py:4 all_reduce; calls recvfrom$")
        self.expect_said(result, r"rank 1 exited with code 3")
        stack, = self.read_json(report)["stacks"]
        self.assertEqual(stack["ranks"], [0, 2])

    def test_not_without_the_option(self):
        self.expect_not_said(self.fail(), "all_reduce")

    def test_a_program_that_cannot_start(self):
        result = self.run_job("-np", 2, "--dump-on-failure", "--grace", 1, "/bin/sh", "-c", "exec /nonexistent/program")
        self.assertIn(result.status, (126, 127))


if __name__ == "__main__":
    main()
