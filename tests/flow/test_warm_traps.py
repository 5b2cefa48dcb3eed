# SPDX-License-Identifier: Apache-2.0
"""--warm where it could go wrong: mothers that stop, die or have no memory, full disks, GPUs (docs/warm.md)."""
# ctest waits

import glob
import os
import re
import resource
import signal
import sys

from elastic import Elastic
from hostile import Hostile
from rig import main, nightly, wait_until, worker
from warm import WarmFlow

PYTHON = sys.executable

# Ends an interpreter at a moment of its forks that the variable AT names: the mother's own fork is the first one of
# a batch, and her child forks the ranks.
AT_A_FORK = r"""
import os, time
mother, forks, at = os.getpid(), 0, os.environ.get("AT")

def end(moment):
    if at == moment:
        os.kill(os.getpid(), 9)
    elif at == moment + " hangs":
        time.sleep(1000)

def before():
    global forks
    if os.getpid() == mother:
        end("mother before")
    elif os.getppid() == mother:
        forks += 1
        end(f"brood before {forks}")

def in_parent():
    end("mother after") if os.getpid() == mother else end(f"brood after {forks}")

def in_child():
    end("brood first" if os.getppid() == mother else "rank")

if "RANK" not in os.environ.copy():
    os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)
"""

# Until somebody has made a file for the epoch. The first epoch fails.
EPOCHS = r"""
import decimal, os, sys, time
os.write(1, b"ready\n")
while not os.path.exists(sys.argv[1] + os.environ["HVDRUN_EPOCH"]): time.sleep(0.01)
print("fine", os.environ["HVDRUN_EPOCH"])
sys.exit(os.environ["HVDRUN_EPOCH"] == "1")
"""

# In a namespace of its own: /dev with a stand-in for a GPU.
GPU = """mkdir '{0}' && mount -t tmpfs tmpfs '{0}' &&
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/fd '{0}' && mkdir '{0}/shm' '{0}/pts' &&
mount --bind /dev/shm '{0}/shm' && mount --bind /dev/pts '{0}/pts' && mknod -m 666 '{0}/nvidia0' c 1 3 &&
mount --bind '{0}' /dev"""


