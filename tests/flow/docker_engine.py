# SPDX-License-Identifier: Apache-2.0
"""The real Docker for flow tests: dockerd and containerd, docker and docker-compose, in a box.

The daemon has its files in a folder of the test and in the box's /run. Its packet filter is in the network
namespace of the box, and its cgroups are in a group of their own. If the box is killed, only that group remains
on the machine, empty, and the next engine removes it.
"""

import atexit
import json
import os
import shutil
import subprocess

from container_engine import Engine, call
from ground import wait_until

CGROUPS = "/sys/fs/cgroup"
GROUP = "hvdrun-tests"
RUN = "/run/hvdrun-docker"  # for sockets, whose paths must be short


class Docker(Engine):
    """Docker and Compose: the plug-in, or else the program docker-compose."""

    programs = ("dockerd", "containerd", "runc", "iptables", "tar")
    folders = ("bin", "data", "tmp", "config")
    docker = """#!/bin/sh
docker=/usr/bin/docker
if [ "$1" = compose ] && ! $docker compose version >/dev/null 2>&1; then
    shift
    exec docker-compose "$@"
fi
if [ "$1" = build ]; then
    shift
    exec $docker build --network=host "$@"
fi
exec $docker "$@"
"""
    # A runtime that adds volumes to every container, as a setting of podman does.
    runtime = """#!/usr/bin/python3 -BES
import json, os, sys
if "--bundle" in sys.argv:
    path = os.path.join(sys.argv[sys.argv.index("--bundle") + 1], "config.json")
    with open(path) as file:
        config = json.load(file)
    for here, there in {volumes}:
        config["mounts"].append(dict(source=here, destination=there, type="bind", options=["rbind", "ro"]))
    with open(path, "w") as file:
        json.dump(config, file)
os.execv("{runc}", ["runc", *sys.argv[1:]])
"""

    @classmethod
    def missing(cls):
        """The programs that it needs and that are not here."""
        absent = [name for name in cls.programs if shutil.which(name) is None]
        if not os.path.exists("/usr/bin/docker"):
            absent.append("/usr/bin/docker")
        elif shutil.which("docker-compose") is None and \
                call("/usr/bin/docker", "compose", "version", check=False)[0] != 0:
            absent.append("docker-compose")
        return absent

    def __init__(self, top, volumes=(), network=True):
        """`volumes` are what each container sees: [(path here, path there)], read-only. Without `network`, it
        makes no bridge and no rule of a packet filter, so that it can build images with the machine's network."""
        super().__init__(top)
        self.socket = os.path.join(RUN, "docker.sock")
        self.group = f"/{GROUP}-{os.stat('/proc/self/ns/pid').st_ino}"
        remove_groups()
        os.mkdir(RUN)
        runtime = self.write("runtime", self.runtime.format(volumes=list(volumes), runc=shutil.which("runc")), 0o755)
        self.write("bin/docker", self.docker, 0o755)
        settings = {"data-root": f"{top}/data", "exec-root": RUN, "pidfile": f"{top}/pid",
                    "hosts": [f"unix://{self.socket}"], "cgroup-parent": self.group,
                    "runtimes": {"tests": {"path": runtime}}, "default-runtime": "tests"}
        if not network:
            settings.update({"bridge": "none", "iptables": False, "ip6tables": False, "ip-forward": False, "ip-masq": False})
        os.environ.update(DOCKER_HOST=f"unix://{self.socket}", DOCKER_CONFIG=f"{top}/config", DOCKER_TMPDIR=f"{top}/tmp")
        with open(os.path.join(top, "log"), "wb") as log:
            self.daemon = subprocess.Popen(["dockerd", "--config-file", self.write("daemon.json", json.dumps(settings))],
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        atexit.register(self.close)
        wait_until(self._answers, "dockerd answers", timeout=60)

    def _answers(self):
        if self.daemon.poll() is not None:
            with open(os.path.join(self.top, "log"), encoding="utf-8", errors="replace") as log:
                raise AssertionError(f"dockerd ended with status {self.daemon.returncode}: {log.read()[-4000:]}")
        return call("docker", "version", check=False)[0] == 0

    def owns(self, one):
        """The daemon and what it starts: containerd and its shims."""
        name = os.path.basename(one.read("cmdline").split(b"\0")[0])
        return name in (b"dockerd", b"docker-proxy") or name.startswith(b"containerd")

    def close(self):
        if self.daemon.poll() is None:
            self.daemon.terminate()
            self.daemon.wait(60)
        remove_groups()


def remove_groups():
    """The groups of engines that have ended: those without a process."""
    for name in os.listdir(CGROUPS):
        if name.startswith(GROUP):
            for path, _, _ in os.walk(os.path.join(CGROUPS, name), topdown=False):
                try:
                    os.rmdir(path)
                except OSError:
                    pass  # it has processes, or another engine has been quicker


__all__ = ["Docker"]
