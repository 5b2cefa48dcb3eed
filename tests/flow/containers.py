# SPDX-License-Identifier: Apache-2.0
"""Real containers, for flow tests, inside a box (tests/rig/box).

    class Test(Containers):
        def test_x(self):
            self.compose("up", "-d")
            result = self.run_job("--transport", "docker", "-H", "trainer-0,trainer-1", "hostname")

main(Podman) or main(Docker) starts the file again inside a box, or says in one line what is missing and ends
with status 77. In the box, `docker` and `docker compose` are those of the engine. Their images, containers,
volumes and networks lie in the box's memory and go with it. The image hvdrun-trainer needs no registry: it has
the /etc of this machine, and sees the machine's /usr and the built hvdrun as read-only volumes. If
HVDRUN_IMAGE names the archive of an image, that is taken instead (see container_image.py).

After each test, no container may hold a process of a job; then all containers and volumes are removed.
"""

import os
import shutil
import signal
import subprocess
import sys

from container_engine import call, entrance
from ground import BUILD, HVDRUN, SOURCE, WORKERS, Later, wait_until
from jobs import Job
from procfs import processes
import rig as flow

IMAGE = "hvdrun-trainer"
PATH_INSIDE = "/opt/hvdrun:/opt/hvdrun/lib/hvdrun:/usr/sbin:/usr/bin:/sbin:/bin"
COMPOSE = os.path.join(SOURCE, "examples/compose")
# what must not leave the machine, and what an engine writes for each container itself
NOT_OF_ETC = ("etc/ssh/ssh_host_*", "etc/*shadow*", "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab")
PROBE = """mount -t cgroup2 none /mnt && umount /mnt && mount -t tmpfs none /mnt && cd /mnt && mkdir a b c
mount -t overlay none a -o lowerdir=/var/lib,upperdir=b,workdir=c
"""


def missing(engine):
    """What keeps containers from running here, in words; "" when nothing does."""
    if os.geteuid() != 0:
        return "root"
    absent = engine.missing()
    if absent:
        return "these programs: " + " ".join(absent)
    if not all(os.path.islink(f"/{name}") for name in ("bin", "sbin", "lib")):
        return "a system whose /bin and /lib are links into /usr"
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False).returncode != 0:
        return "torch for /usr/bin/python3 (Debian: python3-torch)"
    probe = subprocess.run(["unshare", "--mount", "sh", "-ec", PROBE], capture_output=True, text=True, check=False)
    return f"the right to mount overlay and cgroup2 ({probe.stderr.strip()})" if probe.returncode != 0 else ""


def start_engine(kind):
    """With the image that the tests use."""
    top = os.path.join(os.environ["HVDRUN_RIG"], "containers")
    call("mount", "-t", "cgroup2", "none", "/sys/fs/cgroup")
    archive = os.environ.get("HVDRUN_IMAGE")
    if archive:
        engine = kind(top)
        call("docker", "load", "-q", "-i", archive)
    else:
        engine = kind(top, volumes=[("/usr", "/usr"), (os.path.dirname(HVDRUN), "/opt/hvdrun")])
        import_machine(os.path.join(top, "image"))
    return engine


