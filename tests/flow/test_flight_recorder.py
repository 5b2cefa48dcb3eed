# SPDX-License-Identifier: Apache-2.0
"""The dumps of PyTorch's flight recorder and the answer of NCCL in the evidence of a failure (docs/failures.md).
PyTorch is a program that makes the FIFO and the file as PyTorch does."""
# ctest waits
# ctest warm nightly

import os
import pickle
import sys

from rig import Flow, main, patient

# MANNER of rank 1: dumps; large: more than is kept; never: takes the byte and writes nothing; torn: writes a part;
# none: has no FIFO; wait: dumps, and no rank fails.
TORCH = r"""
import os, pickle, sys, threading, time
rank, manner = os.environ["RANK"], sys.argv[1] if os.environ["RANK"] == "1" else "dumps"
prefix = os.environ.get("TORCH_FR_DUMP_TEMP_FILE") or os.environ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"]

def dump():
    print("ProcessGroupNCCL preparing to dump debug info", file=sys.stderr, flush=True)
    entries = [{"collective_seq_id": 7, "profiling_name": "nccl:all_reduce"}]
    if manner == "large":
        entries.append("x" * (5 << 20))
    whole = pickle.dumps({"version": "2.10", "entries": entries, "rank": rank}, 2)
    with open(prefix + rank, "wb") as file:
        file.write(whole[:50])
        file.flush()
        time.sleep(0.5)
        file.write(b"" if manner == "torn" else whole[50:])

def serve(fifo):
    while True:
        try:
            if os.read(fifo, 128) and manner != "never":
                dump()
        except BlockingIOError:
            pass
        time.sleep(0.1)

if manner != "none":
    name = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + rank + ".pipe"
    if os.path.exists(name):
        os.unlink(name)
    os.mkfifo(name)
    threading.Thread(target=serve, args=(os.open(name, os.O_RDONLY | os.O_NONBLOCK),), daemon=True).start()
print("size", os.environ.get("TORCH_FR_BUFFER_SIZE"), flush=True)
if rank == "2" and sys.argv[1] != "wait":
    time.sleep(1)
    sys.exit("row 7 is broken")

def load():
    print("no more data", file=sys.stderr, flush=True)
    time.sleep(1000)

load() if rank == "1" else time.sleep(1000)
"""
NAMES = ("TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE")
SHOW = ("sh", "-c", "env | grep -E '^TORCH_(FR|NCCL_DEBUG|NCCL_TRACE)' | sort")


