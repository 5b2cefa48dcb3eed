# SPDX-License-Identifier: Apache-2.0
"""As test_nightly_torture.py, for a driver that reaches other hosts over SSH. Some hosts have the agent
already (ssh), and the driver has to send it to others (ssh_first).
"""
# ctest limit: 5400
# ctest each HVDRUN_TORTURE: ssh ssh_first

import os
import unittest

from hosts import Hosts, main
from rig import sanitized
from torture import Torture
from torture_scenes import ssh_scenes

WISH = os.environ.get("HVDRUN_TORTURE", "")


@unittest.skipIf(sanitized(), "the allocator is the sanitizer's")
class All(Hosts):

    count = 3

    def test_all(self):
        for name, scene in ssh_scenes(self).items():
            if WISH in ("", "all") or name in WISH.split(","):
                for point, wrong in Torture(self, scene).judge_all(WISH == "all"):
                    with self.subTest(scene=name, kind=point.kind, number=point.number, mode=point.mode):
                        self.assertIsNone(wrong, wrong)


if __name__ == "__main__":
    main()