def copy_machine(root):
    """What a container needs of this machine but /usr, which it has to see at its own path, in the folder `root`."""
    for name in ("opt/hvdrun", "proc", "sys", "dev", "run", "usr", "var/tmp", "work", "keys", "shared", "home", "tmp"):
        os.makedirs(os.path.join(root, name))
    for name in ("bin", "sbin", "lib", "lib64"):
        os.symlink(f"usr/{name}", os.path.join(root, name))
    os.chmod(os.path.join(root, "tmp"), 0o1777)
    excluded = " ".join(f"--exclude='{name}'" for name in NOT_OF_ETC)
    call("sh", "-c", f"tar -C / {excluded} -cf - etc | tar -C {root} -xf -")
    with open(os.open(os.path.join(root, "etc/shadow"), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write("root:*:19000:0:99999:7:::\n")
    with open(os.path.join(root, "etc/passwd"), "w", encoding="ascii") as file:
        file.write("root:x:0:0:root:/home:/bin/bash\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n")


def import_machine(root):
    """An image from this machine's own files, for containers that see its /usr; made in the folder `root`."""
    copy_machine(root)
    call("sh", "-c", f"tar -C {root} -cf - . | docker import -c 'ENV PATH={PATH_INSIDE}' - {IMAGE}:latest")
    shutil.rmtree(root)


def is_in_a_container(one):
    """A process of another pid namespace."""
    return any(line.startswith(b"NSpid:") and len(line.split()) > 2 for line in one.read("status").splitlines())


class Containers(flow.Flow):
    """A test with containers."""

    kind, engine = None, None  # the engine of this file, which the first test starts
    left_timeout = 15

    def setUp(self):
        super().setUp()
        if Containers.engine is None:
            Containers.engine = start_engine(Containers.kind)
        self.box.spares = lambda one: is_in_a_container(one) or self.engine.owns(one)
        self.addCleanup(self._end_containers)

    def _end_containers(self):
        try:
            if not self._has_failed():
                self.check_containers()
        finally:
            names = self.docker("ps", "-aq").split()
            if names:
                self.docker(*self.engine.remove, *names)
            self.docker("volume", "prune", "-f")
            self.docker("network", "prune", "-f")

    # what a person types

    def docker(self, *argv, check=True):
        """Runs docker, and returns what it printed."""
        return call("docker", *argv, check=check)[1].strip()

    def docker_job(self, *argv):
        """A docker that goes on while the test looks at it."""
        return Job(self.box, ["docker", *argv])

    def compose(self, *argv, check=True):
        return call("docker", "compose", "-f", os.path.join(COMPOSE, "compose.yaml"), *argv, check=check)

    def up(self, *names):
        """Containers of the example that a job can use; without names, all four."""
        self.compose("up", "-d", *names)
        for name in names or [f"trainer-{number}" for number in range(4)]:
            wait_until(lambda: "Server listening" in self.docker("logs", name), f"the sshd of {name} listens")

    def pause(self, name):
        """Stops all that a container has; returns what lets it go on."""
        if self.engine.can_pause:
            self.docker("pause", name)
            return lambda: self.docker("unpause", name)
        stopped = [self.init(name), *(one.pid for one in self.inside(name))]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        return lambda: resume(stopped)

    # what runs in them

    def init(self, name):
        """The pid of a container's first process."""
        return int(self.docker("inspect", "-f", "{{.State.Pid}}", name))

    def inside(self, name):
        """Its processes, but for the first one."""
        init = self.init(name)
        space = os.readlink(f"/proc/{init}/ns/pid")
        found = []
        for one in processes().values():
            try:
                if one.pid != init and one.state not in "ZX" and os.readlink(f"/proc/{one.pid}/ns/pid") == space:
                    found.append(one)
            except OSError:
                pass
        return found

    def wait_rank(self, name, job, timeout=30):
        """Waits until a rank runs in the container."""
        def there():
            if job.popen.poll() is not None:
                raise AssertionError(f"ended before a rank ran in {name}{job.describe()}")
            return any(b"HOROVOD_RANK=" in one.read("environ") for one in self.inside(name))
        wait_until(there, f"a rank in {name}", timeout)

    def check_containers(self):
        """Nothing of a job is left in one that runs."""
        for name in self.docker("ps", "--format", "{{.Names}}").split():
            wait_until(lambda: not self.inside(name),
                       Later(f"{name} is clean; it has ", lambda: [str(one) for one in self.inside(name)]), self.left_timeout)


def resume(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass


def is_outside(kind):
    """Whether main() has yet to enter the box. Ends the program where no container can run."""
    if "HVDRUN_RIG_KEEPER" in os.environ:
        return False
    lack = missing(kind)
    if lack:
        skip(lack)
    return True


def skip(lack):
    print(f"skipped: containers need {lack}", flush=True)
    sys.exit(entrance.SKIPPED)


def main(kind):
    if is_outside(kind):
        entrance.enter([SOURCE, BUILD, os.path.dirname(HVDRUN), WORKERS])
    Containers.kind = kind
    flow.main()


__all__ = ["COMPOSE", "Containers", "call", "copy_machine", "is_outside", "main", "skip"]
