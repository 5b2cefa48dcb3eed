# SPDX-License-Identifier: Apache-2.0
"""examples/elastic/train_elastic.c on hosts of the rig: a rank is killed, a host is lost, and it comes back."""
# ctest waits
# ctest plain

import os
import re
import signal

from elastic import write_atomically
from ground import wait_until
from hosts import Hosts, main
from rig import BUILD

TRAIN = os.path.join(BUILD, "examples/elastic/train_elastic")
IN = re.compile(r"^\[\d+\]<stdout>:rank (\d+) of (\d+), pid \d+, epoch \d+$", re.M)
EPOCHS = 8


class TrainElasticHosts(Hosts):

    def setUp(self):
        super().setUp()
        for path in (TRAIN, os.path.join(BUILD, "lib/hvd/hvd-gloo.so")):
            if not os.path.exists(path):
                self.skipTest(f"{path} was not built")

    def accuracy_of(self, result):
        self.expect(result, 0)
        found = re.findall(r"held-out accuracy ([\d.]+) %", result.stdout)
        self.assertEqual(len(found), 1, result.describe())
        return float(found[0])

    def wait_world(self, job, size, after=0):
        """Waits until all ranks of a world of this size have begun, behind the first `after` bytes of output."""
        def there():
            begun = [match for match in IN.finditer(job.output()[after:]) if int(match[2]) == size]
            return len({int(match[1]) for match in begun}) == size or None
        try:
            wait_until(there, f"a world of {size}", 60)
        except AssertionError as error:
            raise AssertionError(f"{error}{job.describe()}") from None
        return len(job.output())

    def workers(self, number):
        return [one for one in self.host(number).processes() if os.path.basename(one.exe()) == "train_elastic"]

    def test_the_accuracy_is_that_without_faults(self):
        expected = self.accuracy_of(self.run_job("-np", 2, TRAIN, EPOCHS, timeout=60))
        hosts = self.write("hosts", "node1:2\nnode2:2\n")
        job = self.ssh_start("--hosts-watch", hosts, "--min-np", 2, "--grow-delay", 0, "--node-timeout", 3,
                             "--gloo-timeout-seconds", 3, TRAIN, EPOCHS, 20)
        at = self.wait_world(job, 4)
        os.kill(self.workers(1)[1].pid, signal.SIGKILL)
        at = self.wait_world(job, 4, after=at)
        self.host(2).crash()
        write_atomically(hosts, "node1:2\n")
        at = self.wait_world(job, 2, after=at)
        self.host(2).power_on()
        write_atomically(hosts, "node1:2\nnode2:2\n")
        self.wait_world(job, 4, after=at)
        self.assertAlmostEqual(self.accuracy_of(job.wait(120)), expected, delta=2)


if __name__ == "__main__":
    main()
