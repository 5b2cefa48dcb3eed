# SPDX-License-Identifier: Apache-2.0
"""A Python program whose seven ranks hang in six ways, and what the tree of its stacks must say of them."""

RANKS, READY = 7, 8  # rank 6 has a child, which is ready as well

# Its argument is a FIFO. Ranks 0 and 6 wait for a lock, and rank 6 has a child and another thread.
PROGRAM = """\
import os, signal, socket, sys, threading, time
rank = int(os.environ["RANK"])
one, other = socket.socketpair()
lock = threading.Lock()

def all_reduce():
    lock.acquire()

def read_socket():
    one.recv(1)

def read_pipe():
    with open(sys.argv[1]) as file: file.read()

def spin():
    return sum(range(10 ** 15))

def nap():
    time.sleep(1000)

def stop():
    os.kill(os.getpid(), signal.SIGSTOP)

def step():
    ways = {1: read_socket, 2: read_pipe, 3: spin, 4: nap, 5: stop}
    ways.get(rank, all_reduce)()

def load():
    os.write(1, b"ready\\n")
    nap()

lock.acquire()
if rank == 6 and os.fork() == 0: load()
if rank == 6: threading.Thread(target=nap, daemon=True).start()
os.write(1, b"ready\\n")
step()
"""

TRUNK = r"^    \[0-6\] train.py:36 <module> > train.py:26 step$"

# The odd ones come first.
WAYS = [r"^      \[1\] train.py:10 read_socket; calls recvfrom$",
        r"^      \[2\] train.py:13 read_pipe; calls openat$",
        r"^      \[3\] train.py:16 spin; running; holds the GIL$",
        r"^      \[4\] train.py:19 nap; calls (clock_nanosleep|select)$",
        r"^      \[5\] train.py:22 stop",
        r"^      \[0,6\] train.py:7 all_reduce; calls futex$"]

BESIDE = [r"other threads:\n    \[6\] .*train.py:19 nap",
          r"child processes:\n    \[6\] train.py:33 <module> > train.py:30 load > train.py:19 nap; calls (clock_nanosleep|select)$"]
