# SPDX-License-Identifier: Apache-2.0
"""A debugger or a shell on a rank, over the job's own links (docs/jobs.md)."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from job_commands import JobCommands
from procfs import is_alive, process, state
from rig import HVDRUN, Job, main, wait_until, worker

NEEDS_GDB = unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")

# A debugger that holds a process (PTRACE_ATTACH), says so, and may not hear HUP.
HOLDER = """
import ctypes, os, signal, sys, time
if sys.argv[2:]:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
assert libc.ptrace(16, pid, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.waitpid(pid, 0x40000000)
print("holds", pid, flush=True)
time.sleep(3600)
"""


# For --with: once the rank has stopped, its state.
STOPPED = "until grep 'State:.*T' /proc/{pid}/status; do sleep 0.01; done"


def yama():
    """0: whoever may see a process may attach to it."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
            return int(file.read())
    except FileNotFoundError:
        return 0


def tracer(pid):
    one = process(pid)
    return int(re.search(rb"TracerPid:\s+(\d+)", one.read("status")).group(1)) if one else -1


class Debug(JobCommands):

    def begin(self, *args, ranks=3):
        """A job of two hosts whose ranks wait for a gate; the workers by rank."""
        gate, self.let_go = self.box.gate()
        job = self.start("-np", ranks, "-H", "a:2,b:2", "--transport", "local", *args, worker("hang"), "--until", gate)
        job.wait_output("ready", count=ranks)
        self.wait_socket()
        return job, job.wait_workers(ranks)

    def wait_socket(self):
        wait_until(self.sockets, "the control socket")

    def end(self, job, status=0):
        self.let_go()
        return self.expect(job.wait(), status)

    def holder(self, *words):
        return " ".join([sys.executable, "-I", self.write("holder.py", HOLDER), "{pid}", *words])

    def connect(self, **request):
        path, = self.sockets()
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.connect(path)
        client.sendall(json.dumps(request).encode() + b"\n")
        return client

    def wait_free(self, pid):
        wait_until(lambda: tracer(pid) == 0 and state(pid) in ("S", "R", "D"), f"{pid} goes on")


class Gdb(Debug):

    @NEEDS_GDB
    def test_on_a_rank_of_another_agent(self):
        job, workers = self.begin()
        user = self.terminal("debug", "--rank", 2, rows=40, columns=120)
        user.wait_output(r"\(gdb\) ")
        self.assertEqual(tracer(workers[2].pid) > 0, True)
        user.type("bt\n")
        user.wait_output(r"main \(")
        user.type("info inferiors\n")
        user.wait_output(rf"process {workers[2].pid} ")
        user.type("shell stty size\n")
        user.wait_output("40 120$")
        user.type("continue\n")
        user.wait_output("Continuing")
        wait_until(lambda: state(workers[2].pid) == "S", "the rank goes on")
        user.type("\x03")
        user.wait_output("received signal SIGINT")
        user.type("quit\n")
        self.assertEqual(user.wait(), 0, user.describe())
        self.assertEqual(user.modes, user.modes_after)
        self.wait_free(workers[2].pid)
        result = self.end(job)
        self.expect_said(result, r"'hvdrun debug' \(user \S+, [\d:]+\) attaches to rank 2 on b: time limits stand still")
        self.expect_said(result, "the debugger has left rank 2 on b")

    @NEEDS_GDB
    def test_without_a_terminal(self):
        job, workers = self.begin()
        result = self.expect(self.start("debug", "--rank", 0, "--with", "gdb", stdin=b"print 6 * 7\nquit\n").wait(), 0)
        self.assertIn("$1 = 42", result.stdout)
        self.wait_free(workers[0].pid)
        self.end(job)

    @NEEDS_GDB
    def test_a_terminal_that_vanishes(self):
        job, workers = self.begin()
        _, read_until, vanish = self.on_terminal("debug", "--rank", 1)
        read_until(b"(gdb)")
        vanish()
        self.wait_free(workers[1].pid)
        self.end(job)

    @NEEDS_GDB
    def test_no_breakpoint_is_left(self):
        """The command is killed while the rank runs on to a breakpoint: gdb takes that out before it goes."""
        job, workers = self.begin()
        user = self.start("debug", "--rank", 1, "--with", "gdb", stdin="pipe")
        user.type("break exit\ncontinue\n")
        user.wait_output("Continuing")
        os.kill(user.pid, signal.SIGKILL)
        self.wait_free(workers[1].pid)
        self.end(job)

    @NEEDS_GDB
    def test_the_rank_ends_below_it(self):
        job, workers = self.begin(ranks=1)
        user = self.terminal("debug", "--rank", 0)
        user.wait_output(r"\(gdb\) ")
        user.type("kill\n")
        result = self.expect(job.wait(), 137)
        self.expect_said(result, "SIGKILL")
        self.assertEqual(user.wait(), 1, user.describe())
        self.assertIn("the session is over: the job ends", user.output())
        self.assertEqual(user.modes, user.modes_after)
        self.assertFalse(is_alive(workers[0].pid))


class Debugger(Debug):

    def test_a_command(self):
        job, workers = self.begin()
        result = self.ask("debug", "--rank", 1, "--with", "echo {pid} and %p", status=0)
        self.assertEqual(result.lines, [f"{workers[1].pid} and %p"])
        self.assertEqual(self.ask("debug", "--rank", 1, "--with", "exit 9", status=9).stdout, "")
        self.assertEqual(self.ask("debug", "--rank", 1, "--with", "kill -9 $$", status=137).stdout, "")
        self.end(job)

    def test_what_is_left_stopped_goes_on(self):
        job, workers = self.begin()
        result = self.ask("debug", "--rank", 1, "--with", "kill -STOP {pid}; " + STOPPED)
        self.assertIn("T (stopped)", result.stdout)
        self.expect_said(result, "rank 1 was still stopped, and goes on now")
        self.wait_free(workers[1].pid)
        self.expect_said(self.end(job), "the debugger has left rank 1 on a, which was still stopped, and goes on now")

    def test_what_was_stopped_before_stays_so(self):
        job, workers = self.begin()
        os.kill(workers[1].pid, signal.SIGSTOP)
        wait_until(lambda: state(workers[1].pid) == "T", "it stops")
        self.ask("debug", "--rank", 1, "--with", "true")
        self.assertEqual(state(workers[1].pid), "T")
        os.kill(workers[1].pid, signal.SIGCONT)
        self.end(job)

    def test_killed_commands_leave_no_debugger(self):
        """One that hears no HUP gets KILL, and the kernel lets go of what it held."""
        job, workers = self.begin()
        for number, words in ((signal.SIGKILL, ["stubborn"]), (signal.SIGTERM, [])):
            with self.subTest(signal=number):
                user = self.start("debug", "--rank", 2, "--with", self.holder(*words))
                user.wait_output(f"holds {workers[2].pid}")
                self.assertEqual(state(workers[2].pid), "t")
                os.kill(user.pid, number)
                self.assertEqual(user.wait().status, -number if number == signal.SIGKILL else 128 + number)
                self.wait_free(workers[2].pid)
        self.end(job)

    def test_the_driver_dies(self):
        job, workers = self.begin()
        user = self.start("debug", "--rank", 2, "--with", self.holder())
        user.wait_output("holds")
        os.kill(job.pid, signal.SIGKILL)
        self.expect_said(self.expect(user.wait(), 1), "the session is over: the job has ended")
        job.wait()
        for one in workers.values():
            wait_until(lambda pid=one.pid: not is_alive(pid), "the workers end")

    def test_the_job_ends(self):
        job, _ = self.begin()
        user = self.start("debug", "--rank", 2, "--with", self.holder())
        user.wait_output("holds")
        self.ask_only("stop", "--grace", 1)
        self.expect_said(self.expect(user.wait(), 1), "the session is over: the job ends")
        self.expect(job.wait(), 130)

    def test_one_for_each_rank(self):
        job, workers = self.begin()
        user = self.start("debug", "--rank", 2, "--with", self.holder())
        user.wait_output("holds")
        self.refused("rank 2 already has a debugger", "debug", "--rank", 2)
        self.refused("rank 3 does not run", "debug", "--rank", 3)
        os.kill(user.pid, signal.SIGTERM)
        user.wait()
        self.wait_free(workers[2].pid)
        self.end(job)

    def test_none_is_there(self):
        empty = self.box.path("empty")
        os.mkdir(empty)
        gate, let_go = self.box.gate()
        job = Job(self.box, [HVDRUN, "-np", 1, worker("hang"), "--until", gate], env={"PATH": empty})
        job.wait_output("ready")
        self.wait_socket()
        self.refused("localhost has neither gdb nor lldb: install one of them there, or name a debugger with --with",
                     "debug", "--rank", 0)
        self.refused("localhost has no lldb in PATH", "debug", "--rank", 0, "--with", "lldb")
        let_go()
        self.expect(job.wait(), 0)


class Limits(Debug):
    """While a debugger is there, the job's own limits find nothing."""

    def held(self, *args, status):
        """The rank waits at its start, so that time stands still until the debugger is there."""
        job = self.start("-np", 3, "--stop-at-start=2", *args, worker("hang"))
        job.wait_output("waits at its start", "stderr")
        self.wait_socket()
        user = self.start("debug", "--rank", 2, "--with", self.holder())
        user.wait_output("holds")
        time.sleep(2.5)  # more than the limit
        self.assertIsNone(job.popen.poll(), job.describe())
        self.assertNotRegex(job.output("stderr"), "hang|stopped|behind")
        os.kill(user.pid, signal.SIGTERM)
        user.wait()
        return self.expect(job.wait(), status)

    def test_timeout(self):
        self.held("--timeout", "2s", status=124)

    def test_hang(self):
        self.expect_said(self.held("--hang-timeout", "2s", status=119), "hang")

    def test_a_job_that_is_suspended_meanwhile(self):
        job, workers = self.begin()
        user = self.start("debug", "--rank", 2, "--with", self.holder())
        user.wait_output("holds")
        os.kill(job.pid, signal.SIGTSTP)
        wait_until(lambda: state(job.pid) == "T", "the job is suspended")
        os.kill(job.pid, signal.SIGCONT)
        wait_until(lambda: state(workers[0].pid) != "T", "it goes on")
        os.kill(user.pid, signal.SIGTERM)
        user.wait()
        self.wait_free(workers[2].pid)
        self.end(job)

    def test_a_failure_of_another_rank_still_ends_the_job(self):
        job, workers = self.begin()
        user = self.start("debug", "--rank", 2, "--with", self.holder())
        user.wait_output("holds")
        os.kill(workers[0].pid, signal.SIGSEGV)
        self.expect_said(self.expect(job.wait(), 139), "rank 0")
        self.expect(user.wait(), 1)


class Shell(Debug):

    def test_of_a_rank(self):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit[0] - 1, limit[1]))  # agents raise theirs
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limit)
        job, workers = self.begin("--wdir", self.box.work, "-x", "OF_THE_JOB=a b")
        script = 'echo "$RANK $OF_THE_JOB"; pwd; exit 7'
        result = self.ask("shell", "--rank", 2, "--", "sh", "-c", script, status=7)
        self.assertEqual(result.lines, ["2 a b", os.path.realpath(self.box.work)])
        own, given = [self.ask("shell", "--rank", 0, "--", "grep", "files", path).stdout
                      for path in (f"/proc/{workers[0].pid}/limits", "/proc/self/limits")]
        self.assertEqual(own, given)
        own = self.ask("shell", "--rank", 0, "--", "cat", f"/proc/{workers[0].pid}/environ").stdout
        given = self.ask("shell", "--rank", 0, "--", "cat", "/proc/self/environ").stdout
        names = [set(text.split("\0")) for text in (own, given)]
        self.assertEqual({pair.partition("=")[0] for pair in names[0] ^ names[1]} - {"TERM", "_"}, set())
        self.end(job)

    def test_of_a_host(self):
        job, _ = self.begin()
        self.assertEqual(self.ask("shell", "--host", "b", "--", "sh", "-c", "echo [$RANK]").lines, ["[]"])
        self.refused("the job has no host c that is up", "shell", "--host", "c")
        self.end(job)

    def test_as_a_filter(self):
        """Without a terminal, bytes pass as they are, to their end."""
        job, _ = self.begin()
        data = bytes(range(256)) * 3000
        with open(self.box.path("data"), "wb") as file:
            file.write(data)
        for stdin, command in ((data, ["cat"]), (b"", ["cat", self.box.path("data")])):
            with self.subTest(command=command):
                out = subprocess.run([HVDRUN, "shell", "--rank", "2", "--", *command], input=stdin, stdout=subprocess.PIPE,
                                     env=self.box.environment(), cwd=self.box.work, check=True).stdout
                self.assertEqual(out == data, True)
        self.end(job)

    def test_with_a_terminal(self):
        job, _ = self.begin()
        user = self.terminal("shell", "--rank", 1, "--", worker("winch"), rows=33, columns=101)
        user.wait_output("tty 1 1 1")
        user.wait_output("size 33 101")
        user.resize(20, 70)
        user.wait_output("size 20 70")
        user.type("\x03")
        user.wait_output("got SIGINT")
        user.type("bye\n")
        self.assertEqual(user.wait(), 0, user.describe())
        self.assertEqual(user.modes, user.modes_after)
        self.end(job)

    def test_the_users_own(self):
        job, _ = self.begin("-x", "SHELL=/bin/sh", "-x", "PS1=ask: ")
        user = self.terminal("shell", "--rank", 1)
        user.wait_output("ask: ")
        user.type("echo rank=$RANK; exit 4\n")
        user.wait_output("rank=1$")
        self.assertEqual(user.wait(), 4, user.describe())
        self.end(job)

    def test_programs_that_cannot_start(self):
        job, _ = self.begin()
        self.refused("'not-there' was not found in PATH", "shell", "--rank", 1, "--", "not-there")
        self.end(job)

    def test_usage(self):
        for words in (["debug", "--rank", 0, "--with", b"\xff"], ["shell", "--rank", 0, "--", "echo", b"\xff"]):
            done = subprocess.run([HVDRUN, *map(lambda word: word if isinstance(word, bytes) else str(word), words)], check=False,
                                  stderr=subprocess.PIPE, env=self.box.environment())
            self.assertEqual((done.returncode, b"takes only words in UTF-8" in done.stderr), (2, True), done)
        for words, said in ((["shell"], "shell needs --rank or --host"), (["debug"], "debug needs --rank"),
                            (["shell", "--rank", 1, "--host", "a"], "shell needs --rank or --host"),
                            (["shell", "--rank", "x"], "--rank: "), (["shell", "--rank", 1, "--"], "a command must follow"),
                            (["debug", "--continue", "--with", "gdb"], "--continue opens no debugger")):
            with self.subTest(words=words):
                self.refused(said, *words, status=2)


