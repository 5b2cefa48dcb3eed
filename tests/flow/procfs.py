# SPDX-License-Identifier: Apache-2.0
"""Processes and listeners, as /proc shows them."""

import os
import re
import signal


class Process:
    """One line of /proc/PID/stat, and what else may be asked about it."""

    def __init__(self, pid):
        self.pid = pid
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
        self.comm = text[text.index(b"(") + 1:text.rindex(b")")].decode(errors="replace")
        fields = text[text.rindex(b")") + 2:].split()
        self.state = fields[0].decode()
        self.ppid, self.group, self.session = int(fields[1]), int(fields[2]), int(fields[3])
        self.started = int(fields[19])

    def read(self, name):
        try:
            with open(f"/proc/{self.pid}/{name}", "rb") as file:
                return file.read()
        except OSError:
            return b""

    def environ(self):
        pairs = [entry.split(b"=", 1) for entry in self.read("environ").split(b"\0") if b"=" in entry]
        return {os.fsdecode(name): os.fsdecode(value) for name, value in pairs}

    def exe(self):
        try:
            return os.readlink(f"/proc/{self.pid}/exe")
        except OSError:
            return ""

    def rss_kb(self):
        found = re.search(rb"VmRSS:\s+(\d+) kB", self.read("status"))
        return int(found.group(1)) if found else 0

    def listeners(self):
        """The TCP addresses it listens on, as (hexadecimal address, port)."""
        inodes = set()
        try:
            for fd in os.listdir(f"/proc/{self.pid}/fd"):
                found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{self.pid}/fd/{fd}"))
                if found:
                    inodes.add(found.group(1))
        except OSError:
            pass
        return [(address, port) for address, port, inode in tcp_listeners() if inode in inodes]

    def __str__(self):
        line = self.read("cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
        text = f"pid {self.pid} ppid {self.ppid} state {self.state} ({self.comm}) {line[:160]}"
        return text + "".join(f" LISTENS {a}:{p}" for a, p in self.listeners())


def tcp_listeners():
    found = []
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(path, encoding="ascii") as file:
                rows = file.read().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            words = row.split()
            if words[3] == "0A":
                address, port = words[1].rsplit(":", 1)
                found.append((address, int(port, 16), words[9]))
    return found


def process(pid):
    try:
        return Process(pid)
    except (OSError, ValueError):
        return None


def processes():
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            one = process(int(name))
            if one is not None:
                found[one.pid] = one
    return found


def descendants(root, table=None):
    """All processes below `root`, which is not in the list, parents first."""
    table = processes() if table is None else table
    children = {}
    for one in table.values():
        children.setdefault(one.ppid, []).append(one)
    found, todo = [], [root]
    while todo:
        for one in children.get(todo.pop(0), []):
            found.append(one)
            todo.append(one.pid)
    return found


def state(pid):
    """The one-letter state of a process; "" when there is none."""
    one = process(pid)
    return one.state if one is not None else ""


def is_alive(pid):
    return state(pid) not in ("", "Z", "X")


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def cpu_set(text):
    """The numbers of a list such as Cpus_allowed_list: "0-2,5"."""
    found = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found
