# SPDX-License-Identifier: Apache-2.0
"""A job of hundreds of pods, each with a network, processes and a file system of its own."""

import os
import random
import re
import time

from ground import Later, wait_until
from hosts import main
from pods import UNTIL_OPEN, Pods
from procfs import kill, processes

COUNT = int(os.environ.get("HVDRUN_PODS", "500"))


class Many(Pods):

    left_timeout = 60

    def log(self, number):
        """Files, because each pipe would need a thread."""
        return {name: os.open(self.box.path(f"{number}.{name}"), os.O_WRONLY | os.O_CREAT, 0o600) for name in ("stdout", "stderr")}

    def start_pod(self, number):
        outputs = self.log(number)
        try:
            return self.pod(number, outputs=outputs)
        finally:
            for fd in outputs.values():
                os.close(fd)

    @staticmethod
    def memory():
        """MiB that all processes of hvdrun have together, and their number; shared pages count once."""
        total, count = 0, 0
        for one in processes().values():
            found = re.search(rb"^Pss:\s+(\d+) kB", one.read("smaps_rollup"), re.M)
            if found and os.path.basename(one.exe()).startswith("hvdrun"):
                total, count = total + int(found[1]), count + 1
        return total // 1024, count

    def wait_all(self, driver, pods, ranks, count):
        """Until each of so many ranks has run. Meanwhile the test is what Kubernetes is: pods that have lost hvdrun, as on a machine
        that is too busy, start again."""
        def all_run():
            for number, pod in pods.items():
                if pod.popen.poll() == 125:
                    pods[number] = self.start_pod(number)
            return len(re.findall(f" of {ranks} on ", driver.output())) >= count
        wait_until(all_run, Later(f"{ranks} ranks run", driver.describe), 600)

    def test_they_come_and_go(self):
        """In random order, two of them before hvdrun. A tenth of them goes, without grace, and comes again."""
        self.plug(range(COUNT + 1))
        chance = random.Random(5)
        order = chance.sample(range(1, COUNT + 1), COUNT)
        begin = time.monotonic()
        pods = {number: self.start_pod(number) for number in order[:2]}
        driver = self.driver(f"train-[1-{COUNT}]:1", "--min-np", COUNT // 2, "--elastic-timeout", "20m", "--node-timeout", "5m",
                             "sh", "-c", UNTIL_OPEN)
        pods.update((number, self.start_pod(number)) for number in order[2:])
        self.wait_all(driver, pods, COUNT, COUNT)
        print(f"{COUNT} pods: all ranks after {time.monotonic() - begin:.1f} s; MiB, processes: {self.memory()}; "
              f"driver {driver.init().rss_kb() // 1024} MiB", flush=True)
        gone = [pods.pop(number) for number in chance.sample(sorted(pods), COUNT // 10)]
        for first in [pod.init() for pod in gone]:
            kill(first.pid)
        before = driver.output().count(f" of {COUNT} on ")
        for pod in gone:
            pod.wait()
        pods.update((number, self.start_pod(number)) for number in set(order) - set(pods))
        self.wait_all(driver, pods, COUNT, before + COUNT)
        for pod in pods.values():
            pod.open()
        self.expect(driver.wait(600), 0)
        self.end(pods.values())


if __name__ == "__main__":
    main()
