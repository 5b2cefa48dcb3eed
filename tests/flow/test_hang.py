# SPDX-License-Identifier: Apache-2.0
"""--hang-timeout, --on-hang and --hang-warning: a job in which no rank shows progress (docs/hangs.md)."""
# ctest waits

import glob
import json
import os
import signal
import subprocess
import sys
import time

from hostile import Hostile, lacks
from rig import Flow, main, patient, wait_until, worker

# Rank 1 does what the first argument says, and the others wait for it.
SCRIPT = """\
import os, socket, sys, time
one, other = socket.socketpair()
rank = int(os.environ["RANK"])

def all_reduce():
    one.recv(1)

def sleep():
    time.sleep(1000)

def spin():
    sum(range(10 ** 15))

def work(seconds=4):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        a(); b(); c()

def a(): sum(range(1000000))
def b(): sum(range(1000001))
def c(): sum(range(1000002))

def pages(seconds=4):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        bytearray(50_000_000); time.sleep(0.01)

def say(seconds=4):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        print("still here", flush=True); time.sleep(0.2)

def report(seconds=9):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with open(os.environ["HVDRUN_PROGRESS_FILE"], "w") as file:
            print(100 - 10 * (until - time.monotonic()), file=file)
        time.sleep(0.5)

os.write(1, b"ready\\n")
if rank == 1:
    globals()[sys.argv[1]]()
    os._exit(0)
if sys.argv[1] in ("sleep", "spin"):
    all_reduce()
"""


