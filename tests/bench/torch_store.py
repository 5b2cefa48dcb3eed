#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The store of torch.distributed: an agent's and rank 0's own, in turns.

One worker of hvdrun imports torch, and then forks all ranks at the same time, so that no import is measured. The clock
starts with the forks. It stops when the last rank has left init_process_group("gloo"), and again when it has left
a barrier.

Then, thousands of clients of the store without torch, in one process: they connect, each adds to a counter, and all wait
for the key that the last one sets. "memory" is what the server needs more than before (PSS), in KiB for each client.
"""

import os
import sys

import bench
from box import Box
from ground import HVDRUN
from jobs import Job
from restart import find_python

WORKER = """if True:
    import datetime, os, sys, time
    import torch, torch.distributed as dist
    size, folder = int(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    begun = time.monotonic()
    children = []
    for rank in range(size):
        pid = os.fork()
        if pid:
            children.append(pid)
            continue
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank))
        status = 1
        try:
            dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=300))
            entered = time.monotonic() - begun
            dist.barrier()
            with open(f"{folder}/{rank}", "w") as file:
                file.write(f"{entered} {time.monotonic() - begun}")
            dist.barrier()
            status = 0
        finally:
            os._exit(status)
    bad = sum(os.waitpid(pid, 0)[1] != 0 for pid in children)
    sys.exit(bad > 0)
"""


def run(python, who, text, words, env=None):
    """The numbers of the one line that each process of a script has written to a file of `times`, a folder."""
    box, job = Box(), None
    try:
        script, times = box.path("worker.py"), box.path("times")
        with open(script, "w", encoding="utf-8") as file:
            file.write(text)
        os.mkdir(times)
        job = Job(box, [HVDRUN, "-np", 1, "--torch-store", who, python, "-B", script, *map(str, words), times], env=env)
        result = job.wait(400)
        if result.status != 0:
            raise RuntimeError(f"{who} with {words} failed{result.describe()}")
        return [tuple(map(float, open(os.path.join(times, name), encoding="utf-8").read().split())) for name in os.listdir(times)]
    finally:
        if job is not None and job.popen.poll() is None:
            job.kill()
        box.kill_strays()
        box.close()


def measure(python, who, size):
    """The last times of all ranks: (out of init_process_group, out of the barrier)."""
    times = run(python, who, WORKER, [size], {"OMP_NUM_THREADS": "1"})
    return max(one[0] for one in times), max(one[1] for one in times)


# SERVER CLIENTS FOLDER: speaks the dialect of torch 1.13 or of 2.2 and newer, as the installed one does
CLIENTS = """if True:
    import os, re, resource, socket, struct, sys, time
    import importlib.metadata, subprocess
    who, size, output = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    version = tuple(map(int, re.match(r"(\\d+)\\.(\\d+)", importlib.metadata.version("torch")).groups()))
    new = version >= (2, 2)
    ADD, SET, WAIT = (4, 1, 6) if new else (3, 0, 5)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    text = lambda word: struct.pack("Q", len(word)) + word
    add = lambda key: bytes([ADD]) + text(key) + struct.pack("q", 1)
    server = None
    if who == "rank0":
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        server = subprocess.Popen([sys.executable, "-c", "import sys, torch.distributed as dist\\n"
            "store = dist.TCPStore('127.0.0.1', int(sys.argv[1]), int(sys.argv[2]) + 1, True, wait_for_workers=False)\\n"
            "print('ready', flush=True)\\nsys.stdin.read()", str(port), str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        server.stdout.readline()
        at = ("127.0.0.1", port)
    else:
        at = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    def listener():
        inode = next(line.split()[9] for table in ("tcp", "tcp6") for line in open(f"/proc/net/{table}")
                     if line.split()[1].endswith(f":{at[1]:04X}") and line.split()[3] == "0A")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if any(os.readlink(f"/proc/{pid}/fd/{fd}") == f"socket:[{inode}]" for fd in os.listdir(f"/proc/{pid}/fd")):
                    return pid
            except OSError:
                pass
    pid = server.pid if server else listener()
    pss = lambda: int(re.search(r"^Pss:\\s+(\\d+)", open(f"/proc/{pid}/smaps_rollup").read(), re.M).group(1))
    before, begun, idle, clients = pss(), time.monotonic(), [], []
    for rank in range(size):
        clients.append(socket.create_connection(at))
        if not new:
            idle.append(socket.create_connection(at))
        clients[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        clients[-1].sendall((b"\\0" + struct.pack("I", 0x3C85F7CE) if new else b"") + add(b"init/"))
    for one in clients:
        one.recv(8, socket.MSG_WAITALL)
    joined = time.monotonic()
    for one in clients:
        one.sendall(add(b"/barrier"))
    for one in clients:
        if struct.unpack("q", one.recv(8, socket.MSG_WAITALL))[0] == size:
            one.sendall(bytes([SET]) + text(b"/last") + text(b"1"))
        one.sendall(bytes([WAIT]) + struct.pack("Q", 1) + text(b"/last"))
    for one in clients:
        assert one.recv(1) == b"\\0"
    with open(f"{output}/all", "w") as file:
        file.write(f"{joined - begun} {time.monotonic() - joined} {(pss() - before) / size}")
    if server:
        server.kill()
"""


def clients(python, who, size):
    """(until all are connected, until all are through the barrier, KiB for each)."""
    return run(python, who, CLIENTS, [who, size])[0]


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="values of each kind (10)")
    parser.add_argument("--ranks", type=int, nargs="*", default=[16, 64], help="numbers of ranks (16 64)")
    parser.add_argument("--clients", type=int, nargs="*", default=[4000], help="numbers of clients without torch (4000)")
    options = parser.parse_args()
    bench.begin()
    python, has_torch = find_python()
    if not has_torch:
        sys.exit("torch_store.py: there is no torch on this machine (Debian: apt install python3-torch)")
    report = bench.Report("torch_store", options)
    for size in options.clients:
        found = {"rank0": [], "agent": []}
        for number in range(options.rounds):
            bench.say(f"{size} clients: round {number + 1} of {options.rounds}")
            for who in sorted(found, reverse=number % 2 == 1):
                found[who].append(clients(python, who, size))
        rows = [[who, len(times), *(bench.pair([one[i] for one in times]) for i in range(3))] for who, times in found.items()]
        report.add(f"{size} clients", "Seconds, and KiB for each client, median / worst.\n\n" + bench.table(
            ["the store of", "n", "connected", "barrier", "memory"], rows), f"clients_{size}", found)
    for size in options.ranks:
        found = {"rank0": [], "agent": []}
        for number in range(options.rounds):
            bench.say(f"{size} ranks: round {number + 1} of {options.rounds}")
            for who in sorted(found, reverse=number % 2 == 1):
                found[who].append(measure(python, who, size))
        rows = [[who, len(times), bench.pair([one[0] for one in times]), bench.pair([one[1] for one in times])]
                for who, times in found.items()]
        report.add(f"{size} ranks", "Seconds, median / worst.\n\n" + bench.table(
            ["--torch-store", "n", "start to init_process_group", "start to first barrier"], rows), str(size), found)
    report.finish()


if __name__ == "__main__":
    main()
