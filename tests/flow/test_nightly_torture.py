# SPDX-License-Identifier: Apache-2.0
"""Each call of hvdrun that can fail does fail once, in every scene. If the failure means that something is used
up (descriptors, memory of the process, room on the disk), all later calls fail as well.

Calls that hvdrun makes from the same place in the same way count as one. HVDRUN_TORTURE=all takes each of them
separately, and HVDRUN_TORTURE=SCENE,... runs only these scenes.
"""
# ctest limit: 5400
# ctest each HVDRUN_TORTURE: plain two_nodes files report stdin much failure restart horovod check dry_run version help pmi1 pmix record page

import os
import unittest

from rig import Flow, main, sanitized
from torture import Torture
from torture_scenes import scenes

WISH = os.environ.get("HVDRUN_TORTURE", "")


@unittest.skipIf(sanitized(), "the allocator is the sanitizer's")
class All(Flow):

    def test_all(self):
        wanted = [scene for name, scene in scenes(self).items() if WISH in ("", "all") or name in WISH.split(",")]
        if not wanted:
            self.skipTest(f"no {WISH} here")  # an MPI
        for scene in wanted:
            for point, wrong in Torture(self, scene).judge_all(WISH == "all"):
                with self.subTest(scene=scene.name, kind=point.kind, role=point.role, number=point.number, mode=point.mode):
                    self.assertIsNone(wrong, wrong)


if __name__ == "__main__":
    main()
