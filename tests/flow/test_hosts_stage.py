# SPDX-License-Identifier: Apache-2.0
"""--stage to real hosts: their own disks, slow ones, full ones, and hosts that come later or die meanwhile."""
# ctest waits

import os
import re
import sys

from ground import patient, wait_until
from hosts import Hosts, main

STORE = f"/tmp/hvdrun-stage-{os.geteuid()}"
SAME = 'cmp src/x "$HVDRUN_STAGED/x" && echo "$HVDRUN_HOSTNAME has $HVDRUN_STAGED"'


class Stage(Hosts):

    def setUp(self):
        super().setUp()
        self.addCleanup(self.forget)

    def forget(self):
        for number in range(1, 4):
            if not self.host(number).is_down:
                self.host(number).run("rm", "-rf", STORE)

    def folder(self, size):
        self.write("src/x", os.urandom(size))
        self.write("src/run.sh", "#!/bin/sh\npwd\n", 0o755)

    def copies(self, number):
        top = self.host(number).path(STORE)
        return os.listdir(top) if os.path.isdir(top) else []

    def test_each_host_has_a_copy(self):
        self.folder(5000000)
        result = self.ssh_job("-H", "node1:2,node2:1,node3:1", "--stage", "src", "sh", "-c", SAME)
        self.expect(result, 0)
        self.assertEqual(len(re.findall(rf"node\d has {STORE}/\S+/copy/src", result.stdout)), 4)
        for number in (1, 2, 3):
            self.assertEqual(len(self.copies(number)), 1)
        self.host(2).run("rm", "-rf", STORE)
        result = self.ssh_job("-v", "-H", "node1,node2", "--stage", "src", "src/run.sh")
        self.expect_said(self.expect(result, 0), r"node1: has \S+ \(5000014 of 5000014 bytes were there\)")
        self.expect_said(result, r"node2: has \S+ \(0 of 5000014 bytes were there\)")

    def test_the_pipe_from_sshd(self):
        """It is wide only while files come, since a user may have little for all his pipes."""
        self.folder(5000000)
        look = self.write("look.py", """
import fcntl, os
sizes, folder = [], f"/proc/{os.getppid()}/fd"
for name in os.listdir(folder):
    if os.readlink(f"{folder}/{name}").startswith("pipe:"):
        sizes.append(fcntl.fcntl(os.open(f"{folder}/{name}", os.O_RDONLY | os.O_NONBLOCK), fcntl.F_GETPIPE_SZ))
usual = fcntl.fcntl(os.pipe()[0], fcntl.F_GETPIPE_SZ)
print("wide", [size for size in sizes if size > usual], "of", len(sizes) > 0)
""")
        for stage in ((), ("--stage", "src")):
            result = self.expect(self.ssh_job("-H", "node1", *stage, sys.executable, look), 0)
            self.assertRegex(result.stdout, r"wide \[\] of True")

    def test_a_slow_host(self):
        """It takes seconds, with a node timeout below that: the others and the heartbeats do not wait."""
        self.folder(4000000)
        self.host(2).slow("8mbit")
        result = self.ssh_job("-v", "--node-timeout", 2, "-H", "node1,node2,node3", "--stage", "src", "sh", "-c", SAME)
        self.expect(result, 0)
        self.assertEqual(len(re.findall(r"node\d: has ", result.said)), 3, result.describe())
        self.expect_none_lost(result)

    def test_a_full_disk(self):
        self.folder(3000000)
        self.host(2).mount_tmp("size=6m,mode=1777")
        self.write("src/y", os.urandom(4000000))
        result = self.ssh_job("-H", "node1,node2", "--stage", "src", "sh", "-c", "echo ran")
        self.expect_said(self.expect(result, 125), r"node2: no space for staged files .*: \S+ has \d MiB of free space, and they need 7 MiB")
        self.assertNotIn("ran", result.stdout)

    def test_a_host_that_dies_meanwhile(self):
        self.folder(8000000)
        self.host(2).slow("10mbit")
        job = self.ssh_start("-H", "node1,node2", "--node-timeout", 3, "--stage", "src", "sh", "-c", "echo ran")
        wait_until(lambda: self.copies(2), "node2 has begun")
        self.host(2).power_off()
        result = self.expect(job.wait(), 121)
        self.expect_said(result, "node2")
        self.assertNotIn("ran", result.stdout)

    def test_a_disk_that_fills_meanwhile(self):
        """A write fails while more chunks are on their way."""
        self.folder(60000000)
        self.host(2).mount_tmp("size=100m,mode=1777")  # the agent's program is there, too
        self.host(2).slow("20mbit")
        job = self.ssh_start("-H", "node1,node2", "--stage", "src", "sh", "-c", "echo ran")
        wait_until(lambda: self.copies(2), "node2 has begun")
        self.host(2).run("sh", "-c", "cat /dev/zero > /tmp/full 2>&-; true")
        result = self.expect(job.wait(), 125)
        self.expect_said(result, "node2: no space for staged files")
        self.assertNotIn("ran", result.stdout)

    def test_an_elastic_job_goes_on_without_a_full_host(self):
        self.folder(3000000)
        self.host(2).mount_tmp("size=2m,mode=1777")
        gate, let_go = self.box.gate()
        job = self.ssh_start("-H", "node1,node2", "--min-np", 1, "--stage", "src", "sh", "-c",
                             f"{SAME}; while ! [ -e {gate} ]; do sleep 0.05; done")
        job.wait_output("node2: .*free space", "stderr", timeout=patient(60))
        let_go()
        result = self.expect(job.wait(), 0)
        self.assertEqual(re.findall(r"(node\d) has", result.stdout), ["node1"])

    def test_limits_of_the_start_wait(self):
        """Staging takes longer than the limits for hosts to come, of static and of elastic jobs."""
        limit = patient(8)
        self.folder(int(1.25 * limit * 1000000))
        self.host(1).slow("8mbit")
        result = self.ssh_job("--start-timeout", limit, "-H", "node1", "--stage", "src", "sh", "-c", SAME)
        self.expect(result, 0)
        self.host(1).run("rm", "-rf", STORE)
        result = self.ssh_job("--elastic-timeout", limit, "-H", "node1", "--min-np", 1, "--stage", "src", "sh", "-c", SAME)
        self.expect(result, 0)

    def test_newcomers(self):
        self.folder(1000000)
        hosts = self.write("hosts", "node1:1\n")
        job = self.ssh_start("--hosts-watch", hosts, "--min-np", 2, "--grow-delay", 0, "--stage", "src", "sh", "-c", SAME)
        wait_until(lambda: self.copies(1), "node1 has begun")
        os.replace(self.write("hosts.new", "node1:1\nnode2:1\n"), hosts)
        result = self.expect(job.wait(), 0)
        self.assertEqual(len(re.findall(rf"node\d has {STORE}/\S+/copy/src", result.stdout)), 2, result.describe())


if __name__ == "__main__":
    main()