class Hang(Flow):

    def run_script(self, what, *options):
        return self.run_job("-np", 3, "--grace", 1, *options, sys.executable, self.write("train.py", SCRIPT), what, timeout=120)

    def end_after(self, line, *options):
        """A job that goes on after the line."""
        job = self.start("-np", 3, "--grace", 1, "--no-stack-traces", *options, sys.executable, self.write("train.py", SCRIPT), "sleep")
        job.wait_output(line, name="stderr")
        job.signal(signal.SIGTERM)
        return self.expect(job.wait(patient(60)), 143)

    def test_kill(self):
        report, events = self.box.path("report.json"), self.box.path("events")
        result = self.run_script("sleep", "--hang-timeout", 2, "--report", report, "--events", events)
        self.expect(result, 119)
        self.expect_said(result, r"(?m)^ +\[1\] [^\n]*train.py:\d+ sleep; calls (clock_nanosleep|select)$")
        self.expect_said(result, r"(?m)^ +\[0,2\] [^\n]*train.py:\d+ all_reduce; calls recvfrom$")
        self.expect_said(result, r"the job hangs: no rank has shown progress for --hang-timeout 2.0 s; rank 1 on \S+ is "
                                 r"elsewhere: in train.py:\d+ sleep; 2 others are in train.py:\d+ all_reduce\n")
        self.assertIn("all_reduce", json.dumps(self.read_json(report)["stacks"]))
        with open(events) as file:
            hung = [event for event in map(json.loads, file) if event["event"] == "hung"]
        self.assertEqual(len(hung), 1, hung)
        self.assertRegex(hung[0]["text"], r"^the job hangs: .*; rank 1 on \S+ is elsewhere: ")

    def test_a_rank_that_spins(self):
        result = self.expect(self.run_script("spin", "--hang-timeout", 2), 119)
        self.expect_said(result, r"\[1\] [^\n]*train.py:\d+ spin; running; holds the GIL")

    def test_progress(self):
        script = self.write("train.py", SCRIPT.replace("seconds=4", "seconds=16"))
        jobs = {what: self.start("-np", 3, "--grace", 1, "--hang-timeout", 6, "--hang-warning", 6, sys.executable, script, what)
                for what in ("work", "pages", "say")}
        for what, job in jobs.items():
            with self.subTest(what=what):
                self.expect_not_said(self.expect(job.wait(patient(120)), 0), "progress")

    def test_reports_of_progress(self):
        result = self.expect(self.run_script("report", "--hang-timeout", 6, "--hang-warning", 0), 0)
        self.expect_not_said(result, "hangs")

    def test_warn_and_dump(self):
        for action, shown in (("warn", False), ("dump", True)):
            with self.subTest(action=action):
                result = self.end_after(r"the job hangs: no rank has shown progress", "--hang-timeout", 2, "--on-hang", action)
                (self.expect_said if shown else self.expect_not_said)(result, r"train.py:\d+ all_reduce")

    def test_the_warning(self):
        self.end_after(r"no rank has shown progress for 1 s; 'hvdrun stacks hvdrun-\S+' shows", "--hang-warning", 1)
        result = self.run_script("sleep", "--hang-warning", 0, "--timeout", 3, "--no-stack-traces")
        self.expect_not_said(result, "progress")

    def test_a_job_that_is_suspended(self):
        """Its ranks are silent for longer than the limit, but the job's clock stands still."""
        script = self.write("train.py", SCRIPT.replace("seconds=4", "seconds=12"))
        job = self.start("-np", 2, "--hang-timeout", 6, "--hang-warning", 6, "--grace", 1, sys.executable, script, "say")
        job.wait_output("still here")
        job.signal(signal.SIGTSTP)
        time.sleep(10)
        os.kill(job.pid, signal.SIGCONT)
        self.expect_not_said(self.expect(job.wait(60), 0), "progress|hangs")

    def test_nobody_stands_out(self):
        result = self.run_job("-np", 3, "--hang-timeout", 1, "--grace", 1, worker("hang"))
        self.expect(result, 119)
        self.expect_said(result, r"the job hangs: [^\n]*; no rank stands out\n")

    def test_lines_of_pytorchs_watchdog(self):
        script = self.write("train.sh", "#!/bin/sh\necho \"PG status: last enqueued work: $((168 - (RANK == 2)))\" >&2\nexec "
                                        + worker("hang") + "\n", 0o755)
        result = self.expect(self.run_job("-np", 4, "--hang-timeout", 1, "--grace", 1, script), 119)
        self.expect_said(result, r"; rank 2 on \S+ is behind: the last enqueued work is 167, and that of others 168")

    def test_a_program_without_python(self):
        self.expect(self.run_job("-np", 2, "--hang-timeout", 1, "--grace", 1, "/bin/sh", "-c",
                                 "echo ready; exec " + worker("hang")), 119)

    def test_a_line_that_must_come(self):
        script = self.write("retry.py", "import os, sys, time\n"
                                        "for step in range(3): print('step', step, flush=True)\n"
                                        "for _ in range(int(sys.argv[1])): print(sys.argv[2], flush=True); time.sleep(0.2)\n")
        events = self.box.path("events")
        result = self.run_job("-np", 2, "--expect", "^step [0-9]+$:2s", "--grace", 1, "--events", events, sys.executable, script, 10000, "retry")
        self.expect(result, 119)
        self.expect_said(result, r"(?m)^ +\[0-1\] [^\n]*retry.py:3 <module>")
        self.expect_said(result, r"the job hangs: no line has matched --expect '\^step \[0-9\]\+\$' for 2.0 s; ")
        with open(events) as file:
            self.assertEqual([event["event"] for event in map(json.loads, file)].count("hung"), 1)
        result = self.run_job("-np", 2, "--expect", "step:3s", sys.executable, script, 30, "step 7")
        self.expect_not_said(self.expect(result, 0), "matched")

    def test_a_line_that_never_comes(self):
        result = self.run_job("-np", 1, "--expect", "step:100ms", "sh", "-c", "echo steep; sleep 1")
        self.expect_said(self.expect(result, 0), "no line has ever matched --expect 'step'")

    def test_expectations_that_are_wrong(self):
        for text, why in (("step", "expected REGEX:TIME"), ("st(ep:1s", r"--expect: 'st\(ep': "), (r"(a)\1:1s", "not supported")):
            with self.subTest(text=text):
                self.expect_said(self.expect(self.run_job("-np", 1, "--expect", text, "false"), 2), why)

    def test_wrong_words(self):
        self.expect(self.run_job("-np", 1, "--hang-timeout", "soon", "true"), 2)
        self.expect(self.run_job("-np", 1, "--on-hang", "cry", "true"), 2)


ELASTIC = """\
import os, sys, time

def wait():
    time.sleep(1000)

def load():
    time.sleep(1001)

rank, epoch = int(os.environ["RANK"]), int(os.environ["HVDRUN_EPOCH"])
print("rank", rank, "on", os.environ["HVDRUN_HOSTNAME"], "in", epoch, flush=True)
if epoch > 1 and sys.argv[1] == "once":
    sys.exit()
load() if rank == 2 else wait()
"""


