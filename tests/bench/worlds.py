# SPDX-License-Identifier: Apache-2.0
"""The two kinds of hosts for benchmarks of elastic jobs, with the same interface: simulated hosts (--transport local;
each has an agent on this machine) and hosts of the rig (tests/rig; each has network and process namespaces and an
sshd). The worker of a job stands in for an elastic Horovod script, as in the flow tests."""

import collections
import json
import os
import re
import signal
import subprocess

from bench import Stamps, wait_for, wall_to_monotonic
from box import Box
from elastic import write_atomically
from ground import HVDRUN, worker
from jobs import Job
from procfs import descendants, process

Member = collections.namedtuple("Member", "host pid rank")


class Run:
    """A job that runs until the benchmark ends it, with the records of its workers and its launcher."""

    def __init__(self, world):
        self.world, self.box, self.job = world, Box(), None
        self.events_path, self.list_path = self.box.path("events"), self.box.path("hosts")
        self.stamps = Stamps(self.box.path("stamps"))

    def __enter__(self):
        return self

    def start(self, words, worker_words, gloo_timeout=30):
        """Starts the job. The words LIST and SCRIPT stand for the host list that set_hosts() writes, and for a discovery
        script that prints that list."""
        places = {"LIST": self.list_path, "SCRIPT": self._script()}
        stamped = f"exec \"$0\" --stamp '{self.stamps.folder}'/\"$HVDRUN_HOSTNAME\" \"$@\""
        argv = [HVDRUN, *self.world.words(self.box), "--events", self.events_path, "--grace", 1,
                *[places.get(word, word) for word in words],
                "sh", "-c", stamped, worker("elastic_horovod"), "--until", self.box.path("never"), "--alarm", 3000,
                *worker_words]
        self.job = Job(self.box, argv, env={"HOROVOD_GLOO_TIMEOUT_SECONDS": str(gloo_timeout)})

    def __exit__(self, *_):
        """Removes all of the job, in whatever state it is."""
        text = ""
        if self.job is not None:
            if self.job.popen.poll() is None:
                self.job.signal(signal.SIGTERM)
                try:
                    self.job.popen.wait(15)
                except subprocess.TimeoutExpired:
                    self.job.kill()
            text = self.job.output() + self.job.output("stderr")
        self.box.kill_strays()
        self.box.close()
        if "VIOLATION" in text:
            raise AssertionError("the launcher broke the protocol: " + text[-4000:])

    def set_hosts(self, *hosts):
        write_atomically(self.list_path, "".join(host + "\n" for host in hosts))

    def _script(self):
        path = self.box.path("discover.sh")
        write_atomically(path, f"#!/bin/sh\nexec cat '{self.list_path}'\n", 0o755)
        return path

    def wait(self, condition, what, timeout=60, period=0.02):
        def there():
            found = condition()
            if not found and self.job.popen.poll() is not None:
                raise AssertionError(f"the job has ended before {what}{self.job.describe()}")
            return found
        try:
            return wait_for(there, what, timeout, period)
        except TimeoutError as error:
            raise AssertionError(f"{error}{self.job.describe()}") from None

    def members(self, size, since=0.0, among=None, timeout=60):
        """Waits until `size` ranks, with all of `among`, have made their first step after `since`.
        Returns {rank: Member} and the time of the last of these steps."""
        def there():
            last = {}
            for one in self.stamps.since(since, "first-step"):
                last[(one.group, one.pid)] = one
            if any((member.host, member.pid) not in last for member in (among or [])):
                return None
            ranks = {one.rank: Member(one.group, one.pid, one.rank) for one in last.values()}
            return (ranks, max(one.time for one in last.values())) if len(last) >= size else None
        return self.wait(there, f"{size} ranks have made a first step", timeout)

    def events(self, kind):
        try:
            with open(self.events_path, encoding="utf-8") as file:
                lines = file.read().split("\n")[:-1]
        except FileNotFoundError:
            return []
        found = [json.loads(line) for line in lines if f'"event":"{kind}"' in line]
        return [{**event, "at": wall_to_monotonic(event["time"])} for event in found]

    def event(self, kind, since, timeout=20, **wanted):
        """The first event of a kind after a moment."""
        def there():
            return [event for event in self.events(kind) if event["at"] > since - 0.001 and
                    all(event.get(name) == value for name, value in wanted.items())]
        return self.wait(there, f"an event {kind} {wanted}", timeout)[0]


class Simulated:
    """Simulated hosts: each is a name and an agent on this machine."""

    name = "simulated hosts"

    @staticmethod
    def host(number):
        return "abcdefgh"[number]

    @staticmethod
    def words(_):
        return ["--transport", "local"]

    @staticmethod
    def pid(member):
        return member.pid

    @staticmethod
    def agent(members, host):
        """The pid of a host's agent, which is the parent of its workers."""
        return process(next(member.pid for member in members.values() if member.host == host)).ppid

    def crash(self, members, host):
        os.kill(self.agent(members, host), signal.SIGKILL)

    def silence(self, members, host):
        """Stops keeper, agent and workers, as on a machine that hangs."""
        agent = self.agent(members, host)
        keeper = process(process(agent).ppid)
        above = [keeper.pid] if os.path.basename(keeper.exe()) == "hvdrun-agent" else []
        for pid in [*above, agent, *(one.pid for one in descendants(agent))]:
            os.kill(pid, signal.SIGSTOP)

    def forget(self, host):
        """Does nothing: the agent's program is not copied to simulated hosts."""

    def restore(self):
        """Does nothing: only processes of the job have changed."""


class RigHosts:
    """The hosts node1, node2... of the rig. The program must run inside a box: see main() of recovery.py."""

    name = "rig hosts"

    def __init__(self, count):
        import hosts  # needs the box
        self.hosts, self.rig = hosts, hosts.Rig.up(count)

    @staticmethod
    def host(number):
        return f"node{number + 1}"

    def words(self, box):
        """The options for a login on the rig's hosts."""
        known, config = box.path("known_hosts"), box.path("ssh_config")
        files = self.hosts.ssh_files
        write_atomically(known, "".join(files.known_hosts_lines(f"{host.name},{host.address}") for host in self.rig.hosts), 0o600)
        write_atomically(config, f"Host *\n  User root\n  UserKnownHostsFile {known}\n  GlobalKnownHostsFile /dev/null\n"
                                 f"  IdentityFile {files.client_key()}\n  IdentitiesOnly yes\n  LogLevel ERROR\n", 0o600)
        return ["--ssh-config", config]

    def _host(self, name):
        return self.rig.hosts[int(name.removeprefix("node"))]

    def pid(self, member):
        """The pid of a worker in the namespace of this program."""
        for one in self._host(member.host).processes():
            if re.search(rb"^NSpid:.*\t%d$" % member.pid, one.read("status"), re.M):
                return one.pid
        raise AssertionError(f"no such process on its host: {member}")

    def crash(self, _, host):
        self._host(host).crash()

    def silence(self, _, host):
        """Powers the host off."""
        self._host(host).power_off()

    def forget(self, host):
        """Removes the agent's program, as on a host that never had it. The driver must then copy it there."""
        self._host(host).forget_agent()

    def restore(self):
        self.rig.restore()
