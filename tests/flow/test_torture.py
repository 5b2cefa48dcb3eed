# SPDX-License-Identifier: Apache-2.0
"""Calls of hvdrun fail, one in each run. These tests take a sample of each kind and role.

At night, all of them fail (test_nightly_torture.py). FOUND lists the failures that once had a wrong outcome.
"""
# ctest plain

import fnmatch
import glob
import os
import re
import subprocess
import unittest

from rig import BUILD, HVDRUN, SOURCE, Flow, main, sanitized
from torture import LIBRARY, Torture, learn, places
from torture_scenes import scenes

STRIDE = 37

# What was once wrong: {(scene, kind, role): functions that the failing call stands in}; "on": so do
# all calls after it; "call()": the failing call itself, as hvdrun-agent has no names of functions
FOUND = {
    ("plain", "mfile", "driver"): ["loop_create on",                 # status 1, and nothing said
                                    "open_parent on"],               # a folder was left
    ("plain", "intr", "agent"): ["crew_create", "open_parent", "make_locked", "child_fds"],
    ("plain", "mfile", "agent"): ["open_parent", "plumb_output on"],  # a folder was left
    ("plain", "io", "agent"): ["tree_remove", "remove_parent",       # the same
                                "crew_files_check"],             # "need about 22 open files"
    ("plain", "alloc", "agent"): ["message_unpack", "evmap_io_add_"],  # a frame, a watch was lost: hung
    ("plain", "nomem", "agent"): ["link_create", "link_flush"],      # hung
    ("plain", "nomem", "driver"): ["link_flush"],                    # hung
    ("plain", "pipe", "driver"): ["write_all"],                      # 0 although its reader had gone
    ("pmi1", "intr", "agent"): ["look_at", "library_read_elf"],      # as many worlds of one rank, and 0
    ("pmi1", "io", "agent"): ["read_dynamic"],                       # the same
    ("pmi1", "nomem", "agent"): ["line_flush", "answer"],            # hung
    ("record", "nomem", "driver"): ["control_destroy"],              # a socket was left
    ("report", "alloc", "driver"): ["events_object", "job_report"],    # 0 and half a report
    ("check", "intr", "agent"): ["connect()"],                       # a host that could not be reached
}


def _symbols(path, which):
    """The names of functions that a program asks others for ("--undefined-only"), or has for them ("--defined-only")."""
    text = subprocess.run(["nm", "-D", which, path], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in text.splitlines()}


def _call(symbol):
    """read@GLIBC_2.2.5 is read, as __read_chk is."""
    return re.sub(r"^__(\w+)_chk$", r"\1", re.sub(r"^__isoc\d+_", "", symbol.partition("@")[0]))


@unittest.skipIf(sanitized(), "the calls are the sanitizer's")
class Calls(unittest.TestCase):

    def test_every_call_can_fail_or_never_does(self):
        with open(os.path.join(SOURCE, "tests/torture/never.txt"), encoding="ascii") as file:
            never = [name for line in file if line[0] != "#" for name in line.split()]
        known = {_call(symbol) for symbol in _symbols(LIBRARY, "--defined-only")}
        modules = filter(os.path.isfile, glob.glob(os.path.join(BUILD, "lib/hvdrun/*")))
        for program in [HVDRUN, *sorted(modules)]:
            calls = {_call(symbol) for symbol in _symbols(program, "--undefined-only") if "@GLIBC" in symbol}
            self.assertIn("free", calls, program)
            unknown = [call for call in sorted(calls - known) if not any(fnmatch.fnmatchcase(call, name) for name in never)]
            self.assertEqual(unknown, [], f"of {program}: let it fail in tests/torture/calls.c, or say why not in never.txt")


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

    def test_output_that_is_spliced(self):
        torture = Torture(self, self.scenes["much"])
        for kind in ("intr", "again", "short", "nomem", "pipe"):
            points = [point for point in torture.points(kind, "agent") if point.call == "splice"]
            self.assertTrue(points, "it is not spliced")
            with self.subTest(kind=kind):
                self.judge(torture, points[len(points) // 2])

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
                    here = [point for point in points if function == f"{point.call}()" or f" {function} at " in places(point.site)]
                    self.assertTrue(here, "hvdrun does not come there any more")
                    self.judge(torture, here[0]._replace(mode=mode or "once"))


if __name__ == "__main__":
    main()
