# SPDX-License-Identifier: Apache-2.0
"""Runs of hvdrun: plain, under a terminal, and the programs that read their output."""

import errno
import fcntl
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

from ground import HERE, WORKERS, Later, limit, wait_until
from procfs import descendants, kill, process

LABELLED = re.compile(r"^\[[\d,-]+\]<std(out|err)>:")
# LeakSanitizer about a thread that ended while it looked for leaks
LEAK_CHECK = re.compile(rb"^==\d+==Unable to get registers from thread \d+\.\n", re.M)


class Pump(threading.Thread):
    """Reads a descriptor to its end and keeps what came, chunk by chunk."""

    def __init__(self, fd):
        super().__init__(daemon=True)
        self.fd, self.chunks, self.lock = fd, [], threading.Lock()
        self.start()

    def run(self):
        while True:
            try:
                chunk = os.read(self.fd, 1 << 16)
            except OSError as error:
                if error.errno == errno.EINTR:
                    continue
                chunk = b""  # EIO: the other side of a terminal is gone
            if not chunk:
                break
            with self.lock:
                self.chunks.append(chunk)
        os.close(self.fd)

    def bytes(self):
        with self.lock:
            return b"".join(self.chunks)


class Feeder(threading.Thread):
    """Writes bytes into a descriptor and closes it; counts what was taken."""

    def __init__(self, fd, data):
        super().__init__(daemon=True)
        self.fd, self.data, self.taken, self.refused = fd, data, 0, False
        self.start()

    def run(self):
        view = memoryview(self.data)
        try:
            while self.taken < len(view):
                self.taken += os.write(self.fd, view[self.taken:self.taken + (1 << 16)])
        except OSError:
            self.refused = True
        os.close(self.fd)


class Result:
    """What a finished run left: status (negative: killed by that signal), stdout, stderr."""

    def __init__(self, argv, status, out, err, seconds):
        self.argv, self.status, self.out, self.seconds = argv, status, out, seconds
        self.err = err = LEAK_CHECK.sub(b"", err)
        self.stdout = out.decode("utf-8", "surrogateescape")
        self.stderr = err.decode("utf-8", "surrogateescape")

    @property
    def lines(self):
        return self.stdout.removesuffix("\n").split("\n") if self.stdout else []

    @property
    def said(self):
        """What the launcher itself said: the lines of stderr that no rank wrote."""
        return "\n".join(line for line in self.stderr.split("\n") if not LABELLED.match(line))

    def describe(self):
        def tail(text):
            return text if len(text) < 6000 else text[:1500] + "\n[...]\n" + text[-4500:]
        return (f"\ncommand: {' '.join(map(str, self.argv))}\nstatus: {self.status}\n"
                f"--- stdout ({len(self.out)} bytes)\n{tail(self.stdout)}\n"
                f"--- stderr ({len(self.err)} bytes)\n{tail(self.stderr)}\n---")


