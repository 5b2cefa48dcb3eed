# SPDX-License-Identifier: Apache-2.0
"""`hvdrun warm`: interpreters that fork the ranks of one job after another (docs/warm.md)."""
# ctest waits

import glob
import os
import re
import resource
import shutil
import signal
import socket
import struct
import sys
import time
import unittest

from hostile import Hostile
from procfs import kill
from python import find_python
from rig import HVDRUN, Job, main, nightly, processes, wait_until
from warm import PROBE, WarmFlow

PYTHON = sys.executable
SILENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "silent_fuse.py")
SCRIPT = "import decimal, os, sys\nprint('parent', os.getppid(), 'hash', hash('x'))\n"
OLD = r"process (\d+) of an earlier job has \d+ modules"
ANEW = "modules were imported in"


class Kept(WarmFlow):

    def setUp(self):
        super().setUp()
        self.addCleanup(self.stop)

    def stop(self):
        Job(self.box, [HVDRUN, "warm", "stop"]).wait(60)

    def run_job(self, *args, timeout=60, **options):
        """The holder stays: the test ends with the look at what is left."""
        return self.start(*args, **options).wait(timeout)

    def hold(self, *words, **options):
        result = self.expect(self.run_job("warm", "start", *words, **options), 0)
        self.assertIn("jobs with --warm leave their interpreters here", result.stdout)

    def rows(self):
        """By pid of a mother: the program."""
        result = self.expect(self.run_job("warm", "list"), 0)
        found = re.findall(r"(?m)^ *(\d+) +\S.*?B  (.*)$", result.stdout)
        return {int(pid): program for pid, program in found}

    def folder(self):
        folder, = glob.glob(os.path.join(self.box.tmp, "hvdrun-*", ".warm-*"))
        return folder

    def holder(self):
        """The process that becomes the agent of jobs, and its keeper."""
        def find():
            found = [one for one in processes().values()
                     if b"\0--warm\0" in one.read("cmdline") and self.box.tag.encode() in one.read("environ")]
            return [(one.pid, one.ppid) for one in found if one.ppid in [other.pid for other in found]]

        return wait_until(find, "the holder")[0]

    def served(self, *args, **options):
        """On a busy machine, the holder may need more than the two seconds that a job waits for it."""
        for _ in range(10):
            result = self.warm(*args, **options)
            if not re.search("not used: (their process does not answer|they serve another job)", result.stderr):
                break
        return result

    def job(self, *args, count=1, **options):
        return self.expect(self.served("-np", count, "--oversubscribe", *args, **options), 0)

    def is_old(self, result):
        """The pid of the mother of an earlier job, which has forked the ranks."""
        match = re.search(OLD, result.stderr)
        self.assertTrue(match, result.describe())
        self.assertNotIn(ANEW, result.stderr, result.describe())
        return int(match.group(1))

    def is_new(self, result):
        self.assertIn(ANEW, result.stderr, result.describe())

    def two(self, between, *args, **options):
        """Something happens between two jobs. Returns the second one's result."""
        script = self.write("train.py", SCRIPT)
        self.is_new(self.job(PYTHON, script, *args, **options))
        between(next(iter(self.rows())))
        return self.job(PYTHON, script, *args, **options)


