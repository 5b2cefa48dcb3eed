# SPDX-License-Identifier: Apache-2.0
"""Many hosts, too slow for every day: 300 names on one shared home, 256 stand-in workers."""

import os
import re

from ground import worker
from hosts import Hosts, main, ssh_files


class Scale(Hosts):

    def test_300_hosts_on_one_shared_home_do_not_race(self):
        names = [f"n{i:03}" for i in range(300)]
        self.rig.alias(1, names)
        self.write_known_hosts(ssh_files.known_hosts_lines("n*"))
        self.host(1).forget_agent()
        hosts = ",".join(f"{name}:1" for name in names)
        result = self.ssh_job("-H", hosts, "--start-timeout", 250, worker("hello"), timeout=280)
        self.expect(result, 0)
        self.assertEqual(result.stdout.count("hello from rank"), 300)
        kept = [name for _, _, files in os.walk(self.host(1).path("/tmp")) for name in files if "hvdrun-agent-" in name]
        self.assertEqual(len(kept), 1, kept)

    def test_256_stand_in_workers_on_8_hosts(self):
        names = [f"m{i}" for i in range(8)]
        self.rig.alias(2, names)
        self.write_known_hosts(ssh_files.known_hosts_lines("m*"))
        result = self.ssh_job("-H", ",".join(f"{name}:32" for name in names), "--start-timeout", 120,
                              worker("horovod_worker"), timeout=280)
        self.expect(result, 0)
        sums = set(re.findall(r"rank (\d+) of 256: sum (\d+)", result.stdout))
        self.assertEqual(len(sums), 256, result.describe())


if __name__ == "__main__":
    main()
