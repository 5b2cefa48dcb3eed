# SPDX-License-Identifier: Apache-2.0
"""--warm: ranks that are forked from an interpreter (docs/warm.md)."""
# ctest waits

import os
import re
import resource
import signal
import sys

from python import python_with
from rig import main
from warm import PROBE, WarmFlow

PYTHON = sys.executable

ENDS = r"""
import atexit, os, sys
way = sys.argv[1]
atexit.register(print, "atexit")
if way == "error":
    def inner(): raise ValueError("told")
    inner()
if way == "exit": sys.exit(7)
if way == "text": sys.exit("told")
if way == "interrupt": raise KeyboardInterrupt
if way == "kill": os.kill(os.getpid(), 9)
"""


class Warm(WarmFlow):

    def test_like_a_cold_rank(self):
        script = self.write("probe.py", PROBE)
        self.both_ways("-np", 2, PYTHON, script, "a b", "", count=2)
        self.both_ways("-np", 1, PYTHON, "-u", "-O", "-X", "dev", script)
        self.both_ways("-np", 2, "--bind-to", "core", "--stdin", "all", PYTHON, script, count=2, stdin=b"a line\n")
        self.both_ways("-np", 1, PYTHON, "-c", PROBE, "x")

    def test_a_script_that_is_a_program(self):
        os.symlink(PYTHON, self.box.path("python3"))
        path = {"PATH": self.box.path(".") + ":" + os.environ["PATH"]}
        for line in ("/usr/bin/env python3", PYTHON, PYTHON + " -u"):
            with self.subTest(line=line):
                self.write("probe", f"#!{line}\n{PROBE}", 0o755)
                self.both_ways("-np", 2, "./probe", "a b", "-c", count=2, env=path)
        self.write("probe", f"#!/usr/bin/env -S python3 -u\n{PROBE}", 0o755)
        result = self.expect(self.warm("-np", 1, "./probe", env=path), 0)
        self.expect_said(result, "ranks here are not warm: only 'python3 ...'")

    def test_more_programs_than_interpreters(self):
        scripts = [self.write(f"script{i}.py", "print('fine')\n") for i in range(5)]
        apps = [word for script in scripts for word in (":", "-np", 1, PYTHON, script)][1:]
        result = self.expect(self.warm("--oversubscribe", *apps), 0)
        self.assertEqual(result.stdout.count("fine"), 5, result.describe())
        self.assertEqual(result.stderr.count("1 rank forked"), 4, result.describe())
        self.expect_said(result, "ranks here are not warm: the job starts too many different programs at the same time")

    def test_the_connection_of_pmi(self):
        script = self.write("probe.py", PROBE)
        self.both_ways("-np", 2, "--mpi=pmi1", PYTHON, script, count=2)

    def test_modules(self):
        self.write("package.py", PROBE)
        self.both_ways("-np", 1, "--wdir", self.box.path("."), PYTHON, "-m", "package", "x")

    def test_the_end(self):
        script = self.write("ends.py", ENDS)
        for way, status in (("none", 0), ("error", 1), ("exit", 7), ("text", 1), ("interrupt", 130), ("kill", 137)):
            with self.subTest(way=way):
                cold = self.run_job("-np", 1, "--no-label", PYTHON, script, way)
                warm = self.warm("-np", 1, "--no-label", PYTHON, script, way)
                self.is_warm(warm)
                self.expect(cold, status)
                self.expect(warm, status)
                self.assertEqual(warm.stdout, cold.stdout)
                theirs = [re.search(r"(?ms)^(Traceback.*?^\w+(Error|Interrupt).*?)$", r.stderr) for r in (cold, warm)]
                self.assertEqual(*[match and match.group(1) for match in theirs])

    def test_a_script_that_is_wrong(self):
        for text in (None, "def :\n", "import no_such_module\n"):
            with self.subTest(text=text):
                script = self.box.path("wrong.py") if text is None else self.write("wrong.py", text)
                results = [self.run_job(*way, "-np", 1, "--no-label", PYTHON, script) for way in ((), ("--warm",))]
                self.assertEqual(results[0].status, results[1].status, results[1].describe())
                said = [re.split(r"(?m)^hvdrun: ", result.stderr)[0] for result in results]
                self.assertEqual(*said)

    def test_the_terminal(self):
        script = self.write("tty.py", "import os, sys\nprint('tty', sys.stdin.isatty(), os.ttyname(0) == os.ttyname(1), "
                            "os.tcgetpgrp(0) == os.getpid())\n")
        job = self.terminal("--pty", 0, "--warm", "-np", 1, PYTHON, script)
        self.assertEqual(job.wait(), 0, job.describe())
        self.assertIn("tty True True True", job.output())

    def test_what_is_random_differs(self):
        script = self.write("random_ranks.py", "import os, random, uuid, tempfile\n"
                            "print('ONE', random.random(), uuid.uuid4(), tempfile.mktemp(), os.urandom(4).hex())\n")
        result = self.expect(self.warm("-np", 3, "--oversubscribe", PYTHON, script), 0)
        self.is_warm(result, 3)
        rows = [line.split()[1:] for line in re.findall(r"ONE.*", result.stdout)]
        for column in zip(*rows):
            self.assertEqual(len(set(column)), 3, column)

    def trap(self, text, reason, script="import trap\nprint('got', trap.value)\n", status=0, more=()):
        env = self.outside("trap", text)
        path = self.write("train.py", "import decimal\n" + script)
        for _ in range(2):  # the second job knows
            result = self.warm("-np", 2, *more, PYTHON, path, env=env)
            self.expect(result, status)
            if reason:
                self.assertRegex(result.stderr, r"2 ranks forked", result.describe())
                if _ == 0 or "cannot be imported" in reason:
                    self.expect_said(result, "each rank imports trap itself: " + reason)
                else:
                    self.expect_not_said(result, "each rank imports trap itself")
        return result

    def test_modules_that_do_not_fit(self):
        sleeper = "threading.Thread(target=time.sleep, args=(100,), daemon=True).start()"
        for text, reason in (
            (f"import threading, time\n{sleeper}\nvalue = threading.active_count()\n", "it starts a thread"),
            ("import subprocess\nchild = subprocess.Popen(['sleep', '1000'])\nvalue = 1\n", "it starts a process"),
            ("import socket\nvalue = socket.socket()\n", "it opens a socket"),
            ("value = open('/dev/ptmx', 'rb')\n", "it opens /dev/ptmx"),
            ("value = open(__file__)\n", "it opens "),
            ("import mmap\nvalue = mmap.mmap(-1, 4096)\n", "it shares memory"),
            ("import os\nvalue = os.environ['RANK']\n", "it reads RANK, which differs between ranks"),
            ("import os\nvalue = os.getenv('LOCAL_RANK')\n", "it reads LOCAL_RANK"),
        ):
            with self.subTest(reason=reason):
                result = self.trap(text, reason)
                if "RANK" in reason:
                    self.assertEqual(sorted(re.findall(r"got (\d)", result.stdout)), ["0", "1"])

    def test_what_modules_leave_behind(self):
        """A rank has it as if it had imported the module itself."""
        env = self.outside("leaves", "import os, signal, sys\nos.environ['SET_BY'] = 'leaves'\nos.environ.pop('GONE', None)\n"
                           "sys.path.insert(0, '/inserted')\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
                           "class Tee:\n    def write(self, text): return sys.__stdout__.write(text.upper())\n"
                           "    def flush(self): sys.__stdout__.flush()\n"
                           "sys.stdout = Tee()\n")
        script = self.write("after.py", "import leaves, os, signal, sys\n"
                            "print(os.environ['SET_BY'], 'GONE' in os.environ, sys.path[:2], signal.getsignal(signal.SIGCHLD))\n")
        both = [self.expect(self.run_job(*way, "-np", 2, "--no-label", "-x", "GONE=1", PYTHON, script, env=env), 0)
                for way in ((), ("-v", "--warm"))]
        self.is_warm(both[1], 2)
        self.assertEqual(sorted(both[0].lines), sorted(both[1].lines))
        self.assertIn("LEAVES FALSE ['/INSERTED',", both[1].stdout)

    def test_what_prepares_an_import(self):
        env = self.outside("prepared", "import os\nvalue = os.environ.get('PREPARED')\n")
        script = self.write("prepares.py", "import decimal, os\nos.environ['PREPARED'] = 'yes'\nimport prepared\nprint('got', prepared.value)\n")
        result = self.expect(self.warm("-np", 1, PYTHON, script, env=env), 0)
        self.is_warm(result)
        self.assertIn("got yes", result.stdout)

    def test_other_kinds_of_scripts(self):
        self.write("relative.py", "import os, sys\nos.chdir('/')\nprint(__file__, sys.argv, open(__file__).readline())\n")
        self.write("folder/__main__.py", "print('a folder')\n")
        env = self.outside("installed", "import sys\nprint('installed', __name__, 'installed' in sys.modules)\n")
        for words in (["relative.py", "x"], ["./relative.py"], ["folder"], ["-m", "installed"]):
            with self.subTest(words=words):
                both = [self.expect(self.run_job(*way, "-np", 1, PYTHON, *words, env=env), 0) for way in ((), ("--warm",))]
                self.assertEqual(both[0].stdout, both[1].stdout)
                if words != ["folder"]:
                    self.assertEqual(both[1].stderr, "")
                else:
                    self.expect_said(both[1], "the script is a folder or an archive")

    def test_a_module_that_fails(self):
        result = self.trap("raise RuntimeError('not today')\n", r"it cannot be imported \(RuntimeError: not today\)", status=1)
        self.expect_said(result, r'trap.py", line 1, in <module>')
        self.trap("import os\nos._exit(3)\n", None, status=3)

    def test_the_programs_that_cannot_be_warm(self):
        for words in (("sh", "-c", "echo fine"), ("env", PYTHON, "-c", "print('fine')")):
            result = self.expect(self.warm("-np", 2, *words), 0)
            self.assertEqual(result.stderr.count("ranks here are not warm: only 'python3 ...'"), 1)
            self.assertEqual(result.stdout.count("fine"), 2)
        result = self.expect(self.warm("-np", 1, "-x", "OMP_PROC_BIND=true", PYTHON, "-c", "print('fine')"), 0)
        self.expect_said(result, "ranks here are not warm: OMP_PROC_BIND")

    def test_few_open_files(self):
        script = self.write("fine.py", "print('fine')\n")
        result = self.expect(self.run_job("--warm", "-np", 2, PYTHON, script, limits={resource.RLIMIT_NOFILE: (64, 64)}), 0)
        self.assertEqual(result.stdout.count("fine"), 2, result.describe())
        self.expect_said(result, "ranks here are not warm: the limit of open files is too low")

    def test_pools_in_a_rank(self):
        script = self.write("pools.py", "import multiprocessing\ndef double(n): return 2 * n\n"
                            "if __name__ == '__main__':\n"
                            "    for way in ('fork', 'spawn', 'forkserver'):\n"
                            "        with multiprocessing.get_context(way).Pool(2) as pool:\n"
                            "            print(way, pool.map(double, [1, 2, 3]))\n")
        result = self.expect(self.warm("-np", 1, PYTHON, script), 0)
        self.is_warm(result)
        self.assertEqual(len(re.findall(r"(fork|spawn|forkserver) \[2, 4, 6\]", result.stdout)), 3, result.describe())

    def test_stacks_show_the_script_alone(self):
        script = self.write("hang.py", "import os, time\ndef wait():\n    time.sleep(1000)\nos.write(1, b'ready\\n')\nwait()\n")
        job = self.begin("--warm", "-np", 2, "--grace", 1, PYTHON, script, count=2)
        text = self.ask_whole()
        self.assertRegex(text, r"(?m)^    \[0-1\] hang.py:5 <module>", text)
        self.assertNotIn("warm", text)
        self.end(job)


