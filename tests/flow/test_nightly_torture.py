# SPDX-License-Identifier: Apache-2.0
"""Each call of hvdrun that could fail does so once, in every scene, and where something is used up
(descriptors, memory of the process, room on the disk) all calls from then on as well.

A call counts as another one when hvdrun comes to it another way; HVDRUN_TORTURE=all takes each by
itself, HVDRUN_TORTURE=SCENE,... only these scenes.
"""
# ctest limit: 5400
# ctest each HVDRUN_TORTURE: plain two_nodes files report stdin failure restart horovod check dry_run version help pmi1 pmix

import os
import unittest

from rig import Flow, main, sanitized
from torture import Torture, learn, places
from torture_scenes import scenes

DEPTH = 8  # so many callers make a way
REMOVAL = "runtime_dir_remove"  # who cannot remove anything any more leaves what is there
ON = ("alloc", "mfile", "nospc", "nproc")
WISH = os.environ.get("HVDRUN_TORTURE", "")


@unittest.skipIf(sanitized(), "the allocator is the sanitizer's")
class All(Flow):

    def modes(self, scene, point):
        on = point.kind in ON and point.kind not in scene.once and REMOVAL not in places(point.site)
        return ("once", "on") if on else ("once",)

    def scene(self, scene):
        torture, seen = Torture(self, scene), set()
        for kind in torture.scene.kinds:
            for role in scene.roles:
                points = torture.points(kind, role)
                learn([frame for point in points for frame in point.site])
                for point in points:
                    for mode in self.modes(scene, point):
                        way = point.number if WISH == "all" else tuple(point.site[:DEPTH])
                        if (kind, role, point.call, way, mode) in seen:
                            continue
                        seen.add((kind, role, point.call, way, mode))
                        wrong = torture.judge(point._replace(mode=mode))
                        with self.subTest(scene=scene.name, kind=kind, role=role, number=point.number, mode=mode):
                            self.assertIsNone(wrong, wrong)
        print(f"{scene.name}: {len(seen)} runs", flush=True)

    def test_all(self):
        wanted = [scene for name, scene in scenes(self).items() if WISH in ("", "all") or name in WISH.split(",")]
        if not wanted:
            self.skipTest(f"no {WISH} here")  # an MPI
        for scene in wanted:
            self.scene(scene)


if __name__ == "__main__":
    main()