class FileSystem(Hostile, Flow):

    def test_a_server_that_does_not_answer(self):
        """The rank that reads from it is to blame, and the kind of the file system is named."""
        if not os.access("/dev/fuse", os.R_OK | os.W_OK) or lacks("unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"):
            self.skipTest("no right to mount with /dev/fuse")
        os.mkdir(self.box.path("mounted"))
        for attempt in range(4):  # on a busy machine, there may be no time for all stacks, which it says
            result = self.run_on_silence(self.box.path(f"evidence{attempt}"))
            if "were read in time" not in result.said:
                break
        self.expect_said(result, r"rank 1 on \S+ is elsewhere: in train.py:\d+ sleep \(fuse\); 2 others are in train.py:\d+ all_reduce")
        self.expect_said(result, r"train.py:\d+ sleep; calls read on fuse\n")
        self.expect_not_said(result, "progress again")

    def run_on_silence(self, evidence):
        folder, pidfile = self.box.path("mounted"), self.box.path("fuse.pid")
        server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "silent_fuse.py")
        script = SCRIPT.replace("def sleep():\n    time.sleep(1000)", f"def sleep():\n    open('{folder}/batches').read()")
        job = self.start_in_place(f"rm -f {pidfile}; {sys.executable} {server} {folder} {pidfile} && "
                                  f"while test ! -s {pidfile}; do sleep 0.1; done",
                                  "-np", 3, "--hang-timeout", 2, "--on-hang", "dump", "--grace", 1, "--evidence",
                                  evidence, sys.executable, self.write("train.py", script), "sleep")
        wait_until(lambda: glob.glob(os.path.join(evidence, "*", "facts.json")), "the evidence", patient(60))
        with open(pidfile, encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)  # the read fails then
        job.signal(signal.SIGINT)
        return job.wait(patient(60))


class Elastic(Flow):

    def run_elastic(self, what, *options):
        script = self.write("train.py", ELASTIC)
        return self.run_job("-np", 3, "--min-np", 3, "--max-np", 3, "--transport", "local", "-H", "a:2,b:1,c:1", "--grace", 1, "--hang-timeout", 2,
                            *options, sys.executable, script, what, timeout=120)

    def test_restart(self):
        result = self.expect(self.run_elastic("once", "--on-hang", "restart"), 0)
        self.expect_said(result, r"(?m)^ +\[2\] [^\n]*train.py:7 load; calls ")
        self.expect_said(result, r"the job hangs: no rank has shown progress for --hang-timeout 2.0 s; rank 2 on b is elsewhere: ")
        self.expect_said(result, r"rank 2 on b hangs; all workers restart")
        self.assertIn("rank 2 on b in 2", result.stdout)

    def test_a_spare_takes_the_place(self):
        result = self.expect(self.run_elastic("once", "--on-hang", "restart", "--blacklist-after", 1), 0)
        self.expect_said(result, r"b is blacklisted for the rest of the job: the last failure there is a hang")
        self.assertIn("rank 2 on c in 2", result.stdout)

    def test_no_more_restarts(self):
        result = self.expect(self.run_elastic("always", "--on-hang", "restart", "--max-restarts", 1), 119)
        self.expect_said(result, r"rank 2 on b hangs; no more restarts: 1 allowed")

    def test_not_without_an_elastic_job(self):
        result = self.expect(self.run_job("-np", 1, "--on-hang", "restart", "true"), 2)
        self.expect_said(result, "only an elastic job can restart its workers; give --min-np, or use --on-hang kill")

    def test_dump_on_failure(self):
        """An elastic job does not wait for the stacks: the ranks end when they get KILL, and not before."""
        script = ELASTIC.replace("    sys.exit()", "    sys.exit()\nif rank == 0: time.sleep(1); sys.exit(3)")
        script = self.write("fail.py", script.replace(
            "sys, time\n", "sys, time, signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\n", 1))
        result = self.run_job("-np", 3, "--min-np", 3, "--transport", "local", "-H", "a:2,b:1", "--grace", 1, "--dump-on-failure",
                              sys.executable, script, "once", timeout=120)
        self.expect(result, 0)
        self.expect_said(result, r"(?m)^ +\[2\] [^\n]*fail.py:7 load; calls ")
        self.expect_said(result, r"(?m)^ +\[1\] [^\n]*fail.py:4 wait; calls ")
        self.expect_said(result, r"rank 0 on a exited with code 3; all workers restart")


TORCH = """\
import os, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")

def load():
    time.sleep(1000)

for step in range(4):
    print("step", step, flush=True)
    if dist.get_rank() == 2 and step == 3:
        load()
    dist.all_reduce(torch.ones(10))
"""
PYTHON = "/usr/bin/python3"


class Torch(Flow):

    def test_a_rank_that_skips_an_all_reduce(self):
        if subprocess.run([PYTHON, "-c", "import torch.distributed as d; d.is_gloo_available"], capture_output=True).returncode:
            self.skipTest("no torch with Gloo")
        result = self.run_job("-np", 3, "--hang-timeout", 4, "--grace", 1, PYTHON, self.write("train.py", TORCH), timeout=180)
        self.expect(result, 119)
        self.expect_said(result, r"(?m)^ +\[2\] [^\n]*train.py:6 load; calls (clock_nanosleep|select)$")
        self.expect_said(result, r"(?m)^ +\[0-1\] [^\n]* all_reduce")
        self.expect_said(result, r"; rank 2 on \S+ is elsewhere: in train.py:6 load; 2 others are in ")


if __name__ == "__main__":
    main()
