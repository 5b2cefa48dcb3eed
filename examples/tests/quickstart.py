#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests examples/quickstart.sh up to its job, with mocks of CMake and of the build, and with all packages installed."""
import os
import pathlib
import pty
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
INSTALLED = """#!/bin/sh
echo installed
"""
NOTHING = """#!/bin/sh
exit 1
"""
# Writes what ninja writes.
CMAKE = """#!/bin/sh
echo "cmake $*" >> "$BOX/calls"
[ "$1" = --build ] || { mkdir build; exit 0; }
echo "ninja: Entering directory"
echo "${NINJA_STATUS%%%*}0 2 Re-checking globbed directories..."
for step in $(seq 200); do
    echo "${NINJA_STATUS%%%*}$step 200 Building C object x.c.o"
    [ ! -e "$BOX/broken" ] || [ "$step" -lt 150 ] || { echo "x.c:1: error: bad"; exit 1; }
done
printf '#!/bin/sh\\necho "job: $*"\\nexit 3\\n' > build/hvdrun
chmod +x build/hvdrun
"""


class Quickstart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hvdrun-quickstart-")
        self.addCleanup(folder.cleanup)
        self.box = pathlib.Path(folder.name)
        for name in ("examples/quickstart.sh", "cmake/packages.sh"):
            self.put(f"tree/{name}", (SOURCE / name).read_text())
        for name, text in (("cmake", CMAKE), ("dpkg-query", INSTALLED), ("apt-get", NOTHING), ("apt-cache", NOTHING)):
            self.put(f"bin/{name}", text)
        (self.box / "tmp").mkdir()

    def put(self, name, text):
        path = self.box / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def start(self, stdout):
        environment = {**os.environ, "PATH": f"{self.box}/bin:{os.environ['PATH']}", "BOX": str(self.box),
                       "TMPDIR": str(self.box / "tmp")}
        return subprocess.run(["bash", self.box / "tree/examples/quickstart.sh"], stdin=subprocess.DEVNULL,
                              stdout=stdout, stderr=subprocess.STDOUT, timeout=60, check=False, env=environment)

    def run_it(self):
        ran = self.start(subprocess.PIPE)
        self.assertEqual(list((self.box / "tmp").iterdir()), [])
        return ran.returncode, ran.stdout.decode()

    def test_progress_and_the_job(self):
        status, output = self.run_it()
        self.assertEqual(status, 3)
        lines = output.splitlines()
        steps = [line for line in lines if line.endswith(" steps")]
        self.assertEqual(steps[0], "quickstart: 1 of 200 steps")
        self.assertEqual(steps[-1], "quickstart: 200 of 200 steps")
        self.assertIn(len(steps), range(9, 13), output)
        self.assertIn("cmake --build build", lines[-3])
        self.assertEqual(lines[-1], "job: -np 4 build/examples/train/train")

    def test_builds_what_the_job_needs(self):
        self.run_it()
        self.assertEqual((self.box / "calls").read_text(),
                         "cmake --preset release\ncmake --build build --target hvdrun train\n")

    def test_a_build_that_fails(self):
        self.put("broken", "")
        status, output = self.run_it()
        self.assertEqual(status, 1)
        self.assertTrue(output.endswith("x.c:1: error: bad\n"), output)
        self.assertNotIn("Building C object", output)
        self.assertNotIn("job:", output)

    def test_one_line_on_a_terminal(self):
        reader, terminal = pty.openpty()
        self.addCleanup(os.close, reader)
        try:
            self.start(terminal)
        finally:
            os.close(terminal)
        output = b""
        while b"job:" not in output:
            output += os.read(reader, 65536)
        shown = [line for line in output.decode().split("\n") if "steps" in line]
        self.assertEqual(len(shown), 1, output)
        self.assertEqual(shown[0].count("\rquickstart: "), 200)
        self.assertTrue(shown[0].rstrip().endswith("\rquickstart: 200 of 200 steps"))


if __name__ == "__main__":
    unittest.main()