class Job:
    """A run that goes on while the test looks at it."""

    def __init__(self, box, argv, stdin=None, stdout="pipe", stderr="pipe", env=None, cwd=None,
                 limits=None, pass_fds=(), ignore=()):
        self.box, self.argv = box, [os.fsdecode(a) if isinstance(a, bytes) else str(a) for a in argv]
        self.pumps, self.feeder, self.held = {}, None, {}
        ours, theirs = [], {}

        def make_pipe(name, for_child):
            read, write = os.pipe()
            ours.append(write if for_child == "write" else read)
            theirs[name] = ours[-1]
            return read if for_child == "write" else write

        files = {}
        for name, wish in (("stdout", stdout), ("stderr", stderr)):
            if wish in ("pipe", "hold"):
                files[name] = make_pipe(name, "write")
            else:
                theirs[name] = wish
        if isinstance(stdin, (bytes, bytearray)) or stdin == "pipe":
            files["stdin"] = make_pipe("stdin", "read")
        else:
            theirs["stdin"] = subprocess.DEVNULL if stdin is None else stdin

        def prepare():  # only restores and limits: safe between fork and exec
            for resource_name, value in (limits or {}).items():
                resource.setrlimit(resource_name, value)
            for number in ignore:
                signal.signal(number, signal.SIG_IGN)

        self.begin = time.monotonic()
        try:
            self.popen = subprocess.Popen(self.argv, **theirs, env=box.environment(env),
                                          cwd=cwd or box.work, process_group=0, pass_fds=pass_fds,
                                          preexec_fn=prepare if limits or ignore else None)
        finally:
            for fd in ours:
                os.close(fd)
        box.jobs.append(self)
        for name, wish in (("stdout", stdout), ("stderr", stderr)):
            if wish == "pipe":
                self.pumps[name] = Pump(files[name])
            elif wish == "hold":
                self.held[name] = files[name]
        self.stdin = None
        if stdin == "pipe":
            self.stdin = files["stdin"]
        elif "stdin" in files:
            self.feeder = Feeder(files["stdin"], stdin)

    @property
    def pid(self):
        return self.popen.pid

    def release(self, name="stdout"):
        """Begins to read a stream that was held."""
        self.pumps[name] = Pump(self.held.pop(name))

    def output(self, name="stdout"):
        return self.pumps[name].bytes().decode("utf-8", "surrogateescape") if name in self.pumps else ""

    def wait_output(self, pattern, name="stdout", timeout=20, count=1):
        """Waits until `pattern` stands `count` times in what has come; returns the last match."""
        expression = re.compile(pattern, re.M)

        def found():
            matches = list(expression.finditer(self.output(name)))
            if len(matches) >= count:
                return matches[count - 1]
            if self.popen.poll() is not None and not self.pumps[name].is_alive():
                raise AssertionError(f"ended without {pattern!r} x {count} on {name}{self.describe()}")
            return None
        try:
            return wait_until(found, f"{pattern!r} x {count} on {name}", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}{self.describe()}") from None

    def type(self, text):
        os.write(self.stdin, text.encode() if isinstance(text, str) else text)

    def close_stdin(self):
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None

    def signal(self, number):
        self.popen.send_signal(number)

    def tree(self):
        return descendants(self.pid)

    def agents(self):
        """The local agents: children of hvdrun that run hvdrun's own code."""
        mine = process(self.pid)
        exe = mine.exe() if mine else ""
        return [one for one in self.tree() if one.ppid == self.pid and one.state != "Z" and
                (one.exe() == exe or os.path.basename(one.exe()).startswith("hvdrun"))]

    def launchers(self):
        mine = process(self.pid)
        return ([mine] if mine else []) + self.agents()

    def workers(self):
        """{rank: process} of the running workers, not of their children."""
        found = {}
        agents = {one.pid for one in self.agents()}
        for one in self.tree():
            if one.ppid in agents and one.exe().startswith(WORKERS + os.sep) and one.state != "Z":
                rank = one.environ().get("HOROVOD_RANK", "")
                if rank.isdigit():
                    found[int(rank)] = one
        return found

    def wait_workers(self, count, timeout=20):
        def there():
            found = self.workers()
            return found if len(found) == count else None
        try:
            return wait_until(there, f"{count} running workers", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}{self.describe()}") from None

    def memory_kb(self):
        """Resident memory of the largest of driver and agents."""
        return max([one.rss_kb() for one in self.launchers()] or [0])

    def describe(self):
        return Later(self._described)

    def _described(self):
        tree = "\n".join(str(one) for one in self.tree())
        return self.so_far().describe() + f"\nprocesses below:\n{tree}\n---"

    def so_far(self):
        return Result(self.argv, self.popen.returncode,
                      *(self.pumps[n].bytes() if n in self.pumps else b"" for n in ("stdout", "stderr")),
                      time.monotonic() - self.begin)

    def wait(self, timeout=60):
        """Waits for the end of hvdrun and of its streams. Hanging is a failure."""
        try:
            self.popen.wait(limit(timeout))
        except subprocess.TimeoutExpired:
            text = str(self.describe())
            self.kill()
            raise AssertionError(f"hvdrun hung: no end within {limit(timeout)} s{text}") from None
        self.close_stdin()
        for pump in self.pumps.values():
            pump.join(limit(10))
            if pump.is_alive():
                self.box.complaints.append(f"a stream of {self.argv} stays open after its end")
        return self.so_far()

    def kill(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()

    def close(self):
        self.close_stdin()
        for fd in self.held.values():
            os.close(fd)
        self.held = {}


class Terminal:
    """hvdrun under a terminal with job control (leader.py is the shell)."""

    def __init__(self, box, argv, place="fg", rows=24, columns=80, env=None):
        self.box, self.argv = box, [str(a) for a in argv]
        self.master, slave = os.openpty()
        self.resize(rows, columns)
        self.modes = termios.tcgetattr(slave)
        status_read, status_write = os.pipe()
        command_read, self.commands = os.pipe()
        self.popen = subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.join(HERE, "leader.py"), str(status_write),
             str(command_read), place, *self.argv],
            stdin=slave, stdout=slave, stderr=slave, env=box.environment({"TERM": "xterm", **(env or {})}),
            cwd=box.work, start_new_session=True, pass_fds=(status_write, command_read))
        for fd in (status_write, command_read):
            os.close(fd)
        self.slave = slave
        box.jobs.append(self)
        self.screen = Pump(os.dup(self.master))
        self.reports = Pump(status_read)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode() if isinstance(text, str) else text)

    def command(self, letter):
        os.write(self.commands, letter.encode())

    def output(self):
        """What the terminal got, without the colours that labels have there."""
        text = self.screen.bytes().decode("utf-8", "surrogateescape").replace("\r\n", "\n")
        return re.sub(r"\x1b\[[0-9;]*m", "", text)

    def wait_output(self, pattern, timeout=20, count=1):
        try:
            return wait_until(lambda: len(re.findall(pattern, self.output(), re.M)) >= count,
                              f"{pattern!r} x {count} on the terminal", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}{self.describe()}") from None

    def reported(self):
        return self.reports.bytes().decode().split("\n")[:-1]

    def wait_report(self, pattern, timeout=20, count=1):
        def found():
            lines = [line for line in self.reported() if re.fullmatch(pattern, line)]
            return lines[count - 1] if len(lines) >= count else None
        try:
            return wait_until(found, f"{pattern!r} x {count} from the shell", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}{self.describe()}") from None

    @property
    def pid(self):
        return int(self.wait_report(r"pid \d+").split()[1])

    def describe(self):
        return Later(self._described)

    def _described(self):
        tree = "\n".join(str(one) for one in descendants(self.popen.pid))
        return (f"\ncommand: {' '.join(self.argv)}\nthe shell saw: {self.reported()}\n"
                f"--- terminal\n{self.output()[-4000:]}\n--- processes\n{tree}\n---")

    def wait(self, timeout=60):
        """Waits for the end, and for all that the terminal got; returns the status (negative: killed by that signal)."""
        try:
            self.popen.wait(limit(timeout))
        except subprocess.TimeoutExpired:
            text = str(self.describe())
            self.kill()
            raise AssertionError(f"hvdrun hung under a terminal{text}") from None
        self.reports.join(limit(10))
        last = self.reported()[-1].split()
        self.modes_after = termios.tcgetattr(self.slave)
        # What came last may still be on its way to the screen, which ends when nobody has the terminal open.
        os.close(self.slave)
        self.slave = None
        self.screen.join(limit(10))
        if self.screen.is_alive():
            self.box.complaints.append(f"a process still has the terminal of {self.argv}")
        return int(last[1]) if last[0] == "exited" else -int(last[1])

    def kill(self):
        if self.popen.poll() is None:
            for one in reversed(descendants(self.popen.pid)):
                kill(one.pid)
            self.popen.kill()
            self.popen.wait()

    def close(self):
        for fd in (self.master, self.slave, self.commands):
            if fd is not None:
                os.close(fd)


class Helper:
    """A program of the test itself, such as a reader of hvdrun's output."""

    def __init__(self, box, argv, **options):
        self.popen = subprocess.Popen([str(a) for a in argv], env=box.environment(), **options)
        box.helpers.append(self)

    def communicate(self, timeout=120):
        try:
            return self.popen.communicate(timeout=limit(timeout))
        except subprocess.TimeoutExpired:
            self.popen.kill()
            raise AssertionError("the reader of the output hung") from None

    def close(self):
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if stream is not None:
                stream.close()
