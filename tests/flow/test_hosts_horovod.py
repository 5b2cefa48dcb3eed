# SPDX-License-Identifier: Apache-2.0
"""examples/horovod on hosts of the rig: two hosts, a host that is lost, and one that comes."""
# ctest plain
# ctest limit: 600
# ctest waits

import os
import re

from elastic import write_atomically
from ground import wait_until
from hosts import Hosts, main
from python import python_with
from rig import SOURCE

EXAMPLES = os.path.join(SOURCE, "examples/horovod")
IN = re.compile(r"^\[\d+\]<stdout>:rank (\d+) of (\d+), pid (\d+), batch (\d+)$", re.M)
QUIET = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class HorovodHosts(Hosts):

    def setUp(self):
        super().setUp()
        self.python = python_with("torch", "cloudpickle")

    def train(self, *launcher, script="train_elastic.py", options=()):
        own = ("--horovod", "bundled", "--node-timeout", 3, "--gloo-timeout-seconds", 3)
        return self.ssh_start(*own, *launcher, self.python, os.path.join(EXAMPLES, script), *options, env=QUIET)

    def wait_world(self, job, size, after=0):
        """Waits until all ranks of a world of this size have begun, behind the first `after` bytes of output."""
        def there():
            begun = [match for match in IN.finditer(job.output()[after:]) if int(match[2]) == size]
            return len({int(match[1]) for match in begun}) == size or None
        try:
            wait_until(there, f"a world of {size}", 90)
        except AssertionError as error:
            raise AssertionError(f"{error}{job.describe()}") from None
        return len(job.output())

    def test_two_hosts(self):
        job = self.train("-H", "node1:1,node2:1", script="train.py")
        result = self.expect(job.wait(120), 0)
        accuracy = re.findall(r"epoch 4: 2 ranks, loss [\d.]+, accuracy ([\d.]+) %", result.stdout)
        self.assertGreater(float(accuracy[0]), 90, result.describe())

    def test_a_host_is_lost_and_another_comes(self):
        hosts = self.write("hosts", "node1:1\nnode2:1\n")
        job = self.train("--hosts-watch", hosts, "--min-np", 1, "--grow-delay", 0, options=("--pause", 0.03, "--epochs", 6))
        at = self.wait_world(job, 2)
        self.host(2).power_off()
        write_atomically(hosts, "node1:1\n")
        at = self.wait_world(job, 1, after=at)
        write_atomically(hosts, "node1:1\nnode3:1\n")
        self.wait_world(job, 2, after=at)
        result = self.expect(job.wait(120), 0)
        self.assertIn("done after 6 epochs", result.stdout, result.describe())


if __name__ == "__main__":
    main()