class Mothers(WarmFlow):

    def test_killed_while_she_forks(self):
        env = self.outside("trap", AT_A_FORK)
        script = self.write("train.py", "import trap, os\nprint('fine', os.environ['RANK'])\n")
        for at in ("mother before", "mother after", "brood first", "brood before 1", "brood before 2", "brood after 1",
                   "brood after 3", "never"):
            with self.subTest(at=at):
                result = self.expect(self.warm("-np", 3, "--oversubscribe", "-x", f"AT={at}", PYTHON, script, env=env), 0)
                self.assertEqual(sorted(re.findall(r"fine (\d)", result.stdout)), ["0", "1", "2"], result.describe())
                if at.startswith("mother"):
                    self.expect_said(result, "ranks here are not warm: the interpreter that forks them has ended")
                else:
                    self.is_warm(result, 3 if at == "never" else 0)

    def test_ranks_that_are_killed_before_they_are_known(self):
        env = self.outside("trap", AT_A_FORK)
        script = self.write("train.py", "import trap\nprint('fine')\n")
        result = self.expect(self.warm("-np", 3, "--oversubscribe", "-x", "AT=rank", PYTHON, script, env=env), 137)
        self.is_warm(result, 3)
        self.assertNotIn("fine", result.stdout)

    @nightly("it takes half a minute for each")
    def test_a_fork_that_hangs(self):
        env = self.outside("trap", AT_A_FORK)
        script = self.write("train.py", "import trap, os\nprint('fine', os.environ['RANK'])\n")
        for at in ("mother before", "brood before 2"):
            with self.subTest(at=at):
                result = self.warm("-np", 3, "--oversubscribe", "-x", f"AT={at} hangs", PYTHON, script, env=env, timeout=90)
                self.expect(result, 0)
                self.assertEqual(sorted(re.findall(r"fine (\d)", result.stdout)), ["0", "1", "2"], result.describe())
                self.expect_said(result, "ranks here are not warm: the interpreter that forks them does not answer")

    def two_epochs(self, act, *args):
        """Something happens to the mother between them."""
        script = self.write("again.py", EPOCHS)
        job = self.start("-v", "--warm", "-np", 2, "--min-np", 2, "--grace", 1, *args, PYTHON, script, self.box.path("end"),
                         env={"MARK": self.box.path("mark")})
        job.wait_output("ready", count=2)
        act(self.mother_of(job))
        for epoch in "12":
            with open(self.box.path("end" + epoch), "w", encoding="ascii"):
                pass
        result = self.expect(job.wait(120), 0)
        self.assertEqual(result.stdout.count("fine 2"), 2, result.describe())
        return result

    def test_killed_while_she_waits(self):
        result = self.two_epochs(lambda pid: os.kill(pid, signal.SIGKILL))
        self.assertEqual(len(re.findall("2 ranks forked", result.stderr)), 2, result.describe())

    def test_stopped_while_she_waits(self):
        result = self.two_epochs(lambda pid: os.kill(pid, signal.SIGSTOP))
        self.expect_said(result, r"ranks here are not warm: the interpreter that forks them is stopped \(SIGSTOP\)")

    def begin_slow(self, rest="print('fine')\n"):
        """A job whose mother waits in an import until somebody writes to the pipe."""
        pipe = self.box.path("slow")
        os.mkfifo(pipe)
        env = dict(self.outside("slow_module", f"import os\nif 'RANK' not in os.environ.copy(): open({pipe!r}).read()\n"),
                   MARK=self.box.path("mark"))
        script = self.write("slow.py", "import slow_module\n" + rest)
        return self.start("--warm", "-np", 2, PYTHON, script, env=env), pipe

    def slow(self, number):
        """A signal to the mother while she imports."""
        job, _ = self.begin_slow()
        os.kill(self.mother_of(job), number)
        result = self.expect(job.wait(120), 0)
        self.assertEqual(result.stdout.count("fine"), 2)
        return result

    def test_signals_for_ranks_while_she_imports(self):
        job, pipe = self.begin_slow("import time\nwhile True: time.sleep(1)\n")
        with open(pipe, "wb"):  # as soon as she reads
            job.signal(signal.SIGUSR1)
        result = self.expect(job.wait(60), 128 + signal.SIGUSR1)
        self.expect_said(result, "SIGUSR1")

    def test_the_end_of_a_job_while_she_imports(self):
        job, pipe = self.begin_slow()
        with open(pipe, "wb"):
            job.signal(signal.SIGTERM)
            self.expect(job.wait(60), 128 + signal.SIGTERM)

    @nightly("it takes two minutes")
    def test_an_import_that_hangs(self):
        job, _ = self.begin_slow()
        result = self.expect(job.wait(240), 0)
        self.expect_said(result, "ranks here are not warm: their modules were not imported in two minutes")
        self.assertEqual(result.stdout.count("fine"), 2)

    def test_many_ranks_that_start_in_the_usual_way(self):
        """More than start in one turn of the loop."""
        script = self.write("many.sh", "#!/bin/sh\ntest \"$1\" = -c && exit 1\necho fine\n", 0o755)
        os.rename(script, self.box.path("python3"))
        result = self.expect(self.warm("-np", 70, "--oversubscribe", self.box.path("python3"), "a.py"), 0)
        self.expect_said(result, "ranks here are not warm: the interpreter that imports their modules has ended")
        self.assertEqual(result.stdout.count("fine"), 70)

    def test_killed_while_she_imports(self):
        self.expect_said(self.slow(signal.SIGKILL),
                         "ranks here are not warm: the interpreter that imports their modules has ended")

    def test_stopped_while_she_imports(self):
        self.expect_said(self.slow(signal.SIGSTOP),
                         r"ranks here are not warm: the interpreter that imports their modules is stopped \(SIGSTOP\)")

    def test_out_of_memory(self):
        """The module takes all memory that an interpreter may have, but not in a rank."""
        env = self.outside("sitecustomize", "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n")
        self.outside("greedy", "import os\nkept = []\nwhile 'RANK' not in os.environ.copy():\n    kept.append(bytearray(1 << 20))\n")
        self.outside("full", "import os\nkept, size = [], 1 << 20\nwhile 'RANK' not in os.environ.copy() and size > 64:\n"
                     "    try: kept.append(bytearray(size))\n    except MemoryError: size //= 2\n")
        for name in ("greedy", "full"):
            with self.subTest(name=name):
                script = self.write("train.py", f"import {name}, os\nprint('fine', os.environ['RANK'])\n")
                result = self.expect(self.warm("-np", 2, PYTHON, script, env=env), 0)
                self.assertEqual(sorted(re.findall(r"fine (\d)", result.stdout)), ["0", "1"], result.describe())
                if name == "greedy":
                    self.expect_said(result, r"each rank imports greedy itself: it cannot be imported \(MemoryError")

    def test_code_in_c_that_reads_a_variable_of_ranks(self):
        """It finds it unset during the import, and right in the rank."""
        env = self.outside("native", "import ctypes\nget = ctypes.CDLL(None).getenv\nget.restype = ctypes.c_char_p\nseen = get(b'RANK')\n")
        script = self.write("train.py", "import native\nprint('seen', native.seen, native.get(b'RANK'))\n")
        result = self.expect(self.warm("-np", 2, PYTHON, script, env=env), 0)
        self.is_warm(result, 2)
        self.assertEqual(sorted(re.findall(r"seen (.*)", result.stdout)), ["None b'0'", "None b'1'"])

    def test_a_core_file(self):
        script = self.write("abort.py", "import decimal, os\nos.abort()\n")
        seen, most = [], resource.getrlimit(resource.RLIMIT_CORE)[1]
        for way in ((), ("-v", "--warm")):
            folder = self.box.path("cores" + str(len(way)))
            os.mkdir(folder)
            result = self.run_job(*way, "-np", 1, "--wdir", folder, PYTHON, script, limits={resource.RLIMIT_CORE: (most, most)})
            self.expect(result, 134)
            cores = len(glob.glob(folder + "/*"))
            told = "".join(re.findall(r"rank 0 .*", result.said))
            seen.append((cores, re.sub(r"\(pid \d+\)|after [\d.]+ \w+|\d+ ms", "", told)))
        self.is_warm(result)
        self.assertEqual(*seen)


