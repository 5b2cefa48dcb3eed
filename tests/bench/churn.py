#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does an elastic job stay small? It runs 64 workers on 8 simulated hosts for 100 epochs. The benchmark kills workers,
removes hosts from the list and adds them again, and kills agents, whose hosts then return. Every 10 epochs, when all
ranks run, it reads the memory and the descriptors of two processes. These are the driver, and the one agent that it
never kills.

The workers stand in for an elastic Horovod script. They connect to each other as Horovod does, in six contexts. Two of
these connect all pairs of ranks. At 64 ranks, each epoch makes about 20,000 requests to the rendezvous.

hvdrun blacklists a slot at its third crash and a host at its third loss. It blames the program when it has crashed on
every host. So the benchmark kills workers only on the first half of the hosts, at most two on each slot. It also loses
hosts in turn, each at most twice.
"""

import os
import re
import signal
import time

import bench
import worlds
from procfs import process

ROUND = re.compile(r"^\[[\d,-]+\]<stdout>:epoch-round (\d+) rank (\d+)/(\d+) host (\S+) local (\d+) step \d+ pid (\d+)$")
KILL, REMOVE, LOSE = "kill", "remove", "lose"
# 10 epochs each: REMOVE and LOSE make two epochs
PATTERNS = {"all": (KILL, KILL, REMOVE, KILL, KILL, LOSE, KILL, KILL), "hosts": (REMOVE,) * 5}
TICKS = os.sysconf("SC_CLK_TCK")


class Rounds:
    """Which ranks train together. Reads this from the lines of the workers as they arrive."""

    def __init__(self, run):
        self.run, self.chunks, self.rest, self.members = run, 0, b"", {}

    def read(self):
        pump = self.run.job.pumps["stdout"]
        with pump.lock:
            new, self.chunks = pump.chunks[self.chunks:], len(pump.chunks)
        *lines, self.rest = (self.rest + b"".join(new)).split(b"\n")
        for line in lines:
            found = ROUND.match(line.decode())
            if found:
                number, rank, size, local, pid = (int(found[i]) for i in (1, 2, 3, 5, 6))
                self.members.setdefault(number, {})[rank] = (size, found[4], local, pid)
        for number in sorted(self.members)[:-4]:
            del self.members[number]

    def wait(self, size, after):
        """Waits for a round later than `after` with `size` ranks. Returns (number, its members)."""
        def there():
            self.read()
            number = max(self.members, default=0)
            members = self.members.get(number, {})
            whole = len(members) == size and all(one[0] == size for one in members.values())
            return (number, members) if number > after and whole else None
        return self.run.wait(there, f"{size} ranks train together after round {after}", 300, period=0.1)


def look(pid):
    """What the kernel reports about a process: KiB, descriptors, threads, seconds of CPU."""
    one = process(pid)
    text = one.read("status").decode()
    numbers = {name: int(re.search(rf"^{name}:\s+(\d+)", text, re.M)[1]) for name in ("VmRSS", "RssAnon", "VmHWM", "Threads")}
    fields = one.read("stat").rsplit(b")", 1)[1].split()
    return {"rss_kib": numbers["VmRSS"], "peak_kib": numbers["VmHWM"], "anonymous_kib": numbers["RssAnon"],
            "threads": numbers["Threads"], "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "cpu_s": (int(fields[11]) + int(fields[12])) / TICKS}


class Churn:

    def __init__(self, run, options):
        self.run, self.options, self.rounds = run, options, Rounds(run)
        self.hosts = [f"h{number}" for number in range(1, options.hosts + 1)]
        self.size = options.hosts * options.slots
        self.number, self.members, self.kills, self.turn = 0, {}, 0, 0
        self.points = []

    def list(self, *without):
        self.run.set_hosts(*(f"{host}:{self.options.slots}" for host in self.hosts if host not in without))

    def wait(self, size):
        self.number, self.members = self.rounds.wait(size, self.number)

    def pid_of(self, host, local):
        return next(pid for _, at, where, pid in self.members.values() if (at, where) == (host, local))

    def agent_of(self, host):
        return process(self.pid_of(host, 0)).ppid

    def kill(self):
        half = self.hosts[:max(1, len(self.hosts) // 2)]
        host, local = half[self.kills % len(half)], self.kills // len(half) % self.options.slots
        self.kills += 1
        os.kill(self.pid_of(host, local), signal.SIGKILL)
        self.wait(self.size)

    def next_host(self):
        """The next host in turn, never the first one."""
        self.turn += 1
        return self.hosts[1 + self.turn % (len(self.hosts) - 1)]

    def remove(self):
        host = self.next_host()
        self.list(host)
        self.wait(self.size - self.options.slots)
        self.list()
        self.wait(self.size)

    def lose(self):
        os.kill(self.agent_of(self.next_host()), signal.SIGKILL)
        self.wait(self.size - self.options.slots)
        self.wait(self.size)

    def measure(self, began):
        time.sleep(1)
        epoch = max(event["epoch"] for event in self.run.events("epoch"))
        point = {"epoch": epoch, "driver": look(self.run.job.pid), "agent": look(self.agent_of(self.hosts[0])),
                 "seconds": time.monotonic() - began}
        self.points.append(point)
        bench.say(f"epoch {epoch}: {point}")

    def go(self):
        self.wait(self.size)
        self.measure(time.monotonic())
        while self.points[-1]["epoch"] < self.options.epochs:
            began = time.monotonic()
            for what in PATTERNS[self.options.pattern]:
                {KILL: self.kill, REMOVE: self.remove, LOSE: self.lose}[what]()
            self.measure(began)


def as_table(points):
    rows = [[one["epoch"], *(one[who][what] for who in ("driver", "agent")
                             for what in ("rss_kib", "anonymous_kib", "descriptors", "threads")), f"{one['seconds']:.0f}"]
            for one in points]
    head = [f"{who} {what}" for who in ("driver", "agent") for what in ("RSS", "anonymous", "fds", "threads")]
    return bench.table(["epoch", *head, "s since the line above"], rows)


def growth(points):
    """Growth in the second half, because the first epochs allocate what later epochs use again."""
    later = points[len(points) // 2:]
    text = []
    for who in ("driver", "agent"):
        slope = bench.slope([(one["epoch"], one[who]["anonymous_kib"]) for one in later])
        descriptors = {one[who]["descriptors"] for one in later}
        text.append(f"{who} {slope:+.2f} KiB of anonymous memory per epoch, descriptors {min(descriptors)} to {max(descriptors)}")
    return f"From epoch {later[0]['epoch']} on, by least squares: " + "; ".join(text) + "."


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--pattern", choices=PATTERNS, default="all",
                        help="all: as above; hosts: only removes hosts from the list and adds them again, so that nothing "
                             "crashes and the number of epochs is not limited")
    parser.add_argument("--slots", type=int, default=8, help="workers on each host (8)")
    options = parser.parse_args()
    kills = -(-options.epochs // 10) * PATTERNS[options.pattern].count(KILL)
    if options.hosts < 2 or kills > 2 * max(1, options.hosts // 2) * options.slots:
        parser.error(f"this would kill {kills} workers: more than two on each slot of half of the hosts")
    bench.begin()
    report = bench.Report("churn", options)
    with worlds.Run(worlds.Simulated()) as run:
        churn = Churn(run, options)
        churn.list()
        run.start(["--hosts-watch", "LIST", "-np", churn.size, "--min-np", 1, "--max-np", churn.size, "--grow-delay", "100ms",
                   "--rejoin", "together", "--rejoin-timeout", "300s"], ["--steps", 1, "--step-ms", 300, "--commit", 1], gloo_timeout=240)
        try:
            churn.go()
        except AssertionError as error:  # still report what was measured until then
            bench.say(f"FAILED: {str(error)[:6000]}")
            report.data["failed"] = str(error)[-3000:]
    title = f"{churn.size} workers on {options.hosts} simulated hosts, pattern {options.pattern}"
    note = "KiB. Anonymous memory is what the process has allocated, without the pages of its program and libraries.\n\n"
    failed = "\n\nThe job ended too early: see above." if "failed" in report.data else ""
    report.add(title, note + as_table(churn.points) + "\n\n" + (growth(churn.points) if len(churn.points) > 1 else "") + failed,
               "churn", churn.points)
    report.finish()


if __name__ == "__main__":
    main()
