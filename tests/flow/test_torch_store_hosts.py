# SPDX-License-Identifier: Apache-2.0
"""--torch-store on hosts of the rig: which agent serves the store, and what remains when a host is lost."""
# ctest waits

import re

from hosts import Hosts, main

SCRIPT = """#!/bin/sh
# one word of dialect C to the store: VALIDATE and PING, whose nonce comes back
store() {
    python3 -c "
import os, socket, struct
s = socket.create_connection((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])), 20)
s.sendall(struct.pack('<BIB4s', 0, 0x3C85F7CE, 13, b'here'))
print(s.recv(4).decode(), flush=True)"
}
echo "rank $RANK at $MASTER_ADDR $MASTER_PORT jax $JAX_COORDINATOR_ADDRESS store $(store) restart $TORCHELASTIC_RESTART_COUNT"
sleep 1000
"""


class Lost(Hosts):

    def said(self, job, restart, count):
        job.wait_output(rf"rank \d at \S+ \d+ jax \S+ store here restart {restart}", count=count)
        return re.findall(rf"rank (\d) at (\S+) (\d+) jax (\S+):\d+ store here restart {restart}", job.output())

    def test_the_host_of_rank_0_is_lost(self):
        script = self.write("show.sh", SCRIPT, 0o755)
        job = self.ssh_start("--torch-store", "agent", "-H", "node1:1,node2:1,node3:1", "--min-np", 2, "--on-failure",
                             "restart", script)
        first = self.said(job, 0, 3)
        self.assertEqual(len({one[1:3] for one in first}), 1, job.describe())
        self.assertNotEqual(first[0][1], first[0][3], "another host than rank 0's" + job.describe())
        self.host(1).power_off()
        second = self.said(job, 1, 2)
        self.assertEqual(len({one[1:3] for one in second}), 1, job.describe())
        self.assertNotEqual(second[0][2], first[0][2], "another port")
        self.assertNotEqual(second[0][1], second[0][3], job.describe())
        job.signal(15)
        job.wait()


if __name__ == "__main__":
    main()
