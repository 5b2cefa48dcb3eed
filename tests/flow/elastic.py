# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs: a list of hosts that a test changes while the job runs, and what its workers say.

    class Test(Elastic, Flow):
        def test_x(self):
            job = self.train("-H", "a:2,b:2", "--min-np", 2)
            before = job.members(4)
            job.kill(before[3])
            job.members(4, but=before)
            job.finish()

The worker is the strict stand-in elastic_horovod. It prints VIOLATION when the launcher breaks the
protocol, and its result shows whether each part of each step was counted once. A training goes on
until finish() lets it end, so that no test depends on how fast anything is. The hosts are simulated
(--transport local), so a test kills an agent to lose a host.
"""

import collections
import json
import os
import re
import signal
import time

from ground import patient, wait_until, worker

ITEMS, MASK = 97, (1 << 64) - 1
ROUND = re.compile(r"^(?:\[[\d,-]+\]<stdout>:)?epoch-round (\d+) rank (\d+)/(\d+) host (\S+) local (\d+) step (\d+) pid (\d+)$",
                   re.M)
IMPORTS = re.compile(r"^(?:\[[\d,-]+\]<stdout>:)?imports rank (\d+)/(\d+) host (\S+) pid (\d+)$", re.M)

Member = collections.namedtuple("Member", "round rank size host local step pid")


def _mix(value):
    value = (value ^ value >> 29) * 0xbf58476d1ce4e5b9 & MASK
    return value ^ value >> 32


def final_line(steps):
    """What rank 0 says at the end, whatever has happened."""
    checksum = 0
    for step in range(steps):
        checksum = _mix(checksum ^ sum(_mix(step * ITEMS + item) >> 24 for item in range(ITEMS)))
    return f"final steps={steps} checksum={checksum:016x}"


def write_atomically(path, text, mode=0o644):
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path + ".new", mode)
    os.rename(path + ".new", path)


class Training:
    """A running elastic job; what is not here is the Job's."""

    def __init__(self, test, job, steps, let_go, events):
        self.test, self.job, self.steps, self.let_go, self.events_path = test, job, steps, let_go, events

    def __getattr__(self, name):
        return getattr(self.job, name)

    # what the workers say

    def said(self):
        """Every line of a worker about its place, in the order in which they came."""
        return [Member(int(m[1]), int(m[2]), int(m[3]), m[4], int(m[5]), int(m[6]), int(m[7]))
                for m in ROUND.finditer(self.job.output())]

    def round(self, number):
        """Those who said that they were in this round: {rank: Member}."""
        return {one.rank: one for one in self.said() if one.round == number}

    def _present(self, size, but, since):
        said, old = self.said(), list((but or {}).values())
        begin = max((i + 1 for i, one in enumerate(said) if one in old), default=0)
        last = {one.rank: one for one in said[begin:] if one.size == size and one.round >= since}
        if sorted(last) != list(range(size)) or len({one.round for one in last.values()}) != 1:
            return None
        return last

    def members(self, size, but=None, since=1, timeout=30):
        """Waits until so many ranks train together, as others than `but` and from this round on (the
        first is 1; a round that all of them began anew counts from 1 again): {rank: Member}."""
        def there():
            found = self._present(size, but, since)
            if found is None and self.job.popen.poll() is not None:
                raise AssertionError(f"ended before {size} ranks trained together{self.job.describe()}")
            return found
        try:
            return wait_until(there, f"{size} ranks that train together", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}{self.job.describe()}") from None

    def imports(self, count):
        """Waits for the process that was the count-th to begin with its imports: see Elastic.held_imports()."""
        found = wait_until(lambda: IMPORTS.findall(self.job.output())[count - 1:], f"{count} processes that import")
        rank, size, host, pid = found[0]
        return Member(0, int(rank), int(size), host, -1, 0, int(pid))

    def trains(self, seconds=1.0):
        """Nothing changes for so long."""
        before = len(self.said())
        self.test.pause(seconds)
        self.test.assertIsNone(self.job.popen.poll(), self.job.describe())
        self.test.assertEqual(len(self.said()), before, self.job.describe())

    # what the launcher says

    def events(self, kind=None):
        try:
            with open(self.events_path, encoding="utf-8") as file:
                lines = file.read().split("\n")[:-1]
        except FileNotFoundError:
            return []
        found = [json.loads(line) for line in lines]
        return [one for one in found if kind in (None, one["event"])]

    def wait_event(self, kind, timeout=30, **wanted):
        """Waits for an event whose fields are as wanted: a value, or a pattern that a text matches."""
        def fits(event):
            return all(re.search(value, str(event.get(name, ""))) if isinstance(value, str) else event.get(name) == value
                       for name, value in wanted.items())

        def there():
            found = [event for event in self.events(kind) if fits(event)]
            return found[0] if found else None
        try:
            return wait_until(there, f"event {kind} {wanted}", timeout)
        except AssertionError as error:
            told = "\n".join(map(str, self.events()))
            raise AssertionError(f"{error}; told:\n{told}{self.job.describe()}") from None

    def wait_epoch(self, number, cause="", **wanted):
        return self.wait_event("epoch", epoch=number, cause=cause, **wanted)

    # what happens to it

    def process(self, member):
        """The worker as this machine knows it; on a host of the rig its own pid is another."""
        return self.test.process_of(member)

    def kill(self, *members, number=signal.SIGKILL):
        for member in members:
            os.kill(self.process(member), number)

    def agent_of(self, host):
        return self.test.agent_of(self.job, host)

    # its end

    def check(self, result, aborts=False):
        """No worker has found fault with the launcher; `aborts`: peers may have died in a rendezvous."""
        self.test.assertNotIn("VIOLATION", result.stderr + result.stdout, result.describe())
        if not aborts:
            self.test.assertNotIn("ABORT", result.stderr + result.stdout, result.describe())
        numbers = [event["epoch"] for event in self.events("epoch")]
        self.test.assertEqual(numbers, sorted(set(numbers)), "epochs are counted upwards")
        for event in self.events("epoch"):
            for name, seconds in event.get("phases", {}).items():
                self.test.assertGreaterEqual(seconds, 0, f"{name} of {event}")
        return result

    def finish(self, timeout=60, aborts=False):
        """Lets it end, and checks the result of the training."""
        self.let_go()
        result = self.check(self.job.wait(timeout), aborts)
        self.test.assertEqual(result.status, 0, result.describe())
        finals = re.findall(r"final steps=.*", result.stdout)
        self.test.assertEqual(finals, [final_line(self.steps)], result.describe())
        return result

    def ends(self, status=None, timeout=60, aborts=False):
        """It ends without being let go; another status than 0 if none is given."""
        result = self.check(self.job.wait(timeout), aborts)
        if status is None:
            self.test.assertNotIn(result.status, (0, 125), result.describe())
        else:
            self.test.assertEqual(result.status, status, result.describe())
        return result


