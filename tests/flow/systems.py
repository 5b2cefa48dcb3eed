# SPDX-License-Identifier: Apache-2.0
"""Clean Debian systems in a folder, for tests of the package. They come from the mirror that this
machine's own apt uses; where that cannot be reached, or namespaces cannot be made, tests are skipped."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from ground import BUILD, HERE, SOURCE

ENTER = os.path.join(os.path.dirname(HERE), "rig", "system")


def _output(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return done.stdout if done.returncode == 0 else ""


def own_suite():
    """What this machine runs: "bookworm"; "" when it is no Debian."""
    with open("/etc/os-release", encoding="utf-8") as file:
        words = dict(line.strip().split("=", 1) for line in file if "=" in line)
    return words.get("VERSION_CODENAME", "") if words.get("ID", "").strip('"') == "debian" else ""


def mirror():
    """The address that apt takes Debian from here, or ""."""
    listing = _output("apt-get", "indextargets", "--format", "$(ORIGIN)|$(SUITE)|$(REPO_URI)", "Created-By: Packages")
    for line in listing.splitlines():
        origin, suite, address = line.split("|", 2)
        if origin == "Debian" and "-" not in suite:
            return address
    return ""


def _proxy():
    words = _output("apt-config", "shell", "PROXY", "Acquire::http::Proxy").strip()
    return words[len("PROXY='"):-1] if words.startswith("PROXY='") else ""


def built_packages():
    """The folder of what packaging/build.sh makes of these sources. They stay in the build folder as long as the sources do."""
    names = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "CMakeLists.txt",
                            "cmake", "packaging", "launcher", "runtime"], capture_output=True, text=True, check=False).stdout
    digest = hashlib.sha256()
    for path in sorted(os.path.join(SOURCE, name) for name in names.split("\0") if name):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                digest.update(file.read())
    place = os.path.join(BUILD, "packages")
    mark = os.path.join(place, "made-of")
    if not os.path.exists(mark) or pathlib.Path(mark).read_text(encoding="ascii") != digest.hexdigest():
        done = subprocess.run([os.path.join(SOURCE, "packaging/build.sh"), place], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)
        if done.returncode == 77:
            raise unittest.SkipTest(done.stderr.strip().splitlines()[-1])
        if done.returncode != 0:
            raise AssertionError(f"packaging/build.sh: {done.stdout[-2000:]}{done.stderr[-4000:]}")
        pathlib.Path(mark).write_text(digest.hexdigest(), encoding="ascii")
    return place


class System:
    """The files of one, below a folder of its own; close() takes them away."""

    def __init__(self, suite, address=None, keyring=None, arch=None):
        if os.geteuid() != 0 or shutil.which("debootstrap") is None or shutil.which("unshare") is None:
            raise unittest.SkipTest("a clean system needs root, debootstrap and unshare")
        address = address or mirror()
        if not address:
            raise unittest.SkipTest("apt on this machine knows no mirror of Debian")
        self.folder = tempfile.mkdtemp(prefix="hvdt-system-")
        self.root = os.path.join(self.folder, "root")
        self.env = dict(os.environ)
        if _proxy():
            self.env["http_proxy"] = _proxy()
        options = [f"--{name}={value}" for name, value in (("keyring", keyring), ("arch", arch)) if value]
        command = ["debootstrap", "--variant=minbase", *options, suite, self.root, address]
        if not os.path.exists(f"/usr/share/debootstrap/scripts/{suite}"):
            command.append("/usr/share/debootstrap/scripts/gutsy")  # what its versions of Ubuntu share
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", *command], env=self.env,
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            self.close()
            raise unittest.SkipTest(f"no {suite} can be made here: {done.stdout[-300:]}")
        try:
            self._settle()
        except BaseException:  # its owner does not have it yet
            self.close()
            raise

    def _settle(self):
        for name in ("resolv.conf", "hosts"):
            shutil.copyfile(f"/etc/{name}", os.path.join(self.root, "etc", name))
        policy = os.path.join(self.root, "usr/sbin/policy-rc.d")  # packages start no services
        with open(policy, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexit 101\n")
        os.chmod(policy, 0o755)
        self.run("apt-get", "-q", "update")

    def run(self, *command, binds=(), status=0):
        """Runs it there as root, and returns what it prints; another status than `status` is a failure."""
        env = {**self.env, "HVDRUN_SYSTEM_BINDS": ",".join(f"{there}:{here}" for there, here in binds)}
        done = subprocess.run([ENTER, self.root, *map(str, command)], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != status:
            # what ctest says of tests that pass would be all that is left
            said = re.sub(r"^ *(Start +\d+: .*|\d+/\d+ Test .* Passed .*)\n", "", done.stdout, flags=re.M)
            raise AssertionError(f"{' '.join(map(str, command))}: status {done.returncode}\n{said[-6000:]}")
        return done.stdout

    def install(self, *packages, recommended=False):
        options = [] if recommended else ["--no-install-recommends"]
        self.run("apt-get", "-q", "-y", *options, "install", *packages)

    def take(self, path, place):
        """A copy of a file of this machine."""
        shutil.copy(path, self.root + place)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)
