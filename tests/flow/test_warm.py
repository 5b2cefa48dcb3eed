# SPDX-License-Identifier: Apache-2.0
"""--warm: ranks that are forked from an interpreter (docs/warm.md)."""
# ctest waits

import json
import os
import re
import resource
import signal
import sys
import time

from asked import Asked
from python import python_with
from rig import main

PYTHON = sys.executable

# All that a program can see of its own start, but what must differ.
PROBE = r"""
import json, os, resource, signal, sys
def names(folder):
    return sorted((int(n), os.path.realpath(f"{folder}/{n}").split(":")[0]) for n in os.listdir(folder)
                  if os.path.exists(f"{folder}/{n}") and int(n) > 2)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
streams = [(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.fileno(), s.isatty())
           for s in (sys.stdin, sys.stdout, sys.stderr)]
seen = dict(
    argv=sys.argv, orig=sys.orig_argv, path=sys.path, flags=repr(sys.flags), executable=sys.executable, streams=streams,
    command=open("/proc/self/cmdline").read(), name=status["Name"].strip(), threads=status["Threads"].strip(),
    signals=[status[f"Sig{kind}"].strip() for kind in ("Blk", "Ign", "Cgt")], files=names("/proc/self/fd"),
    leads=os.getsid(0) == os.getpid() == os.getpgrp(), cwd=os.getcwd(), cpus=sorted(os.sched_getaffinity(0)),
    limits=[resource.getrlimit(n) for n in range(15)], nice=os.nice(0), umask=os.umask(0), main=__name__,
    file=globals().get("__file__"), spec=__spec__ and (__spec__.name, __spec__.origin), same=sys.modules["__main__"].__dict__ is globals(),
    environment={n: v for n, v in os.environ.items() if not n.startswith(("HVDRUN_", "OMPI_", "PMIX_", "TORCHELASTIC_"))},
    shown=set(os.environ) <= {p.split("=")[0] for p in open("/proc/self/environ").read().split("\0")},
    stdin=sys.stdin.readline())
for name in ("MASTER_PORT", "JAX_COORDINATOR_ADDRESS", "HOROVOD_GLOO_RENDEZVOUS_PORT", "KUBEFLOW_TRAINER_SERVER_URL",
             "KUBEFLOW_TRAINER_SERVER_TOKEN", "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"):
    seen["environment"].pop(name, None)
seen["environment"].pop("NCCL_RAS_ADDR", None)
pmi = int(seen["environment"].pop("PMI_FD", -1))
seen["pmi"] = [os.path.basename(what) for number, what in seen["files"] if number == pmi]
seen["files"] = [file for file in seen["files"] if file[0] != pmi]
print("SEEN", json.dumps(seen, default=str), flush=True)
"""

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


class WarmFlow(Asked):

    def warm(self, *args, **options):
        return self.run_job("-v", "--warm", *args, **options)

    def is_warm(self, result, count=1):
        self.assertRegex(result.stderr, rf"{count} ranks were forked", result.describe())

    def outside(self, name, text):
        """A module that is not in the folder of the script."""
        folder = self.box.path("outside")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name + ".py"), "w", encoding="utf-8") as file:
            file.write(text)
        return {"PYTHONPATH": folder}

    def seen(self, result, count):
        self.expect(result, 0)
        lines = re.findall(r"SEEN (.*)$", result.stdout, re.M)
        self.assertEqual(len(lines), count, result.describe())
        return sorted((json.loads(line) for line in lines), key=lambda seen: seen["environment"]["RANK"])

    def both_ways(self, *args, count=1, **options):
        cold = self.run_job(*args, **options)
        warm = self.warm(*args, **options)
        self.is_warm(warm, count)
        self.maxDiff = None
        for a, b in zip(self.seen(cold, count), self.seen(warm, count)):
            self.assertEqual(a, b)

    def mother_of(self, job):
        def find():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/cmdline", "rb") as file:
                        words = file.read()
                    with open(f"/proc/{pid}/environ", "rb") as file:
                        marked = self.box.path("mark").encode() in file.read()
                except OSError:
                    continue
                if b"<hvdrun --warm>" in words and marked:
                    return int(pid)
            return None
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            pid = find()
            if pid is not None:
                return pid
            time.sleep(0.02)
        self.fail("no mother: " + job.describe())



class Warm(WarmFlow):

    def test_like_a_cold_rank(self):
        script = self.write("probe.py", PROBE)
        self.both_ways("-np", 2, PYTHON, script, "a b", "", count=2)
        self.both_ways("-np", 1, PYTHON, "-u", "-O", "-X", "dev", script)
        self.both_ways("-np", 2, "--bind-to", "core", "--stdin", "all", PYTHON, script, count=2, stdin=b"a line\n")
        self.both_ways("-np", 1, PYTHON, "-c", PROBE, "x")

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
                self.assertRegex(result.stderr, r"2 ranks were forked", result.describe())
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
            self.assertEqual(result.stderr.count("ranks here are not warm: only a program that is started as"), 1)
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

    def test_a_mother_that_is_killed(self):
        pipe = self.box.path("slow")
        os.mkfifo(pipe)
        env = dict(self.outside("slow_module", f"import os\nif 'RANK' not in os.environ.copy(): open({pipe!r}).read()\n"),
                   MARK=self.box.path("mark"))
        script = self.write("slow.py", "import slow_module\nprint('fine')\n")
        job = self.start("--warm", "-np", 2, PYTHON, script, env=env)
        os.kill(self.mother_of(job), signal.SIGKILL)
        result = self.expect(job.wait(60), 0)
        self.expect_said(result, "ranks here are not warm: the interpreter that imports their modules has ended")
        self.assertEqual(result.stdout.count("fine"), 2)

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
if first and os.environ["RANK"] == "1":
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
        self.assertEqual(len(re.findall("2 ranks were forked", result.stderr)), 2, result.describe())
        self.expect_said(result, r"changing.py has changed: modules are imported again")
        self.assertEqual(result.stdout.count("value 1 script 1"), 2)
        self.assertEqual(result.stdout.count("value 22 script 2"), 2, result.describe())


    def test_a_mother_that_is_killed_while_she_waits(self):
        env = {"MARK": self.box.path("mark")}
        script = self.write("again.py", "import decimal, os, sys, time\nos.write(1, b'ready\\n')\n"
                            "while not os.path.exists(sys.argv[1] + os.environ['HVDRUN_EPOCH']): time.sleep(0.01)\n"
                            "sys.exit(os.environ['HVDRUN_EPOCH'] == '1')\n")
        job = self.start("-v", "--warm", "-np", 2, "--min-np", 2, "--grace", 1, PYTHON, script, self.box.path("end"), env=env)
        job.wait_output("ready", count=2)
        os.kill(self.mother_of(job), signal.SIGKILL)
        for epoch in "12":
            with open(self.box.path("end" + epoch), "w", encoding="ascii"):
                pass
        result = self.expect(job.wait(60), 0)
        self.assertEqual(len(re.findall("2 ranks were forked", result.stderr)), 2, result.describe())


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