class Jobs(Kept):

    def test_the_next_job(self):
        """Its ranks come from the same process: that has chosen how Python hashes."""
        script = self.write("train.py", SCRIPT)
        self.hold()
        first, *others = [self.job(PYTHON, script, "an argument", count=2, env={"SHLVL": number, "OLDPWD": f"/{number}"})
                          for number in range(3)]
        mother, = self.rows()
        holder, _ = self.holder()
        seen = set(re.findall(r"parent.*", first.stdout))
        for result in others:
            self.assertEqual(self.is_old(result), mother)
            seen |= set(re.findall(r"parent.*", result.stdout))
        self.assertEqual(len(seen), 1, seen)
        self.assertIn(f"parent {holder} hash", seen.pop())
        self.assertEqual(self.rows(), {mother: script})

    def test_off_unless_asked_for(self):
        script = self.write("train.py", SCRIPT)
        for _ in range(2):
            self.is_new(self.job(PYTHON, script))
        self.box.check_nothing_left(self.left_timeout)
        self.assertIn("no interpreters are kept here", self.run_job("warm", "list").stdout)
        self.assertIn("no interpreters are kept here", self.run_job("warm", "stop").stdout)

    def test_a_job_that_is_not_warm(self):
        script = self.write("train.py", SCRIPT)
        self.hold()
        result = self.expect(self.run_job("-np", 1, PYTHON, script), 0)
        self.assertNotIn(f"parent {self.holder()[0]} ", result.stdout)

    def test_like_a_cold_rank(self):
        script = self.write("probe.py", PROBE)
        self.hold()
        for args in (("-np", 2, PYTHON, script, "a b", ""), ("-np", 2, "--bind-to", "core", "--stdin", "all", PYTHON, "-u", script)):
            count = 2
            more = {"stdin": b"a line\n"} if "--stdin" in args else {}
            cold = self.seen(self.run_job(*args, **more), count)
            self.is_new(self.served(*args, **more))
            warm = self.served(*args, **more)
            self.is_old(warm)
            for a, b in zip(cold, self.seen(warm, count)):
                self.assertEqual(a, b)

    def test_another_environment_or_folder(self):
        """A rank that would have to be another one comes from another interpreter, and each of them stays."""
        script = self.write("train.py", "import decimal, os\nprint('at', os.getcwd(), os.environ.get('GIVEN'))\n")
        os.mkdir(self.box.path("other"))
        self.hold()
        ways = [({}, self.box.path(".")), ({"GIVEN": "1"}, self.box.path(".")), ({}, self.box.path("other"))]
        for known in (self.is_new, self.is_old):
            for env, folder in ways:
                result = self.job(PYTHON, script, env=env, cwd=os.path.realpath(folder))
                known(result)
                self.assertIn(f"at {os.path.realpath(folder)} {env.get('GIVEN')}", result.stdout)
        self.assertEqual(len(self.rows()), 3)

    def test_a_list_of_another_holder(self):
        """What is no list is not shown, but named, and nothing that was written there reaches the terminal as it is."""
        self.hold()
        bad = (b"4711 12 train.py\n", b"\x1b[31m\x001\0train.py\0", b"0\x001\0train.py\0", b"4294967296\x001\0train.py\0",
               b"1\0\x1b[31m\0train.py\0", b"1\0-1\0train.py\0", b"1\0", b"1", b"\0\0\0")
        good = b"1\x001\0train\x1b[31m.py\nx\0"
        table = r" *pid +age +memory +program\n *1  .*  train.\[31m.py x\n"
        odd = r"the list of interpreters is not of this version of hvdrun; 'hvdrun warm stop' ends them all\n"
        cases = {b"": "no job has left an interpreter yet\n", good: table, good + bad[1]: table + odd}
        for text, shown in [*cases.items(), *((text, odd) for text in bad)]:
            with self.subTest(text=text):
                with open(os.path.join(self.folder(), "list"), "wb") as file:
                    file.write(text)
                result = self.expect(self.run_job("warm", "list"), 0)
                self.assertNotIn("\x1b", result.stdout)
                self.assertRegex(result.stdout, rf"\A{shown}\Z")

    def test_other_modules(self):
        """Those that one job names are not those of another one; nobody loses any."""
        script = self.write("train.py", SCRIPT)
        self.hold()
        for known in (self.is_new, self.is_old):
            for modules in ("decimal", "decimal,json"):
                known(self.expect(self.run_job("-v", f"--warm={modules}", "-np", 1, PYTHON, script), 0))
        self.assertEqual(len(self.rows()), 2)

    def test_a_job_that_fails(self):
        script = self.write("train.py", "import decimal, sys\nsys.exit(int(sys.argv[1]))\n")
        self.hold()
        for known, status in ((self.is_new, 7), (self.is_old, 0), (self.is_old, 3)):
            result = self.served("-np", 2, "--oversubscribe", PYTHON, script, status)
            known(self.expect(result, status))

    def test_two_jobs_at_a_time(self):
        path, open_gate = self.box.gate()
        script = self.write("train.py", f"import decimal, os, time\nprint('ready', flush=True)\n"
                            f"while not os.path.exists({path!r}): time.sleep(0.01)\n")
        self.hold()
        first = self.start("-v", "--warm", "-np", 1, PYTHON, script)
        first.wait_output("ready")
        second = self.start("-v", "--warm", "-np", 1, PYTHON, script)
        second.wait_output("ready")
        self.assertIn("a job uses them now", self.run_job("warm", "list").stdout)
        open_gate()
        self.expect(first.wait(), 0)
        self.expect_said(self.expect(second.wait(), 0), "interpreters of 'hvdrun warm' are not used: they serve another job")

    def test_what_differs_is_not_served(self):
        script = self.write("train.py", SCRIPT)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.hold()
        self.is_new(self.job(PYTHON, script))
        for words, what in ((["nice", "-n", "1"], "the scheduling"), (["sh", "-c", "umask 0123; exec \"$@\"", "sh"], "the umask"),
                            (["sh", "-c", "trap '' USR1; exec \"$@\"", "sh"], "the signals that are ignored")):
            with self.subTest(what=what):
                result = self.expect(Job(self.box, [*words, HVDRUN, "-v", "--warm", "-np", 1, PYTHON, script]).wait(60), 0)
                self.expect_said(result, f"are not used: this is not as it was at 'hvdrun warm start': {what}")
                self.is_new(result)
        result = self.job(PYTHON, script, limits={resource.RLIMIT_NOFILE: (min(200, most), most)})
        self.expect_said(result, r"are not used: this is not as it was at 'hvdrun warm start': the limits \(ulimit\)")
        self.is_old(self.job(PYTHON, script))


