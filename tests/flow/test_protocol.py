# SPDX-License-Identifier: Apache-2.0
# ctest waits
"""Neither end of the protocol trusts the other: a driver whose agent sends nonsense in each state,
and an agent whose driver does. The end that receives nonsense prints one line, ends with the right
status, and leaves nothing behind."""

import os
import random
import re
import struct
import subprocess
import sys
import threading

from frames import BODY_MAX, frame, numbered
from ground import BUILD, HERE, patient
from middle import ELASTIC, STATIC, Change, Middle
from rig import Flow, main

NUMBER_MAX = (1 << 32) - 1
SEED = int(os.environ.get("HVDRUN_SECURITY_SEED") or random.randrange(1 << 32))
(HELLO, WELCOME, PREPARE, READY, START, STARTED, EXITED, FINISHED, OUTPUT) = range(1, 10)
(STDIN, STDIN_CREDIT, SIGNAL, END, KILLING, ENDED, QUIT, HEARTBEAT, HEARTBEAT_REPLY, SUSPEND) = range(11, 21)
SUSPENDED, RESUME, LOG, KV_REQUEST, KV_REPLY, KV_DROPPED, ABORT = 21, 22, 23, 24, 25, 26, 28
TERMINATE, PART, MPI_COLLECT, MPI_MODEX, MPI_MODEX_DATA, MPI_STORE = 32, 33, 34, 36, 37, 38
MPI_SIGNAL, END_WORKER, CANCEL, EPOCH, NOTIFIED, OUTPUT_SHOW, FAREWELL, ASK, ANSWER = 41, 42, 43, 44, 46, 53, 54, 77, 78
TOPICS = range(1, 7)


def number(field, value):
    """A varint field of a message."""
    return varint(field << 3) + varint(value)


def text(field, value):
    """Text, bytes or a message inside another."""
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def data(rank, stream=1, content=b"x\n"):
    return struct.pack("!IB3xQQ", rank, stream, 0, 0) + content


HELLO_FRAME = frame(HELLO, number(1, 1) + text(2, "@VERSION@") + text(3, "fake") + text(4, "boot") + text(5, "x86_64"), epoch=0)
GOOD = [("say", HELLO_FRAME), ("hear", PREPARE), ("say", frame(READY))]
RUNS = [*GOOD, ("hear", START)]
# The agent says nonsense after these steps, and ends when the driver hangs up or wants the end.
AT_ONCE, GREETED, PREPARED, STARTED_ALL = [], GOOD[:1], GOOD[:2], RUNS
BROKE = "its agent broke the protocol"

