# SPDX-License-Identifier: Apache-2.0
"""Flow tests of --warm."""

import json
import os
import re
import time

from asked import Asked


class WarmFlow(Asked):

    def warm(self, *args, **options):
        return self.run_job("-v", "--warm", *args, **options)

    def is_warm(self, result, count=1):
        self.assertRegex(result.stderr, rf"{count} ranks? forked", result.describe())

    def outside(self, name, text):
        """A module that is not in the folder of the script."""
        folder = self.box.path("outside")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name + ".py"), "w", encoding="utf-8") as file:
            file.write(text)
        return {"PYTHONPATH": folder}

    def seen(self, result, count):
        self.expect(result, 0)
        lines = re.findall(r"SEEN (.*)$", result.stdout, re.M)
        self.assertEqual(len(lines), count, result.describe())
        return sorted((json.loads(line) for line in lines), key=lambda seen: seen["environment"]["RANK"])

    def both_ways(self, *args, count=1, **options):
        cold = self.run_job(*args, **options)
        warm = self.warm(*args, **options)
        self.is_warm(warm, count)
        self.maxDiff = None
        for a, b in zip(self.seen(cold, count), self.seen(warm, count)):
            self.assertEqual(a, b)

    def mother_of(self, job):
        def find():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/cmdline", "rb") as file:
                        words = file.read()
                    with open(f"/proc/{pid}/environ", "rb") as file:
                        marked = self.box.path("mark").encode() in file.read()
                except OSError:
                    continue
                if b"<hvdrun --warm>" in words and marked:
                    return int(pid)
            return None
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            pid = find()
            if pid is not None:
                return pid
            time.sleep(0.02)
        self.fail("no mother: " + job.describe())
