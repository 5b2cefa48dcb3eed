# SPDX-License-Identifier: Apache-2.0
"""--hang-timeout: healthy jobs that are quiet, and stuck ones that are not (docs/hangs.md)."""
# ctest waits

import os
import subprocess
import sys
import time

from rig import BUILD, Flow, main, patient

# Rank 1 does what the first argument says, and the others wait for it until it opens the FIFO.
SCRIPT = """\
import os, socket, subprocess, sys, threading, time
rank, what, gate, seconds = int(os.environ["RANK"]), sys.argv[1], sys.argv[2], float(sys.argv[3])
python = sys.executable

def wait():
    open(gate).read()

def until():
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield

def a(): sum(range(100000))
def b(): sum(range(100001))
def c(): sum(range(100002))

def compute():
    for _ in until():
        a(); b(); c()

# healthy, and quiet

def child():
    subprocess.run([python, __file__, "compute", gate, str(seconds)], check=True)

def thread():
    other = threading.Thread(target=compute)
    other.start()
    other.join()

def pool():
    import multiprocessing
    with multiprocessing.get_context("fork").Pool(2) as workers:
        workers.map(compute_one, range(2))

def compute_one(_):
    compute()

def program():
    subprocess.run(["timeout", str(seconds), "sh", "-c", "while :; do :; done"])

def trickle():
    with open(gate + ".log", "wb", buffering=0) as log:
        for _ in until():
            log.write(b"x" * 200)
            time.sleep(0.1)

def download():
    here, there = socket.socketpair()
    if os.fork() == 0:
        here.close()
        for _ in until():
            there.send(b"x" * 1000)
            time.sleep(0.1)
        os._exit(0)
    there.close()
    while here.recv(65536):
        pass

def receive(size, times):
    door = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        there = door.accept()[0]
        for _ in times:
            there.send(b"x" * size)
            time.sleep(0.1)
        os._exit(0)
    here, buffer = socket.create_connection(door.getsockname()), bytearray(1 << 16)
    door.close()
    here.settimeout(5)  # shorter than what counts as a wait for data alone
    while here.recv_into(buffer):
        pass

def fetch():
    receive(30000, until())

def fetch_aside():
    other = threading.Thread(target=receive, args=(30000, until()))
    other.start()
    other.join()

def helper():
    def report():
        for _ in until():
            print("still here", flush=True)
            time.sleep(0.2)
    other = threading.Thread(target=report)
    other.start()
    other.join()

# stuck, and not quiet

def write(text, each, stream):
    def run():
        while True:
            print(text, file=stream, flush=True)
            time.sleep(each)
    threading.Thread(target=run, daemon=True).start()

def heartbeat():
    write("alive", 0.3, sys.stdout)
    wait()

def logger():
    write("alive " + 50 * ".", 0.2, open(gate + ".log", "w"))
    wait()

def progress_bar():
    write("\\r 17 %", 0.1, sys.stderr)
    wait()

def poll():
    while not os.path.exists(gate + ".done"):
        time.sleep(0.1)

def inspector():
    while True:
        os.write(2, b"W One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are "
                    b"waiting for remainder of ranks for more than 60 seconds.\\nMissing ranks:\\n2: [allreduce.x]\\n")
        time.sleep(0.5)

def chat():
    receive(100, iter(int, 1))

def again():
    while True:
        try:
            socket.create_connection(("127.0.0.1", 1), timeout=1)
        except OSError:
            time.sleep(0.2)

if what == "compute":
    compute()
    sys.exit()
os.write(1, b"ready\\n")
if rank != 1:
    wait()
else:
    globals()[what]()
    open(gate, "w").close()
"""


class Quiet(Flow):

    def begin(self, what, np, limit, *more):
        gate = self.box.path("gate-" + what)
        os.mkfifo(gate)
        return self.start("-np", np, "--hang-timeout", limit, "--hang-warning", 0, "--grace", 1, "--no-stack-traces", *more,
                          sys.executable, self.write("train.py", SCRIPT), what, gate, 20)

    def end(self, jobs, status):
        for what, job in jobs.items():
            with self.subTest(what=what):
                result = self.expect(job.wait(patient(120)), status)
                (self.expect_not_said if status == 0 else self.expect_said)(result, "the job hangs")

    def test_work_of_children_and_threads(self):
        self.end({what: self.begin(what, 3, 8) for what in ("child", "thread", "pool", "program")}, 0)

    def test_little_by_little(self):
        self.end({what: self.begin(what, 3, 8) for what in ("trickle", "download", "fetch", "fetch_aside", "helper")}, 0)

    def test_ranks_that_are_stuck(self):
        self.end({what: self.begin(what, 4, 3) for what in ("heartbeat", "logger", "progress_bar", "inspector", "poll", "chat", "again")}, 119)

    def test_before_the_first_progress(self):
        result = self.expect(self.run_job("-np", 2, "--hang-timeout", 1, "--hang-warning", 0, "sleep", 5), 0)
        self.expect_not_said(result, "hangs")

    def test_output_that_nobody_reads(self):
        """hvdrun waits for its own reader, and so the ranks wait for hvdrun."""
        script = self.write("flood.py", "import os, time\nfor _ in range(100): os.write(1, b'x' * 999999 + b'\\n')\n")
        job = self.start("-np", 2, "--hang-timeout", 5, "--hang-warning", 0, "--grace", 1, sys.executable, script, stdout="hold")
        time.sleep(12)
        job.release()
        self.expect_not_said(self.expect(job.wait(patient(120)), 0), "hangs")


TORCH = """\
import time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
print("ready", flush=True)
tensor = torch.ones(4)
for step in range(36):
    time.sleep(0.5)
    dist.all_reduce(tensor)
"""
PYTHON = "/usr/bin/python3"


class Torch(Flow):

    def test_light_steps(self):
        if subprocess.run([PYTHON, "-c", "import torch.distributed as d; d.is_gloo_available"], capture_output=True).returncode:
            self.skipTest("no torch with Gloo")
        result = self.run_job("-np", 3, "--hang-timeout", 8, "--hang-warning", 0, "--grace", 1, PYTHON, self.write("train.py", TORCH), timeout=180)
        self.expect_not_said(self.expect(result, 0), "hangs")


class Libhvd(Flow):

    def run_steps(self, np, limit, *args):
        if not os.path.exists(os.path.join(BUILD, "lib/hvd/hvd-gloo.so")):
            self.skipTest("the engine gloo was not built")
        return self.run_job("--controller", "gloo", "-np", np, "--hang-timeout", limit, "--hang-warning", 0, "--grace", 1,
                            os.path.join(BUILD, "tests/hvd/hvd_test_steps"), *args, timeout=180)

    def test_light_steps(self):
        self.expect_not_said(self.expect(self.run_steps(3, 6, 50), 0), "hangs")


if __name__ == "__main__":
    main()