class Changes(Kept):

    def test_a_module_that_has_changed(self):
        env = self.outside("changing", "value = 1\n")
        script = self.write("train.py", "import changing\nprint('value', changing.value)\n")
        self.hold()
        self.assertIn("value 1", self.job(PYTHON, script, env=env).stdout)
        self.outside("changing", "value = 22\n")
        result = self.job(PYTHON, script, env=env)
        self.expect_said(result, "changing.py has changed: modules are imported again")
        self.assertIn("value 22", result.stdout)
        self.is_old(self.job(PYTHON, script, env=env))

    def test_a_script_that_has_changed(self):
        script = self.write("train.py", SCRIPT)
        self.hold()
        self.job(PYTHON, script)
        self.write("train.py", SCRIPT + "import json\nprint('more', json.dumps([1]))\n")
        result = self.job(PYTHON, script)
        self.is_old(result)
        self.assertIn("more [1]", result.stdout)

    def test_a_script_that_prepares_its_imports(self):
        """By now: an interpreter that has imported them already would make this void."""
        env = self.outside("prepared", "import os\nvalue = os.environ.get('PREPARED')\n")
        os.mkdir(self.box.path("later"))
        self.write("later/prepared.py", "value = 'another'\n")
        text = "import os, sys\n{}\nimport prepared\nprint('got', prepared.value)\n"
        self.hold()
        for line, value in (("os.environ['PREPARED'] = 'yes'", "yes"), (f"sys.path[1:1] = [{self.box.path('later')!r}]", "another")):
            with self.subTest(line=line):
                script = self.write(value + ".py", text.format(""))
                self.assertIn("got None", self.job(PYTHON, script, env=env).stdout)
                self.write(value + ".py", text.format(line))
                result = self.job(PYTHON, script, env=env)
                self.expect_said(result, "what the script imports has changed: modules are imported again")
                self.assertIn(f"got {value}", result.stdout)
                self.is_old(self.job(PYTHON, script, env=env))

    def test_a_module_that_comes_first_now(self):
        env = self.outside("chosen", "value = 'second'\n")
        first = self.box.path("first")
        os.mkdir(first)
        env["PYTHONPATH"] = first + ":" + env["PYTHONPATH"]
        script = self.write("train.py", "import chosen\nprint('got', chosen.value)\n")
        self.hold()
        self.assertIn("got second", self.job(PYTHON, script, env=env).stdout)
        self.write("first/chosen.py", "value = 'first'\n")
        result = self.job(PYTHON, script, env=env)
        self.expect_said(result, "the place of chosen has changed: modules are imported again")
        self.assertIn("got first", result.stdout)

    def test_a_finder_that_fails(self):
        """A module has brought it. An interpreter that begins never asks it for what it knows."""
        env = self.outside("brings", "import sys\n\nclass Finder:\n    def find_spec(self, *args): return None\n"
                           "    def invalidate_caches(self): raise RuntimeError\n\n"
                           "sys.path_importer_cache['/brought'] = Finder()\n")
        script = self.write("train.py", "import brings\nprint('runs')\n")
        self.hold()
        self.assertIn("runs", self.job(PYTHON, script, env=env).stdout)
        result = self.job(PYTHON, script, env=env)
        self.expect_said(result, "the place of a module has changed: modules are imported again")
        self.assertIn("runs", result.stdout)

    def test_another_interpreter(self):
        """A link leads to it."""
        link, env = self.box.path("python3"), {"PYTHONHOME": sys.base_prefix}
        script = self.write("train.py", SCRIPT)
        self.hold()
        for name in ("one", "other"):
            shutil.copy(os.path.realpath(PYTHON), self.box.path(name))
            os.path.lexists(link) and os.remove(link)
            os.symlink(self.box.path(name), link)
            self.is_new(self.job(link, script, env=env))
            self.is_old(self.job(link, script, env=env))

    def test_folders_that_are_others_now(self):
        """One was removed and made again, a link leads elsewhere: all in the same words."""
        text = "import decimal, os, sys\nprint('in', os.path.exists('here'), sys.path[0])\n"
        for number in (1, 2):
            os.makedirs(self.box.path(f"release{number}"))
            self.write(f"release{number}/train.py", text)
        self.write("train.py", text)
        place, link = os.path.realpath(self.box.path("run")), self.box.path("current")
        release = os.path.realpath(self.box.path("release"))

        def begin(number):
            shutil.rmtree(place, ignore_errors=True)
            os.mkdir(place)
            self.write("run/here", "")
            os.path.lexists(link) and os.remove(link)
            os.symlink(release + str(number), link)
            self.write(f"release{number}/here", "")

        self.hold()
        ways = ((self.box.path("train.py"), {"cwd": place}, [], None), (link + "/train.py", {}, [], release),
                (self.box.path("train.py"), {}, ["--wdir", link], None))
        for number in (1, 2):
            begin(number)
            for script, options, more, first in ways:
                with self.subTest(number=number, script=script, more=more):
                    result = self.job(*more, PYTHON, script, env={"PWD": "/"}, **options)
                    self.is_new(result)
                    self.assertIn(f"in {first is None} " + (first + str(number) if first else ""), result.stdout)
                    self.is_old(self.job(*more, PYTHON, script, env={"PWD": "/"}, **options))

    def test_a_mother_that_was_killed(self):
        self.hold()
        self.is_new(self.two(lambda pid: (kill(pid), wait_until(lambda: not self.rows(), "an empty list"))))

    def test_a_mother_that_was_stopped(self):
        self.hold()
        result = self.two(lambda pid: os.kill(pid, signal.SIGSTOP))
        self.expect_said(result, r"the interpreter of an earlier job is stopped \(SIGSTOP\): modules are imported again")
        self.is_new(result)

    def test_a_mother_that_hangs(self):
        """She does not read what the holder says."""
        env = self.outside("deaf", "import os, time\nstat = os.stat\ndef deaf(*args, **names):\n"
                           "    while args[0] == __file__ and os.access(os.environ['DEAF'], os.F_OK): time.sleep(0.1)\n"
                           "    return stat(*args, **names)\nif 'RANK' not in os.environ.copy(): os.stat = deaf\n")
        script = self.write("train.py", "import deaf\nprint('fine')\n")
        env["DEAF"] = self.box.path("is_deaf")
        self.hold()
        self.job(PYTHON, script, env=env)
        self.write("is_deaf", "")
        job = self.start("-v", "--warm", "-np", 1, PYTHON, script, env=env)
        job.wait_output("does not answer: modules are imported again", name="stderr")
        os.remove(self.box.path("is_deaf"))
        self.assertIn("fine", self.expect(job.wait(), 0).stdout)

    def test_how_many_are_kept(self):
        scripts = [self.write(f"script{i}.py", SCRIPT) for i in range(5)]
        self.hold()
        for script in scripts:
            self.is_new(self.job(PYTHON, script))
        self.assertEqual(sorted(self.rows().values()), scripts[1:])
        self.is_old(self.job(PYTHON, scripts[1]))

    def test_how_long_they_are_kept(self):
        script = self.write("train.py", SCRIPT)
        self.hold("--idle", "300ms")
        self.job(PYTHON, script)
        wait_until(lambda: not self.rows(), "the end of an interpreter that was not used")
        wait_until(lambda: len([one for one in processes().values() if self.box.tag.encode() in one.read("environ")]) == 2,
                   "its process")
        self.is_new(self.job(PYTHON, script))

    def test_a_job_that_is_longer(self):
        """An interpreter is in use until the end of its job."""
        script = self.write("train.py", "import decimal, time\ntime.sleep(1.5)\n")
        self.hold("--idle", "1s")

        def runs_and_is_kept():
            self.job(PYTHON, script)
            return self.rows()

        wait_until(runs_and_is_kept, "an interpreter that a long job has left")

    def test_how_much_memory_they_have(self):
        env = self.outside("large", "import os\nkept = b'x' * (100 << 20) if 'RANK' not in os.environ.copy() else b''\n")
        scripts = [self.write("small.py", SCRIPT), self.write("train.py", "import large\n")]
        self.hold("--memory", 64)
        for script in scripts:
            self.is_new(self.job(PYTHON, script, env=env))
        self.assertEqual(list(self.rows().values()), scripts[:1])
        self.is_old(self.job(PYTHON, scripts[0], env=env))

    def test_words(self):
        for words in ((), ("begin",), ("list", "--memory", 3), ("start", "--memory", 0), ("start", "--memory", "x"), ("start", "--idle")):
            self.expect(self.run_job("warm", *words), 2)


