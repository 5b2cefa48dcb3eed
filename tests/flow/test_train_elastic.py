# SPDX-License-Identifier: Apache-2.0
"""examples/elastic/train_elastic.c: libhvd in an elastic job whose ranks are killed, and whose hosts go and come."""

import os
import re
import signal

from elastic import write_atomically
from ground import patient
from procfs import process
from rig import BUILD, Flow, main
from worldlines import wait_members

TRAIN = os.path.join(BUILD, "examples/elastic/train_elastic")
EPOCHS = 8


class TrainElastic(Flow):

    accuracy = None  # of a run without faults; the same for all sizes

    def setUp(self):
        super().setUp()
        for path in (TRAIN, os.path.join(BUILD, "lib/hvd/hvd-gloo.so")):
            if not os.path.exists(path):
                self.skipTest(f"{path} was not built")
        if TrainElastic.accuracy is None:
            TrainElastic.accuracy = self.accuracy_of(self.expect(self.run_job("-np", 2, TRAIN, EPOCHS), 0))

    def accuracy_of(self, result):
        found = re.findall(r"held-out accuracy ([\d.]+) %", result.stdout)
        self.assertEqual(len(found), 1, result.describe())
        return float(found[0])

    def train(self, *launcher, through=()):
        return self.start("--transport", "local", *launcher, *through, TRAIN, EPOCHS, 10)

    def members(self, job, size, but=()):
        return wait_members(job, size, but)

    def finish(self, job):
        result = self.expect(job.wait(patient(60)), 0)
        self.assertAlmostEqual(self.accuracy_of(result), self.accuracy, delta=2)
        return result

    def test_a_rank_is_killed(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2)
        before = self.members(job, 4)
        os.kill(before[2], signal.SIGKILL)
        after = self.members(job, 4, but=[before[2]])
        self.assertEqual(len(set(after.values()) & set(before.values())), 3)  # they keep their processes
        self.finish(job)

    def test_rank_0_is_killed(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2)
        before = self.members(job, 4)
        os.kill(before[0], signal.SIGKILL)
        self.members(job, 4, but=[before[0]])
        self.finish(job)

    def test_a_host_is_lost_and_another_comes(self):
        hosts = self.write("hosts", "a:2\nb:2\n")
        job = self.train("--hosts-watch", hosts, "--min-np", 2, "--grow-delay", 0)
        before = self.members(job, 4)
        write_atomically(hosts, "a:2\nb:2\nc:2\n")
        self.members(job, 6)
        os.kill(process(before[2]).ppid, signal.SIGKILL)  # the agent of b
        write_atomically(hosts, "a:2\nc:2\n")
        self.members(job, 4, but=[before[2], before[3]])
        self.finish(job)

    def test_a_restart_of_all_workers(self):
        """They begin again, because this program does not save its state in a file."""
        job = self.train("-H", "a:2,b:2", "--on-failure", "restart")
        before = self.members(job, 4)
        os.kill(before[1], signal.SIGKILL)
        after = self.members(job, 4, but=before.values())
        self.assertEqual(set(after.values()) & set(before.values()), set())
        self.finish(job)

    def test_without_the_line(self):
        """As under another launcher: the broken connections say it."""
        job = self.train("-H", "a:2,b:2", "--min-np", 2, "--on-failure", "rejoin", through=("env", "-u", "HVDRUN_LINE"))
        before = self.members(job, 4)
        os.kill(before[1], signal.SIGKILL)
        self.members(job, 3, but=[before[1]])
        self.finish(job)


if __name__ == "__main__":
    main()
