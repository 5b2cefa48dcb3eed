# SPDX-License-Identifier: Apache-2.0
"""Pods on the network of the rig, which share nothing else but their image (tests/rig/pod_init).

    class Test(Pods):
        def test_x(self):
            driver = self.driver("train-[0-2]:1", "sh", "-c", "echo $RANK")
            pods = [self.pod(1), self.pod(2)]
            self.expect(driver.wait(), 0)

Pod K has the name train-K and the address of host K, unless the test says otherwise. Pod 0 runs hvdrun, and the others the agent.
The image has the machine's /usr, hvdrun in /opt/hvdrun, and in /app the workers of the tests and what program() writes.
"""

import fcntl
import functools
import glob
import os
import shutil
import signal
import tempfile

from containers import call, copy_machine
from ground import BUILD, HVDRUN, WORKERS, wait_until
from hosts import RIG_SCRIPTS, Hosts, network
from jobs import Job
from procfs import kill, process

PORT = 4000
SECRET = "0fd7d0c4c5a2f3ad76f7e9b1c0a3d5e8"
# Pod.open() ends it. It waits without processes that come and go, which hundreds of pods could not afford.
UNTIL_OPEN = ("echo $RANK of $WORLD_SIZE on $HVDRUN_HOSTNAME; [ -p /tmp/wait ] || mkfifo /tmp/wait; exec 3<>/tmp/wait; "
              "[ -e /tmp/open ] || read -r _ <&3")
PREFIX = "hvdt-"  # of the cgroups
KINDS = (("cgroup2", (), "memory.max", ("memory.swap.max", 0), ""),
         ("cgroup", ("-o", "memory"), "memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", None), "memory"))


@functools.lru_cache(maxsize=None)
def image():
    """The folder of the image that all pods have."""
    done = os.path.join(os.environ["HVDRUN_RIG"], "image")
    root = done + ".new"
    shutil.rmtree(root, ignore_errors=True)  # what an attempt that failed has left
    os.makedirs(root)
    copy_machine(root)
    for name in ("app", "run/hvdrun", "run/etc"):
        os.makedirs(os.path.join(root, name))
    for name in ("hosts", "hostname"):
        with open(os.path.join(root, "etc", name), "w", encoding="ascii"):
            pass
    shutil.copy(HVDRUN, os.path.join(root, "opt/hvdrun/hvdrun"))
    for source, target in ((os.path.join(BUILD, "lib"), "opt/hvdrun/lib"), (WORKERS, "app/workers")):
        shutil.copytree(source, os.path.join(root, target), ignore=shutil.ignore_patterns("*.a", "__pycache__"))
    os.rename(root, done)
    return done


class Pod(Job):
    """What its first process prints is its log, and the status that of this process."""

    def find_init(self):
        """That process, if it runs: the one child of unshare."""
        try:
            with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="ascii") as file:
                children = [process(int(word)) for word in file.read().split()]
        except OSError:
            children = []
        return next((one for one in children if one is not None and os.path.basename(one.exe()).startswith("hvdrun")), None)

    def init(self):
        return wait_until(self.find_init, "the first process of a pod")

    def interrupt(self):
        """As a user, if it has not ended by itself."""
        init = self.find_init()
        try:
            if init is not None:
                os.kill(init.pid, signal.SIGINT)
        except ProcessLookupError:
            pass

    def terminate(self):
        """As Kubernetes does at first."""
        os.kill(self.init().pid, signal.SIGTERM)

    def kill_all(self):
        """Without grace; ends all its processes."""
        kill(self.init().pid)
        self.wait()

    def open(self):
        """Lets the workers of UNTIL_OPEN end. One that does not hold the FIFO yet finds the file."""
        folder = os.path.join("/proc", str(self.init().pid), "root", "tmp")
        with open(os.path.join(folder, "open"), "w", encoding="ascii"):
            pass
        if os.path.exists(os.path.join(folder, "wait")):
            fifo = os.open(os.path.join(folder, "wait"), os.O_RDWR | os.O_NONBLOCK)
            os.write(fifo, b"\n" * 100)  # a line for each worker
            os.close(fifo)


