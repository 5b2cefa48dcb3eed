# SPDX-License-Identifier: Apache-2.0
"""Real containers, for flow tests: podman and podman-compose inside a box (tests/rig/box).

    class Test(Containers):
        def test_x(self):
            self.compose("up", "-d")
            result = self.run_job("--transport", "docker", "-H", "trainer-0,trainer-1", "hostname")

main() starts the file again inside a box, or says in one line what is missing and ends with status 77.
In the box, `docker` is podman and `docker compose` is podman-compose. Their images, containers, volumes
and networks lie in the box's memory and go with it. The image hvdrun-trainer needs no registry: it has
the /etc of this machine, and sees the machine's /usr and the built hvdrun as read-only volumes. If
HVDRUN_IMAGE names the archive of an image, that is taken instead (see container_image.py).

After each test, no container may hold a process of a job; then all containers and volumes are removed.
"""

import os
import shutil
import subprocess
import sys

from ground import BUILD, HERE, HVDRUN, SOURCE, WORKERS, Later, patient, wait_until
from jobs import Job
from procfs import processes
import rig as flow

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "rig"))
import entrance  # noqa: E402

IMAGE = "hvdrun-trainer"
PROGRAMS = ("podman", "podman-compose", "crun", "conmon", "iptables", "tar")
HELPERS = ("netavark", "aardvark-dns")
HELPER_FOLDERS = ("/usr/lib/podman", "/usr/libexec/podman", "/usr/bin")
PATH_INSIDE = "/opt/hvdrun:/usr/sbin:/usr/bin:/sbin:/bin"
COMPOSE = os.path.join(SOURCE, "examples/compose")
# what must not leave the machine, and what podman writes for each container itself
NOT_OF_ETC = ("etc/ssh/ssh_host_*", "etc/*shadow*", "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab")
PROBE = """mount -t cgroup2 none /mnt && umount /mnt && mount -t tmpfs none /mnt && cd /mnt && mkdir a b c
mount -t overlay none a -o lowerdir=/var/lib,upperdir=b,workdir=c
"""
DOCKER = """#!/bin/sh
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
STORAGE = """[storage]
driver = "overlay"
runroot = "{top}/run"
graphroot = "{top}/storage"
"""
SETTINGS = """[containers]
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


def missing():
    """What keeps containers from running here, in words; "" when nothing does."""
    if os.geteuid() != 0:
        return "root"
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    absent += [name for name in HELPERS if not any(os.path.exists(f"{place}/{name}") for place in HELPER_FOLDERS)]
    if absent:
        return "these programs: " + " ".join(absent)
    if not all(os.path.islink(f"/{name}") for name in ("bin", "sbin", "lib")):
        return "a system whose /bin and /lib are links into /usr"
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False).returncode != 0:
        return "torch for /usr/bin/python3 (Debian: python3-torch)"
    probe = subprocess.run(["unshare", "--mount", "sh", "-ec", PROBE], capture_output=True, text=True, check=False)
    return f"the right to mount overlay and cgroup2 ({probe.stderr.strip()})" if probe.returncode != 0 else ""


def call(*argv, check=True, timeout=120, **options):
    """A program that ends soon; returns (status, what it printed)."""
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=patient(timeout), **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, argv))}: status {done.returncode}: {done.stdout[-4000:]}")
    return done.returncode, done.stdout


class Engine:
    """podman with its files below `top`, for the mount namespace that this process is in."""

    one = None

    def __init__(self, top, volumes=()):
        self.top = top
        for name in ("bin", "run", "storage", "networks", "upper", "scratch"):
            os.makedirs(os.path.join(top, name))
        # podman keeps a cache below /var/lib, whatever its settings are
        call("mount", "-t", "overlay", "overlay", "/var/lib", "-o",
             f"lowerdir=/var/lib,upperdir={top}/upper,workdir={top}/scratch")
        os.environ["CONTAINERS_STORAGE_CONF"] = self._write("storage.conf", STORAGE.format(top=top))
        words = ", ".join(f'"{volume}"' for volume in volumes)
        os.environ["CONTAINERS_CONF"] = self._write("containers.conf", SETTINGS.format(volumes=words, top=top))
        self._write("bin/docker", DOCKER, 0o755)
        # not a python3 that the person who runs the tests has put before the system's
        os.environ["PATH"] = f"{top}/bin:{entrance.SYSTEM_PATH}"

    def _write(self, name, text, mode=0o644):
        path = os.path.join(self.top, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    @classmethod
    def up(cls):
        """With the image that the tests use; once in the box of a test file."""
        if cls.one is None:
            top = os.path.join(os.environ["HVDRUN_RIG"], "containers")
            call("mount", "-t", "cgroup2", "none", "/sys/fs/cgroup")
            archive = os.environ.get("HVDRUN_IMAGE")
            if archive:
                cls.one = Engine(top)
                call("podman", "load", "-q", "-i", archive)
            else:
                cls.one = Engine(top, ["/usr:/usr:ro", f"{os.path.dirname(HVDRUN)}:/opt/hvdrun:ro"])
                import_machine(os.path.join(top, "image"))
        return cls.one


def import_machine(root):
    """An image from this machine's own files, for containers that see its /usr; made in the folder `root`."""
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
    call("sh", "-c", f"tar -C {root} -cf - . | podman import -c 'ENV PATH={PATH_INSIDE}' - {IMAGE}:latest")
    shutil.rmtree(root)


def is_in_a_container(one):
    """A process of another pid namespace."""
    return any(line.startswith(b"NSpid:") and len(line.split()) > 2 for line in one.read("status").splitlines())


def is_of_the_engine(one):
    """What podman leaves running as long as a container runs, but not what serves one `exec`."""
    words = one.read("cmdline").split(b"\0")
    name = os.path.basename(words[0])
    return name == b"aardvark-dns" or (name == b"conmon" and b"--exec-attach" not in words)


class Containers(flow.Flow):
    """A test with containers."""

    left_timeout = 15

    def setUp(self):
        super().setUp()
        self.engine = Engine.up()
        self.box.spares = lambda one: is_in_a_container(one) or is_of_the_engine(one)
        self.addCleanup(self._end_containers)

    def _end_containers(self):
        try:
            if not self._has_failed():
                self.check_containers()
        finally:
            self.docker("rm", "-fa", "-t0")
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


def is_outside():
    """Whether main() has yet to enter the box. Ends the program where no container can run."""
    if "HVDRUN_RIG_KEEPER" in os.environ:
        return False
    lack = missing()
    if lack:
        skip(lack)
    return True


def skip(lack):
    print(f"skipped: containers need {lack}", flush=True)
    sys.exit(entrance.SKIPPED)


def main():
    if is_outside():
        entrance.enter([SOURCE, BUILD, os.path.dirname(HVDRUN), WORKERS])
    flow.main()


__all__ = ["COMPOSE", "Containers", "Engine", "call", "is_outside", "main", "skip"]
