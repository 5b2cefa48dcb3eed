# SPDX-License-Identifier: Apache-2.0
"""One who sits on the link between driver and agent, and one job of two ranks that he spoils.

    class Test(Middle, Flow):
        def test_x(self):
            self.spoil_all(STATIC, [Change("up", "drop", 3), Change("down", "cut", 99)])

What he does is one change to the bytes of one direction ("down" from the driver to the host, "up"
back): after so many bytes of the whole stream he cuts it (`cut`: both directions, `half`: this one
alone), or he sends frame number `at` twice, behind the next one, or not at all, or turns a bit of
byte `at` of the frames. A change that comes too late for the job changes nothing.
"""

import collections
import json
import os
import re
import shlex
import sys

from ground import patient, wait_until
from test_keeper import Host

Change = collections.namedtuple("Change", "way do at bit", defaults=(0,))

MIDDLE = r'''
import os, re, select, socket, sys
path, way, do, at, bit, told = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6]
if os.path.exists(told):  # a second call of the same job: what it had read of its stdin cannot come again
    sys.exit(1)
host = socket.socket(socket.AF_UNIX)
host.connect(path)
far = host.fileno()
into = {"down": far, "up": 1}
count = {"down": 0, "up": 0}   # bytes that were passed on
frames = {"down": 0, "up": 0}
raw = {"down": 0, "up": 0}     # bytes of frames that were passed on
wait = {"down": b"", "up": b""}
held, script, marker, framed = b"", b"", b"", False


def end(half):
    if not half:
        tell()
    if into[way] == 1:
        os.close(1)
    else:
        host.shutdown(socket.SHUT_WR)
    into[way] = None


def tell():
    with open(told, "w") as file:
        file.write("%d %d %d %d %d %d" % (count["down"], count["up"], frames["down"], frames["up"], raw["down"], raw["up"]))
    os._exit(0)


def put(side, data):
    if into[side] is None:
        return
    stop = side == way and do in ("cut", "half") and count[side] + len(data) >= at
    data = data[:at - count[side]] if stop else data
    count[side] += len(data)
    try:
        while data:
            data = data[os.write(into[side], data):]
    except OSError:
        tell()
    if stop:
        end(do == "half")


def one(side, frame):
    global held
    number, mine = frames[side], side == way
    frames[side] += 1
    if mine and do == "flip" and raw[side] <= at < raw[side] + len(frame):
        frame = bytearray(frame)
        frame[at - raw[side]] ^= 1 << bit
    raw[side] += len(frame)
    if mine and do == "drop" and number == at:
        return
    if mine and do == "swap" and number == at:
        held = bytes(frame)
        return
    put(side, bytes(frame))
    if mine and do == "repeat" and number == at:
        put(side, bytes(frame))
    if mine and held and number == at + 1:
        put(side, held)


def take(side, data):
    global script, marker, framed
    if not framed and side == "up":
        seen = (wait["up"] + data)[-(4096 + len(data)):]
        rest = seen.partition(marker + b" agent\n")[2] if marker else b""
        framed = bool(marker) and marker + b" agent\n" in seen
        put(side, data[:len(data) - len(rest)])
        wait["up"], data = b"" if framed else seen[-4096:], rest
        if not framed:
            return
    elif not framed:
        put(side, data)
        script += data
        found = re.search(rb"h_n='(\w+)''(\w+)'", script)
        marker = b"".join(found.groups()) if found else b""
        return
    data = wait[side] + data
    while len(data) >= 16 and len(data) >= 16 + int.from_bytes(data[4:8], "big"):
        size = 16 + int.from_bytes(data[4:8], "big")
        one(side, data[:size])
        data = data[size:]
    wait[side] = data


sides = {0: "down", far: "up"}
while True:
    for fd in select.select(list(sides), [], [])[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:
            data = b""
        if data:
            take(sides[fd], data)
        elif fd == 0:
            del sides[0]
            if into["down"] is not None:
                host.shutdown(socket.SHUT_WR)
        else:
            tell()
'''

LINES = ("one", "two and more", "three")
SCRIPT = 'while read -r line; do echo "rank $HOROVOD_RANK: $line"; done; echo "rank $HOROVOD_RANK ends"'
WANTED = [f"rank {rank}: {line}" for rank in (0, 1) for line in LINES] + [f"rank {rank} ends" for rank in (0, 1)]
STATIC = ()
ELASTIC = ("--min-np", 2, "--elastic-timeout", patient(2))
BROKEN = "Sanitizer|runtime error|Traceback"
SAYS = re.compile(r"^hvdrun: \S", re.M)


