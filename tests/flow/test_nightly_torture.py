# SPDX-License-Identifier: Apache-2.0
"""Each call of hvdrun that could fail does so once, in every scene, and where something is used up
(descriptors, memory of the process, room on the disk) all calls from then on as well.

A call counts as another one when hvdrun comes to it another way; HVDRUN_TORTURE=all takes each by
itself, HVDRUN_TORTURE=SCENE,... only these scenes.
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
