# SPDX-License-Identifier: Apache-2.0
"""Many epochs of one driver and one agent: what both hold is compared between an early epoch and the last.

    class Test(Epochs, Flow):
        def test_x(self):
            early, late = self.many(1000, self.pmix())
            self.assertEqual(late.driver.descriptors, early.driver.descriptors)

In each epoch but the last rank 0 fails, so that all restart. In the early epoch (HELD) and in the last
all ranks wait, connected to their server, until they have been looked at.
"""

import collections
import os
import re
import time

from ground import Later, patient, worker
from procfs import process

HELD, RANKS = 10, 2

Look = collections.namedtuple("Look", "descriptors memory_kb")
Both = collections.namedtuple("Both", "driver agent files namespaces pid")

# Like mpi_epochs, but without PMIx.
PLAIN = """#!/bin/sh
if [ "$HVDRUN_EPOCH" = "$2" ] || [ "$HVDRUN_EPOCH" = "$3" ]; then
    echo "epoch $HVDRUN_EPOCH rank $RANK in none under $PPID"
    while [ ! -e "$1/go.$HVDRUN_EPOCH" ]; do sleep 0.05; done
fi
[ "$HVDRUN_EPOCH" -lt "$3" ] || exit 0
[ "$RANK" != 0 ] || exit 1
exec sleep 1000
"""


def look(pid):
    anonymous = re.search(r"^RssAnon:\s+(\d+)", process(pid).read("status").decode(), re.M)
    return Look(len(os.listdir(f"/proc/{pid}/fd")), int(anonymous[1]))


class Epochs:
    """Beside Flow."""

    def plain(self):
        return [self.write("plain.sh", PLAIN, 0o755)]

    @staticmethod
    def pmix():
        return ["--mpi=pmix", worker("mpi_epochs")]

    def _files(self):
        """How many lie in the folders for temporary files, whatever their names."""
        return sum(len(names) for _, folders, files in os.walk(self.box.tmp) for names in (folders, files))

    def _settled(self, agent, job):
        """Once nothing has changed for a second: descriptors of processes that have ended are closed a moment later."""
        deadline, same, last = time.monotonic() + patient(60), 0, None
        while same < 20:
            self.assertLess(time.monotonic(), deadline, Later(f"it never settles: {last}", job.describe()))
            now = (look(job.pid), look(agent), self._files())
            same = same + 1 if now == last else 0
            last = now
            time.sleep(0.05)
        return last

    def _visit(self, job, epoch, timeout):
        pattern = rf"epoch {epoch} rank \d in (\S+) under (\d+)"
        job.wait_output(pattern, count=RANKS, timeout=timeout)
        found = set(re.findall(pattern, job.output()))
        self.assertEqual(len(found), 1, Later("one namespace and one agent", job.describe()))
        namespace, agent = found.pop()
        driver, of_agent, files = self._settled(int(agent), job)
        self.write(f"go.{epoch}", "")
        return Both(driver, of_agent, files, namespace, int(agent))

    def many(self, last, words, timeout=60):
        """Runs so many epochs; returns what there was in the early one and in the last."""
        *options, program = words
        job = self.start("-np", RANKS, "--max-restarts", 10**6, "--grace", 5, *options, program, self.box.work, HELD, last)
        early = self._visit(job, HELD, 60)
        late = self._visit(job, last, timeout)
        result = self.expect(job.wait(), 0)
        self.expect_said(result, rf"{last} epochs: {last - 1} crashes, 0 hosts lost")
        self.assertEqual(early.pid, late.pid, "one agent all the time")
        return early, late

    def expect_nothing_kept(self, early, late):
        self.assertEqual(late.driver.descriptors, early.driver.descriptors)
        self.assertEqual(late.agent.descriptors, early.agent.descriptors)
        self.assertEqual(late.files, early.files, "temporary files")
