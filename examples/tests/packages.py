#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests cmake/packages.sh, which quickstart.sh and tests/run.sh use to install packages. Mocks replace apt-get,
dpkg-query and sudo."""
import os
import pathlib
import subprocess
import tempfile
import unittest

PACKAGES = pathlib.Path(__file__).resolve().parents[2] / "cmake/packages.sh"
NOBODY = 65534

DPKG_QUERY = """#!/bin/sh
for name; do :; done
grep -qx "$name" "$BOX/installed" && echo installed
"""
APT_GET = """#!/bin/sh
[ -z "$DEBIAN_FRONTEND" ] || echo "frontend=$DEBIAN_FRONTEND" >> "$BOX/calls"
echo "apt-get $*" >> "$BOX/calls"
echo "much output"
[ ! -e "$BOX/broken" ] || { echo "E: no such package" >&2; exit 100; }
"""
APT_CACHE = """#!/bin/sh
[ "$2" = optional ]
"""
SUDO = """#!/bin/sh
echo "sudo $*" >> "$BOX/calls"
[ ! -e "$BOX/refuse" ] || exit 1
[ "$1" != -n ] || shift
exec "$@"
"""


class Packages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hvdrun-packages-")
        self.addCleanup(folder.cleanup)
        self.box = pathlib.Path(folder.name)
        self.box.chmod(0o777)
        self.put("installed", "present\n")
        self.put("calls", "")
        (self.box / "calls").chmod(0o666)
        for name, text in (("dpkg-query", DPKG_QUERY), ("apt-get", APT_GET), ("apt-cache", APT_CACHE)):
            self.put(f"bin/{name}", text)

    def put(self, name, text):
        path = self.box / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def calls(self):
        return (self.box / "calls").read_text()

    def bash(self, command, user=None):
        """PATH has only the mocks and the few programs that packages.sh uses."""
        for name in ("grep", "mktemp", "tail", "rm", "env", "cat", "sh"):
            link = self.box / "bin" / name
            if not link.exists():
                link.symlink_to(f"/bin/{name}" if os.path.exists(f"/bin/{name}") else f"/usr/bin/{name}")
        script = (self.box / "packages.sh")
        script.write_text(PACKAGES.read_text())
        ran = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", f'source "$BOX/packages.sh"; {command}'],
            env={"PATH": str(self.box / "bin"), "BOX": str(self.box), "TMPDIR": str(self.box)},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=60, user=user)
        return ran.returncode, ran.stdout

    def as_nobody(self, command):
        if os.geteuid() == 0:
            return self.bash(command, user=NOBODY)
        return self.bash(command)

    def test_nothing_missing_does_nothing(self):
        self.assertEqual(self.bash("packages_install present"), (0, ""))
        self.assertEqual(self.calls(), "")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_root_installs_what_is_missing(self):
        status, output = self.bash("packages_install present one two")
        self.assertEqual((status, output), (0, "packages: installing with apt: one two\n"))
        self.assertEqual(self.calls().count("frontend=noninteractive"), 2)
        self.assertRegex(self.calls(), r"apt-get .* update\n")
        self.assertRegex(self.calls(), r"apt-get .* install -y --no-install-recommends one two\n")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_failure_of_apt_is_shown(self):
        self.put("broken", "")
        status, output = self.bash("packages_install one")
        self.assertEqual(status, 1)
        self.assertIn("E: no such package\n", output)
        self.assertIn("packages: apt failed; run this and try again: apt-get install one", output)

    def test_without_root_and_sudo(self):
        status, output = self.as_nobody("packages_install one present two")
        self.assertEqual(status, 1)
        self.assertEqual(output, "packages: cannot install without root; run this first: "
                                 "apt-get install one two\n")
        self.assertEqual(self.calls(), "")

    def test_sudo_that_would_ask(self):
        self.put("bin/sudo", SUDO)
        self.put("refuse", "")
        status, output = self.as_nobody("packages_install one")
        self.assertEqual(status, 1)
        self.assertIn("run this first: apt-get install one\n", output)
        self.assertNotIn("apt-get", self.calls())

    def test_sudo(self):
        self.put("bin/sudo", SUDO)
        self.put("bin/true", "#!/bin/sh\n")
        status, output = self.as_nobody("packages_install one")
        self.assertEqual((status, output), (0, "packages: installing with apt: one\n"))
        self.assertRegex(self.calls(), r"sudo -n env DEBIAN_FRONTEND=noninteractive apt-get .* install")
        self.assertIn("frontend=noninteractive\n", self.calls())

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_optional_ones(self):
        self.assertEqual(self.bash("packages_install_if_any unknown optional present"),
                         (0, "packages: installing with apt: optional\n"))

    def test_another_distribution(self):
        for name in ("apt-get", "dpkg-query"):
            (self.box / "bin" / name).unlink()
        status, output = self.bash("packages_install one two")
        self.assertEqual(status, 0)
        self.assertIn("install the equivalents of these packages: one two\n", output)


if __name__ == "__main__":
    unittest.main()
