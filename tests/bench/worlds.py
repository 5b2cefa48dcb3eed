# SPDX-License-Identifier: Apache-2.0
"""The two kinds of hosts on which elastic jobs are measured, with one face: made-up hosts (--transport
local; an agent of its own each, on this machine) and hosts of the rig (tests/rig: network and process
namespaces with an sshd each). A job's worker is the elastic stand-in of the flow tests."""

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
    """A job that goes on until it is ended, and what its workers and its launcher have noted."""

    def __init__(self, world):
        self.world, self.box, self.job = world, Box(), None
        self.events_path, self.list_path = self.box.path("events"), self.box.path("hosts")
        self.stamps = Stamps(self.box.path("stamps"))

    def __enter__(self):
        return self

    def start(self, words, worker_words, gloo_timeout=30):
        """Starts it. Among the words of hvdrun, LIST and SCRIPT stand for the list that set_hosts()
        writes, and a discovery script that prints it."""
        places = {"LIST": self.list_path, "SCRIPT": self._script()}
        stamped = f"exec \"$0\" --stamp '{self.stamps.folder}'/\"$HVDRUN_HOSTNAME\" \"$@\""
        argv = [HVDRUN, *self.world.words(self.box), "--events", self.events_path, "--grace", 1,
                *[places.get(word, word) for word in words],
                "sh", "-c", stamped, worker("elastic_horovod"), "--until", self.box.path("never"), "--alarm", 3000,
                *worker_words]
        self.job = Job(self.box, argv, env={"HOROVOD_GLOO_TIMEOUT_SECONDS": str(gloo_timeout)})

    def __exit__(self, *_):
        """Nothing of it is left, whatever state it was in."""
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
        """Waits until so many ranks have made their first step after this moment; all of `among` are
        among them. {rank: Member}, and the moment of the last first step."""
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


class MadeUp:
    """Hosts that are only names; each has an agent of its own."""

    name = "made-up hosts"

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
        """Of a host, by its pid: the parent of its workers."""
        return process(next(member.pid for member in members.values() if member.host == host)).ppid

    def crash(self, members, host):
        os.kill(self.agent(members, host), signal.SIGKILL)

    def silence(self, members, host):
        """Keeper, agent and workers stand still, as on a machine that hangs."""
        agent = self.agent(members, host)
        keeper = process(process(agent).ppid)
        above = [keeper.pid] if os.path.basename(keeper.exe()) == "hvdrun-agent" else []
        for pid in [*above, agent, *(one.pid for one in descendants(agent))]:
            os.kill(pid, signal.SIGSTOP)

    def forget(self, host):
        """It has no agent's program to lose."""

    def restore(self):
        """Nothing has changed but processes of the job."""


class RigHosts:
    """node1, node2...: this program runs inside a box, see main() of recovery.py."""

    name = "rig hosts"

    def __init__(self, count):
        import hosts  # needs the box
        self.hosts, self.rig = hosts, hosts.Rig.up(count)

    @staticmethod
    def host(number):
        return f"node{number + 1}"

    def words(self, box):
        """ssh as a user of the rig's hosts has it."""
        known, config = box.path("known_hosts"), box.path("ssh_config")
        files = self.hosts.ssh_files
        write_atomically(known, "".join(files.known_hosts_lines(f"{host.name},{host.address}") for host in self.rig.hosts), 0o600)
        write_atomically(config, f"Host *\n  User root\n  UserKnownHostsFile {known}\n  GlobalKnownHostsFile /dev/null\n"
                                 f"  IdentityFile {files.client_key()}\n  IdentitiesOnly yes\n  LogLevel ERROR\n", 0o600)
        return ["--ssh-config", config]

    def _host(self, name):
        return self.rig.hosts[int(name.removeprefix("node"))]

    def pid(self, member):
        """As this machine knows it."""
        for one in self._host(member.host).processes():
            if re.search(rb"^NSpid:.*\t%d$" % member.pid, one.read("status"), re.M):
                return one.pid
        raise AssertionError(f"no such process on its host: {member}")

    def crash(self, _, host):
        self._host(host).crash()

    def silence(self, _, host):
        """Power off."""
        self._host(host).power_off()

    def forget(self, host):
        """As if it had never run hvdrun: the agent's program is copied to it first."""
        self._host(host).forget_agent()

    def restore(self):
        self.rig.restore()
