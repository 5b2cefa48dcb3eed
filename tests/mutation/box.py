# SPDX-License-Identifier: Apache-2.0
"""Where changed programs run. A changed kill() or unlink() can hit anything. So each process that runs such
programs sees a file system of its own, in which it can write only to a few empty folders. Each program runs
among process ids of its own. When it ends, the kernel ends all processes that it has left behind."""
import ctypes
import os
import pathlib
import resource
import signal
import subprocess
import time

EMPTY = ("/tmp", "/run", "/dev/shm", "/var/tmp")
HOLD = "/mnt"
CLONE_NEWNS = 0x00020000
PR_SET_PDEATHSIG = 1
ENTRY = ["unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "sh", "-c", '"$@"; exit $?', "sh"]
MEMORY = 4 << 30  # bytes of address space, without a sanitizer


def possible():
    """Whether this process may make namespaces."""
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    """The kernel ends this process when the one that started it ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def enter(work):
    """Gives this process its own files: only `work` and the empty folders can be written from here on."""
    if LIBC.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    mount("--make-rprivate", "/")
    mount("--bind", work, HOLD)
    for place in EMPTY:
        if pathlib.Path(place).is_dir() and not pathlib.Path(place).is_symlink():
            mount("-t", "tmpfs", "-o", "mode=1777,size=1g", "mutation", place)
    pathlib.Path(work).mkdir(parents=True, exist_ok=True)
    mount("--move", HOLD, work)
    mount("-o", "remount,bind,ro", "/")
    os.chdir(work)


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True, stdin=subprocess.DEVNULL)


def empty_folders(work):
    """Removes what a program has left in the empty folders."""
    for place in EMPTY:
        for path in pathlib.Path(place).glob("*"):
            if not str(work).startswith(str(path)):
                subprocess.run(["rm", "-rf", "--", path], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run(command, limit, closed=True, memory=None, **options):
    """Runs `command` and ends it after `limit` seconds: (exit status or None, seconds, output)."""
    def prepare():
        die_with_parent()
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    began = time.monotonic()
    process = subprocess.Popen((ENTRY if closed else []) + [str(word) for word in command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                               preexec_fn=prepare, **options)
    try:
        output, _ = process.communicate(timeout=limit)
        status = process.returncode
    except subprocess.TimeoutExpired:
        status, output = None, b""
    finally:
        end_group(process.pid)
        process.kill()
        process.communicate()
    return status, time.monotonic() - began, output.decode(errors="replace")


def end_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
