# SPDX-License-Identifier: Apache-2.0
"""The private world of one test, and the check that nothing is left in it."""

import ctypes
import json
import os
import re
import shutil
import socket
import tempfile
import time

from ground import limit
from procfs import descendants, is_alive, kill, processes

TAG_NAME = "HVDRUN_TEST_TAG"

# Variables that would change what hvdrun or an MPI library does, whatever the person who runs the
# tests has set.
SCRUB = re.compile(
    r"^(HVDRUN|HOROVOD_|PMI_|PMI2_|PMIX_|OMPI_|PRTE_|MPI_LOCAL|SLURM_|MPIR_CVAR|NCCL_|GLOO_|RANK$|"
    r"WORLD_SIZE$|LOCAL_|MASTER_|OMP_|JAX_|TORCH|BASH_FUNC_|COLUMNS$|LINES$|XDG_)")

_PR_SET_CHILD_SUBREAPER = 36
if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
    raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


JOBS = ".jobs-"  # and the host; below hvdrun-UID


def is_record(folder, name):
    """A file in the folder of jobs that stays there for a day: the record of a job and its log, the journal of
    short jobs, the folder with the evidence of a failure, and the socket of a job whose driver was killed. The next command of hvdrun removes that socket."""
    job, kind = os.path.splitext(name)
    if kind in (".json", ".jsonl", ".log", ".evidence"):
        return True
    try:
        with open(os.path.join(folder, job + ".json"), encoding="utf-8") as file:
            return kind in (".control", ".new") and "ended" not in json.load(file)
    except (OSError, ValueError):
        return False


def leftovers(top):
    """What is below a folder, but for the folders of jobs with their records."""
    found, kept = [], set()
    for folder, folders, files in os.walk(top):
        if os.path.basename(folder).startswith(JOBS):
            folders[:] = [name for name in folders if not is_record(folder, name)]
            kept |= {folder, os.path.dirname(folder)}
            found += [os.path.join(folder, name) for name in folders + files if not is_record(folder, name)]
        else:
            found += [os.path.join(folder, name) for name in folders + files]
    return [path for path in found if path not in kept]


class Box:
    """The private world of one test."""

    alive = set()

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="hvdt-")
        for name in ("tmp", "run", "home", "work"):
            setattr(self, name, os.path.join(self.root, name))
            os.mkdir(os.path.join(self.root, name), 0o700)
        self.tag = os.path.basename(self.root)
        self.jobs, self.helpers, self.complaints = [], [], []
        self.spares = lambda one: False  # processes that may stay, such as those of a container engine
        Box.alive.add(self)

    def environment(self, changes=None):
        env = {name: value for name, value in os.environ.items() if not SCRUB.match(name)}
        env.update(TMPDIR=self.tmp, XDG_RUNTIME_DIR=self.run, HOME=self.home, LC_ALL="C.UTF-8",
                   OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        env[TAG_NAME] = self.tag
        if os.environ.get("HVDRUN_TEST_WARM"):  # the tests warm.NAME (flow.cmake)
            env["HVDRUN_WARM"] = "auto"
        for name, value in (changes or {}).items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = str(value)
        return env

    def path(self, *names):
        return os.path.join(self.work, *names)

    def gate(self, name="gate"):
        """A path for a worker's wait_for_file, and a function that makes it."""
        path = self.path(name)
        return path, lambda: open(path, "w", encoding="ascii").close()

    def strays(self):
        """Processes that are left: below us, or with our tag wherever they are."""
        table = processes()
        own = {job.popen.pid for job in self.jobs + self.helpers}
        found = {}
        for one in descendants(os.getpid(), table):
            if one.pid in own:
                if one.state != "Z":
                    found[one.pid] = one
            elif one.state == "Z" and one.ppid == os.getpid():
                try:
                    os.waitpid(one.pid, os.WNOHANG)
                except ChildProcessError:
                    pass
            elif one.state not in ("Z", "X"):
                found[one.pid] = one
        needle = f"{TAG_NAME}={self.tag}".encode()
        for one in table.values():
            if one.pid not in found and one.pid != os.getpid() and one.state not in ("Z", "X") and \
                    needle in one.read("environ").split(b"\0") and is_alive(one.pid):
                found[one.pid] = one
        return [one for one in found.values() if not self.spares(one)]

    def jobs_folder(self):
        """Where hvdrun keeps the records of jobs, their logs and control sockets."""
        return os.path.join(self.tmp, f"hvdrun-{os.getuid()}", JOBS + socket.gethostname())

    def litter(self):
        """Everything below TMPDIR and XDG_RUNTIME_DIR but the records of jobs."""
        return leftovers(self.tmp) + leftovers(self.run)

    def check_nothing_left(self, timeout=5):
        """Fails when processes or files of the runs are still there after `timeout` seconds, the time
        that the kernel and dying processes may need; then kills and removes them."""
        deadline = time.monotonic() + limit(timeout)
        while True:
            strays, litter = self.strays(), self.litter()
            if (not strays and not litter) or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        complaints, self.complaints = self.complaints, []
        complaints += [f"process left: {one}" for one in strays]
        complaints += [f"file left: {path}" for path in litter]
        self.kill_strays()
        for top in (self.tmp, self.run):
            for name in os.listdir(top):
                path = os.path.join(top, name)
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    os.unlink(path)
        if complaints:
            raise AssertionError("something is left after the run:\n" + "\n".join(complaints))

    def kill_strays(self):
        for _ in range(50):
            strays = self.strays()
            if not strays:
                return
            for one in strays:
                kill(one.pid)
            for job in self.jobs + self.helpers:
                job.popen.poll()
            time.sleep(0.02)

    def close(self):
        Box.alive.discard(self)
        for job in self.jobs + self.helpers:
            job.close()
        shutil.rmtree(self.root, ignore_errors=True)
