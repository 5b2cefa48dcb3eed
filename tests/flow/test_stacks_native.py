# SPDX-License-Identifier: Apache-2.0
"""`hvdrun stacks --native`: frames of C code, in the same tree (docs/hangs.md)."""
# ctest waits
# ctest long
# ctest plain

import json
import os
import re
import shutil
import subprocess
import sys

from asked import LATE, Asked
from hostile import Hostile
from rig import main, mpi_worker, worker

# Rank 0 holds the GIL in C, rank 1 sleeps in a function that C has called, rank 2 is deep, rank 3 has threads of C.
PYTHON = """\
import ctypes, os, re, sys, time
rank = int(os.environ["RANK"])
sys.setrecursionlimit(20000)

def spin():
    re.match("(a+)+b", "a" * 64)

def called_back():
    sorted([1, 2], key=lambda x: time.sleep(1000))

def deep(n):
    time.sleep(1000) if n == 0 else deep(n - 1)

def threads():
    libc = ctypes.CDLL(None)
    for i in range(3):
        libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, ctypes.cast(libc.pause, ctypes.c_void_p), None)
    time.sleep(1000)

os.write(1, b"ready\\n")
[spin, called_back, lambda: deep(900), threads][rank]()
"""

GLOO = """\
import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")

def load():
    time.sleep(1000)

def train():
    if dist.get_rank() == 2: load()
    dist.all_reduce(torch.ones(10))

os.write(1, b"ready\\n")
train()
"""

DEBIAN_PYTHON = "/usr/bin/python3"


