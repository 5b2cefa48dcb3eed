# SPDX-License-Identifier: Apache-2.0
"""Jobs that hang: the rank that the verdict and the last line of `hvdrun stacks` name, and its place (docs/hangs.md)."""
# ctest waits
# ctest long
# ctest warm nightly

import json
import os
import re
import signal
import subprocess
import sys

from asked import Asked
from python import find_python
from rig import BUILD, main, wait_until

# Rank 2 does what the first argument says, and the others wait for it.
SCRIPT = """\
import os, signal, socket, subprocess, sys, threading, time
one, other = socket.socketpair()
rank = int(os.environ["RANK"])

def all_reduce(): one.recv(1)

def stop(): os.kill(os.getpid(), signal.SIGSTOP)

def stop_child():
    child = subprocess.Popen(["sleep", "1000"])
    child.send_signal(signal.SIGSTOP)
    all_reduce()

def unpack():
    subprocess.run(["sleep", "1000"])

def in_thread(step):
    thread = threading.Thread(target=step)
    thread.start()
    thread.join()

def nap(): time.sleep(1000)

os.write(1, b"ready\\n")
if sys.argv[1] == "nap":
    in_thread(nap if rank == 2 else all_reduce)
elif rank == 2:
    globals()[sys.argv[1]]()
else:
    all_reduce()
"""

# A job of PyTorch, one rank of which waits for its data.
LOADER = """\
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")

class Data(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, index):
        if dist.get_rank() == 2: open(sys.argv[1]).read()
        return torch.ones(1)

def train():
    loader = torch.utils.data.DataLoader(Data(), num_workers=2, multiprocessing_context="fork")
    batch = next(iter(loader))
    os.write(1, b"ready\\n")
    dist.all_reduce(batch)

if dist.get_rank() == 2: os.write(1, b"ready\\n")
train()
"""

# A job of PyTorch with two ranks. Rank 1 does what the first argument says.
PAIR = """\
import os, sys, threading, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
ones = torch.ones(1)

def nap(): time.sleep(1000)

def read(): open(sys.argv[2]).read()

def wait(): dist.irecv(ones, 0, tag=7).wait()

def in_thread():
    threading.Thread(target=dist.barrier, daemon=True).start()
    time.sleep(1000)

def below_thread():
    threading.Thread(target=wait, daemon=True).start()
    time.sleep(1000)

os.write(1, b"ready\\n")
if dist.get_rank() == 1: globals()[sys.argv[1]]()
dist.recv(ones, 1, tag=3) if sys.argv[1] == "in_thread" else dist.all_reduce(ones)
"""