class Newcomers(Elastic, WarmFlow):

    def start_elastic(self, *args, **options):
        """The workers are programs of Python that become those of C."""
        at = args.index(worker("elastic_horovod"))
        script = self.write("become.py", "import slow_module, os, sys\nos.execv(sys.argv[1], sys.argv[1:])\n")
        return super().start_elastic("-v", "--warm", *args[:at], PYTHON, script, *args[at:], **options)

    def test_the_end_of_a_newcomer_whose_mother_imports(self):
        slow = self.box.path("slow")
        env = self.outside("slow_module", "import os, time\nif 'RANK' not in os.environ.copy():\n"
                                f"    while os.path.exists({slow!r}):\n        open({slow + '.waits'!r}, 'w').close()\n"
                                "        time.sleep(0.1)\n")
        job = self.train(*self.discover("a:1", "b:1"), "--min-np", 2, env=env)
        job.members(2)
        self.write("slow", "")
        self.set_hosts("a:1", "b:1", "c:1")
        wait_until(lambda: os.path.exists(slow + ".waits"), "the imports of the newcomer")
        self.set_hosts("a:1", "b:1")
        job.wait_output("c has left the job", name="stderr")
        job.finish()


class Places(WarmFlow, Hostile):

    def test_a_full_disk(self):
        """What she writes down for the next job finds no room, and neither does a temporary file."""
        mount, small = self.small_folder(size="64k")
        script = f"{mount} && {{ cat /dev/zero >'{small}/full' 2>&- ; true; }}"
        env = dict(self.outside("trap", "import socket\nvalue = socket.socket()\n"), XDG_CACHE_HOME=small)
        train = self.write("train.py", "import decimal, trap\nprint('fine')\n")
        result = self.in_place(script, "-v", "--warm", "-np", 2, "-x", f"TMPDIR={small}", PYTHON, train, env=env)
        self.expect(result, 0)
        self.is_warm(result, 2)
        self.expect_said(result, "each rank imports trap itself: it opens a socket")
        self.assertEqual(result.stdout.count("fine"), 2)

    def test_a_module_that_uses_a_gpu(self):
        env = self.outside("trap", "value = open('/dev/nvidia0', 'rb')\n")
        train = self.write("train.py", "import decimal, trap\nprint('fine', trap.value.name)\n")
        result = self.in_place(GPU.format(self.box.path("dev")), "-v", "--warm", "-np", 2, PYTHON, train, env=env)
        self.expect(result, 0)
        self.is_warm(result, 2)
        self.expect_said(result, "each rank imports trap itself: it uses a GPU")
        self.assertEqual(result.stdout.count("fine /dev/nvidia0"), 2, result.describe())


if __name__ == "__main__":
    main()
