# SPDX-License-Identifier: Apache-2.0
"""examples/horovod: a training with DistributedOptimizer, and an elastic one whose ranks are killed, and whose
hosts go and come. The package is hvdrun's own."""
# ctest long
# ctest plain

import os
import re
import signal

from elastic import write_atomically
from procfs import process
from python import python_with
from rig import SOURCE, Flow, main
from worldlines import places, wait_members

EXAMPLES = os.path.join(SOURCE, "examples/horovod")
UNTIL_GATE = os.path.join(SOURCE, "tests/flow/until_gate.py")
OURS = ("--horovod", "bundled")
QUIET = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class Example(Flow):

    def setUp(self):
        super().setUp()
        self.python = python_with("torch", "cloudpickle")

    def epochs(self, output):
        """{epoch: (ranks, loss)}"""
        found = re.findall(r"epoch (\d+): (\d+) ranks?, loss ([\d.]+)", output)
        return {int(epoch): (int(ranks), float(loss)) for epoch, ranks, loss in found}


class Static(Example):

    def train(self, size, *options):
        result = self.run_job(*OURS, "-np", size, "--oversubscribe", self.python, os.path.join(EXAMPLES, "train.py"), *options,
                              env=QUIET, timeout=120)
        return self.expect(result, 0)

    def accuracy(self, result):
        return float(re.findall(r"accuracy ([\d.]+) %", result.stdout)[-1])

    def expect_learned(self, result):
        self.assertEqual(sorted(self.epochs(result.stdout)), [1, 2, 3, 4], result.describe())
        self.assertGreater(self.accuracy(result), 90, result.describe())

    def test_it_learns_with_gradients_in_16_bits(self):
        self.expect_learned(self.train(2, "--fp16-allreduce"))

    def test_it_resumes(self):
        checkpoint = self.box.path("checkpoint.pt")
        first = self.train(2, "--epochs", 1, "--checkpoint", checkpoint)
        second = self.train(2, "--epochs", 2, "--checkpoint", checkpoint)
        self.assertEqual(sorted(self.epochs(first.stdout)), [1])
        self.assertEqual(sorted(self.epochs(second.stdout)), [2])
        whole = self.train(2, "--epochs", 2)  # the same as without the break
        self.assertAlmostEqual(self.epochs(second.stdout)[2][1], self.epochs(whole.stdout)[2][1], delta=2e-3)


class Elastic(Example):

    def train(self, *launcher, options=("--pause", 0.5, "--epochs", 8)):
        """It pauses in each step until finish() has begun."""
        gate, self.let_go = self.box.gate()
        argv = [self.python, UNTIL_GATE, gate, os.path.join(EXAMPLES, "train_elastic.py"), *options]
        return self.start("--transport", "local", *OURS, *launcher, *argv, env=QUIET)

    def members(self, job, size, but=()):
        return wait_members(job, size, but, timeout=60)

    def finish(self, job, size):
        self.let_go()
        result = self.expect(job.wait(120), 0)
        self.assertIn("done after 8 epochs", result.stdout, result.describe())
        ranks, loss = self.epochs(result.stdout)[8]
        self.assertEqual(ranks, size, result.describe())
        self.assertLess(loss, 1.0, result.describe())
        return result

    def test_workers_are_killed(self):
        """Others take their places, that of rank 0 too, and the survivors keep their processes."""
        job = self.train("-H", "a:2,b:1", "--min-np", 2)
        before = self.members(job, 3)
        job.wait_output(r"epoch 1:", timeout=60)
        os.kill(before[2], signal.SIGKILL)
        after = self.members(job, 3, but=[before[2]])
        self.assertEqual(len(set(after.values()) & set(before.values())), 2)
        os.kill(after[0], signal.SIGKILL)
        after = self.members(job, 3, but=[before[2], after[0]])
        result = self.finish(job, 3)
        # nobody begins again: the survivors and the newcomer go on from a commit after the first epoch
        again = [int(more.split()[1]) for _, _, pid, more in places(result.stdout) if pid in after.values()][-3:]
        self.assertGreaterEqual(min(again), 16, result.describe())
        self.assertEqual(len(set(again)), 1, result.describe())

    def test_a_host_is_lost_and_another_comes(self):
        hosts = self.write("hosts", "a:1\nb:1\n")
        job = self.train("--hosts-watch", hosts, "--min-np", 1, "--grow-delay", 0)
        before = self.members(job, 2)
        write_atomically(hosts, "a:1\nb:1\nc:1\n")
        grown = self.members(job, 3)
        self.assertTrue(set(before.values()) < set(grown.values()))
        os.kill(process(before[1]).ppid, signal.SIGKILL)  # the agent of b
        write_atomically(hosts, "a:1\nc:1\n")
        self.members(job, 2, but=[before[1]])
        self.finish(job, 2)

    def test_a_job_begins_with_the_checkpoint(self):
        checkpoint = self.box.path("checkpoint.pt")
        for epochs in (1, 4):
            job = self.train("-H", "a:1", "--min-np", 1, options=("--checkpoint", checkpoint, "--epochs", epochs))
            result = self.expect(job.wait(120), 0)
        self.assertEqual(sorted(self.epochs(result.stdout)), [2, 3, 4], result.describe())


if __name__ == "__main__":
    main()