DEBIAN_PYTHON = "/usr/bin/python3"
SLEEPER = (sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(1000)")


class Culprit(Asked):

    def expect_verdict(self, pattern, *command, ranks=4):
        result = self.run_job("-np", ranks, "--hang-timeout", 2, "--grace", 1, *command, timeout=120)
        self.expect(result, 119)
        self.expect_said(result, rf"--hang-timeout 2\.0 s; {pattern}\n")
        return result

    def python(self, way):
        return [sys.executable, self.write("train.py", SCRIPT), way]

    def fifo(self):
        path = self.box.path("batches")
        os.mkfifo(path)
        return path

    def test_a_rank_that_is_stopped(self):
        self.expect_verdict(r"rank 2 on localhost is stopped \(SIGSTOP\)", *self.python("stop"))
        job = self.begin("-np", 2, "--hang-warning", 4, "--grace", 1, *SLEEPER, count=2)
        status = json.loads(self.expect(self.command("status", "--json").wait(60), 0).stdout)
        os.kill(status["ranks"][1]["pid"], signal.SIGSTOP)
        self.until([r"^    \[0-1\] <string>:1 <module>; .*stopped \(SIGSTOP\) \(1\).*$",
                    r"^rank 1 is stopped \(SIGSTOP\)$"])
        answer = json.loads(self.ask("--json").stdout)
        self.assertIn("stopped (SIGSTOP)", answer["stacks"][0]["doing"])
        self.assertEqual(answer["odd"], "rank 1 is stopped (SIGSTOP)")
        line = re.compile(r"^rank 1 on localhost was stopped \(SIGSTOP\) [\d.]+ m?s ago$", re.M)
        wait_until(lambda: line.search(self.command("status").wait(60).stdout), "the line of the status")
        os.kill(status["ranks"][1]["pid"], signal.SIGCONT)
        wait_until(lambda: not line.search(self.command("status").wait(60).stdout), "no line any more")
        self.end(job)

    def test_a_child_process_that_is_stopped(self):
        self.expect_verdict(r"rank 2 on localhost: a child process of it is stopped \(SIGSTOP\)", *self.python("stop_child"))

    def test_a_rank_that_waits_for_a_program(self):
        self.expect_verdict(r"rank 2 on localhost is elsewhere: in train\.py:15 unpack, and a child process of it \(sleep\) calls "
                            r"clock_nanosleep[^;]*; 3 others are in train\.py:5 all_reduce", *self.python("unpack"))

    def test_threads_that_do_the_work(self):
        self.expect_verdict(r"rank 2 on localhost is elsewhere: in train\.py:20 in_thread, and another thread of it is in "
                            r"train\.py:22 nap", *self.python("nap"))

    def test_another_system_call(self):
        """Of programs that hvdrun cannot read."""
        script = self.write("work.sh", f"#!/bin/sh\necho ready\ntest $RANK = 1 && read line < {self.fifo()}\nexec sleep 1000\n", 0o755)
        self.expect_verdict(r"rank 1 on localhost is elsewhere: calls open(at)?, waits in \w+; 3 others: calls clock_nanosleep, "
                            r"waits in \w+", script)

    def test_one_of_two(self):
        """Nobody is the majority, so it must be certain: compiled code may wait for the other rank, and so may a thread."""
        python = find_python("torch")
        if python is None:
            self.skipTest("no Python has torch (Debian: apt install python3-torch)")
        there = r"; rank 0 waits in distributed_c10d\.py:\d+ all_reduce"
        for way, said in (("nap", rf"rank 1 on localhost is elsewhere: in pair\.py:5 nap{there}"), ("wait", "no rank stands out"),
                          ("read", rf"rank 1 on localhost is elsewhere: in pair\.py:7 read{there}"), ("in_thread", "no rank stands out"),
                          ("below_thread", "no rank stands out")):
            with self.subTest(way=way):
                self.expect_verdict(said, python, self.write("pair.py", PAIR), way, self.box.path("batches") if way != "read" else self.fifo(),
                                    ranks=2)
        result = self.run_job("-np", 2, "--expect", "ready:2s", "--grace", 1, "--timeout", 60, python, self.write("pair.py", PAIR), "nap", timeout=120)
        self.expect_said(self.expect(result, 119), "ready.*no rank stands out\n")  # it may compute now and then

    def test_a_rank_that_has_ended(self):
        script = self.write("work.sh", "#!/bin/sh\necho ready\ntest $RANK = 3 && exit 0\nexec sleep 1000\n", 0o755)
        self.expect_verdict(r"rank 3 on localhost has ended with status 0, and the others have not", script)

    def libhvd(self, case, *options):
        program = os.path.join(BUILD, "tests/hvd/hvd_test_faults")
        if not os.path.exists(program) or not os.path.exists(os.path.join(BUILD, "lib/hvd/hvd-gloo.so")):
            self.skipTest("the build does not have libhvd with Gloo")
        return ["--controller", "gloo", *options, program, case]

    def test_a_name_that_differs(self):
        """libhvd knows it, long before its own limit for a warning."""
        folder = self.box.path("evidence")
        result = self.expect_verdict(r"ranks 0,2-3 wait for rank 1 in allreduce 'loss', for \d+ s; rank 1 waits for ranks 0,2-3 in "
                                     r"allreduce 'los', for \d+ s; rank 1 is on localhost[^\n]*",
                                     *self.libhvd("differs", "--evidence", folder))
        self.assertNotIn("libhvd: warning", result.stderr)
        told = self.expect(self.command("explain", os.path.join(folder, os.listdir(folder)[0])).wait(60), 0).stdout
        for part in ("'loss'", "'los'", "rank 1"):
            self.assertIn(part, told)

    def test_a_root_that_is_stopped(self):
        """It cannot answer, and the verdict does not need it."""
        self.expect_verdict(r"rank 0 on localhost is stopped \(SIGSTOP\)", *self.libhvd("differs", "-x", "STOP_ROOT=1"))

    def test_a_frozen_rank(self):
        groups = [folder for folder in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer")
                  if os.access(os.path.join(folder, "cgroup.procs"), os.W_OK)]
        if not groups:
            self.skipTest("no cgroups to write to")
        for parent in groups:
            with self.subTest(parent=parent):
                self.freeze_in(os.path.join(parent, f"hvdt-{os.getpid()}"))

    def is_empty(self, group):
        with open(os.path.join(group, "cgroup.procs"), encoding="ascii") as file:
            return not file.read()

    def freeze_in(self, group):
        def put(name, text):
            with open(os.path.join(group, name), "w", encoding="ascii") as out:
                out.write(str(text))

        os.mkdir(group)
        file, on, off = (("freezer.state", "FROZEN", "THAWED") if os.path.exists(os.path.join(group, "freezer.state")) else
                         ("cgroup.freeze", "1", "0"))
        job = self.begin("-np", 3, "--grace", 1, *SLEEPER, count=3)
        status = json.loads(self.expect(self.command("status", "--json").wait(60), 0).stdout)
        put("cgroup.procs", status["ranks"][1]["pid"])
        put(file, on)
        try:
            self.until([r"^rank 1 is frozen by a cgroup$", r"frozen by a cgroup \(1\)"])
        finally:
            put(file, off)
            self.end(job)
            wait_until(lambda: self.is_empty(group), "an empty group")
            os.rmdir(group)

    def test_a_data_loader(self):
        if subprocess.run([DEBIAN_PYTHON, "-c", "import torch.distributed as d; d.is_gloo_available"],
                          capture_output=True, check=False).returncode:
            self.skipTest("no torch with Gloo")
        work = os.path.dirname(self.fifo())  # what the loader leaves when it is killed
        job = self.begin("-np", 4, "--grace", 1, "-x", f"TMPDIR={work}", DEBIAN_PYTHON, self.write("stuck.py", LOADER),
                         os.path.join(work, "batches"), count=4)
        self.until([r"^rank 2 is elsewhere: in dataloader\.py:\d+ _MultiProcessingDataLoaderIter\._try_get_data, and a child process "
                    r"of it is in stuck\.py:7 Data\.__getitem__; 3 others are in distributed_c10d\.py:\d+ all_reduce$"])
        self.end(job)


if __name__ == "__main__":
    main()