class Floods(Debug):
    """A session holds what it cannot pass on, and disturbs nobody."""

    def opened(self, **request):
        client = self.connect(**request)
        answer = client.makefile("rb", buffering=0).readline()
        self.assertEqual(json.loads(answer).get("ok"), True, answer)
        return client

    def spew(self, job):
        return [one for one in job.tree() if one.comm == "yes"]

    def test_a_user_who_does_not_read(self):
        job, _ = self.begin()
        clients = [self.opened(do="shell", rank=rank, argv=["yes"], term="dumb" if rank else "") for rank in range(3)]
        for client in clients:
            client.sendall(b"\2\0\0\4\0\0\0\0")
        wait_until(lambda: len(self.spew(job)) == 3, "they print")
        spew = self.spew(job)
        wait_until(lambda: all(state(one.pid) == "S" for one in spew), "they wait for room")
        self.assertEqual(self.ask("shell", "--rank", 0, "--", "echo", "here").lines, ["here"])
        for client in clients:
            client.close()
        for one in spew:
            wait_until(lambda pid=one.pid: not is_alive(pid), "they end")
        self.end(job)

    def test_a_program_that_does_not_read(self):
        job, _ = self.begin()
        client = self.opened(do="debug", rank=1, **{"with": "sleep 600", "term": "dumb"})
        sleeps, = wait_until(lambda: [one for one in job.tree() if one.comm == "sleep"], "the debugger")
        client.setblocking(False)
        sent = 0
        try:
            while sent < 64 << 20:
                sent += client.send(b"\1\0\x40\0" + b"x\n" * 0x2000)
        except BlockingIOError:
            pass
        self.assertLess(sent, 8 << 20)
        client.close()
        wait_until(lambda: not is_alive(sleeps.pid), "it ends")
        self.end(job)

    def test_rubbish(self):
        job, _ = self.begin()
        for request in ({"do": "debug"}, {"do": "debug", "rank": "x"}, {"do": "debug", "rank": -1}, {"do": "shell"},
                        {"do": "shell", "host": 3}, {"do": "shell", "host": "../a"}, {"do": "debug", "rank": 1 << 40},
                        {"do": "shell", "rank": 0, "argv": [1]}, {"do": "shell", "rank": 0, "argv": "x"},
                        {"do": "shell", "rank": 0, "argv": ["x"] * 1025},
                        {"do": "continue"}, {"do": "continue", "rank": 0}, {"do": "continue", "rank": []}):
            with self.subTest(request=request):
                self.assertIn("error", json.loads(self.connect(**request).makefile("rb").readline()))
        for piece in (b"\0\0\0\0", b"\1\1\0\0", b"\1\0\xff\xff", b"\3\0\0\1x", b"\2\0\0\3abc", b"GET / HTTP/1.1\r\n\r\n"):
            with self.subTest(piece=piece):
                client = self.opened(do="shell", rank=0, argv=["sleep", "600"])
                client.sendall(piece)
                self.assertEqual(client.recv(100), b"")
        wait_until(lambda: not [one for one in job.tree() if one.comm == "sleep"], "their programs end")
        self.end(job)

    def test_too_many(self):
        job, _ = self.begin()
        clients = [self.opened(do="shell", rank=0, argv=["sleep", "600"]) for _ in range(8)]
        self.refused("this job has 8 debuggers and shells already", "shell", "--rank", 1)
        clients.pop().close()
        wait_until(lambda: "ok" in json.loads(self.connect(do="shell", rank=1, argv=["true"]).makefile("rb").readline()),
                   "room for one")
        self.end(job)