RESTARTS = r"""
import os, sys, changing
first = not os.path.exists(sys.argv[1])
print("value", changing.value, "script 1", flush=True)
open(sys.argv[1] + ".printed" + os.environ["RANK"], "w").close()
if first and os.environ["RANK"] == "1":
    while not os.path.exists(sys.argv[1] + ".printed0"): pass
    for file, old, new in ((changing.__file__, "1", "22"), (__file__, "script 1", "script 2")):
        text = open(file).read().replace(old, new, 1 if "script" in old else -1)
        os.remove(file)
        open(file, "w").write(text)
    open(sys.argv[1], "w").close()
    sys.exit(5)
if first:
    import time
    time.sleep(1000)
"""


class WarmElastic(WarmFlow):

    def test_a_restart_is_forked_and_sees_what_has_changed(self):
        env = self.outside("changing", "value = 1\n")
        script = self.write("restarts.py", RESTARTS)
        result = self.expect(self.warm("-np", 2, "--min-np", 2, "--grace", 1, PYTHON, script, self.box.path("once"), env=env), 0)
        self.assertEqual(len(re.findall("2 ranks forked", result.stderr)), 2, result.describe())
        self.expect_said(result, r"changing.py has changed: modules are imported again")
        self.assertEqual(result.stdout.count("value 1 script 1"), 2)
        self.assertEqual(result.stdout.count("value 22 script 2"), 2, result.describe())

    def test_a_restart_prepares_its_imports(self):
        """By a line that its script did not have at first."""
        env = self.outside("prepared", "import os\nvalue = os.environ.get('PREPARED')\n")
        script = self.write("train.py", "import os, sys\n\nimport prepared\nprint('got', prepared.value, flush=True)\n"
                            "text = open(__file__).read()\nif prepared.value: sys.exit(0)\n"
                            "with open(__file__, 'w') as file: file.write(text.replace('\\n\\n', '\\nos.environ[\"PREPARED\"] = \"yes\"\\n', 1))\n"
                            "sys.exit(1)\n")
        result = self.expect(self.warm("-np", 1, "--min-np", 1, "--max-restarts", 1, PYTHON, script, env=env), 0)
        self.assertEqual(re.findall(r"got (\S+)", result.stdout), ["None", "yes"], result.describe())
        self.assertEqual(result.stderr.count("1 rank forked"), 2, result.describe())

    def test_many_kinds_one_after_the_other(self):
        """The options of the interpreter differ in each epoch: the oldest mother makes room."""
        options = ("-u", "-O", "-s", "-B", "-E", "-OO")
        self.write("kinds", f"#!{PYTHON} -u\nimport os, sys\nepoch = int(os.environ['HVDRUN_EPOCH'])\n"
                   f"options = {options!r}\nprint('epoch', epoch, *sys.orig_argv[1:2], flush=True)\n"
                   "if epoch == len(options): sys.exit(0)\n"
                   "lines = open(__file__).read().split('\\n')\nlines[0] = lines[0].split()[0] + ' ' + options[epoch]\n"
                   "with open('new', 'w') as file: file.write('\\n'.join(lines))\n"
                   "os.chmod('new', 0o755)\nos.rename('new', 'kinds')\nsys.exit(1)\n", 0o755)
        result = self.expect(self.warm("-np", 1, "--min-np", 1, "--max-restarts", 9, "./kinds"), 0)
        self.assertEqual(re.findall(r"epoch (\d+) (\S+)", result.stdout), [(str(i + 1), o) for i, o in enumerate(options)])
        self.assertEqual(result.stderr.count("1 rank forked"), len(options), result.describe())


