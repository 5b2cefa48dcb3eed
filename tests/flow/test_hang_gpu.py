# SPDX-License-Identifier: Apache-2.0
"""A job that hangs or not, by what GPUs and NCCL say (docs/hangs.md). The library of NVIDIA is that of tests/gpu/fake,
and NCCL is a server that gives answers of the real one (tests/fuzz/corpus/ras)."""
# ctest waits

import json
import os
import re
import socket
import sys
import time

from rig import SOURCE, main, patient
from test_gpus import BUSY, Gpus

# Rank 0 answers as NCCL does, in the manner of the first argument. All ranks wait for ever, or for some seconds.
NCCL = r"""
import os, socket, sys, threading, time
rank, manner, folder, seconds = int(os.environ["RANK"]), sys.argv[1], sys.argv[2], float(sys.argv[3])
pids = []

def answer(number):
    text = recorded.replace('"pid": 604', f'"pid": {pids[0]}').replace('"pid": 605', f'"pid": {pids[1]}')
    text = text.replace("192.0.2.2", "127.0.0.1")
    return text.replace('"AllReduce": 899', f'"AllReduce": {899 - number}') if manner == "goes on" else text

def serve(listener):
    number = 0
    while True:
        peer, _ = listener.accept()
        number += 1
        asked = b""
        while not asked.endswith(b"STATUS\n"):
            asked += peer.recv(1000)
        if manner == "silent":
            kept.append(peer)
            continue
        try:
            if manner == "garbage":
                peer.sendall(b"\0\xff{]" * 1000)
            elif manner == "flood":
                while True:
                    peer.sendall(b"x" * 65536)
            else:
                if manner == "spreads":  # NCCL asks its other ranks over TCP
                    spread.sendall(b"x" * 200000)
                peer.sendall(answer(number).encode())
        except OSError:
            pass
        peer.close()

def all_reduce():
    time.sleep(seconds)

def load():
    time.sleep(seconds)

def take(door):
    peer, buffer = door.accept()[0], bytearray(65536)
    peer.settimeout(5)  # shorter than what counts as a wait for data alone
    while peer.recv_into(buffer):
        pass

if manner == "spreads" and rank == 1:
    door = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=take, args=(door,), daemon=True).start()
    with open(os.path.join(folder, "door"), "w") as file:
        file.write(str(door.getsockname()[1]))
with open(os.path.join(folder, f"pid.{rank}.new"), "w") as file:
    file.write(str(os.getpid()))
os.rename(os.path.join(folder, f"pid.{rank}.new"), os.path.join(folder, f"pid.{rank}"))
kept = []
if rank == 0:
    for other in range(2):
        while not os.path.exists(os.path.join(folder, f"pid.{other}")):
            time.sleep(0.01)
        pids.append(open(os.path.join(folder, f"pid.{other}")).read())
    if manner == "spreads":
        spread = socket.create_connection(("127.0.0.1", int(open(os.path.join(folder, "door")).read())))
    recorded = open(os.path.join(sys.argv[4], "hung")).read()
    host, port = os.environ["NCCL_RAS_ADDR"].split(":")
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen()
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
print("ready", flush=True)
load() if rank == 1 else all_reduce()
"""