class StopAtStart(Debug):

    def test_a_rank_waits_for_its_debugger(self):
        out, seen = self.box.path("out"), self.box.path("seen")
        job = self.held("-np", 3, "-H", "a:2,b:1", "--transport", "local", "--stop-at-start=2", "--timeout", "8s",
                        "sh", "-c", f"echo $RANK >> {out}; [ $RANK != 2 ] || until [ -e {seen} ]; do sleep 0.1; done")
        job.wait_output(r"rank 2 waits at its start on b, pid \d+: hvdrun debug --rank 2", "stderr")
        pid = int(re.search(r"pid (\d+)", job.output("stderr")).group(1))
        self.assertEqual((state(pid), tracer(pid)), ("T", 0))
        wait_until(lambda: os.path.exists(out) and os.path.getsize(out) == 4, "the others run")
        time.sleep(8.5)  # more than --timeout
        self.assertEqual(state(pid), "T", job.describe())
        self.refused("rank 2 does not wait|no rank", "debug", "--continue", "--rank", 1)
        self.assertIn("T (stopped)", self.ask("debug", "--rank", 2, "--with", "grep State /proc/{pid}/status").stdout)
        with open(seen, "w", encoding="ascii"):
            pass
        self.expect(job.wait(), 0)
        with open(out, encoding="ascii") as file:
            self.assertEqual(sorted(file.read().split()), ["0", "1", "2"])

    def held(self, *args, count=1):
        job = self.start(*args)
        job.wait_output("waits at its start", "stderr", count=count)
        self.wait_socket()
        return job

    @NEEDS_GDB
    def test_gdb_comes_before_main(self):
        gate, let_go = self.box.gate()
        job = self.held("-np", 2, "--stop-at-start", worker("hang"), "--until", gate, count=2)
        user = self.terminal("debug", "--rank", 1)
        user.wait_output(r"\(gdb\) ")
        user.type("break main\n")
        user.wait_output("Breakpoint 1")
        user.type("continue\n")
        user.wait_output(r"Breakpoint 1, .*main \(")
        user.type("quit\n")
        self.assertEqual(user.wait(), 0, user.describe())
        job.wait_output(r"\[1\]<stdout>:ready")
        self.assertNotIn("[0]<stdout>", job.output())
        self.ask("debug", "--continue")
        job.wait_output(r"\[0\]<stdout>:ready")
        let_go()
        self.expect(job.wait(), 0)

    def test_many(self):
        job = self.held("-np", 12, "--stop-at-start", "true")
        job.wait_output("4 more ranks wait at their start", "stderr")
        self.assertEqual(len(re.findall("waits at its start", job.output("stderr"))), 8)
        self.ask("debug", "--continue")
        self.expect(job.wait(), 0)

    def test_a_tool_that_holds_a_rank_does_not_keep_it_stopped(self):
        """It has attached on its own, so hvdrun does not know of it."""
        job = self.held("-np", 1, "--stop-at-start", "sh", "-c", "echo it runs")
        pid = int(re.search(r"pid (\d+)", job.output("stderr")).group(1))
        tool = self.start("shell", "--rank", 0, "--", "sh", "-c", self.holder().replace("{pid}", str(pid)))
        tool.wait_output("holds")
        self.ask("debug", "--continue")
        self.ask("shell", "--rank", 0, "--", "true")  # now its agent has let it go
        self.assertEqual(state(pid), "t")
        os.kill(tool.pid, signal.SIGTERM)
        tool.wait()
        self.assertIn("it runs", self.expect(job.wait(), 0).stdout)

    def test_all_go_on_before_all_have_started(self):
        """An agent starts 32 ranks at a time: the later ones must not wait for a second word."""
        job = self.held("-np", 160, "--stop-at-start", "true")
        wait_until(lambda: "ok" in json.loads(self.connect(do="continue").makefile("rb").readline()), "some go on")
        self.expect(job.wait(), 0)

    def test_a_debugger_whose_user_has_gone(self):
        """The rank goes on, and so does the time of the job."""
        job = self.held("-np", 1, "--stop-at-start", "--timeout", "2s", "sleep", 600)
        self.connect(do="debug", rank=0, **{"with": "sleep 600"}).close()
        self.expect(job.wait(), 124)

    def test_they_can_be_ended(self):
        job = self.held("-np", 2, "--stop-at-start", "sleep", 600, count=2)
        self.ask_only("stop")
        self.expect(job.wait(), 130)

    def test_a_suspended_job_does_not_let_them_go(self):
        job = self.held("-np", 1, "--stop-at-start", "sh", "-c", "echo it runs")
        pid = int(re.search(r"pid (\d+)", job.output("stderr")).group(1))
        os.kill(job.pid, signal.SIGTSTP)
        wait_until(lambda: state(job.pid) == "T", "the job is suspended")
        os.kill(job.pid, signal.SIGCONT)
        self.ask("shell", "--rank", 0, "--", "true")  # now its agent has been told
        self.assertEqual(state(pid), "T")
        self.assertNotIn("it runs", job.output())
        self.ask("debug", "--continue")
        self.expect(job.wait(), 0)

    def test_a_program_that_cannot_start(self):
        bad = self.write("bad", "#!/not/there\n", mode=0o755)
        self.expect(self.run_job("-np", 2, "--stop-at-start", bad), 127)

    def test_usage(self):
        for words, said in ((["--stop-at-start=x"], "stop-at-start"), (["--stop-at-start=0-2000000000"], "0 to 9999999,"),
                            (["--stop-at-start", "--min-np", 1], "elastic"),
                            (["--stop-at-start", "--warm"], "--warm")):
            with self.subTest(words=words):
                result = self.expect(self.run_job("-np", 2, *words, "true"), 2)
                self.expect_said(result, said)
        job = self.held("-np", 1, "--stop-at-start=0,7", "true")
        job.wait_output("--stop-at-start=0,7: the job has no rank beyond 0", "stderr")
        self.ask("debug", "--continue", "--rank", 0)
        self.expect(job.wait(), 0)


