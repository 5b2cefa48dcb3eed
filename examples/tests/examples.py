#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one example and checks its output: examples.py --launcher hvdrun --build build train"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[1]
SKIPPED = 77
TIME_LIMIT = 200  # s; a run that takes longer hangs

LAUNCHER, BUILD = "", pathlib.Path()


def run(*words, env=None):
    """Runs the launcher; returns (status, output)."""
    more = {}
    command = [LAUNCHER]
    if "mpirun" in pathlib.Path(LAUNCHER).name:
        command.append("--oversubscribe")
        more = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
        if words[0].startswith("-") and ":" in words:
            command.pop()  # with several programs the option belongs to each of them
    ran = subprocess.run([*command, *map(str, words)], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         timeout=TIME_LIMIT, env={**os.environ, **more, **(env or {})})
    return ran.returncode, ran.stdout


class Example(unittest.TestCase):
    def run_well(self, *words, **more):
        status, output = run(*words, **more)
        self.assertEqual(status, 0, output)
        return output

    def number(self, pattern, output):
        found = re.findall(pattern, output)
        self.assertEqual(len(found), 1, f"{pattern} once in:\n{output}")
        return float(found[0])


class Train(Example):
    def train(self, ranks, *options):
        output = self.run_well("-np", ranks, BUILD / "examples/train/train", *options)
        self.assertIn(f"{ranks} rank", output)
        return (self.number(r"final training loss ([\d.]+)", output),
                self.number(r"held-out accuracy ([\d.]+) %", output))

    def test_same_result_for_any_number_of_ranks(self):
        loss, accuracy = self.train(1)
        self.assertLess(loss, 0.05)
        self.assertGreaterEqual(accuracy, 95)
        for ranks in (2, 3):
            other, other_accuracy = self.train(ranks)
            self.assertAlmostEqual(loss, other, delta=1e-4, msg=f"{ranks} ranks")
            self.assertAlmostEqual(accuracy, other_accuracy, delta=0.3)

    def test_uneven_shares_and_ranks_without_any(self):
        # early in training the loss is large, so a lost or doubled image would change it
        for batch, ranks in ((7, 3), (2, 3)):
            options = ("--epochs", 1, "--lr", 0.02, "--batch", batch)
            self.assertAlmostEqual(self.train(1, *options)[0], self.train(ranks, *options)[0],
                                   delta=2e-6)

    def test_seed_matters(self):
        short = ("--epochs", 1)
        self.assertNotEqual(self.train(2, *short)[0], self.train(2, *short, "--seed", 2)[0])

    def test_wrong_use_prints_one_message(self):
        program = BUILD / "examples/train/train"
        for words, status, text in (
                (["--epochs", "0"], 2, "'0' is not a valid value for --epochs"),
                (["--lr", "nan"], 2, "'nan' is not a valid value for --lr"),
                (["more"], 2, "unexpected argument 'more'"),
                (["--data", "/nowhere/digits.csv"], 1, "cannot read the digits from /nowhere/"),
                (["--data", str(EXAMPLES / "README.md")], 1, "README.md, line 1: expected 64 numb")):
            with self.subTest(words=words):
                got, output = run("-np", 2, program, *words)
                self.assertEqual(got, status, output)
                self.assertEqual(output.split("hvdrun: rank")[0].count(text), 1, output)  # the block quotes it