class Ends(Kept):

    def test_stop_leaves_nothing(self):
        self.hold()
        self.expect_said(self.expect(self.two(lambda pid: None), 0), "earlier job")
        self.assertIn("already", self.expect(self.run_job("warm", "start"), 0).stdout)
        self.expect(self.run_job("warm", "stop"), 0)
        self.box.check_nothing_left(self.left_timeout)

    def begin(self, *args):
        script = self.write("train.py", "import decimal, os, time\nprint('ready', os.getpid(), flush=True)\n"
                            "if os.fork() == 0: os.setsid()\ntime.sleep(1000)\n")
        job = self.start("-v", "--warm", "-np", 2, "--oversubscribe", "--grace", 1, *args, PYTHON, script)
        job.wait_output("ready", count=2)
        return job

    def test_stop_during_a_job(self):
        self.hold()
        job = self.begin()
        self.assertIn("they end with it", self.expect(self.run_job("warm", "stop"), 0).stdout)
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 143)
        self.box.check_nothing_left(self.left_timeout)

    def test_the_end_of_a_job_leaves_only_mothers(self):
        self.hold()
        job = self.begin()
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 143)
        mother, = self.rows()
        wait_until(lambda: {one.pid for one in self.box.strays()} == {mother, *self.holder()}, "the end of all ranks")

    def test_the_driver_is_killed(self):
        self.hold()
        job = self.begin()
        kill(job.popen.pid)
        job.wait()
        wait_until(lambda: len(self.box.strays()) == 3, "the end of all ranks")
        self.is_old(self.expect(self.two_of_the_same(), 0))

    def test_the_driver_is_stopped(self):
        """It is silent for longer than a lost host may be, but it is there."""
        self.hold()
        job = self.begin("--node-timeout", "3s")
        job.signal(signal.SIGSTOP)
        time.sleep(5)
        ranks = [int(pid) for pid in re.findall(r"ready (\d+)", job.output())]
        alive = [os.path.exists(f"/proc/{pid}") for pid in ranks]
        job.signal(signal.SIGCONT)
        job.signal(signal.SIGTERM)
        self.expect(job.wait(), 143)
        self.assertEqual(alive, [True, True])

    def test_a_job_that_ends_before_its_ranks(self):
        self.hold()
        mother = self.is_old(self.two(lambda pid: None))
        result = self.served("-np", 2, "-H", "localhost:1,no-such-host.invalid:1", PYTHON, self.box.path("train.py"))
        self.assertNotEqual(result.status, 0)
        self.expect_not_said(result, "ranks? forked|are not used")
        self.assertEqual(self.is_old(self.job(PYTHON, self.box.path("train.py"))), mother)

    def test_what_a_host_that_was_switched_off_has_left(self):
        """Its /tmp lasts."""
        script = self.write("train.py", SCRIPT)
        self.hold()
        holder, keeper = self.holder()
        folder = self.folder()
        os.kill(holder, signal.SIGSTOP)
        for pid in (keeper, holder):
            kill(pid)
        wait_until(lambda: not self.box.strays(), "the end of both")
        self.expect_said(self.job(PYTHON, script), "their process has ended: .*'hvdrun warm stop' removes what it has left")
        self.assertIn("no interpreters", self.expect(self.run_job("warm", "stop"), 0).stdout)
        self.assertFalse(os.path.exists(folder))
        self.expect_not_said(self.job(PYTHON, script), "are not used")

    def two_of_the_same(self):
        """A job with the script of begin() as it is by then, which ends."""
        return self.job(PYTHON, self.write("train.py", "import decimal, os, time\n"), count=2)

    def killed(self, which):
        self.hold()
        job = self.begin()
        kill(self.holder()[which])
        self.assertNotEqual(job.wait().status, 0)
        self.box.check_nothing_left(self.left_timeout)
        self.is_new(self.two_of_the_same())

    def test_the_holder_is_killed_during_a_job(self):
        self.killed(0)

    def test_the_keeper_is_killed_during_a_job(self):
        self.killed(1)

    def test_they_are_killed_between_jobs(self):
        for which in (0, 1):
            self.hold()
            self.is_old(self.two(lambda pid: None))
            kill(self.holder()[which])
            self.box.check_nothing_left(self.left_timeout)
        self.hold()

    def test_the_socket_is_removed(self):
        """Nobody could stop it any more: it ends when it looks, and takes the folder along."""
        self.hold()
        self.two_of_the_same()
        mother, = self.rows()
        os.remove(os.path.join(self.folder(), "socket"))
        kill(mother)
        self.box.check_nothing_left(self.left_timeout)

    def test_a_holder_that_is_stopped(self):
        self.hold()
        self.two_of_the_same()
        holder, _ = self.holder()
        os.kill(holder, signal.SIGSTOP)
        result = self.expect(self.warm("-np", 2, "--oversubscribe", PYTHON, self.box.path("train.py")), 0)
        os.kill(holder, signal.SIGCONT)
        self.expect_said(result, "are not used: their process does not answer")
        self.is_new(result)
        self.is_old(self.two_of_the_same())