TORCH = r"""
import os, torch
import torch.distributed as dist
from torch.utils.data import DataLoader
dist.init_process_group("gloo")
total = torch.ones(300, 300) @ torch.ones(300, 300)
dist.all_reduce(total)
draw = [torch.zeros(1) for _ in range(dist.get_world_size())]
dist.all_gather(draw, torch.rand(1))
loaded = sum(int(batch.sum()) for batch in DataLoader(torch.arange(20), batch_size=5, num_workers=2))
print("SUM", int(total[0, 0]), "different", len({float(d) for d in draw}), "loaded", loaded)
"""


class WarmTorch(WarmFlow):

    def setUp(self):
        super().setUp()
        self.python = python_with("torch")

    def test_torch(self):
        script = self.write("torch_ranks.py", TORCH)
        result = self.expect(self.warm("-np", 3, "--oversubscribe", self.python, script, timeout=240), 0)
        self.is_warm(result, 3)
        self.assertEqual(result.stdout.count("SUM 900 different 3 loaded 190"), 3, result.describe())

    def test_a_module_that_computes(self):
        """OpenMP's threads do not survive a fork: ranks would hang."""
        env = dict(self.outside("computes", "import torch\nvalue = (torch.ones(900, 900) @ torch.ones(900, 900)).exp().sum()\n"),
                   OMP_NUM_THREADS="2")
        script = self.write("after.py", "import torch, computes\nprint('SUM', int((torch.ones(900, 900) @ torch.ones(900, 900))[0, 0]))\n")
        result = self.expect(self.warm("-np", 2, self.python, script, env=env, timeout=240), 0)
        self.expect_said(result, "each rank imports computes itself: it starts a thread")
        self.is_warm(result, 2)
        self.assertEqual(result.stdout.count("SUM 900"), 2)


if __name__ == "__main__":
    main()
