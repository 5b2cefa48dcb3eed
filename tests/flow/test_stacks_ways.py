# SPDX-License-Identifier: Apache-2.0
"""`hvdrun stacks` of ranks that are all stuck in another way (docs/hangs.md)."""
# ctest waits
# ctest warm

import os
import re
import shutil
import signal
import subprocess
import sys

from asked import Asked
from hostile import Hostile
from rig import main

# One function for each way, in the order of the ranks. What the tree must say of it is in WAYS. `paged_out` has the kernel
# drop its files from its memory, and put the rest into swap space if there is any.
STUCK = """\
import asyncio, ctypes, fcntl, multiprocessing, os, queue, re, select, signal, socket, subprocess, sys, threading, time
one, other = socket.socketpair()
reader, writer = os.pipe()
held = threading.Lock()
held.acquire()
libc = ctypes.CDLL(None)

def daemon(run):
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread

def lock(): held.acquire()
def rlock():
    again = threading.RLock()
    daemon(again.acquire).join()
    again.acquire()
def condition():
    it = threading.Condition()
    it.acquire(); it.wait()
def event(): threading.Event().wait()
def semaphore(): threading.Semaphore(0).acquire()
def get(): queue.Queue().get()
def barrier(): threading.Barrier(2).wait()
def join(): daemon(held.acquire).join()
def recv(): one.recv(1)
def accept():
    server = socket.create_server(("127.0.0.1", 0))
    server.accept()
def datagram(): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).recvfrom(1)
def send():
    while True: one.send(bytes(100000))
def selects(): select.select([one], [], [])
def polls():
    it = select.poll(); it.register(one, select.POLLIN); it.poll()
def epolls(): select.epoll().poll()
def read(): os.read(reader, 1)
def write():
    while True: os.write(writer, bytes(100000))
def fifo():
    os.mkfifo(sys.argv[1]); open(sys.argv[1])
def flock():
    mine, its = open(sys.argv[1] + ".lock", "w"), open(sys.argv[1] + ".lock", "w")
    fcntl.flock(its, fcntl.LOCK_EX); fcntl.flock(mine, fcntl.LOCK_EX)
def child():
    process = subprocess.Popen(["sleep", "1000"]); process.wait()
def zombie():
    process = subprocess.Popen(["true"]); signal.pause()
def pause(): signal.pause()
def sigwait(): signal.sigwait([signal.SIGUSR2])
def sleep(): time.sleep(1000)
def paged_out():
    for line in open("/proc/self/maps"):
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), 21)
    time.sleep(1000)
def stopped(): os.kill(os.getpid(), signal.SIGSTOP)
def spin_in_c(): sum(range(10 ** 15))
def spin_in_re(): re.match("(a+)+b", "a" * 64)
def spin():
    while True: pass
def batches():
    time.sleep(1000)
    yield 1
def generator():
    for batch in batches(): pass
async def fetch(): await asyncio.Event().wait()
async def gather():
    tasks = [asyncio.ensure_future(fetch()) for i in range(3)]
    await asyncio.wait(tasks)
def coroutines(): asyncio.run(gather())
def loader():
    process = multiprocessing.get_context("fork").Process(target=sleep); process.start(); process.join()

os.write(1, b"ready\\n")
WAYS = (lock, rlock, condition, event, semaphore, get, barrier, join, recv, accept, datagram, send, selects, polls,
        epolls, read, write, fifo, flock, child, zombie, pause, sigwait, sleep, paged_out, stopped, spin_in_c, spin_in_re,
        spin, generator, coroutines, loader)
WAYS[int(os.environ["RANK"])]()
"""

# The system call, or what else is at the end of the line.
WAYS = {
    "lock": "calls futex", "rlock": "calls futex", "condition": "calls futex", "event": "calls futex",
    "semaphore": "calls futex", "get": "calls futex", "barrier": "calls futex",
    "join": "calls futex", "recv": "calls recvfrom", "accept": "calls accept4?", "datagram": "calls recvfrom",
    "send": "calls sendto", "selects": "calls (select|pselect6)", "polls": "calls p?poll",
    "epolls": "calls epoll_p?wait", "read": "calls read", "write": "calls write", "fifo": "calls openat",
    "flock": "calls flock", "child": "calls wait4", "zombie": "calls (pause|ppoll)", "pause": "calls (pause|ppoll)",
    "sigwait": "calls rt_sigtimedwait", "sleep": "calls (clock_nanosleep|select)", "paged_out": "calls (clock_nanosleep|select)", "stopped": r"stopped \(SIGSTOP\)",
    "spin_in_c": "running; holds the GIL", "spin_in_re": "running; holds the GIL", "spin": "running; holds the GIL",
    "generator > stuck.py:\\d+ batches": "calls (clock_nanosleep|select)", "coroutines": "calls epoll_p?wait",
    "loader": "calls wait4",
}