class Mpir(Debug):
    """What parallel debuggers read in hvdrun itself."""

    NAMES = ("MPIR_proctable", "MPIR_proctable_size", "MPIR_being_debugged", "MPIR_debug_state",
             "MPIR_debug_abort_string", "MPIR_i_am_starter", "MPIR_partial_attach_ok", "MPIR_Breakpoint")

    # host, program and pid of an entry: tools know the layout, and a build may tell gdb no types
    PID = (16, "int")
    FIELDS = ((0, "char *"), (8, "char *"), PID)

    @staticmethod
    def entry(rank, offset, kind):
        return f"*({kind} *)(*(char **)&MPIR_proctable + {24 * rank + offset})"

    def gdb(self, *words, commands):
        return ["gdb", "-q", "-batch", "-nx", *[word for command in commands for word in ("-ex", command)], *map(str, words)]

    def test_the_names_stay_in_a_stripped_program(self):
        stripped = self.box.path("stripped")
        subprocess.run(["strip", "-o", stripped, HVDRUN], check=True)
        names = subprocess.run(["nm", "-D", stripped], stdout=subprocess.PIPE, check=True, text=True).stdout
        for name in self.NAMES:
            self.assertRegex(names, rf"(?m) [BDT] {name}$")

    @NEEDS_GDB
    @unittest.skipIf(yama(), "Yama lets a tool attach only to its own children")
    def test_a_tool_attaches(self):
        job, workers = self.begin()
        found = [self.entry(rank, *field) for rank in range(3) for field in self.FIELDS]
        text = self.helper(*self.gdb("-p", job.pid, commands=["print MPIR_proctable_size", *(f"print {one}" for one in found)]),
                           stdout=subprocess.PIPE, text=True).communicate()[0]
        self.assertIn("$1 = 3\n", text)
        for rank, host in ((0, "a"), (1, "a"), (2, "b")):
            self.assertRegex(text, rf'= 0x\w+ "{host}"\n.*= 0x\w+ "\S+/hang"\n.*= {workers[rank].pid}\n')
        self.end(job)

    @NEEDS_GDB
    @unittest.skipIf(yama(), "Yama lets a tool attach only to its own children")
    def test_a_tool_that_has_gone_does_not_stop_the_time(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 1, "--timeout", "4s", worker("hang"), "--until", gate, ":", "-np", 1, "sleep", 600)
        job.wait_output("ready")
        self.helper(*self.gdb("-p", job.pid, commands=["set var MPIR_being_debugged=1"]),
                    stdout=subprocess.DEVNULL).communicate()
        let_go()
        self.expect(job.wait(), 124)

    @NEEDS_GDB
    def test_a_tool_launches(self):
        """All ranks are before main() when the tool hears of them; those that it leaves alone go on after that."""
        commands = ["break main", "run", "set var MPIR_being_debugged=1", "break MPIR_Breakpoint", "continue",
                    "print MPIR_debug_state", "print MPIR_proctable_size",
                    "eval \"shell grep State /proc/%d/status /proc/%d/status\", "
                    f"{self.entry(0, *self.PID)}, {self.entry(1, *self.PID)}",
                    "continue"]
        job = Job(self.box, self.gdb("--args", HVDRUN, "-np", "2", "sh", "-c", "echo rank $RANK runs", commands=commands),
                  env={"ASAN_OPTIONS": "detect_leaks=0"})  # which does not work below a debugger
        text = self.expect(job.wait(), 0).stdout
        self.assertIn("$1 = 1\n$2 = 2\n", text)
        self.assertEqual(len(re.findall(r"T \(stopped\)", text)), 2, text)
        self.assertRegex(text, r"(?s)stopped.*rank 0 runs")
        self.assertRegex(text, r"(?s)stopped.*rank 1 runs")

    @NEEDS_GDB
    def test_a_rank_that_cannot_be_executed(self):
        """The tool does not hear of ranks: there would be none in its table."""
        program = self.box.path("busy")
        shutil.copy("/bin/true", program)
        commands = ["break main", "run", "set var MPIR_being_debugged=1", "break MPIR_Breakpoint", "continue"]
        with open(program, "ab"):  # the kernel does not execute what somebody writes
            job = Job(self.box, self.gdb("--args", HVDRUN, "-np", "1", "sleep", "600", ":", "-np", "1", program,
                                         commands=commands), env={"ASAN_OPTIONS": "detect_leaks=0"})
            text = self.expect(job.wait(), 0).stdout
        self.assertRegex(text, r"Inferior 1 \(process \d+\) exited with code")
        self.assertNotIn("Breakpoint 2, ", text)

    @NEEDS_GDB
    def test_a_tool_launches_and_a_rank_waits_for_the_user(self):
        commands = ["break main", "run", "set var MPIR_being_debugged=1", "break MPIR_Breakpoint", "continue",
                    "print MPIR_proctable_size", "continue"]
        job = Job(self.box, self.gdb("--args", HVDRUN, "-np", "2", "--stop-at-start=1", "sh", "-c", "echo rank $RANK runs",
                                     commands=commands), env={"ASAN_OPTIONS": "detect_leaks=0"})
        job.wait_output("rank 0 runs")
        job.wait_output("rank 1 waits at its start", "stderr")
        job.wait_output(r"\$1 = 2")
        self.wait_socket()
        self.assertNotIn("rank 1 runs", job.output())
        self.ask("debug", "--continue")
        self.assertIn("rank 1 runs", self.expect(job.wait(), 0).stdout)


if __name__ == "__main__":
    main()
