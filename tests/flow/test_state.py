# SPDX-License-Identifier: Apache-2.0
"""The elastic part of libhvd (runtime/elastic) under hvdrun: ranks that are killed, hosts that are lost and that come."""

import os
import time

from elastic import write_atomically
from ground import patient
from procfs import process
from rig import BUILD, Flow, main
from worldlines import wait_members

TRAINER = os.path.join(BUILD, "tests/elastic/elastic_trainer")
MASK = (1 << 64) - 1


def mix(value):
    value = (value ^ value >> 29) * 0xbf58476d1ce4e5b9 & MASK
    return value ^ value >> 32


def final_line(examples, epochs):
    return f"final {sum(mix(number + 1) for number in range(examples * epochs)) & MASK:016x}"


class State(Flow):

    def setUp(self):
        super().setUp()
        if not os.path.exists(os.path.join(BUILD, "lib/hvd/hvd-gloo.so")):
            self.skipTest("the engine gloo was not built")

    def train(self, *launcher, examples=1000, epochs=2):
        self.wanted = final_line(examples, epochs)
        self.gate, self.let_go = self.box.gate()
        return self.start("--transport", "local", "--controller", "gloo", *launcher, TRAINER, examples, epochs, self.gate,
                          env={"HVD_MODULES": os.path.join(BUILD, "lib/hvd"), "HOROVOD_GLOO_TIMEOUT_SECONDS": "60"})

    def members(self, job, size, but=()):
        return wait_members(job, size, but)

    def finish(self, job):
        self.let_go()
        result = self.expect(job.wait(patient(60)), 0)
        self.assertEqual(result.stdout.count("final "), 1, result.describe())
        self.assertIn(self.wanted, result.stdout, result.describe())
        return result

    def test_nothing_happens(self):
        for launcher in (("-np", 1), ("-np", 3), ("-np", 2, "--min-np", 1)):
            with self.subTest(launcher=launcher):
                self.finish(self.train("-H", "a:4", *launcher))

    def test_a_rank_is_killed_and_replaced(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2)
        before = self.members(job, 4)
        os.kill(before[3], 9)
        after = self.members(job, 4, but=[before[3]])
        self.assertEqual(set(after.values()) & set(before.values()), {before[rank] for rank in range(3)})
        self.finish(job)

    def test_rank_0_is_killed(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2)
        before = self.members(job, 4)
        os.kill(before[0], 9)
        self.members(job, 4, but=[before[0]])
        self.finish(job)

    def test_a_lost_host(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2, "--blacklist-after", 1)
        before = self.members(job, 4)
        os.kill(process(before[2]).ppid, 9)  # its agent
        after = self.members(job, 2, but=[before[2], before[3]])
        self.assertEqual(set(after.values()), {before[0], before[1]})  # they keep their memory
        self.finish(job)

    def test_a_host_comes(self):
        hosts = self.write("hosts", "a:2\n")
        job = self.train("--hosts-watch", hosts, "--min-np", 2, "--grow-delay", 0)
        before = self.members(job, 2)
        write_atomically(hosts, "a:2\nb:2\n")
        after = self.members(job, 4)
        self.assertEqual({after[0], after[1]}, set(before.values()))
        result = self.finish(job)
        self.assertIn("hosts changed", result.stdout)

    def test_a_host_is_drained(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 2)
        before = self.members(job, 4)
        self.expect(self.run_job("drain", "b", "--within", "60s"), 0)
        after = self.members(job, 2, but=[before[2], before[3]])
        self.assertEqual(set(after.values()), {before[0], before[1]})
        self.finish(job)

    def test_many_deaths(self):
        job = self.train("-H", "a:2,b:2", "--min-np", 1, "--blacklist-after", 100, examples=600, epochs=1)
        dead = []
        for round_ in range(6):
            present = self.members(job, 4, but=dead)
            time.sleep(0.02 * round_)  # in another phase each time
            victim = present[(3 - round_) % 4]
            os.kill(victim, 9)
            dead.append(victim)
        self.members(job, 4, but=dead)
        self.finish(job)

    def test_plain_restart(self):
        job = self.train("-H", "a:2,b:2", "--on-failure", "restart", "--max-restarts", 1)
        before = self.members(job, 4)
        os.kill(before[1], 9)
        self.members(job, 4, but=before.values())
        self.finish(job)


if __name__ == "__main__":
    main()