class Middle:
    """Beside Flow."""

    left_timeout = 30
    at_once = 4

    def setUp(self):
        super().setUp()
        self.shell_said = self.box.path("shell")  # and the agents that the shells become
        self.host = Host(self.box, ("/bin/sh", "-c", f"exec /bin/sh 2>>'{self.shell_said}'"))
        self.addCleanup(self.host.close)
        self.middle = self.write("middle.py", MIDDLE)
        self.runs, self.frames = 0, {}  # frames: how many went the way of a change, in its last run

    def begin(self, kind, change):
        self.runs += 1
        told = self.box.path(f"told.{self.runs}")
        words = [sys.executable, "-I", "-S", "-B", self.middle, self.host.path, *map(str, change), told]
        job = self.start("--launch-agent", shlex.join(words) + " %h", "-H", "far:2", "--stdin", "all", "--node-timeout",
                         patient(10), "--timeout", patient(40), "--grace", 1, *kind, "sh", "-c", SCRIPT, stdin="".join(f"{line}\n" for line in LINES).encode())
        return change, job, told

    def lengths(self, kind):
        """How much a job says that nobody disturbs: {direction: (bytes, frames, bytes of frames)}."""
        for _ in range(2):  # the second time the agent is there already
            _, job, told = self.begin(kind, Change("up", "none", 0))
            self.judge(kind, job, must=True)
        wait_until(lambda: os.path.exists(told), "the middle's count")
        return self.read_told(told)

    @staticmethod
    def read_told(told):
        counts = []

        def whole():  # it may be written just now
            with open(told, encoding="ascii") as file:
                counts[:] = [int(word) for word in file.read().split()]
            return len(counts) == 6
        wait_until(whole, "the whole count of the middle")
        return {"down": tuple(counts[0::2]), "up": tuple(counts[1::2])}

    def judge(self, kind, job, must=False, other=False):
        """A job whose status is 0 has lost nothing; any other says why. `other`: what it did may have been
        another thing, but it came to an end."""
        result = job.wait(60)
        self.assertNotRegex(result.stderr, BROKEN, result.describe())
        self.assertGreaterEqual(result.status, 0, result.describe())
        lines = re.sub(r"(?m)^\[\d+\]<stdout>:", "", result.stdout).splitlines()
        if result.status == 0 and other:
            return result
        if result.status == 0 or must:
            self.expect(result, 0)
            self.assertEqual(sorted(set(lines) if kind == ELASTIC else lines), sorted(WANTED), result.describe())
        else:
            self.assertRegex(result.said, SAYS, result.describe())
        return result

    def spoil_in_time(self, kind, changes):
        """As spoil_all(), but a change that came too late for the job is made earlier: how many frames a job has depends on
        how fast its parts are."""
        done = []
        while changes:
            results = self.spoil_all(kind, changes)
            late = [change for change, result in results
                    if result.status == 0 and change.at > 1 and self.frames.get(change, change.at + 2) < change.at + 2]
            done += [one for one in results if one[0] not in late]
            changes = [change._replace(at=change.at - 1) for change in late]
        return done

    def spoil_all(self, kind, changes):
        """Some at a time: (change, result) of each."""
        changes, done = list(changes), []
        while changes:
            jobs = [self.begin(kind, change) for change in changes[:self.at_once]]
            del changes[:self.at_once]
            for change, job, told in jobs:
                with self.subTest(kind=kind, change=change):
                    done.append((change, self.judge(kind, job, other=change.do == "flip")))
                if os.path.exists(told):
                    self.frames[change] = self.read_told(told)[change.way][1]
                    os.unlink(told)
            self.box.check_nothing_left(self.left_timeout)
            wait_until(lambda: not self.host.processes(), "the host's processes to end", 30)
            wait_until(lambda: not self.host.litter(), f"the host's folders to go: {self.host.litter()}", 20)
            with open(self.shell_said, encoding="utf-8", errors="replace") as file:
                self.assertNotRegex(file.read(), BROKEN)
            self.box.jobs.clear()
            self.host.shells[:] = [one for one in self.host.shells if one.poll() is None]
        return done