class Others(Kept, Hostile):

    def connect(self):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.connect(os.path.join(self.folder(), "socket"))
        return client

    def test_who_answers(self):
        """The advice of 'stop' names that process, not its keeper."""
        self.hold()
        for _ in range(2):  # it executes itself anew after a job
            self.job(PYTHON, self.write("train.py", SCRIPT))
            with self.connect() as client:
                pid, = struct.unpack_from("i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            self.assertEqual(pid, self.holder()[0])

    def test_rubbish_at_the_socket(self):
        script = self.write("train.py", SCRIPT)
        self.hold()
        self.job(PYTHON, script)
        null = os.open("/dev/null", os.O_RDONLY)
        files_of_holder = f"/proc/{self.holder()[0]}/fd"
        rubbish = ((b"", []), (b"job", []), (b"x" * 5000, []), (b"job", [null]), (b"job", [null, null]), (b"jobs", [null] * 100),
                   (b"\0" * 8, [null, null]))
        for words, files in (*rubbish, *rubbish):
            if not words:
                before = len(os.listdir(files_of_holder))
            client = self.connect()
            client.settimeout(60)
            if words:
                socket.send_fds(client, [words], files)
                self.assertEqual(client.recv(100), b"", words)
            client.close()
        os.close(null)
        wait_until(lambda: len(os.listdir(files_of_holder)) <= before, "the end of the descriptors that came")
        self.is_old(self.job(PYTHON, script))

    def test_the_folder_is_for_the_user_alone(self):
        script = self.write("train.py", SCRIPT)
        self.hold()
        self.assertEqual(os.stat(self.folder()).st_mode & 0o777, 0o700)
        os.chmod(self.folder(), 0o755)
        result = self.job(PYTHON, script)
        self.expect_said(result, "interpreters of 'hvdrun warm' are not used: .* is not a folder of this user alone")
        self.is_new(result)
        os.chmod(self.folder(), 0o700)

    @unittest.skipUnless(os.getuid() == 0, "only root can be another user")
    def test_the_socket_of_another_user(self):
        """Somebody else listens where the holder would."""
        script = self.write("train.py", SCRIPT)
        self.hold()
        holder = self.folder()
        self.stop()
        os.makedirs(holder, 0o700)
        listen = ("import socket, sys\nserver = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                  "server.bind(sys.argv[1])\nserver.listen()\nprint('ready', flush=True)\n"
                  "client = server.accept()[0]\nprint('got', client.recv(100), flush=True)\n")
        os.chmod(self.box.root, 0o711)
        for folder in (self.box.tmp, os.path.dirname(holder), holder):
            os.chmod(folder, 0o777)
        become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        server = Job(self.box, [*become, "/usr/bin/python3", "-c", listen, os.path.join(holder, "socket")], cwd="/")
        server.wait_output("ready")
        for folder in (os.path.dirname(holder), holder):
            os.chmod(folder, 0o700)
        result = self.job(PYTHON, script)
        self.expect_said(result, "interpreters of 'hvdrun warm' are not used: they belong to another user")
        self.is_new(result)
        self.assertEqual(server.wait().stdout, "ready\ngot b''\n")
        os.remove(os.path.join(holder, "socket"))
        os.rmdir(holder)

    @unittest.skipUnless(os.getuid() == 0, "only root can be another user")
    def test_another_user_at_the_socket(self):
        script = self.write("train.py", SCRIPT)
        self.hold()
        self.job(PYTHON, script)
        open_to_all = [self.box.root, self.box.tmp, os.path.dirname(self.folder()), self.folder()]
        for folder in open_to_all:
            os.chmod(folder, 0o711)
        os.chmod(os.path.join(self.folder(), "socket"), 0o777)
        stop = ("import socket, sys\nclient = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                "client.connect(sys.argv[1])\ntry:\n    client.send(b'stop')\n    print('closed', client.recv(10))\n"
                "except OSError as error:\n    print('closed', error)\n")
        result = Job(self.box, ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", stop,
                                os.path.join(self.folder(), "socket")], cwd="/").wait(60)
        self.assertRegex(result.stdout, r"closed (b''|.*Broken pipe|.*reset)", result.describe())
        for folder in open_to_all:
            os.chmod(folder, 0o700)
        self.is_old(self.job(PYTHON, script))

    @nightly("an agent tries for ten seconds")
    def test_what_not_even_a_kill_ends(self):
        """The holder does not begin another job above what is left of one."""
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            self.skipTest("no right to mount with /dev/fuse")
        folder, pidfile = self.box.path("mounted"), self.box.path("fuse.pid")
        os.mkdir(folder)
        script = self.write("train.py", f"import decimal, os, subprocess, sys, time\nif len(sys.argv) > 1:\n"
                            f"    subprocess.Popen(['cat', {folder + '/batches'!r}])\n    time.sleep(0.5)\n")
        job = self.start_in_place(
            f"{PYTHON} {SILENT} {folder} {pidfile} && while test ! -s {pidfile}; do sleep 0.1; done; {HVDRUN} warm start && "
            f"{HVDRUN} --warm --grace 0 -np 1 {PYTHON} {script} stuck", "-v", "--warm", "-np", 1, PYTHON, script)
        job.wait_output("1 rank forked", "stderr")
        result = self.expect(job.wait(60), 0)
        with open(pidfile, encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)  # the read fails then
        self.expect_said(result, "not even SIGKILL ends pid .* are not used: the(y|ir) ")
        self.is_new(result)

    def test_a_full_disk(self):
        mount, small = self.small_folder(size="64k")
        result = self.in_place(f"{mount} && {{ cat /dev/zero >'{small}/full' 2>&- ; true; }}", "warm", "start", env={"TMPDIR": small})
        self.assertEqual(result.status, 1, result.describe())
        self.expect_said(result, "cannot keep interpreters: No space left")


class KeptTorch(Kept):

    def test_torch(self):
        python = find_python("torch")
        if python is None:
            self.skipTest("no Python has torch")
        script = self.write("train.py", "import os, torch\nimport torch.distributed as dist\ndist.init_process_group('gloo')\n"
                            "total = torch.ones(300, 300) @ torch.ones(300, 300)\ndist.all_reduce(total)\n"
                            "print('SUM', int(total[0, 0]), torch.rand(1).item())\n")
        self.hold()
        for known in (self.is_new, self.is_old):
            result = self.job(python, script, count=3, timeout=240)
            known(result)
            sums = re.findall(r"SUM 900 (\S+)", result.stdout)
            self.assertEqual(len(set(sums)), 3, result.describe())


if __name__ == "__main__":
    main()
