# SPDX-License-Identifier: Apache-2.0
"""Calls of the driver fail on its way to other hosts over SSH: one of each of some kinds, another one for each.

All of them fail at night (test_nightly_torture_ssh.py).
"""
# ctest plain

import os
import unittest

from hosts import Hosts, main
from rig import sanitized
from torture import Torture, places
from torture_scenes import ssh_scenes

PLACES = {"intr": 0.3, "mfile": 0.4, "perm": 0.7}  # kind: how far on


@unittest.skipIf(sanitized(), "the allocator is the sanitizer's")
class Sample(Hosts):

    count = 3

    def test_one_of_each_kind(self):
        torture = Torture(self, ssh_scenes(self)["ssh"])
        for kind, place in PLACES.items():
            points = torture.points(kind, "driver")
            point = points[int(place * len(points))]
            with self.subTest(kind=kind, number=point.number):
                wrong = torture.judge(point)
                self.assertIsNone(wrong, wrong)

    def test_what_glibc_allocates_in_getpwuid_does_not_count(self):
        sites = [point.site for point in Torture(self, ssh_scenes(self)["ssh"]).points("alloc", "driver")]
        ours = [site for site in sites if "ssh_queries_create at" in places(site)]
        self.assertTrue(ours, "hvdrun has another function for it")
        for site in ours:
            called = next(frame for frame in site if os.path.basename(frame).startswith("hvdrun"))  # it calls what allocates
            if "ssh_queries_create at" in places([called]):
                self.assertEqual(site[0], called, "a library that it calls allocates:\n" + "\n".join(site))


if __name__ == "__main__":
    main()