class Native(Asked, Hostile):

    def test_an_open_mpi_program_with_one_rank_in_a_loop(self):
        program = mpi_worker("mpi_stray", "openmpi")
        job = self.begin("-np", 3, "--grace", 1, program, count=3)
        text = self.until([r"^    \[0-2\] process mpi_stray",
                           r"^      \[2\] .*mpi_stray\.openmpi lose_way; running$",
                           r"^      \[0-1\] .* P?MPI_Barrier"], "--native")
        self.assertNotRegex(text, r"_start|__libc_start")
        self.assertRegex(text, r"(?m)^rank 2 is elsewhere: in mpi_stray\.openmpi lose_way; 2 others are in MPI_Barrier, called by mpi_stray\.openmpi main$")
        # Without --native, all look alike: they run.
        self.assertRegex(self.ask().stdout, r"(?m)^    \[0-2\] process mpi_stray[.\w]*; running$")
        answer = json.loads(self.ask("--native", "--json", "--ranks", "2").stdout)
        frames = [frame for stack in answer["stacks"] if stack["thread"] == "main" for frame in stack["frames"]]
        found = [frame for frame in frames if frame["function"] == "lose_way"]
        self.assertEqual([(frame["native"], frame["file"]) for frame in found], [(True, program)], answer)
        self.end(job)

    def test_what_mpi_does_inside_is_not_the_place(self):
        """Ranks that wait in MPI are in many functions of it, and some of these cannot be read."""
        where = {"sleep": (2, r"\S+ lose_way", "MPI_Barrier"), "other": (2, r"MPI_Bcast, called by \S+ main", "MPI_Allreduce"), "leave": None}
        for kind in ("openmpi", "mpich"):
            for way, right in where.items():
                with self.subTest(kind=kind, way=way):
                    job = self.begin("-np", 3 if right else 4, "--grace", 1, mpi_worker("mpi_stray", kind), way, count=3)
                    if right:
                        line = rf"^rank {right[0]} is elsewhere: in {right[1]}; 2 others are in {right[2]}, called by \S+ main$"
                        self.until([line], "--native")
                    else:
                        self.until([r"^    \[0-2\] process mpi_stray"], "--native")
                    for _ in range(5):
                        text = self.ask_whole("--native")
                        if right:
                            self.assertRegex(text, f"(?m){line}")
                        else:
                            self.assertNotRegex(text, "elsewhere")
                    self.end(job)

    def test_through_agents_that_are_sent(self):
        """hvdrun-agent has the module inside."""
        away = self.box.path("away")
        os.mkdir(away)
        agent = f"env -u XDG_RUNTIME_DIR TMPDIR={away} HOME={away} HOST=%h"
        job = self.begin("-H", "a:1,b:1", "--launch-agent", agent, "--grace", 1, worker("hang"), count=2)
        self.until([r"^    \[0-1\] process hang > .*main > .*; calls \w+"], "--native")
        self.end(job)

    def test_a_stripped_program(self):
        if shutil.which("strip") is None:
            self.skipTest("no strip on this machine")
        program = self.box.path("stripped")
        subprocess.run(["strip", "-o", program, mpi_worker("mpi_stray", "openmpi")], check=True)
        job = self.begin("-np", 2, "--grace", 1, program, count=2)
        self.until([r"^      \[1\] .*stripped \+0x[0-9a-f]+; running$", r"^      \[0\] .* P?MPI_Barrier"], "--native")
        self.end(job)

    def test_a_program_with_frame_pointers(self):
        """Its first frame pointer is in a register, so it is stopped; then it goes on."""
        source, program = self.write("deep.c", "#include <stdio.h>\n#include <unistd.h>\nstatic void third(void) { pause(); }\n"
                                     "static void second(void) { third(); }\nstatic void first(void) { second(); }\n"
                                     "int main(void)\n{\n    puts(\"ready\");\n    fflush(stdout);\n    first();\n"
                                     "    puts(\"woken\");\n    return 0;\n}\n"), self.box.path("deep")
        built = subprocess.run(["cc", "-O0", "-fno-omit-frame-pointer", "-o", program, source], capture_output=True, check=False)
        if built.returncode != 0:
            self.skipTest("no C compiler here")
        job = self.begin("-np", 2, "--grace", 1, program, count=2)
        for _ in range(5):
            self.until([r"^    \[0-1\] process deep > deep main > deep first > deep second > deep third > .*pause; calls pause"],
                       "--native")
        self.assertNotIn("woken", str(job.output()))
        self.end(job)

    def test_a_static_program_without_symbols(self):
        source, program = self.write("still.c", "#include <unistd.h>\nint main(void)\n{\n    write(1, \"ready\\n\", 6);\n"
                                     "    for (;;)\n        pause();\n}\n"), self.box.path("still")
        built = subprocess.run(["cc", "-static", "-s", "-O1", "-o", program, source], capture_output=True, check=False)
        if built.returncode != 0:
            self.skipTest("cannot link a static program here")
        job = self.begin("-np", 2, "--grace", 1, program, count=2)
        self.until([r"^    \[0-1\] process still > .*still \+0x[0-9a-f]+; calls pause"], "--native")
        self.end(job)

    def test_python(self):
        job = self.begin("-np", 4, "--grace", 1, DEBIAN_PYTHON, self.write("train.py", PYTHON), count=4)
        text = self.until([r"\[0\] .*train\.py:6 spin > .*; running; holds the GIL$",
                           r"\[1\] .*train\.py:9 (called_back\.<locals>\.)?<lambda> > .*nanosleep; calls clock_nanosleep",
                           r"\[2\] .*train\.py:12 deep .*nanosleep; calls clock_nanosleep",
                           r"(?ms)^other threads:.*^ *\[3\] .*pause; calls pause.*; 3 threads$"], "--native")
        self.assertNotIn("_PyEval_EvalFrame", text)
        # The same without native frames.
        self.until([r"\[1\] .*train\.py:9 (called_back\.<locals>\.)?<lambda>; calls clock_nanosleep"])
        self.end(job)

    def test_torch_with_gloo(self):
        if subprocess.run([DEBIAN_PYTHON, "-c", "import torch.distributed as d; d.is_gloo_available"],
                          capture_output=True, check=False).returncode:
            self.skipTest("no torch with Gloo")
        job = self.begin("-np", 3, "--grace", 1, DEBIAN_PYTHON, self.write("train.py", GLOO), count=3)
        self.until([r"^      \[2\] train\.py:8 train > train\.py:5 load > .*nanosleep",
                    r"^      \[0-1\] train\.py:9 train > distributed_c10d\.py:\d+ all_reduce > .* c10d::Work::wait > ",
                    r"^rank 2 is elsewhere: in train\.py:5 load; 2 others are in distributed_c10d\.py:\d+ all_reduce$",
                    r"(?m)^other threads:$", r"gloo::transport::tcp::Loop::run > .*epoll_wait"], "--native")
        self.end(job)

    def test_without_libdw(self):
        broken = self.box.path("broken")
        os.mkdir(broken)
        self.write(os.path.join(broken, "libdw.so.1"), "not a library")
        job = self.begin("-np", 2, "--grace", 1, worker("hang"), count=2, env={"LD_LIBRARY_PATH": broken})
        text = self.until([r"^    \[0-1\] process hang; calls \w+"], "--native")
        self.assertRegex(text, r"(?m)^native frames are missing:\n    localhost: cannot load hvdrun-unwind\.so: [^\n]*"
                               r"libdw\.so\.1[^\n]*is libdw of elfutils installed \(libdw1\)\?$")
        self.end(job)

    def test_as_a_user_without_rights(self):
        self.become = self.become_stranger()
        script = self.write("train.py", PYTHON)
        job = self.begin("-np", 4, "--grace", 1, DEBIAN_PYTHON, script, count=4, how=self.command)
        self.until([r"\[0\] .*train\.py:6 spin > .*; running; holds the GIL$",
                    r"\[1\] .*<lambda> > .*nanosleep; calls clock_nanosleep"], "--native")
        self.end(job)

    def test_in_a_user_namespace(self):
        if subprocess.run(["unshare", "--user", "--map-root-user", "true"], capture_output=True, check=False).returncode:
            self.skipTest("no user namespaces here")
        script = self.write("train.py", PYTHON)
        job = self.begin("-np", 4, "--grace", 1, "unshare", "--user", "--map-root-user", DEBIAN_PYTHON, script, count=4)
        self.until([r"\[0\] .*train\.py:6 spin > .*; running; holds the GIL$",
                    r"\[1\] .*<lambda> > .*nanosleep; calls clock_nanosleep"], "--native")
        self.end(job)

    def test_a_program_that_changes_while_it_is_read(self):
        script = self.write("busy.py", "import os\nos.write(1, b'ready\\n')\n"
                            "def a(n): return sorted(range(n % 50))\ndef b(n): return [str(i) for i in a(n)]\n"
                            "n = 0\nwhile True: n += 1; b(n); exec('b(n)')\n")
        job = self.begin("-np", 2, "--grace", 1, sys.executable, script, count=2)
        for _ in range(20):
            text = self.ask_whole("--native")
            self.assertRegex(text, r"(?m)^main threads:$")
            self.assertNotRegex(text, r"cannot|not all")
        self.assertIsNone(job.popen.poll())
        self.end(job)