class BenchAllreduce(Example):
    def rows(self, ranks, *options):
        output = self.run_well("-np", ranks, BUILD / "examples/bench_allreduce/bench_allreduce", "-n", 2, "-w", 1, *options)
        self.assertIn(f"# {ranks} rank", output)
        self.assertEqual(output.count("average bus bandwidth"), 1, output)
        return [line.split(":", 1)[1].split() for line in output.splitlines() if "stdout>: " in line]

    def test_table(self):
        rows = self.rows(3, "-b", "1K", "-e", "4M", "-f", 8)
        self.assertEqual([row[:4] for row in rows],
                         [[str(size), str(size // 4), "float32", "sum"] for size in (1 << 10, 1 << 13, 1 << 16, 1 << 19, 1 << 22)])
        for row in rows:
            time, algbw, busbw = map(float, row[4:7])
            self.assertAlmostEqual(algbw, int(row[0]) / time / 1e3, delta=0.002)  # us to GB/s
            self.assertAlmostEqual(busbw, algbw * 4 / 3, delta=0.002)
            self.assertEqual(row[7], "0")

    def test_types_and_operations(self):
        for kind in "float16 bfloat16 float32 float64 int32 int64".split():
            for op in "sum average min max product adasum".split():
                if op == "adasum" and kind not in ("float32", "float64"):
                    continue
                with self.subTest(kind=kind, op=op):
                    rows = self.rows(3, "-d", kind, "-o", op, "-b", 1, "-e", "1K", "-f", 1000)
                    self.assertEqual([row[2:4] + row[7:] for row in rows], [[kind, op, "0"]] * 2)

    def test_one_rank(self):
        self.assertEqual([row[6:] for row in self.rows(1, "-e", 8)], [["0.000", "0"]])

    def test_wrong_use_prints_one_message(self):
        for words in (["-d", "float8"], ["-o", "mean"], ["-b", "0"], ["-e", "1T"], ["-f", "1"], ["-n", "0"], ["-x"], ["more"],
                      ["-b", "9", "-e", "8"], ["-n"], ["-b", "nan"]):
            with self.subTest(words=words):
                status, output = run("-np", 2, BUILD / "examples/bench_allreduce/bench_allreduce", *words)
                self.assertEqual(status, 2, output)
                self.assertEqual(output.split("hvdrun: rank")[0].count("usage: bench_allreduce"), 1, output)


class Mpmd(Example):
    def test_two_programs_in_one_world(self):
        folder = BUILD / "examples/mpmd"
        output = self.run_well("-np", 1, folder / "collect", ":", "-np", 3, folder / "sample")
        self.assertIn("3 samplers found pi = 3.141592654", output)

    def test_wrong_order_of_programs(self):
        folder = BUILD / "examples/mpmd"
        status, output = run("-np", 1, folder / "sample", ":", "-np", 1, folder / "collect")
        self.assertNotEqual(status, 0)
        self.assertIn("start it as", output)


class Plain(Example):
    def test_every_rank_once(self):
        output = self.run_well("-np", 3, EXAMPLES / "plain/worker.sh")
        for rank in range(3):
            self.assertEqual(output.count(f"I am rank {rank} of 3, number {rank} of 3 on "), 1, output)
        for name in ("RANK=0", "WORLD_SIZE=3", "MASTER_ADDR=", "MASTER_PORT=", "OMPI_COMM_WORLD_SIZE=3"):
            self.assertEqual(len(re.findall(rf"(?<![A-Z_]){name}", output)), 1, output)

    def test_without_launcher(self):
        bare = {name: value for name, value in os.environ.items() if not name.startswith("HOROVOD_")}
        ran = subprocess.run([EXAMPLES / "plain/worker.sh"], capture_output=True, text=True, env=bare,
                             timeout=TIME_LIMIT)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("start it with hvdrun", ran.stderr)


class Config(Example):
    def test_options_come_from_the_file(self):
        output = self.run_well("--config-file", EXAMPLES / "config.ini", EXAMPLES / "plain/worker.sh")
        self.assertRegex(output, r"(?m)^0@[^|]+\|I am rank 0 of 2,")
        self.assertRegex(output, r"(?m)^1@[^|]+\|I am rank 1 of 2,")
        self.assertRegex(output, r"(?m)\|OMP_NUM_THREADS=1$")

    def test_flags_win(self):
        output = self.run_well("--config-file", EXAMPLES / "config.ini", "-np", 3,
                               EXAMPLES / "plain/worker.sh")
        self.assertIn("I am rank 2 of 3", output)


class Script(Example):
    MODULE = ""

    def python(self):
        """This interpreter, or the distribution's if only that one has the module."""
        for path in (sys.executable, "/usr/bin/python3"):
            have = [path, "-c", f"import importlib.util, sys; sys.exit(not importlib.util.find_spec('{self.MODULE}'))"]
            if os.access(path, os.X_OK) and subprocess.run(have, check=False).returncode == 0:
                return path
        return sys.executable

    def need_module(self):
        """Skips the test before an elastic job, which would start a script without the module again and again."""
        if subprocess.run([self.python(), "-c", f"import {self.MODULE}"], capture_output=True, check=False).returncode:
            self.skipTest(f"{self.MODULE} is not installed")

    def script(self, name):
        status, output = run("-np", 2, self.python(), "-B", EXAMPLES / name)
        if status == SKIPPED:
            self.assertIn("skipped, ", output)
            self.skipTest(output.strip())
        self.assertEqual(status, 0, output)
        return output


class TorchDdp(Script):
    MODULE = "torch"

    def test_trains(self):
        output = self.script("torch_ddp.py")
        self.assertGreaterEqual(self.number(r"2 ranks, .*held-out accuracy ([\d.]+) %", output), 95)


class Horovod(Script):
    """hvdrun has a package `horovod` of its own, which needs torch and libhvd with Gloo."""
    MODULE = "torch"

    def setUp(self):
        self.need_module()
        if not (BUILD / "lib/hvd/hvd-gloo.so").exists() or b"__asan_init" in pathlib.Path(LAUNCHER).read_bytes():
            self.skipTest("libhvd has no Gloo, or was built with sanitizers")


class HvdStatic(Horovod):

    def test_trains(self):
        output = self.script("hvd_static.py")
        self.assertLess(self.number(r"step 50: mean loss over 2 ranks ([\d.]+)", output), 0.01)


class ElasticPlain(Example):
    """Without faults, and with a stop and a new start by hand. tests/flow/test_elastic_torch.py has the faults."""
    RESULT = "24 items: pi is 3.141592653590"

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hvdrun-items-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = BUILD / "examples/elastic/plain_restart"

    def test_elastic_job(self):
        output = self.run_well("-np", 2, "--min-np", 1, self.program, "--folder", self.folder)
        self.assertIn("rank 1 of 2: start 1", output)
        self.assertIn(self.RESULT, output)

    def test_continues_from_its_files(self):
        env = {**os.environ, "HVDRUN_RANK": "1", "HVDRUN_SIZE": "2", "HVDRUN_DEADLINE_FILE": str(self.folder / "deadline")}
        with subprocess.Popen([self.program, "--folder", self.folder, "--pause-ms", "10"], env=env,
                              stdout=subprocess.PIPE, text=True) as one:
            self.assertIn("start", one.stdout.readline())
            (self.folder / "deadline").write_text("1795217027.000 spot notice\n")
            self.assertEqual(one.stdout.readline(), "rank 1: this host will go away: 1795217027.000 spot notice\n")
            one.terminate()
            self.assertEqual(one.wait(TIME_LIMIT), -signal.SIGTERM)
        alone = subprocess.run([self.program, "--folder", self.folder], env={**env, "HVDRUN_RANK": "0", "HVDRUN_SIZE": "1"},
                               capture_output=True, text=True, timeout=TIME_LIMIT)
        self.assertRegex(alone.stdout, r"continues item 1 at part \d+")
        self.assertIn(self.RESULT, alone.stdout)

    def test_folder_that_is_not_there(self):
        done = subprocess.run([self.program, "--folder", self.folder / "none"], capture_output=True, text=True,
                              timeout=TIME_LIMIT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write", done.stderr)


class ElasticTorch(Script):
    MODULE = "torch"

    def test_trains_and_continues_from_its_checkpoint(self):
        self.need_module()
        with tempfile.TemporaryDirectory(prefix="hvdrun-torch-") as folder:
            finals = []
            for ranks, steps, name in ((2, 60, "a"), (1, 120, "a"), (2, 120, "b")):
                status, output = run("-np", ranks, "--min-np", 1, self.python(), "-B", EXAMPLES / "elastic/torch_restart.py",
                                     "--steps", steps, "--checkpoint", os.path.join(folder, name))
                self.assertEqual(status, 0, output)
                finals += re.findall(r"final loss [\d.]+ after 120 steps", output)
            self.assertIn("from step 0", output)
            self.assertEqual(len(finals), 2, output)
            self.assertEqual(finals[0], finals[1])


class ElasticHorovod(Horovod):

    def test_trains(self):
        status, output = run("-np", 2, "--min-np", 1, self.python(), "-B", EXAMPLES / "elastic/horovod_elastic.py")
        self.assertEqual(status, 0, output)
        self.assertIn("epoch 5: 2 workers", output)


class ElasticDiscover(Example):

    def test_prints_the_file_or_this_machine(self):
        script = EXAMPLES / "elastic/discover.sh"
        with tempfile.TemporaryDirectory(prefix="hvdrun-hosts-") as folder:
            hosts = pathlib.Path(folder) / "list"
            for text, printed in ((None, "localhost:2\n"), ("a:2\nb\n", "a:2\nb\n")):
                if text is not None:
                    hosts.write_text(text)
                done = subprocess.run([script], env={**os.environ, "HVDRUN_HOSTS": str(hosts)}, capture_output=True,
                                      text=True, timeout=TIME_LIMIT)
                self.assertEqual((done.returncode, done.stdout), (0, printed))


CASES = {"train": Train, "bench_allreduce": BenchAllreduce, "mpmd": Mpmd, "plain": Plain, "config": Config,
         "torch_ddp": TorchDdp, "hvd_static": HvdStatic, "elastic_plain": ElasticPlain, "elastic_torch": ElasticTorch,
         "elastic_horovod": ElasticHorovod, "elastic_discover": ElasticDiscover}


def main():
    global LAUNCHER, BUILD
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launcher", required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("case", choices=CASES)
    options = parser.parse_args()
    LAUNCHER, BUILD = options.launcher, options.build
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(CASES[options.case])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if len(result.skipped) == result.testsRun else 0)


if __name__ == "__main__":
    main()
