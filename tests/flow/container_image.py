# SPDX-License-Identifier: Apache-2.0
"""The image of examples/compose/Dockerfile, by the commands of docs/containers.md, without a registry.

A system that debootstrap makes from the mirror of this machine's apt stands for debian:bookworm-slim. The
archive of the image stays in the build folder as long as neither hvdrun nor the Dockerfile changes.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import test_docs
from container_engine import Podman, call
from containers import COMPOSE, IMAGE
from docker_engine import Docker
from ground import BUILD, HVDRUN, SOURCE
from systems import System, built_packages, own_suite

BASE = "docker.io/library/debian:bookworm-slim"
PAGE = "docs/containers.md"


def key():
    """Differs for each hvdrun and each Dockerfile."""
    digest = hashlib.sha256()
    libraries = pathlib.Path(os.path.dirname(HVDRUN), "lib/hvdrun").rglob("*")
    parts = [path for path in sorted(libraries) if path.is_file() and "__pycache__" not in path.parts]
    for path in [pathlib.Path(COMPOSE, "Dockerfile"), pathlib.Path(HVDRUN), *parts]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def archive(kind):
    """The path of the image's archive, which this kind of engine builds. Raises unittest.SkipTest where no Debian
    can be made."""
    place = os.path.join(BUILD, "containers", kind.__name__)
    path = os.path.join(place, f"trainer-{key()}.tar")
    if not os.path.exists(path):
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        system = System(own_suite())
        try:
            make(kind, system.root, path)
        finally:
            system.close()
    return path


def page_commands(words):
    """The commands of the page's blocks that begin with these words."""
    text = pathlib.Path(SOURCE, PAGE).read_text(encoding="utf-8")
    return [shown.command for shown in test_docs.shown_commands(PAGE, text, test_docs.block_pattern(words))]


def make_layout():
    """The folder of the OCI image that the build can write, from the tar.gz of packaging/build.sh."""
    built_packages()
    with tempfile.TemporaryDirectory(prefix="hvdt-") as work:
        os.symlink(BUILD, os.path.join(work, "build"))
        for command in page_commands("console containers layout"):
            call("bash", "-c", command, cwd=work, timeout=1800)
    return os.path.join(BUILD, "hvdrun-oci")


def make(kind, root, path):
    """In namespaces of its own, with the network of the machine: the Dockerfile installs packages."""
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--propagation", "private",
                           "--mount-proc", sys.executable, "-B", __file__, kind.__name__, root, path + ".new"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"no image can be made: {done.stdout[-6000:]}")
    os.rename(path + ".new", path)


def main(name, root, path):
    call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    call("mount", "-t", "cgroup2", "none", "/sys/fs/cgroup")
    os.mkdir("/run/lock")
    path_before = os.environ["PATH"]
    with tempfile.TemporaryDirectory(prefix="image-", dir=os.path.dirname(path)) as top:
        engine = {kind.__name__: kind for kind in (Podman, Docker)}[name](os.path.join(top, "engine"), network=False)
        os.environ["PATH"] += os.pathsep + path_before  # cmake may be elsewhere
        call("sh", "-c", f"tar -C {root} -cf - . | docker import - {BASE}", timeout=600)
        work = os.path.join(top, "work")
        os.mkdir(work)
        shutil.copytree(os.path.join(SOURCE, "examples"), os.path.join(work, "examples"))
        os.symlink(BUILD, os.path.join(work, "build"))
        for command in page_commands("console containers image"):
            call("bash", "-c", command, cwd=work, timeout=1800)
        call("docker", "save", "-o", path, IMAGE, timeout=600)
        engine.close()  # what it has mounted would be in the way of the folder's end


if __name__ == "__main__":
    main(*sys.argv[1:])