class Elastic:
    """Beside Flow or Hosts."""

    steps = 60
    gloo_timeout = 10  # s; of the workers: how long they wait for a silent peer

    # the list of hosts

    def set_hosts(self, *hosts):
        write_atomically(self.box.path("hosts"), "".join(host + "\n" for host in hosts))

    def discover(self, *hosts):
        """The options for a discovery script that lists these hosts until set_hosts() is called."""
        self.set_hosts(*hosts)
        script = self.write("discover.sh", f"#!/bin/sh\nexec cat '{self.box.path('hosts')}'\n", 0o755)
        return ["--host-discovery-script", script, "--discovery-period", "200ms"]

    # the imports of new processes

    def held_imports(self):
        """The words for a worker that has to import, and two functions: from hold() to let_go(), no import ends."""
        gate, let_go = self.box.gate("imported")
        let_go()
        return ["--import-until", gate], lambda: os.remove(gate), let_go

    # the job

    where = ("--transport", "local")

    def start_elastic(self, *args, **options):
        return self.start(*self.where, *args, **options)

    def process_of(self, member):
        return member.pid

    @staticmethod
    def agent_of(job, host):
        """The local agent of a made-up host: the parent of its workers (above it stands its keeper)."""
        tree = job.tree()
        parents = {one.ppid for one in tree if one.environ().get("HVDRUN_HOSTNAME") == host}
        for agent in tree:
            if agent.pid in parents and agent.comm == "hvdrun-agent":
                return agent
        raise AssertionError(f"no agent with workers of {host}{job.describe()}")

    def crash_for_good(self, job, host, *listed):
        """Kills the agent of a host that is not listed from now on. The launcher is stopped meanwhile, while
        no discovery is under way, so that it learns of the crash first, however busy the machine is."""
        def between_two_discoveries():
            os.kill(job.pid, signal.SIGSTOP)
            if not any(b"discover.sh" in one.read("cmdline") or b"hosts\0" in one.read("cmdline") for one in job.tree()
                       if one.comm != "hvdrun-folder"):
                return True
            os.kill(job.pid, signal.SIGCONT)
            return False
        wait_until(between_two_discoveries, "a moment without a discovery")
        agent = self.agent_of(job, host)
        self.set_hosts(*listed)
        os.kill(agent.pid, signal.SIGKILL)
        os.kill(job.pid, signal.SIGCONT)

    def train(self, *args, faults=(), steps=None, commit=5, step_ms=5, env=None, **options):
        """Starts a training: options of hvdrun in `args`, those of the worker in `faults`."""
        steps = steps or self.steps
        gate, let_go = self.box.gate("may-end")
        once, events = self.box.path("once"), self.box.path("events")
        os.makedirs(once, exist_ok=True)
        job = self.start_elastic(
            "--events", events, "--grace", 1, "--grow-delay", "200ms", *args, worker("elastic_horovod"), "--steps", steps,
            "--commit", commit, "--step-ms", step_ms, "--until", gate, "--once", once, "--alarm", int(patient(100)), *faults,
            env={"HOROVOD_GLOO_TIMEOUT_SECONDS": str(int(patient(self.gloo_timeout))), **(env or {})}, **options)
        return Training(self, job, steps, let_go, events)

    @staticmethod
    def pause(seconds):
        """Time in which something must not happen."""
        time.sleep(seconds)
