# SPDX-License-Identifier: Apache-2.0
"""The Python package `horovod`: tests/python with pytest on every rank of a job, with 1 to 4 ranks."""
# ctest plain
# ctest warm nightly

import glob
import os
import re

from elastic import write_atomically
from python import package_environment, python_with
from rig import SOURCE, Flow, main, nightly

TESTS = os.path.join(SOURCE, "tests/python")
MORE_THAN_TWO = ("test_delta_optimizer.py", "test_process_sets.py")  # there it matters


class HorovodTorch(Flow):

    def setUp(self):
        super().setUp()
        self.python = python_with("torch", "pytest", "cloudpickle")

    def run_tests(self, size, *files, through=("--controller", "gloo")):
        files = [os.path.join(TESTS, file) for file in files] or sorted(glob.glob(os.path.join(TESTS, "test_*.py")))
        result = self.run_job(*through, "-np", size, "--oversubscribe", self.python, "-m", "pytest", "-q", "-p",
                              "no:cacheprovider", *files, env=package_environment(), timeout=250)
        self.expect(result, 0)
        passed = re.findall(r"(\d+) passed", result.stdout)
        self.assertEqual(len(passed), size, result.describe())
        return passed

    def test_with_one_rank(self):
        self.run_tests(1)

    def test_with_two_ranks(self):
        self.run_tests(2)

    def test_with_four_ranks(self):
        self.run_tests(4, *MORE_THAN_TWO)

    @nightly("to the other files, a rank is one of several with two ranks as well")
    def test_all_with_four_ranks(self):
        self.run_tests(4)

    def test_without_hvdrun(self):
        """A script that nobody launches has one rank."""
        script = "import horovod.torch as hvd, torch; hvd.init(); print(hvd.rank(), hvd.size(), hvd.allreduce(torch.ones(1)).item())"
        result = self.box_run(self.python, "-c", script)
        self.assertEqual(result.stdout, "0 1 1.0\n", result.describe())

    def test_a_rank_that_ends_itself(self):
        """A peer exits before it, because it first shuts the library down. hvdrun does not wait for it for long."""
        script = self.write("leaves.py", LEAVES)
        for code, status in ((3, 3), (0, 1)):
            with self.subTest(code=code):
                folder = self.box.path(f"left-{code}")
                os.makedirs(os.path.join(folder, "pids"))
                result = self.run_job("-np", 3, "--oversubscribe", self.python, script, folder, code,
                                      env=package_environment(), timeout=120)
                self.expect(result, status)
                self.expect_said(result, "rank 1 is most likely the cause: it had shut its library down and exited with "
                                         f"code {code}; rank [02] exited with code 1")
                self.expect_said(result, f"rank 1: .*exit code {code}.*rank 1 has shut the library down")

    def box_run(self, *argv, **env):
        from jobs import Job
        return self.expect(Job(self.box, argv, env=package_environment(**env)).wait(60), 0)


# What is registered before the package is imported runs after libhvd has been shut down.
LEAVES = """
import atexit, os, sys, time
rank, pids = int(os.environ["RANK"]), os.path.join(sys.argv[1], "pids")
open(os.path.join(pids, str(os.getpid())), "w").close()

def outlive():
    while rank == 1 and all(os.path.exists("/proc/" + pid) for pid in os.listdir(pids)):
        time.sleep(0.01)
    if rank == 1: os._exit(int(sys.argv[2]))

atexit.register(outlive)
import torch, horovod.torch as hvd
hvd.init()
for step in range(100):
    hvd.allreduce(torch.ones(1), name="x")
    if rank == 1 and step == 3:
        sys.exit(int(sys.argv[2]))
"""

LISTENS = """
import sys, time
import horovod.torch as hvd

class State(hvd.elastic.ObjectState):
    def on_hosts_updated(self, timestamp, update):
        print("heard", int(update), flush=True)
        super().on_hosts_updated(timestamp, update)

@hvd.elastic.run
def train(state):
    print(hvd.size(), "ranks, in step", state.step, flush=True)
    wanted = int(sys.argv[1])
    while hvd.size() != wanted or state.step == 0:
        state.step += 1
        while hvd.rank() == 0 and hvd.size() != wanted and state._host_messages.empty():
            time.sleep(0.05)
        if sys.argv[2:] == ["again"] and state.step == 1:
            state.on_hosts_updated(time.time(), 3)
        state.commit()

hvd.init()
train(State(step=0))
"""


RESETS = """
import time
import horovod.torch as hvd
from horovod.common.elastic import run_fn

def reset():
    print("reset", flush=True)
    hvd.shutdown()
    hvd.init()

def train(state):
    print(hvd.size(), "ranks, in step", state.step, flush=True)
    while hvd.size() == 2:
        state.step += 1
        state.commit()
        time.sleep(0.05)

hvd.init()
run_fn(train, reset)(hvd.elastic.ObjectState(step=0))
"""


class Elastic(Flow):

    def setUp(self):
        super().setUp()
        self.python = python_with("torch")

    def train(self, hosts, script, *argv):
        launcher = ("--transport", "local", "--hosts-watch", hosts, "--min-np", 1, "--grow-delay", 0)
        return self.start(*launcher, self.python, "-c", script, *argv, env=package_environment())

    def test_a_host_comes(self):
        hosts = self.write("hosts", "a:1\nb:1\n")
        job = self.train(hosts, LISTENS, 3)
        job.wait_output("2 ranks, in step 0", count=2, timeout=60)
        write_atomically(hosts, "a:1\nb:1\nc:1\n")
        result = self.expect(job.wait(60), 0)
        self.assertIn("heard 3", result.stdout, result.describe())
        self.assertEqual(result.stdout.count("3 ranks, in step 1"), 3, result.describe())

    def test_a_program_that_says_it_itself(self):
        """The ranks meet again, and are the same."""
        job = self.train(self.write("hosts", "a:1\nb:1\n"), LISTENS, 2, "again")
        result = self.expect(job.wait(60), 0)
        self.assertEqual(result.stdout.count("heard 3"), 2, result.describe())
        self.assertEqual(result.stdout.count("2 ranks, in step 1"), 2, result.describe())

    def test_a_reset_of_the_program(self):
        """It may shut down and initialize: the new rank does so once."""
        hosts = self.write("hosts", "a:1\nb:1\n")
        job = self.train(hosts, RESETS)
        job.wait_output("2 ranks, in step 0", count=2, timeout=60)
        write_atomically(hosts, "a:1\nb:1\nc:1\n")
        result = self.expect(job.wait(60), 0)
        self.assertEqual(result.stdout.count("3 ranks, in step "), 3, result.describe())
        self.assertEqual(result.stdout.count("reset\n"), 2, result.describe())


if __name__ == "__main__":
    main()