class Nccl(Gpus):

    def run_nccl(self, manner, *options, seconds=600):
        script = self.write("nccl.py", NCCL)
        with socket.socket() as held:  # nobody else gets it before the rank; on a host with GPUs, hvdrun does this itself
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            held.bind(("127.0.0.1", 0))
            address = f"localhost:{held.getsockname()[1]}"
            return self.run_job("-np", 2, "--grace", 1, "-x", f"NCCL_RAS_ADDR={address}", *options, sys.executable, "-S", script,
                                manner, os.path.dirname(script), seconds, os.path.join(SOURCE, "tests/fuzz/corpus/ras"),
                                timeout=patient(60), env={"LD_LIBRARY_PATH": ""})

    def test_who_is_behind(self):
        result = self.run_nccl("hung", "--hang-timeout", 2)
        self.expect(result, 119)
        self.expect_said(result, r"the job hangs: no rank has shown progress for --hang-timeout 2.0 s; rank 1 on \S+ is "
                                 r"behind: 899 of 900 allreduces; in nccl.py:\d+ load")

    def test_the_answer_is_evidence(self):
        """The folder has what NCCL says, byte for byte, and the story of the hang names that file."""
        self.expect(self.run_nccl("hung", "--hang-timeout", 2, "--evidence", self.box.path("evidence")), 119)
        folder = self.box.path("evidence", os.listdir(self.box.path("evidence"))[0])
        facts = self.read_json(os.path.join(folder, "facts.json"))
        self.assertEqual((facts["rank"], facts["rank_by"], facts["hosts"][0]["ras"]), (1, "nccl", "ras_0.json"))
        with open(os.path.join(SOURCE, "tests/fuzz/corpus/ras/hung")) as file:
            communicators = json.loads("{" + file.read().partition("{")[2])["communicators"]
        answer = self.read_json(os.path.join(folder, "ras_0.json"))
        self.assertEqual([rank["collective_counts"] for rank in answer["communicators"][0]["ranks"]],
                         [rank["collective_counts"] for rank in communicators[0]["ranks"]])
        self.assertIn("ras_0.json has NCCL's own numbers", self.run_job("explain", folder).stdout)

    def test_questions_to_nccl_are_no_progress(self):
        """Its answers go from rank to rank over TCP. That must not keep the job going."""
        self.expect(self.run_nccl("spreads", "--hang-timeout", 2), 119)

    def test_operations_are_progress(self):
        """Only while they go on."""
        self.expect(self.run_nccl("goes on", "--hang-timeout", 5, seconds=11), 0)

    def test_bad_answers(self):
        """The hang is found all the same, by other evidence."""
        for manner in ("silent", "garbage", "flood"):
            with self.subTest(manner):
                result = self.run_nccl(manner, "--hang-timeout", 2, "--evidence", self.box.path(manner))
                self.expect(result, 119)
                self.expect_not_said(result, "allreduces")
                folder, = os.listdir(self.box.path(manner))
                self.assertEqual([name for name in os.listdir(self.box.path(manner, folder)) if "ras" in name], [])
                for rank in range(2):
                    os.unlink(self.box.path(f"pid.{rank}"))

    def test_the_address(self):
        """On a host with GPUs, all ranks have one, and another job has another one. That of the user stays."""
        show = ("sh", "-c", "echo $NCCL_RAS_ADDR")
        addresses = {line.rpartition(":")[2] for line in self.run_job("-np", 3, *show).lines}
        self.assertEqual(len(addresses), 1, addresses)
        other = {line.rpartition(":")[2] for line in self.run_job("-np", 1, *show).lines}
        if addresses == {""}:
            self.assertFalse(os.path.exists("/dev/nvidiactl"))
        else:
            self.assertNotEqual(addresses, other)
        own = self.run_job("-np", 1, "-x", "NCCL_RAS_ADDR=localhost:7", *show)
        self.assertIn("localhost:7", own.stdout)


class Gpu(Gpus):

    def run_gpu(self, limit, script):
        return self.start("-np", 2, "--grace", 1, "--hang-timeout", limit, "sh", "-c", script, env=self.environment())

    def pids(self, job):
        job.wait_output(r"pid \d+", count=2)
        return [int(pid) for pid in re.findall(r"pid (\d+)", job.output())]

    def test_memory_traffic_is_progress(self):
        """The ranks wait for the GPU. As soon as it stands still, the job hangs. Its use stays at 100 %."""
        self.gpus(BUSY)
        job = self.run_gpu(5, 'echo "pid $$"; exec sleep 600')
        first, second = self.pids(job)
        processes = [(0, first, 1), (0, second, 1)]
        self.gpus(BUSY, processes=processes)
        time.sleep(11)
        self.assertIsNone(job.popen.poll())
        self.gpus(dict(BUSY, use=100, memory_use=0, power=122400), processes=processes)
        self.expect(job.wait(patient(60)), 119)

    def test_use_is_no_progress(self):
        self.gpus(dict(BUSY, use=100, memory_use=0, power=122400))
        job = self.run_gpu(3, 'echo "pid $$"; exec sleep 600')
        first, second = self.pids(job)
        self.gpus(dict(BUSY, use=100, memory_use=0, power=122400), processes=[(0, first, 1), (0, second, 1)])
        self.expect(job.wait(patient(60)), 119)

    def test_a_driver_that_hangs(self):
        self.gpus(BUSY, faults=[("slow", "nvmlInit_v2", 600000)])
        self.expect(self.run_gpu(3, 'echo "pid $$"; exec sleep 600').wait(patient(60)), 119)


if __name__ == "__main__":
    main()