# Ranks wait in a library whose table of symbols takes a while to read.
MANY_SYMBOLS = 250000
WAITER = """\
#include <stdio.h>
void waits_in_library(void);
int main(void)
{
    puts("ready");
    fflush(stdout);
    waits_in_library();
    return 0;
}
"""


class ChangingFiles(Asked):

    def library(self):
        """The library, and how long it is without its table of symbols, which nobody maps who runs it."""
        source, assembly = self.write("wait.c", "#include <unistd.h>\nvoid waits_in_library(void) { for (;;) pause(); }\n"), \
            self.write("names.s", ".section .note.GNU-stack,\"\",@progbits\n.text\n" + "".join(f"a_name_that_takes_space_{i}:\n" for i in range(MANY_SYMBOLS)))
        library, program = self.box.path("libwait.so"), self.box.path("waiter")
        if shutil.which("cc") is None or shutil.which("readelf") is None:
            self.skipTest("no C compiler here")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, assembly], check=True)
        subprocess.run(["cc", "-o", program, self.write("waiter.c", WAITER), library], check=True)
        headers = subprocess.run(["readelf", "-lW", library], capture_output=True, text=True, check=True).stdout
        loads = [line.split() for line in headers.splitlines() if line.strip().startswith("LOAD")]
        return library, program, max(int(words[1], 16) + int(words[4], 16) for words in loads)

    def test_a_library_that_gets_shorter(self):
        """The kernel kills who reads it; that is neither the agent nor a rank."""
        library, program, loaded = self.library()
        with open(library, "rb") as file:
            rest = file.read()[loaded:]
        job = self.begin("-np", 2, "--grace", 1, program, count=2)
        with open(library, "r+b") as file:
            for _ in range(30):
                asked = self.command("stacks", "--native")
                while asked.popen.poll() is None:
                    file.truncate(loaded)
                    file.seek(loaded)
                    file.write(rest)
                    file.flush()
                text = self.expect(asked.wait(60), 0).stdout
                if LATE not in text:
                    self.assertRegex(text, r"(?m)^    \[0-1\] process waiter")
                self.assertIsNone(job.popen.poll(), job.output())
        self.end(job)


class Spinners(Asked):

    def test_ranks_that_spin_in_mpi_never_count_as_hung(self):
        """Their processor time is progress: docs/hangs.md says so."""
        program = mpi_worker("mpi_stray", "openmpi")
        result = self.run_job("-np", 2, "--hang-timeout", 2, "--grace", 1, program, "9", timeout=120)
        self.expect(result, 0)
        self.assertFalse(re.search("hangs", result.stderr), result.describe())


if __name__ == "__main__":
    main()