class MemoryGroup:
    """A cgroup with a limit of memory, and without swap. `folder` is None where the machine does not let us make one."""

    def __init__(self, name, limit):
        self.folder, self.lock, self.place = None, None, os.path.join(os.environ["HVDRUN_RIG"], "shared", f"cgroup-{name}")
        os.makedirs(self.place, exist_ok=True)
        for kind, options, file, swap, self.mounted_as in KINDS:
            if call("mount", "-t", kind, *options, "none", self.place, check=False)[0] != 0:
                continue
            try:
                self.make()
                self.put(file, limit)
                if has_swap() or os.path.exists(os.path.join(self.folder, swap[0])):
                    self.put(swap[0], limit if swap[1] is None else swap[1])
                return
            except OSError:
                self.close()

    def put(self, file, value):
        with open(os.path.join(self.folder, file), "w", encoding="ascii") as opened:
            opened.write(str(value))

    def make(self):
        """Also sweeps: a cgroup outlives a test that was killed, because it is no part of the box. Each test that lives holds a lock on
        its own, and one on all while it is here."""
        root = wait_until(lambda: lock(self.place), "no other test makes a cgroup")
        try:
            for folder in glob.glob(os.path.join(self.place, PREFIX + "*")):
                held = lock(folder)
                if held is not None:
                    os.close(held)
                    os.rmdir(folder)
            self.folder = tempfile.mkdtemp(prefix=PREFIX, dir=self.place)
            os.chmod(self.folder, 0o755)  # the user of the pod reads its counters
            self.lock = lock(self.folder)
        finally:
            os.close(root)

    def close(self):
        """Ends what is in it: a test that fails comes here before its pods end."""
        try:
            if self.folder is not None:
                wait_until(self.is_removed, "a cgroup can be removed")
        finally:
            if self.lock is not None:
                os.close(self.lock)
            self.folder, self.lock = None, None
            call("umount", "-l", self.place, check=False)

    def is_removed(self):
        try:
            with open(os.path.join(self.folder, "cgroup.procs"), encoding="ascii") as file:
                for pid in map(int, file.read().split()):
                    if pid > 0:  # 0 would be one that we do not see
                        kill(pid)
            os.rmdir(self.folder)
        except FileNotFoundError:
            pass
        except OSError:
            return False
        return True


def lock(folder):
    """A descriptor that holds the lock of a folder; None: another one has it."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return fd
    except BlockingIOError:
        os.close(fd)
        return None


def has_swap():
    with open("/proc/swaps", encoding="utf-8") as file:
        return len(file.readlines()) > 1


def plugged():
    """The numbers of the network namespaces that there are."""
    return {int(path.rpartition("rig")[2]) for path in glob.glob("/run/netns/rig*")}


class Pods(Hosts):

    server = "train-0.train"  # the name of pod 0
    count = 0  # hosts have an sshd, and pods have not

    def setUp(self):
        super().setUp()
        image()
        self.secret = self.write("secret", SECRET + "\n", 0o600)
        self.addCleanup(self.unplug)

    @staticmethod
    def unplug():
        for number in plugged():
            network.unplug(number)

    @staticmethod
    def plug(numbers):
        """They have a network, if they had none."""
        new = set(numbers) - plugged()
        if new:
            network.plug(sorted(new))

    def program(self, name, text):
        """The path of a worker in the image."""
        path = os.path.join(image(), "app", name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return f"/app/{name}"

    def pod(self, number, *words, name=None, at=None, group=None, outputs=None, **env):
        """A pod that runs the words, or an agent."""
        name, at = name or f"train-{number}", number if at is None else at
        self.plug([at])
        variables = {"HVDRUN_DIAL_PORT": PORT, "HVDRUN_DIAL_SECRET": "/run/hvdrun/secret", **env}
        share = [f"host:{network.address(0)}:{self.server}", f"host:{network.address(at)}:{name}"]
        before = []
        if group is not None:
            share.append(f"cgroup:{group.folder}:{group.mounted_as}")
            before = ["sh", "-ec", f"echo $$ > {group.folder}/cgroup.procs; exec \"$@\"", "sh"]
        return Pod(self.box, [*before, "ip", "netns", "exec", f"rig{at}", "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork",
                              "--kill-child=SIGKILL", os.path.join(RIG_SCRIPTS, "pod_init"), image(), name, self.secret, " ".join(share),
                              *(f"{key}={value}" for key, value in variables.items()), *(words or ("hvdrun-agent", "--dial", f"{self.server}:{PORT}"))], **(outputs or {}))

    def driver(self, hosts, *words, **options):
        """The pod of hvdrun."""
        named = ["-H", hosts] if hosts else []
        return self.pod(0, "hvdrun", "--transport", "dial", *named, *words, **options)

    def end(self, pods, status=0):
        return [self.expect(pod.wait(), status) for pod in pods]

    def open(self, *pods):
        for pod in pods:
            pod.open()


__all__ = ["PORT", "SECRET", "UNTIL_OPEN", "MemoryGroup", "Pod", "Pods", "image"]
