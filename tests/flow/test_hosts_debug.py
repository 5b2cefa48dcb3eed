# SPDX-License-Identifier: Apache-2.0
"""A debugger or a shell on a rank of another host, over SSH (docs/jobs.md)."""

from hosts import Hosts, main
from rig import worker


class HostsDebug(Hosts):

    def begin(self):
        gate, let_go = self.box.gate()
        job = self.ssh_start("-H", "node1:1,node2:1", "-x", "OF_THE_JOB=yes", worker("hang"), "--until", gate)
        job.wait_output("ready", count=2)
        return job, let_go

    def test_it_is_there(self):
        job, let_go = self.begin()
        result = self.expect(self.start("shell", "--rank", 1, "--", "sh", "-c", "hostname; echo $RANK $OF_THE_JOB; exit 5").wait(), 5)
        self.assertEqual(result.lines, ["node2", "1 yes"], result.describe())
        self.assertEqual(self.expect(self.start("shell", "--host", "node1", "--", "hostname").wait(), 0).lines, ["node1"])
        result = self.expect(self.start("debug", "--rank", 1, "--with", "kill -STOP {pid}; hostname; "
                                        "until grep -q 'State:.*T' /proc/{pid}/status; do sleep 0.01; done").wait(), 0)
        self.assertEqual(result.lines, ["node2"])
        self.expect_said(result, "rank 1 was still stopped, and goes on now")
        let_go()
        self.expect(job.wait(), 0)

    def test_the_host_is_lost(self):
        job, _ = self.begin()
        user = self.start("debug", "--rank", 1, "--with", "echo here; sleep 600")
        user.wait_output("here")
        self.host(2).power_off()
        self.expect(job.wait(), 121)
        self.expect_said(self.expect(user.wait(), 1), "the session is over: (lost the host node2|the job ends)")
        self.wait_no_workers(1)


if __name__ == "__main__":
    main()
