# SPDX-License-Identifier: Apache-2.0
"""Which libraries the ranks have loaded: a warning if they differ, the report, and `explain`."""
# ctest waits

import json
import os
import re
import signal
import struct
import sys

from hostile import Hostile
from job_commands import JobCommands
from rig import main, mpi_worker, wait_until

# Maps the files in the variable LOAD_rank, and ends when the gate is there. "!" before one: it is deleted then; "?": it
# is not read.
LOAD = """\
import mmap, os, sys, time
kept = []
for path in os.environ["LOAD_" + os.environ["RANK"]].split():
    with open(path.lstrip("!?"), "rb") as file:
        kept.append(mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ))
    if not path.startswith("?"):
        bytes(kept[-1])
    if path.startswith("!"):
        os.unlink(path[1:])
print("ready", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
sys.exit(int(os.environ.get("END_" + os.environ["RANK"], 0)))
"""

ORDER = "<" if sys.byteorder == "little" else ">"
PAGE = 65536


def library(build_id):
    """A file in the form of ELF, with a build id."""
    name = b"GNU\0"
    note = struct.pack(ORDER + "III", len(name), len(build_id), 3) + name + build_id
    header = b"\x7fELF" + bytes([2, 1 if ORDER == "<" else 2, 1]) + bytes(9)
    header += struct.pack(ORDER + "HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    header += struct.pack(ORDER + "IIQQQQQQ", 4, 4, 120, 120, 120, len(note), len(note), 4)
    return (header + note).ljust(PAGE, b"\0")


ONE, OTHER = library(b"\x11" * 20), library(b"\x22" * 20)


class Loads(JobCommands):

    def make(self, path, content):
        path = self.box.path(*path.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def begin(self, *loads, before=(), ends=(), options=(), apart=False):
        """A job whose ranks have loaded these files, and the function that lets it end. `apart`: each is a program."""
        gate, let_go = self.box.gate()
        program = [*before, sys.executable, self.write("load.py", LOAD), gate]
        env = {f"LOAD_{rank}": load for rank, load in enumerate(loads)} | {f"END_{rank}": code for rank, code in ends}
        words = ["-np", len(loads), *program]
        if apart:
            words = [word for rank in range(len(loads)) for word in ([":"] if rank else []) + ["-np", 1, *program]]
        job = self.start("-v", "--report", self.box.path("report.json"), *options, *words, env=env)
        job.wait_output("ready", count=len(loads))
        return job, let_go

    def wait_look(self, job):
        """A look at all ranks. Only the second one, 20 s after the start, may have time for all."""
        job.wait_output("the look at the libraries of the ranks is complete", "stderr", timeout=60)

    def end(self, job, let_go):
        """What the report has, and what was said."""
        let_go()
        result = self.expect(job.wait(), 0)
        with open(self.box.path("report.json"), encoding="utf-8") as file:
            seen = json.load(file).get("libraries")
        return seen, re.findall(r"^hvdrun: (.*librar(?:y|ies).*); the report shows all \(--report\)$", result.stderr, re.M)

    def expect_nothing_said(self, *loads, **options):
        job, let_go = self.begin(*loads, **options)
        self.wait_look(job)
        seen, said = self.end(job, let_go)
        self.assertEqual((said, [] if seen is None else seen["differences"]), ([], []))
        return seen

    def expect_said(self, job, let_go, line):
        job.wait_output("the report shows all", "stderr", timeout=60)
        self.wait_look(job)
        seen, said = self.end(job, let_go)
        self.assertEqual((said, seen["differences"], seen["missing"]), ([line], [line], []))
        return seen["files"]


class Libraries(Loads):

    # what is the same

    def test_nothing_of_that_kind(self):
        self.assertIsNone(self.expect_nothing_said("", ""))

    def test_what_is_not_compared(self):
        """Copies; stubs; a second CUDA runtime in a process; files that are no library; other names."""
        rubbish = [self.make(f"{i}/libnccl.so.2", bytes) for i, bytes in
                   enumerate((b"\x7fELF" + b"\xff" * 200, b"#!/bin/sh\n", b"\x7fELF" + bytes(60)))]
        copies = [self.make("a/libhvd.so.0.1", ONE), self.make("b/libhvd.so.0", ONE)]
        stub, real = self.make("stubs/libcuda.so", ONE), self.make("libcuda.so.580.1", OTHER)
        runtimes = [self.make("c/libcudart.so.12.1.105", ONE), self.make("c/libcudart-d0da41ae.so.11.0", OTHER)]
        others = [self.make("o/libmpi_cxx.so.40", ONE), self.make("o/libncclx.so.1", OTHER), self.make("o/libmpi.sox", ONE)]
        everything = " ".join([stub, real, *runtimes, *others])
        seen = self.expect_nothing_said(f"{rubbish[0]} {everything} {copies[0]}", f"{rubbish[1]} {everything} {copies[1]}",
                                        f"{rubbish[2]} {everything}")
        self.assertEqual({file["kind"] for file in seen["files"]}, {"nccl", "cuda", "cudart", "hvd"})
        self.assertEqual([(file["version"], file["build_id"], file["path"], file["ranks"]) for file in seen["files"]
                          if file["kind"] == "hvd"],
                         [("0.1", "11" * 20, copies[0], [0]), ("0", "11" * 20, copies[1], [1])])

    def test_programs_may_differ(self):
        self.expect_nothing_said(self.make("a/libmpi.so.40.1", ONE), self.make("b/libmpi.so.12.2", OTHER), apart=True)

    # what differs

    def test_one_rank_differs(self):
        a, b = self.make("a/libnccl.so.2", ONE), self.make("b/libnccl.so.2", OTHER)
        job, let_go = self.begin(a, a, b)
        files = self.expect_said(job, let_go, "ranks of one program have loaded different NCCL libraries: ranks 0-1: "
                                              f"{a} (build id 111111111111); rank 2: {b} (build id 222222222222)")
        self.assertEqual([file["ranks"] for file in files], [[0, 1], [2]])

    def test_two_in_one_process(self):
        a, b = self.make("a/libmpi.so.40.30.4", ONE), self.make("b/libmpich.so.12.2.2", OTHER)
        job, let_go = self.begin(f"{a} {b}", f"{a} {b}", before=["sh", "-c", '"$@"; exit $?', "sh"])  # and below a shell
        self.expect_said(job, let_go, f"ranks 0-1 have two MPI libraries in one process: {a} (build id 111111111111) and "
                                      f"{b} (build id 222222222222)")

    def test_an_update_while_ranks_start(self):
        """Both have loaded the same path, but not the same file. The first one is gone."""
        path = self.make("libtorch_cpu.so", ONE)
        os.link(path, path + ".new")
        gate, let_go = self.box.gate()
        program = ["sh", "-c", f'[ "$RANK" = 0 ] || while [ ! -e {path}.2 ]; do sleep 0.05; done; exec "$@"', "sh",
                   sys.executable, self.write("load.py", LOAD), gate]
        job = self.start("-v", "--report", self.box.path("report.json"), "-np", 2, *program,
                         env={"LOAD_0": "!" + path, "LOAD_1": path})
        wait_until(lambda: not os.path.exists(path), "rank 0 has its library")
        os.rename(self.make("update", OTHER), path)
        self.make("libtorch_cpu.so.2", b"")
        job.wait_output("ready", count=2)
        self.expect_said(job, let_go, "ranks of one program have loaded different PyTorch libraries: rank 0: "
                                      f"{path} (build id 111111111111, deleted); rank 1: {path} (build id 222222222222)")

    # a failure

    def test_a_failure(self):
        a = self.make("a/libmpi.so.40.30.4", ONE)
        evidence = self.box.path("evidence")
        job, let_go = self.begin(a, a, a, ends=[(2, 3)], options=["--evidence", evidence, "--grace", 1],
                                 before=["sh", "-c", '[ "$RANK" = 2 ] || set -- "$1" "$2" /nonexistent; exec "$@"', "sh"])
        self.wait_look(job)
        let_go()
        self.expect(job.wait(), 3)
        folder, = os.listdir(evidence)
        with open(os.path.join(evidence, folder, "report.json"), encoding="utf-8") as file:
            seen = json.load(file)["libraries"]
        self.assertEqual([(file["path"], file["ranks"]) for file in seen["files"]], [(a, [0, 1, 2])])
        for words in ([], [os.path.join(evidence, folder)]):
            self.assertRegex(self.ask("explain", *words).stdout,
                             rf"\nwhat the ranks have loaded:\n    ranks 0-2: MPI {a} \(build id 111111111111\)\n")

    def test_real_programs(self):
        for mpi, name in (("openmpi", r"/libmpi\.so\.40[.0-9]*$"), ("mpich", r"/libmpi(ch)?\.so\.12[.0-9]*$")):
            with self.subTest(mpi=mpi):
                report = self.box.path("report.json")
                job = self.start("-v", "--report", report, "-np", 2, mpi_worker("mpi_hello", mpi), 1 << 60)
                self.wait_look(job)
                self.ask_only("stop")
                self.assertNotIn("different", job.wait().stderr)
                with open(report, encoding="utf-8") as file:
                    found, = (file for file in json.load(file)["libraries"]["files"] if file["kind"] == "mpi")
                self.assertEqual(found["ranks"], [0, 1])
                self.assertRegex(found["path"], name)


class Silent(Loads, Hostile):

    def test_a_server_that_does_not_answer(self):
        """The kernel would hold the agent if it read that memory, as it would hold the rank."""
        if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
            self.skipTest("no right to mount with /dev/fuse")
        folder, pidfile, library = self.box.path("mounted"), self.box.path("fuse.pid"), self.make("libnccl.so.2", b"")
        os.mkdir(folder)
        server = os.path.join(os.path.dirname(os.path.abspath(__file__)), "silent_fuse.py")
        mount = (f"{sys.executable} {server} {folder} {pidfile} && while test ! -s {pidfile}; do sleep 0.1; done && "
                 f"mount --bind {folder}/batches {library}")
        gate, let_go = self.box.gate()
        job = self.start_in_place(mount, "-v", "--report", self.box.path("report.json"), "-np", 2, sys.executable, self.write("load.py", LOAD), gate,
                                  env={"LOAD_0": f"?{library}", "LOAD_1": self.make("a/libmpi.so.40", ONE)})
        try:
            job.wait_output("ready", count=2)
            self.wait_look(job)
            seen, _ = self.end(job, let_go)
            self.assertEqual([(file["kind"], file["build_id"]) for file in seen["files"]],
                             [("nccl", None), ("mpi", "11" * 20)])
        finally:
            with open(pidfile, encoding="ascii") as file:
                os.kill(int(file.read()), signal.SIGKILL)


if __name__ == "__main__":
    main()
