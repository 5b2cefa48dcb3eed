# SPDX-License-Identifier: Apache-2.0
"""Calls of hvdrun fail, one in each run: some of them, the next ones in the next place and kind.

All of them fail at night (test_nightly_torture.py). What was once found to be wrong stands in FOUND.
"""
# ctest limit: 240

import os
import re
import unittest

from rig import Flow, main, sanitized
from torture import Torture, learn, places
from torture_scenes import scenes

STRIDE = 37

# What was once wrong: {(scene, kind, role): functions that the failing call stands in}; "on": so do
# all calls after it
FOUND = {
    ("plain", "mfile", "driver"): ["loop_create on"],                # status 1, and nothing said
    ("plain", "intr", "agent"): ["crew_create", "open_parent", "make_locked", "child_fds"],
    ("plain", "mfile", "agent"): ["open_parent"],                    # a folder was left
    ("plain", "io", "agent"): ["remove_tree", "remove_parent",       # the same
                                "crew_files_check"],             # "need about 22 open files"
    ("plain", "alloc", "agent"): ["message_unpack", "evmap_io_add_"],  # a frame, a watch was lost: hung
    ("plain", "nomem", "agent"): ["link_create", "link_flush"],      # hung
    ("plain", "nomem", "driver"): ["link_flush"],                    # hung
    ("plain", "pipe", "driver"): ["write_all"],                      # 0 although its reader had gone
    ("pmi1", "intr", "agent"): ["mpi_detect", "library_read_elf"],   # as many worlds of one rank, and 0
    ("pmi1", "io", "agent"): ["read_dynamic"],                       # the same
    ("pmi1", "nomem", "agent"): ["line_flush", "do_put"],            # hung
    ("report", "alloc", "driver"): ["emit", "job_report"],    # 0 and half a report
}


@unittest.skipIf(sanitized(), "the allocator is the sanitizer's")
class Sample(Flow):

    def setUp(self):
        super().setUp()
        self.scenes = scenes(self)

    def judge(self, torture, point):
        wrong = torture.judge(point)
        if wrong:
            self.fail(wrong)

    def test_every_scene_has_its_night(self):
        with open(os.path.join(os.path.dirname(__file__), "test_nightly_torture.py"), encoding="utf-8") as file:
            parts = re.search(r"^# ctest each HVDRUN_TORTURE: (.*)$", file.read(), re.M)[1].split()
        self.assertLessEqual(set(self.scenes), set(parts))

    def test_some_of_all(self):
        begin = 0
        for name in ("plain", "failure"):
            torture = Torture(self, self.scenes[name])
            for kind in torture.scene.kinds:
                for role in torture.scene.roles:
                    points = torture.points(kind, role)
                    for point in points[begin % STRIDE::STRIDE]:
                        with self.subTest(scene=name, kind=kind, role=role, number=point.number):
                            self.judge(torture, point)
                    begin += 7

    def test_what_was_once_wrong(self):
        for (name, kind, role), functions in FOUND.items():
            if name not in self.scenes:
                continue  # of an MPI that is not here
            torture = Torture(self, self.scenes[name])
            points = torture.points(kind, role)
            learn([frame for point in points for frame in point.site])
            for function in functions:
                function, _, mode = function.partition(" ")
                with self.subTest(scene=name, kind=kind, role=role, function=function):
                    here = [point for point in points if f" {function} at " in places(point.site)]
                    self.assertTrue(here, "hvdrun does not come there any more")
                    self.judge(torture, here[0]._replace(mode=mode or "once"))


if __name__ == "__main__":
    main()
