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

import functools
import os
import shutil
import signal

from containers import call, copy_machine
from ground import BUILD, HVDRUN, WORKERS, wait_until
from hosts import RIG_SCRIPTS, Hosts, network
from jobs import Job
from procfs import descendants, kill

PORT = 4000
SECRET = "0fd7d0c4c5a2f3ad76f7e9b1c0a3d5e8"
UNTIL_OPEN = "echo $RANK of $WORLD_SIZE on $HVDRUN_HOSTNAME; while [ ! -e /tmp/open ]; do sleep 0.05; done"
KINDS = (("cgroup2", (), "memory.max", ""), ("cgroup", ("-o", "memory"), "memory.limit_in_bytes", "memory"))


@functools.lru_cache(maxsize=None)
def image():
    """The folder of the image that all pods have."""
    root = os.path.join(os.environ["HVDRUN_RIG"], "image")
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
    return root


class Pod(Job):
    """What its first process prints is its log, and the status that of this process."""

    def init(self):
        """That process."""
        def found():
            for one in descendants(self.pid):
                numbers = [line.split()[1:] for line in one.read("status").splitlines() if line.startswith(b"NSpid:")]
                if numbers and len(numbers[0]) == 2 and numbers[0][-1] == b"1" and os.path.basename(one.exe()).startswith("hvdrun"):
                    return one
            return None
        return wait_until(found, "the first process of a pod")

    def terminate(self):
        """As Kubernetes does at first."""
        os.kill(self.init().pid, signal.SIGTERM)

    def kill_all(self):
        """Without grace; ends all its processes."""
        kill(self.init().pid)
        self.wait()

    def open(self):
        """Lets the workers of UNTIL_OPEN end."""
        with open(os.path.join("/proc", str(self.init().pid), "root", "tmp/open"), "w", encoding="ascii"):
            pass


class MemoryGroup:
    """A cgroup with a limit of memory. `folder` is None where the machine does not let us make one."""

    def __init__(self, name, limit):
        self.folder, self.place = None, os.path.join(os.environ["HVDRUN_RIG"], "shared", f"cgroup-{name}")
        os.makedirs(self.place, exist_ok=True)
        for kind, options, file, self.mounted_as in KINDS:
            if call("mount", "-t", kind, *options, "none", self.place, check=False)[0] != 0:
                continue
            self.folder = os.path.join(self.place, f"hvdt-{os.getpid()}-{name}")
            try:
                os.mkdir(self.folder)
                self.put(file, limit)
                return
            except OSError:
                self.close()
                self.folder = None

    def put(self, file, value):
        with open(os.path.join(self.folder, file), "w", encoding="ascii") as opened:
            opened.write(str(value))

    def close(self):
        if self.folder is not None and os.path.isdir(self.folder):
            wait_until(self.is_removed, "a cgroup can be removed")
        call("umount", "-l", self.place, check=False)

    def is_removed(self):
        try:
            os.rmdir(self.folder)
            return True
        except OSError:
            return False


class Pods(Hosts):

    server = "train-0.train"  # the name of pod 0
    count = 0  # hosts have an sshd, and pods have not

    def setUp(self):
        super().setUp()
        image()
        self.secret = self.write("secret", SECRET + "\n", 0o600)
        self.plugged = set()
        self.addCleanup(self.unplug)

    def unplug(self):
        for number in self.plugged:
            network.unplug(number)

    def plug(self, numbers):
        """They have a network, if they had none."""
        new = set(numbers) - self.plugged
        self.plugged |= new
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