# name: (steps before, what is said then, what the driver says of it)
AGENTS = {
    "other version": (AT_ONCE, frame(HELLO, version=9), "speaks protocol 9 and this program 3"),
    "last version": (AT_ONCE, frame(HELLO, version=2), "speaks protocol 2 and this program 3; install the same version"),
    "unknown type": (AT_ONCE, frame(200), "unknown frame type 200"),
    "too long": (AT_ONCE, frame(HELLO, length=BODY_MAX + 1), "over the limit"),
    "text": (AT_ONCE, b"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks protocol 72"),
    "greeting unreadable": (AT_ONCE, frame(HELLO, b"\xff\xff"), "cannot decode the HELLO"),
    "other release": (AT_ONCE, frame(HELLO, text(2, "9.9\x1b[31m")), r"runs hvdrun 9\.9[ ?]\[31m, but this machine runs"),
    "ready before hello": (AT_ONCE, frame(READY), "invalid or unexpected READY"),
    "output before hello": (AT_ONCE, frame(OUTPUT, data(0)), BROKE),
    "started before hello": (AT_ONCE, frame(STARTED), BROKE),
    "request before hello": (AT_ONCE, frame(KV_REQUEST), BROKE),
    "mpi before hello": (AT_ONCE, frame(MPI_STORE), BROKE),
    "hello twice": (GREETED, HELLO_FRAME, "sent HELLO twice"),
    "exit before start": (PREPARED, frame(EXITED, number(1, 0)), BROKE),
    "finished before start": (PREPARED, frame(FINISHED, number(1, 0)), BROKE),
    "killing before end": (PREPARED, frame(KILLING, number(1, 1)), BROKE),
    "ready unreadable": (PREPARED, frame(READY, b"\x0b"), "invalid or unexpected READY"),
    "ready twice": (STARTED_ALL, frame(READY), "invalid or unexpected READY"),
    "killing unasked": (STARTED_ALL, frame(KILLING, number(1, 1)), BROKE),
    "rank of nobody": (STARTED_ALL, frame(EXITED, number(1, 99)), BROKE),
    "largest rank": (STARTED_ALL, frame(EXITED, number(1, NUMBER_MAX)), BROKE),
    "lists that differ": (STARTED_ALL, frame(STARTED, text(1, b"\0\1") + text(2, b"\1") + text(3, b"\1")), BROKE),
    "output of nobody": (STARTED_ALL, frame(OUTPUT, data(7)), BROKE),
    "output too short": (STARTED_ALL, frame(OUTPUT, b"short"), BROKE),
    "output to stdin": (STARTED_ALL, frame(OUTPUT, data(0, stream=0)), BROKE),
    "output to stream 9": (STARTED_ALL, frame(OUTPUT, data(0, stream=9)), BROKE),
    "show before start": (PREPARED, frame(OUTPUT_SHOW, data(0, content=b"")), BROKE),
    "show of nobody": (STARTED_ALL, frame(OUTPUT_SHOW, data(7, content=b"")), BROKE),
    "show with bytes": (STARTED_ALL, frame(OUTPUT_SHOW, data(0)), BROKE),
    "show of stdin": (STARTED_ALL, frame(OUTPUT_SHOW, data(0, stream=0, content=b"")), BROKE),
    "more than the credit": (STARTED_ALL, frame(PART, data(0, content=b"y" * 1000000)) + frame(PART, b"y" * 1000000) * 59 + frame(OUTPUT), BROKE),
    "output ends twice": (STARTED_ALL, frame(OUTPUT, data(0, content=b"")) * 2, BROKE),
    "credit of nobody": (STARTED_ALL, frame(STDIN_CREDIT, number(1, 9)), BROKE),
    "finished of nobody": (STARTED_ALL, frame(FINISHED, number(1, NUMBER_MAX)), BROKE),
    "started, then finished": (STARTED_ALL, frame(FINISHED, number(1, 0)), BROKE),
    "exited twice": (STARTED_ALL, frame(EXITED, number(1, 0)) * 2, BROKE),
    "finished twice": (STARTED_ALL, frame(EXITED, number(1, 0)) + frame(FINISHED, number(1, 0)) * 2, BROKE),
    "abort of nobody": (STARTED_ALL, frame(ABORT, number(1, 5)), BROKE),
    "modex of nobody": (STARTED_ALL, frame(MPI_MODEX, number(2, 1000)), BROKE),
    "modex for no node": (STARTED_ALL, frame(MPI_MODEX_DATA, number(2, NUMBER_MAX)), BROKE),
    "collect of nobody": (STARTED_ALL, frame(MPI_COLLECT, text(3, b"\0\x63")), BROKE),
    "collect backwards": (STARTED_ALL, frame(MPI_COLLECT, text(3, b"\1\0")), BROKE),
    "store of no kind": (STARTED_ALL, frame(MPI_STORE, number(2, 77)), BROKE),
    "store of no range": (STARTED_ALL, frame(MPI_STORE, number(5, 77)), BROKE),
    "a store that unfolds": (STARTED_ALL, frame(PART, text(7, b"") * (BODY_MAX // 2)) * 40 + frame(MPI_STORE), BROKE),
    "answer before hello": (AT_ONCE, frame(ANSWER), BROKE),
    "answer unreadable": (STARTED_ALL, frame(ANSWER, b"\xff"), BROKE),
    "a driver's question": (STARTED_ALL, frame(ASK), BROKE),
    "notified of nobody": (STARTED_ALL, frame(NOTIFIED), BROKE),
    "farewell": (STARTED_ALL, frame(FAREWELL, number(1, 4000)), r"its agent gave up, since it heard nothing from hvdrun for 4\.0 s"),
    "farewell unreadable": (STARTED_ALL, frame(FAREWELL, b"\xff"), BROKE),
    "a driver's frame": (STARTED_ALL, frame(PREPARE), BROKE),
    "parts without end": (STARTED_ALL, frame(PART, b"z" * BODY_MAX) * 70, "message that is too large"),
}
# What is ignored: then the agent ends a rank with status 3, which is what the driver tells.
IGNORED = {
    "stale epochs": frame(EXITED, number(1, 0) + number(3, 9), epoch=77) + frame(OUTPUT, data(0), epoch=0),
    "absurd clocks": frame(HEARTBEAT_REPLY, number(1, 1) + number(2, (1 << 64) - 1)) + frame(STARTED, text(1, b"\0") + text(2, b"\1") + text(3, varint((1 << 63) - 1))),
    "answers unasked": frame(ANSWER, number(1, 99) + text(2, text(1, b"\0") + text(2, "not to be seen"))) + frame(ANSWER) * 2 +
                       frame(ANSWER, number(1, NUMBER_MAX) + text(2, b"\xff") + number(3, 1)) * 9,
    "suspended unasked": frame(SUSPENDED) * 3,
    "ended unasked": frame(ENDED) * 2,
    "nothing to show": frame(OUTPUT_SHOW, data(0, content=b"")) * 3,
    "escapes in a message": frame(LOG, number(1, 1) + text(2, "a\x1b[2Jb\x07\xc2\x9b")),
    "no such level": frame(LOG, number(1, 99) + text(2, "not to be seen")),
    "signal to nobody": frame(MPI_SIGNAL, number(1, 4000) + number(2, 9)),
}

AGENT = r'''
import os, re, struct, sys
script = b""
while not script.endswith(b"exit 1; }\n"):
    script += os.read(0, 65536)
marker = b"".join(re.search(rb"h_n='(\w+)''(\w+)'", script).groups())
os.write(1, marker + b" agent\n")
heard = b""

def take(count):
    global heard
    while len(heard) < count:
        more = os.read(0, 65536)
        if not more:
            sys.exit()
        heard += more
    first, heard = heard[:count], heard[count:]
    return first

def hear(kind):
    while True:
        header = take(16)
        take(struct.unpack("!I", header[4:8])[0])
        if header[1] == kind:
            return

def say(data):
    at = 0
    while at < len(data):
        at += os.write(1, data[at:])

try:
    for step, what in STEPS:
        (say if step == "say" else hear)(what)
    hear(END)
except OSError:
    pass
'''


class Drivers(Flow):
    """A driver whose agent is hostile."""

    def agent(self, name, steps):
        version = re.search(r"hvdrun ([\d.]+\d)", self.hello_version()).group(1).encode()
        steps, plain, count = [], steps, 0
        for step, what in plain:
            if step == "say":
                what, count = numbered(self.with_version(what, version), count)
            steps.append((step, what))
        name = re.sub(r"\W", "_", name)
        path = self.write(f"{name}.py", f"END = {END}\nSTEPS = {steps!r}\n{AGENT}")
        return f"{sys.executable} -I -S -B {path}"

    @staticmethod
    def with_version(what, version):
        if what == HELLO_FRAME:
            return frame(HELLO, number(1, 1) + text(2, version) + text(3, "fake") + text(4, "boot") + text(5, "x86_64"), epoch=0)
        return what

    def hello_version(self):
        if not hasattr(self, "version"):
            self.version = self.run_job("--version").stdout
        return self.version

    def begin(self, name, steps, *args):
        return self.start("--launch-agent", self.agent(name, steps) + " %h", "--transport", "auto", "-H", "fake.invalid:2",
                          "--start-timeout", patient(30), *args, "true")

    def in_turns(self, cases, judge):
        """Some at the same time; each is judged on its own."""
        waiting = list(cases)
        while waiting:
            jobs = [(name, self.begin(name, steps)) for name, steps in waiting[:5]]
            waiting = waiting[5:]
            for name, job in jobs:
                with self.subTest(name):
                    judge(name, job.wait())

    def test_nonsense_ends_the_job(self):
        def judge(name, result):
            pattern = AGENTS[name][2]
            self.expect_said(result, pattern)
            blamed = [line for line in result.said.split("\n") if re.search(pattern, line)]
            self.assertEqual(len(blamed), 1, result.describe())
            self.assertIn("fake.invalid", blamed[0], result.describe())
            self.assertIn(result.status, (121, 125), result.describe())
            self.assertNotRegex(result.stderr, "Sanitizer|runtime error", result.describe())
        self.in_turns([(name, [*before, ("say", what)]) for name, (before, what, _) in AGENTS.items()], judge)

    def test_what_is_ignored(self):
        last = (frame(STARTED, text(1, b"\0\1") + text(2, b"\1\1") + text(3, b"\1\1")) +
                frame(EXITED, number(1, 0) + number(3, 3)) + frame(FINISHED, number(1, 0)))
        after = [("hear", END), ("say", frame(KILLING) + frame(EXITED, number(1, 1)) + frame(FINISHED, number(1, 1)) + frame(ENDED))]

        def judge(name, result):
            self.expect(result, 3)
            self.expect_said(result, "rank 0")
            self.assertNotIn("not to be seen", result.stdout + result.stderr, result.describe())
            self.assertNotRegex(result.stderr, "[\x1b\x07\x9b]", result.describe())
        self.in_turns([(name, [*RUNS, ("say", what + last), *after]) for name, what in IGNORED.items()], judge)


PREPARE_BODY = (number(1, 1) + text(3, "a") + text(4, "a") + text(5, b"\1\1") +
                text(6, text(1, "/bin/sleep") + text(1, "1000") + number(4, 1) + text(5, "none")) +
                text(7, number(5, 1)) + text(8, "PATH=/bin:/usr/bin") +
                number(19, (1 << 64) - 1) + number(30, 1))
WELCOME_FRAME = frame(WELCOME, number(1, 1) + text(3, "job") + number(6, 30000) + number(7, 1000) + number(8, 500), epoch=0)
READY_AGENT = WELCOME_FRAME + frame(PREPARE, PREPARE_BODY)
RUNNING_AGENT = READY_AGENT + frame(START)


def prepare(**changes):
    """PREPARE with other fields appended: the last one counts, or lists grow."""
    return WELCOME_FRAME + frame(PREPARE, PREPARE_BODY + b"".join(changes.values()))


DRIVERS = {
    "nothing": b"",
    "text": b"GET / HTTP/1.1\r\n\r\n",
    "zeros": b"\0" * 4096,
    "prepare before welcome": frame(PREPARE, PREPARE_BODY),
    "start before prepare": WELCOME_FRAME + frame(START),
    "welcome twice": READY_AGENT + WELCOME_FRAME + frame(START),
    "welcome unreadable": frame(WELCOME, b"\xff"),
    "prepare unreadable": WELCOME_FRAME + frame(PREPARE, b"\x0b\xff"),
    "size of a world": prepare(size=number(1, NUMBER_MAX)),
    "no such node": prepare(node=number(2, NUMBER_MAX)),
    "a rank outside": prepare(worker=text(7, number(1, NUMBER_MAX) + number(5, 1))),
    "an app outside": prepare(worker=text(7, number(2, 99) + number(5, 1))),
    "a slot outside": prepare(worker=text(7, number(8, NUMBER_MAX) + number(5, 1))),
    "more ranks than told": prepare(ranks=text(5, varint(NUMBER_MAX) + b"\1")),
    "a number alone": prepare(ranks=text(5, b"\1")),
    "more hosts than there can be": prepare(hosts=text(4, "n1\t99999999\t0")),
    "hosts that cannot count": prepare(hosts=text(4, "n1\t2\t1")),
    "an app without words": prepare(app=text(6, number(4, 1))),
    "no such limit": prepare(limit=text(11, number(1, NUMBER_MAX) + number(2, 1))),
    "all readers": prepare(readers=text(20, varint(NUMBER_MAX))) + frame(START),
    "prepare twice": READY_AGENT + frame(PREPARE, PREPARE_BODY) + frame(START) + frame(START),
    "next epochs": RUNNING_AGENT + frame(PREPARE, PREPARE_BODY, epoch=2) + frame(START, epoch=9) + frame(CANCEL, epoch=2),
    "stdin of nobody": RUNNING_AGENT + frame(STDIN, data(NUMBER_MAX, stream=0)),
    "stdin too short": RUNNING_AGENT + frame(STDIN, b"x"),
    "answers unasked": RUNNING_AGENT + frame(KV_REPLY, number(1, 9) + number(2, NUMBER_MAX)),
    "mpi answers unasked": RUNNING_AGENT + b"".join(frame(kind, number(1, 7)) for kind in (35, 36, 37, 39, 40, 41)),
    "broken data of a step": WELCOME_FRAME + frame(PREPARE, PREPARE_BODY.replace(b"none", b"pmi1")) + frame(START) +
                             frame(35, text(4, "not packed") + number(5, 1) + number(6, 100)),
    "no such signal": RUNNING_AGENT + frame(SIGNAL, number(1, 4000)) + frame(SIGNAL, number(1, (1 << 64) - 1)),
    "end of nobody": RUNNING_AGENT + frame(END_WORKER, number(1, 12) + number(2, 9)),
    "question unreadable": RUNNING_AGENT + frame(ASK, b"\xff"),
    "start unreadable": READY_AGENT + frame(START, b"\xff"),
    "signal unreadable": RUNNING_AGENT + frame(SIGNAL, b"\xff"),
    "heartbeat unreadable": RUNNING_AGENT + frame(HEARTBEAT, b"\xff"),
    "no such topic": RUNNING_AGENT + frame(ASK, number(1, 99) + number(2, 1)),
    "request unreadable": RUNNING_AGENT + frame(ASK, number(1, 1) + number(2, 1) + text(3, b"\xff")),
    "all topics": RUNNING_AGENT + b"".join(frame(ASK, number(1, topic) + number(2, topic)) for topic in TOPICS) * 9,
    "an agent's answer": RUNNING_AGENT + frame(ANSWER, number(1, 1)),
    "quit too early": RUNNING_AGENT + frame(QUIT),
    "start behind quit": READY_AGENT + frame(QUIT) + frame(START),
    "resume without suspend": RUNNING_AGENT + frame(RESUME) + frame(EPOCH, epoch=NUMBER_MAX),
    "suspended for ever": RUNNING_AGENT + frame(SUSPEND),
    "parts without end": WELCOME_FRAME + frame(PART, b"z" * BODY_MAX) * 70,
    "an agent's frames": WELCOME_FRAME + HELLO_FRAME + frame(OUTPUT, data(0)) + frame(ENDED),
}


class Agents(Flow):
    """An agent whose driver is hostile, and then hangs up."""

    def talk(self, said):
        """Status, what it said, what stood on stderr."""
        agent = self.helper_agent()
        heard = []
        reader = threading.Thread(target=lambda: heard.append(agent.stdout.read()), daemon=True)
        reader.start()
        try:
            agent.stdin.write(numbered(said)[0])
            agent.stdin.flush()
        except BrokenPipeError:
            pass
        try:
            agent.stdin.close()
        except BrokenPipeError:
            pass
        return agent, reader, heard

    def test_without_a_stream(self):
        program = os.path.join(BUILD, "lib/hvdrun/hvdrun-agent")
        for closed in ("<&-", ">&-"):
            with self.subTest(closed=closed):
                found = subprocess.run(["sh", "-c", f'exec "$0" {closed}', program], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=30, check=False)
                self.assertEqual(found.returncode, 125)
                self.assertIn(b"must be a stream to hvdrun: Bad file descriptor", found.stderr)

    def helper_agent(self):
        return subprocess.Popen([os.path.join(BUILD, "lib/hvdrun/hvdrun-agent")], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.box.environment(), cwd=self.box.work,
                                start_new_session=True)

    def test_nonsense_leaves_nothing(self):
        waiting = list(DRIVERS.items())
        while waiting:
            talks = [(name, *self.talk(said)) for name, said in waiting[:5]]
            waiting = waiting[5:]
            for name, agent, reader, heard in talks:
                with self.subTest(name):
                    try:
                        agent.wait(patient(60))
                    except subprocess.TimeoutExpired:
                        agent.kill()
                        self.fail(f"the agent hung after {name}")
                    reader.join(patient(20))
                    said = agent.stderr.read().decode(errors="replace")
                    agent.stderr.close()
                    agent.stdout.close()
                    self.assertNotRegex(said, "Sanitizer|runtime error", name)
                    self.assertEqual(agent.returncode, 0, f"{name}: {said}")
                    self.assertTrue(heard and heard[0][1:2] == bytes([HELLO]), f"{name}: no greeting")
        self.box.check_nothing_left(patient(10))

    def test_the_reason_is_told(self):
        for name, said in (("PREPARE before WELCOME", DRIVERS["prepare before welcome"]), ("WELCOME came twice", DRIVERS["welcome twice"]),
                           ("MPI_COLLECTED has broken data", DRIVERS["broken data of a step"]),
                           ("HELLO is not for an agent", DRIVERS["an agent's frames"])):
            with self.subTest(name):
                agent, reader, heard = self.talk(said)
                agent.wait(patient(60))
                reader.join(patient(20))
                for stream in (agent.stderr, agent.stdout):
                    stream.close()
                self.assertIn(b"the driver broke the protocol: " + name.encode(), heard[0])


class Link(Middle, Flow):
    """A link that loses, repeats or exchanges frames, or ends anywhere; all of it is in
    test_nightly_security.py."""

    def test_what_is_not_the_next_frame_is_refused(self):
        for kind in (STATIC, ELASTIC):
            self.lengths(kind)
            changes = [Change(way, do, at) for way in ("down", "up") for do, at in (("drop", 5), ("repeat", 4), ("swap", 6))]
            for change, result in self.spoil_in_time(kind, changes):
                self.assertNotEqual(result.status, 0, f"{change}{result.describe()}")
                self.expect_said(result, "lost, repeated or reordered")

    def test_cut_anywhere(self):
        draw = random.Random(SEED)
        changes = []
        for way, (size, _, framed) in self.lengths(STATIC).items():
            places = [draw.randrange(size - framed) for _ in range(6)] + [draw.randrange(size - framed, size) for _ in range(14)]
            changes += [Change(way, draw.choice(("cut", "half")), at) for at in places]
        with self.subTest(seed=SEED):
            self.spoil_all(STATIC, changes)


if __name__ == "__main__":
    main()