class Ways(Asked, Hostile):

    def test_each_of_32_ranks_in_another_way(self):
        script = self.write("stuck.py", STUCK)
        job = self.begin("-np", 32, "--grace", 1, sys.executable, script, self.box.path("fifo"), count=32)
        # Ranks whose outer frames are alike are below one line, so the frames of a rank may begin in another line.
        patterns = [rf"(?m)^ +\[{rank}\] .*?stuck\.py:\d+ {way}\b.*{end}" for rank, (way, end) in enumerate(WAYS.items())]
        text = self.until([*patterns,
                           r"(?s)\nchild processes:\n.*\[19\] process sleep; calls \w+",
                           r"(?s)\nchild processes:\n.*\[20\] process true; ended, not reaped",
                           r"(?s)\nchild processes:\n.*\[31\] .*stuck\.py:\d+ sleep; calls (clock_nanosleep|select)"])
        self.assertEqual(len(re.findall(r"(?m)^main threads:$", text)), 1)
        self.end(job)

    def test_a_file_system_that_does_not_answer(self):
        """The kernel holds the rank in a read that cannot be interrupted; --native leaves it alone."""
        if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
            self.skipTest("no right to mount with /dev/fuse")
        folder, pidfile = self.box.path("mounted"), self.box.path("fuse.pid")
        os.mkdir(folder)
        server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "silent_fuse.py")
        script = self.write("train.py", "import os, sys, time\ndef read_batch():\n    with open(sys.argv[1]) as file:\n"
                            "        file.read()\nos.write(1, b'ready\\n')\n"
                            "if os.environ['RANK'] == '1': read_batch()\ntime.sleep(1000)\n")
        mount = f"{sys.executable} {server} {folder} {pidfile} && while test ! -s {pidfile}; do sleep 0.1; done"
        job = self.begin("-np", 3, "--grace", 1, sys.executable, script, os.path.join(folder, "batches"), count=3,
                         how=lambda *args: self.start_in_place(mount, *args))
        with open(pidfile, encoding="ascii") as file:
            pid = int(file.read())
        try:
            self.until([r"^    \[1\] train\.py:6 <module> > train\.py:4 read_batch; calls read on fuse$",
                        r"^rank 1 is elsewhere: in train\.py:4 read_batch \(fuse\); 2 others are in train\.py:7 <module>$"])
            self.until([r"^    \[1\] train\.py:6 <module> > train\.py:4 read_batch > .*read; calls read on fuse$"], "--native")
        finally:
            os.kill(pid, signal.SIGKILL)  # the read fails then
        job.signal(signal.SIGINT)
        job.wait(60)

    def ask_one(self, *command, native=False, how=None):
        """What the tree says of one rank that this command starts, and that sleeps."""
        script = self.write("nap.py", "import os, time\ndef nap():\n    os.write(1, b'ready\\n')\n    time.sleep(1000)\nnap()\n")
        job = self.begin("-np", 1, "--grace", 1, *command, script, count=1, how=how)
        self.until([r"^    \[0\] nap\.py:5 <module> > nap\.py:4 nap; calls (clock_nanosleep|select)$"])
        if native:
            self.until([r"^    \[0\] nap\.py:5 <module> > nap\.py:4 nap > .*nanosleep; calls (clock_nanosleep|select)$"],
                       "--native")
        self.end(job)

    def test_a_virtual_environment(self):
        folder = self.box.path("venv")
        made = subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], capture_output=True, check=False)
        if made.returncode != 0:
            self.skipTest("no venv here")
        self.ask_one(os.path.join(folder, "bin/python"))

    def test_a_stripped_interpreter(self):
        """Debian's is stripped and linked statically; others become so here."""
        program = os.path.realpath(sys.executable)
        if shutil.which("strip") is None:
            self.skipTest("no strip on this machine")
        copy = self.box.path(os.path.basename(program))
        subprocess.run(["strip", "-o", copy, program], check=True)
        home = f"{sys.base_prefix}:{sys.base_exec_prefix}"
        self.ask_one("env", f"PYTHONHOME={home}", copy)

    def test_in_a_root_folder_of_its_own(self):
        """The kernel shows the paths of its files as we see them."""
        folder = self.box.path("root")
        os.mkdir(folder)
        self.ask_one("chroot", folder, "/usr/bin/python3", native=True,
                     how=lambda *args: self.start_in_place(f"mount --rbind / {folder}", *args))

    def test_below_a_shell_in_a_user_namespace(self):
        if subprocess.run(["unshare", "--user", "--map-root-user", "true"], capture_output=True, check=False).returncode:
            self.skipTest("no user namespaces here")
        self.ask_one("unshare", "--user", "--map-root-user", "sh", "-c", f'{sys.executable} "$@"; true', "sh")

    def test_in_a_process_namespace(self):
        inside = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child=SIGKILL"]
        if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no process namespaces here")
        self.ask_one(*inside, sys.executable)


if __name__ == "__main__":
    main()
