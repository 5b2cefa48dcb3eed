# SPDX-License-Identifier: Apache-2.0
"""What flow tests need to know of a container engine, and podman as one of them (docker_engine.py is the other).

An engine keeps its images, containers, volumes and networks in a folder, for the mount namespace in which it
was made. It puts a `docker` first in PATH, which acts like the real one for all that docs/containers.md shows.
"""

import os
import shutil
import stat
import subprocess
import sys

from ground import HERE, limit

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "rig"))
import entrance  # noqa: E402


def call(*argv, check=True, timeout=120, **options):
    """A program that ends soon; returns (status, what it printed)."""
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=limit(timeout), **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, argv))}: status {done.returncode}: {done.stdout[-4000:]}")
    return done.returncode, done.stdout


class Engine:
    """A container engine with its files below `top`."""

    folders = ("bin",)
    can_pause = True
    remove = ("rm", "-f")  # containers, whatever their state, without a wait

    def __init__(self, top):
        self.top = top
        for name in self.folders:
            os.makedirs(os.path.join(top, name))
        # not a python3 that the person who runs the tests has put before the system's
        os.environ["PATH"] = f"{top}/bin:{entrance.SYSTEM_PATH}"

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.top, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def owns(self, one):
        """Whether a process of the machine may stay as long as a container runs."""
        return False

    def close(self):
        """Ends what it has started, and undoes its mounts."""


class Podman(Engine):
    """podman and podman-compose."""

    programs = ("podman", "podman-compose", "crun", "conmon", "iptables", "tar")
    helpers = ("netavark", "aardvark-dns")
    helper_folders = ("/usr/lib/podman", "/usr/libexec/podman", "/usr/bin")
    folders = ("bin", "run", "storage", "networks", "upper", "scratch")
    can_pause = False  # that needs cgroups
    remove = ("rm", "-f", "-t0")
    docker = """#!/bin/sh
if [ "$1" = compose ]; then
    shift
    case "$*" in
    *--exit-code-from*) # podman-compose leaves the other containers running, which docker compose stops
        podman-compose "$@"
        status=$?
        podman stop --all --time 1
        exit $status
        ;;
    esac
    exec podman-compose "$@"
fi
if [ "$1" = build ]; then
    shift
    exec podman build --pull=never --isolation=chroot --network=host "$@"
fi
exec podman "$@"
"""
    storage = """[storage]
driver = "overlay"
runroot = "{top}/run"
graphroot = "{top}/storage"
"""
    settings = """[containers]
cgroups = "disabled"
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
volumes = [{volumes}]
[engine]
runtime = "crun"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "{top}/networks"
"""

    @classmethod
    def missing(cls):
        """The programs that it needs and that are not here."""
        absent = [name for name in cls.programs if shutil.which(name) is None]
        return absent + [name for name in cls.helpers
                         if not any(os.path.exists(f"{place}/{name}") for place in cls.helper_folders)]

    def __init__(self, top, volumes=(), network=True):
        """`volumes` are what each container sees: [(path here, path there)], read-only. Podman makes its own
        network when a container needs one, so `network` changes nothing."""
        super().__init__(top)
        # crun makes the user of a container the owner of its stdin, which is the /dev/null of podman
        null = os.path.join(top, "null")
        os.mknod(null, stat.S_IFCHR, os.makedev(1, 3))
        os.chmod(null, 0o666)
        call("mount", "--bind", null, "/dev/null")
        # podman keeps a cache below /var/lib, whatever its settings are
        call("mount", "-t", "overlay", "overlay", "/var/lib", "-o",
             f"lowerdir=/var/lib,upperdir={top}/upper,workdir={top}/scratch")
        os.environ["CONTAINERS_STORAGE_CONF"] = self.write("storage.conf", self.storage.format(top=top))
        words = ", ".join(f'"{here}:{there}:ro"' for here, there in volumes)
        os.environ["CONTAINERS_CONF"] = self.write("containers.conf", self.settings.format(volumes=words, top=top))
        self.write("bin/docker", self.docker, 0o755)

    def owns(self, one):
        """But for what serves one `exec`."""
        words = one.read("cmdline").split(b"\0")
        name = os.path.basename(words[0])
        return name == b"aardvark-dns" or (name == b"conmon" and b"--exec-attach" not in words)

    def close(self):
        call("umount", "-R", os.path.join(self.top, "storage/overlay"), check=False)
        call("umount", "/dev/null", check=False)


__all__ = ["Engine", "Podman", "call", "entrance"]