class FlightRecorder(Flow):

    def run_torch(self, manner, *options):
        result = self.start("-np", 3, "--grace", 1, "-H", "a:2,b:1", "--transport", "local", "--evidence",
                            self.box.path("evidence"), *options, sys.executable, self.write("train.py", TORCH),
                            manner).wait(patient(60))
        self.expect(result, 1)
        folder, = os.listdir(self.box.path("evidence"))
        folder = self.box.path("evidence", folder)
        facts = self.read_json(os.path.join(folder, "facts.json"))
        return folder, {one["rank"]: one for one in facts["flight_recorder"]}, result

    def expect_dump(self, folder, rank):
        path = os.path.join(folder, f"flight_recorder/rank_{rank}")
        with open(path, "rb") as file:
            self.assertEqual(pickle.load(file)["rank"], str(rank))
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)

    def test_the_dumps_of_all_ranks(self):
        folder, ranks, result = self.run_torch("dumps")
        self.assertIn("size 2000", result.stdout)
        self.assertEqual(ranks, {0: {"rank": 0, "host": "a", "file": "flight_recorder/rank_0"},
                                 1: {"rank": 1, "host": "a", "file": "flight_recorder/rank_1"}})
        self.expect_dump(folder, 0)
        self.expect_dump(folder, 1)
        self.assertEqual(sorted(os.listdir(os.path.join(folder, "flight_recorder"))), ["rank_0", "rank_1"])
        told = self.run_job("explain", folder)
        self.assertIn("flight_recorder has the last collectives of 2 ranks", told.stdout)

    def test_a_dump_that_does_not_come(self):
        for manner, why in (("never", "it did not come in time"), ("torn", "it did not come in time"),
                            ("large", "it has more than 4 MiB")):
            with self.subTest(manner):
                folder, ranks, _ = self.run_torch(manner)
                self.assertEqual(ranks[1], {"rank": 1, "host": "a", "missing": why})
                self.expect_dump(folder, 0)
                self.assertFalse(os.path.exists(os.path.join(folder, "flight_recorder/rank_1")))
            os.rename(self.box.path("evidence"), self.box.path(manner))

    def test_a_rank_without_a_fifo(self):
        folder, ranks, _ = self.run_torch("none")
        self.assertEqual(list(ranks), [0])
        self.expect_dump(folder, 0)

    def test_a_hang(self):
        """What a rank writes because hvdrun asks it is no progress."""
        result = self.start("-np", 4, "--grace", 1, "--hang-timeout", 2, "--evidence", self.box.path("found"), sys.executable,
                            self.write("train.py", TORCH), "wait").wait(patient(60))
        self.expect(result, 119)
        self.assertIn("preparing to dump", result.stderr)
        self.expect_not_said(result, "progress again")
        folder, = os.listdir(self.box.path("found"))
        self.expect_dump(self.box.path("found", folder), 0)
        self.expect_dump(self.box.path("found", folder), 1)
        told = self.run_job("explain", self.box.path("found", folder)).stdout
        self.assertIn("    its stderr: no more data\n", told)
        self.assertNotIn("preparing", told)

    def test_places_of_the_user(self):
        """hvdrun looks where the user wants the files, under new names and old ones, and leaves them there. It does not
        take a file of an earlier failure."""
        os.makedirs(self.box.path("mine"))
        own = self.box.path("mine", "trace_")
        for name in ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"):
            with self.subTest(name):
                self.write("mine/trace_1", "an old one.")
                folder, ranks, _ = self.run_torch("never", "-x", f"{name}={own}", "-x", f"TORCH_NCCL_DEBUG_INFO_PIPE_FILE={own}")
                self.expect_dump(folder, 0)
                self.assertIn("missing", ranks[1])
                self.assertTrue(os.path.exists(own + "0"))
            os.rename(self.box.path("evidence"), self.box.path(name))

    def test_a_link_is_not_followed(self):
        os.makedirs(self.box.path("mine"))
        own = self.box.path("mine", "trace_")
        os.symlink(self.write("secret", "of the user."), own + "1")
        _, ranks, _ = self.run_torch("never", "-x", f"TORCH_FR_DUMP_TEMP_FILE={own}")
        self.assertIn("missing", ranks[1])

    def variables(self, *options):
        return [line.rpartition(">:")[2] for line in self.run_job("-np", 1, *options, *SHOW).stdout.splitlines()]

    def test_the_variables(self):
        """Only in jobs that may need them, and only what the user has not set."""
        self.assertEqual(self.variables(), [])
        for options in (("--evidence", self.box.path("e")), ("--hang-timeout", 60), ("--expect", "step:60"), ("--dump-on-failure",)):
            lines = self.variables(*options)
            self.assertEqual([line.partition("=")[0] for line in lines], list(NAMES), options)
        for limit in (("--hang-timeout", 60), ("--expect", "step:60")):
            self.assertEqual(self.variables(*limit, "--on-hang", "warn"), [])
        for name in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"):
            lines = self.variables("--dump-on-failure", "-x", f"{name}=9")
            self.assertEqual([line for line in lines if "BUFFER" in line], [f"{name}=9"])
        lines = self.variables("--dump-on-failure", "-x", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=")
        self.assertIn("TORCH_NCCL_DEBUG_INFO_PIPE_FILE=", lines)


if __name__ == "__main__":
    main()
