# SPDX-License-Identifier: Apache-2.0
"""Does a job grow? An elastic job on many local agents, with a change every 10 s.

The job has HVDRUN_GROWTH_AGENTS (100) simulated hosts with one rank each, and runs for HVDRUN_GROWTH_MINUTES (7). Two
cores are enough for 100 hosts; 1,000 hosts for 30 minutes want some 32. HVDRUN_GROWTH_RECORD is a file that gets each
look as a line of JSON. HVDRUN_GROWTH_CHANGE_S (10) is the time between two changes.
The ranks write lines. In turn, a host leaves the list, returns, a rank is killed, and an agent is killed. Once a minute
the test asks for the stacks, the usage and the state of all ranks. Then it looks at the driver, and at every agent that
has been there all the time. Their memory, descriptors and threads must not grow, nor the files of the job.

glibc keeps some freed blocks of each size for a thread: they add up to 100 KiB in an agent, over a hundred epochs. Here
it keeps none, so that the memory of an agent shows only what the agent holds.

A machine that is slow makes this test slow, and nothing else. But no host may be lost that the test has not killed.
"""

import collections
import json
import os
import re
import signal
import sys
import threading
import time

from elastic import Elastic
from ground import wait_until, worker
from job_commands import JobCommands
from procfs import descendants, processes
from rig import main

# ctest limit: 7200

AGENTS = int(os.environ.get("HVDRUN_GROWTH_AGENTS", "100"))
MINUTES = float(os.environ.get("HVDRUN_GROWTH_MINUTES", "7"))
CHANGE_S = float(os.environ.get("HVDRUN_GROWTH_CHANGE_S", "10"))
RECORD = os.environ.get("HVDRUN_GROWTH_RECORD")
LIVE_LONG = max(1, AGENTS // 10)  # hosts to which nothing happens
WAIT_S = 300  # for a change, on a busy machine
WARM_UP = 4  # so many changes: each kind once
# KiB that an allocator may take on its way, in the driver also what it keeps of a host once something is known of it; and
# what it keeps of each epoch for --report: a pointer for each host
DRIVER_KIB, EPOCH_KIB, AGENT_KIB = 768 + AGENTS, 2 + AGENTS / 64, 128


class Lines(threading.Thread):
    """Reads what the ranks write, and counts the lines."""

    def __init__(self, fd):
        super().__init__(daemon=True)
        self.fd, self.count, self.odd = fd, 0, []
        self.start()

    def run(self):
        with os.fdopen(self.fd, "rb") as file:
            for line in file:
                self.count += 1
                if not re.fullmatch(rb"\[\d+\]<stdout>:(ready \d+|line \d+|done)\n", line):
                    self.odd = (self.odd + [line])[-5:]


class Tail:
    """The events of a job that are new since the last look."""

    def __init__(self, path):
        self.path, self.at = path, 0

    def read(self):
        try:
            with open(self.path, "rb") as file:
                file.seek(self.at)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[:text.rfind(b"\n") + 1]
        self.at += len(whole)
        return [json.loads(line) for line in whole.splitlines()]


def parts(pid):
    """Where the memory of a process is, in KiB, and of what kinds its descriptors are."""
    found = collections.Counter()
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as file:
        for line in file:
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                name = line.split(maxsplit=5)[5].strip() if len(line.split(maxsplit=5)) > 5 else ""
                place = "heap KiB" if name == "[heap]" else "other KiB" if name else "mapped KiB"
            elif line.startswith("Anonymous:"):
                found[place] += int(line.split()[1])
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            found["descriptors of " + os.readlink(f"/proc/{pid}/fd/{number}").split(":[")[0]] += 1
        except OSError:
            pass
    return found


class Sample:
    """What the launcher's processes have: {(what, pid): {kind: number}}; and the files of the job."""

    def __init__(self, driver, folders, epoch):
        self.of, self.epoch = {}, epoch
        for _ in range(4):  # what is under way ends; the least counts
            table = processes()
            for one in [table[driver], *descendants(driver, table)]:
                if os.path.basename(one.exe()).startswith("hvdrun"):
                    above = table.get(one.ppid)
                    self.take(one, "driver" if one.pid == driver else "agent" if above and one.comm == above.comm else one.comm)
            time.sleep(0.2)
        self.parts = parts(driver)
        self.of["files", 0] = {"files": sum(len(names) for top in folders for _, inner, files in os.walk(top) for names in (inner, files))}

    def take(self, one, name):
        status = one.read("status").decode()
        numbers = {kind: re.search(rf"^{kind}:\s+(\d+)", status, re.M) for kind in ("RssAnon", "Threads")}
        try:
            descriptors = len(os.listdir(f"/proc/{one.pid}/fd"))
        except OSError:
            return
        if not all(numbers.values()):
            return
        now = {"KiB": int(numbers["RssAnon"][1]), "threads": int(numbers["Threads"][1]), "descriptors": descriptors}
        known = self.of.setdefault((name, one.pid), now)
        for kind, value in now.items():
            known[kind] = min(known[kind], value)


class Growth(Elastic, JobCommands):

    left_timeout = 60

    def begin(self):
        self.hosts = [f"n{number}" for number in range(1, AGENTS + 1)]
        self.turn, self.killed = 0, {"crashes": 0, "hosts lost": 0}
        self.set_hosts(*self.hosts)
        gate, self.let_go = self.box.gate("may-end")
        self.tail, self.size, self.epoch, self.pids = Tail(self.box.path("events")), 0, 0, {}
        self.job = self.start_elastic(
            "--hosts-watch", self.box.path("hosts"), "-np", AGENTS, "--min-np", 1, "--max-np", AGENTS, "--start-timeout", "600",
            "--max-restarts", 10**6, "--grow-delay", "200ms", "--node-timeout", "60s", "--report", self.box.path("report"),
            "--events", self.box.path("events"), "--metrics-file", self.box.path("metrics"),
            worker("hang"), "--until", gate, "--line-ms", 1000, stdout="hold",
            env={"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"})
        self.lines = Lines(self.job.held.pop("stdout"))
        self.whole(AGENTS)
        self.agents = {self.agent_pid(host) for host in self.hosts[:LIVE_LONG]}

    # the job

    def agent_pid(self, host):
        return processes()[self.pids[host][0]].ppid

    def whole(self, size):
        """Waits until so many ranks run in an epoch that is new."""
        before = self.epoch

        def there():
            for event in self.tail.read():
                if event["event"] == "worker_start":
                    self.pids[event["host"]] = (event["pid"], event["epoch"])
                elif event["event"] == "epoch":
                    self.epoch, self.size = event["epoch"], event["size"]
            if self.job.popen.poll() is not None:
                raise AssertionError(f"the job has ended{self.job.describe()}")
            time.sleep(0.1)
            return self.epoch > before and self.size == size
        wait_until(there, f"{size} ranks in an epoch after {before}", WAIT_S)

    def next_host(self):
        """Each in turn, so that none crashes often; never the first ones, which live all the time."""
        self.turn += 1
        return self.hosts[LIVE_LONG + self.turn % (AGENTS - LIVE_LONG)]

    def leave(self):
        self.gone = self.next_host()
        self.set_hosts(*(host for host in self.hosts if host != self.gone))
        self.whole(AGENTS - 1)

    def come_back(self):
        self.set_hosts(*self.hosts)
        self.whole(AGENTS)

    def kill_rank(self):
        self.killed["crashes"] += 1
        os.kill(self.pids[self.next_host()][0], signal.SIGKILL)
        self.whole(AGENTS)

    def kill_agent(self):
        self.killed["hosts lost"] += 1
        os.kill(self.agent_pid(self.next_host()), signal.SIGKILL)
        self.whole(AGENTS)

    def changes(self):
        while True:
            yield from (self.leave, self.come_back, self.kill_rank, self.kill_agent)

    # what others want to know

    def ask_all(self):
        for words in (["stacks"], ["top", "--once", "--json"], ["status", "--json"]):
            self.expect(self.start(*words).wait(WAIT_S), 0)
            self.box.jobs.pop()

    def sample(self):
        return Sample(self.job.pid, (self.box.tmp, self.box.run), self.epoch)

    # the judgement

    def grown(self, samples):
        """What has grown, one line each."""
        third = max(1, len(samples) // 3)
        early, late, said = samples[:third], samples[-third:], []
        for key in sorted(set.intersection(*(set(sample.of) for sample in samples))):
            for kind in samples[0].of[key]:
                most, least = max(early, key=lambda one: one.of[key][kind]), min(late, key=lambda one: one.of[key][kind])
                before, after, epochs = most.of[key][kind], least.of[key][kind], least.epoch - most.epoch
                # The log of a job has a second file, and never more, when the first one is full.
                spare = int(key[0] in ("driver", "files") and kind != "threads")
                if kind == "KiB":
                    spare = DRIVER_KIB + EPOCH_KIB * epochs if key[0] == "driver" else AGENT_KIB
                if after > before + spare:
                    where = f"; {self.moved(samples[0], samples[-1])}" if key[0] == "driver" else ""
                    said.append(f"{key[0]} (pid {key[1]}): {kind} {before} -> {after}; all: {[one.of[key][kind] for one in samples]}{where}")
        return said

    @staticmethod
    def moved(first, last):
        """What of the driver differs between two looks, the largest difference first."""
        more = {name: last.parts[name] - first.parts[name] for name in {*first.parts, *last.parts}}
        return ", ".join(f"{name} {more[name]:+d}" for name in sorted(more, key=lambda name: -abs(more[name])) if more[name])

    def record(self, sample):
        if RECORD is None:
            return
        agents = [of for (name, pid), of in sample.of.items() if name == "agent" and pid in self.agents]
        with open(RECORD, "a", encoding="utf-8") as file:
            print(json.dumps({"time": time.time(), "epoch": sample.epoch, "driver": sample.of["driver", self.job.pid], **sample.parts,
                              "agents": {kind: sum(of[kind] for of in agents) for kind in agents[0]}, **sample.of["files", 0],
                              "lines": self.lines.count, "load": os.getloadavg()[0]}), file=file)

    def test_growth(self):
        self.assertGreaterEqual(AGENTS, 4, "too few agents: there is one host for each kind of change, and one that stays")
        self.begin()
        samples, changes, began = [], self.changes(), None
        for number, change in enumerate(changes):
            due = time.monotonic() + CHANGE_S
            change()
            if number + 1 >= WARM_UP and self.size == AGENTS and (not samples or time.monotonic() >= began + 60 * len(samples)):
                began = began or time.monotonic()
                self.ask_all()
                samples.append(self.sample())
                self.record(samples[-1])
                if time.monotonic() >= began + 60 * MINUTES:
                    break
            time.sleep(max(0, due - time.monotonic()))
        self.let_go()
        result = self.expect(self.job.wait(WAIT_S), 0)
        self.lines.join(60)
        driver = [sample.of["driver", self.job.pid] for sample in samples]
        agents = [key for key in samples[0].of if key in samples[-1].of and key[0] == "agent"]
        print(f"{AGENTS} agents, {self.epoch} epochs, {self.lines.count} lines, driver {driver[0]} -> {driver[-1]}, {len(agents)} agents, "
              f"KiB {sum(samples[0].of[key]['KiB'] for key in agents)} -> {sum(samples[-1].of[key]['KiB'] for key in agents)} ... ",
              end="", file=sys.stderr, flush=True)
        said = re.search(r"(\d+) epochs: (\d+) crash\w*, (\d+) hosts? lost", result.said)
        self.assertEqual([int(said[2]), int(said[3])], [self.killed["crashes"], self.killed["hosts lost"]], result.describe())
        self.assertEqual(self.lines.odd, [])
        for sample in samples:
            self.assertLessEqual({("agent", pid) for pid in self.agents}, set(sample.of), "agents to which nothing was done are gone")
        self.assertEqual(self.grown(samples), [])


if __name__ == "__main__":
    main()
