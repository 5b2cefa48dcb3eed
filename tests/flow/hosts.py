# SPDX-License-Identifier: Apache-2.0
"""Many hosts on one machine, for flow tests: the Python side of tests/rig.

    class Test(Hosts):
        def test_x(self):
            result = self.ssh_job("-np", 4, "-H", "node1:2,node2:2", worker("hello"))
            self.expect(result, 0)

main() starts the file again inside a box (tests/rig/box). If that is not possible, it prints in one line
what is missing and ends with status 77, which ctest shows as skipped. The box has the launcher's own
namespace, where the test runs, and hosts node0, node1... with an sshd each. They see the build folder, the
sources and the working folders of the tests at the same paths. Each has its own /tmp, /run, /dev/shm and home.

After each test, each host that is up must be clean. It has no process but its sshd, and no file in /tmp and
/dev/shm but the agent for the next run. Then the rig ends all faults.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

from ground import BUILD, HERE, HVDRUN, SOURCE, WORKERS, Later, limit, wait_until, worker
from jobs import Job
from procfs import is_alive, kill, processes
import rig as flow

RIG_SCRIPTS = os.path.join(os.path.dirname(HERE), "rig")
sys.path.insert(0, RIG_SCRIPTS)
import entrance  # noqa: E402
import network  # noqa: E402
import ssh_files  # noqa: E402

KEPT_AGENT = re.compile(r"/hvdrun(-\d+)?(/(hvdrun-agent|checked)-[^/]*)?$|/hvdrun-\d+/\.jobs-[^/]+(/[^/]+\.(jsonl?|log|control|evidence(/[^/]+)?))?$")
FULL = "/tmp/full"
SYSTEM_PATH = entrance.SYSTEM_PATH


class Host:
    """One host; made by Rig."""

    def __init__(self, rig, number):
        self.rig, self.number, self.name, self.address = rig, number, f"node{number}", network.address(number)
        self.keeper_pid, self.init, self.servers, self.rate, self.ruled = None, None, [], None, False
        self.is_down, self.is_cut = True, False

    # life

    def boot(self):
        argv = ["ip", "netns", "exec", f"rig{self.number}", "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork",
                "--kill-child=SIGKILL", os.path.join(RIG_SCRIPTS, "host_init"), self.name]
        self.keeper_pid = self.rig.ask_keeper(os.path.join(self.rig.top, "log", self.name), argv)
        self.init, self.servers, self.is_down, self.is_cut = None, [], False, False

    def wait_booted(self):
        def children():
            with open(f"/proc/{self.keeper_pid}/task/{self.keeper_pid}/children", encoding="ascii") as file:
                return file.read().split()
        try:
            self.init = int(wait_until(children, f"{self.name} starts")[0])
            wait_until(self.answers, f"the sshd of {self.name} answers")
        except (AssertionError, OSError) as error:
            with open(f"{self.rig.top}/log/{self.name}", encoding="utf-8") as file:
                raise AssertionError(f"{error}; its log:\n{file.read()}") from None

    def answers(self, port=22):
        try:
            with socket.create_connection((self.address, port), 1) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def crash(self):
        """All its processes die and its kernel lives: peers get FIN or RST."""
        def gone():
            reap_adopted()
            return not is_alive(self.keeper_pid)
        kill(self.init)
        wait_until(gone, f"{self.name} is down", 10)
        self.is_down = True

    def power_off(self):
        """Silence for everyone."""
        network.link(self.number, False)
        self.rig.silence = True
        self.crash()

    def power_on(self):
        network.unplug(self.number)
        network.plug([self.number])
        self.rate, self.ruled = None, False
        self.boot()
        self.wait_booted()

    def cut(self):
        """The cable is out; its processes live on."""
        network.link(self.number, False)
        self.is_cut = self.rig.silence = True

    def heal(self):
        network.link(self.number, True)
        self.is_cut = False

    # what its network does

    def slow(self, rate="10mbit"):
        network.limit_rate(self.number, rate)
        self.rate = rate

    def refuse(self, port=22):
        network.host_rules(self.number, [f"tcp dport {port} reject with tcp reset"])
        self.ruled = True

    def drop(self, port=22):
        network.host_rules(self.number, [f"tcp dport {port} drop"])
        self.ruled = True

    # what runs on it

    def enter(self, argv, cwd="/"):
        """The command line that runs argv on the host."""
        return ["nsenter", "--target", str(self.init), "--net", "--mount", "--uts", "--ipc", "--pid", "--",
                "env", "-C", str(cwd), *map(str, argv)]

    def run(self, *argv, check=True, timeout=20):
        """Runs a command there; returns its standard output."""
        done = subprocess.run(self.enter(argv), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=limit(timeout), env={"PATH": SYSTEM_PATH, "HOME": f"{self.rig.top}/home"})
        if check and done.returncode != 0:
            raise AssertionError(f"{self.name}: {argv} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def processes(self):
        """All its processes but pid 1, dead ones not counted."""
        if self.is_down:
            return []
        own = f"/proc/{self.init}/ns/pid"
        try:
            space = os.readlink(own)
        except OSError:
            return []
        found = []
        for one in processes().values():
            try:
                if one.pid != self.init and one.state not in "ZX" and os.readlink(f"/proc/{one.pid}/ns/pid") == space:
                    found.append(one)
            except OSError:
                pass
        return found

    def workers(self):
        """{rank: process} of hvdrun's workers on it."""
        found = {}
        for one in self.processes():
            rank = one.environ().get("HOROVOD_RANK", "")
            if rank.isdigit() and one.exe().startswith(WORKERS + os.sep):
                found[int(rank)] = one
        return found

    def agents(self):
        """Agent and keeper: every process of hvdrun on it."""
        return [one for one in self.processes() if os.path.basename(one.exe()).startswith(("hvdrun", ".hvdrun"))]

    def agent(self):
        """The agent itself: the parent of the workers, else the youngest of its processes."""
        parents = {one.ppid for one in self.workers().values()}
        agents = self.agents()
        chosen = [one for one in agents if one.pid in parents] or agents[-1:]
        if not chosen:
            raise AssertionError(f"no agent on {self.name}: {[str(one) for one in self.processes()]}")
        return chosen[0]

    def sessions(self):
        """The processes of sshd that serve a connection."""
        return [one for one in self.processes() if one.read("cmdline").startswith(b"sshd: ")]

    # its files

    def path(self, path):
        """A path of the host, as the test can open it."""
        return os.path.join("/proc", str(self.init), "root") + path

    def mount_tmp(self, options):
        """Another /tmp over the one it has, until the end of the test."""
        self.run("mount", "-t", "tmpfs", "-o", options, "tmpfs", "/tmp")
        self.run("mkdir", "-p", *(to for _, to in self.rig.held()), "/tmp/.placed", check=False)
        for source, to in self.rig.held():
            self.run("mount", "--bind", source, to)
        self.run("rmdir", "/tmp/.placed", check=False)

    def fill_tmp(self):
        self.mount_tmp("size=64k,mode=1777")
        self.run("sh", "-c", f"cat /dev/zero > {FULL}", check=False)

    def server(self, port, *options):
        """A further sshd with options of its own, which come before the usual ones; ends with the test."""
        config = os.path.join(self.rig.top, "ssh", f"sshd_{self.name}_{port}")
        with open(ssh_files.folder() + "/sshd_config", encoding="ascii") as usual, \
                open(config, "w", encoding="ascii") as file:
            own = [option.split()[0] for option in options]
            rest = [line for line in usual.read().splitlines() if line.split()[0] not in own + ["Port"]]
            file.write("\n".join([f"Port {port}", *options, *rest]) + "\n")
        self.rig.ask_keeper(os.path.join(self.rig.top, "log", self.name),
                            self.enter(["/usr/sbin/sshd", "-D", "-e", "-f", config]))
        wait_until(lambda: self.answers(port), f"the sshd of {self.name} on port {port}")
        self.servers += [one.pid for one in self.processes() if config.encode() in one.read("cmdline")]

    def litter(self):
        found = []
        held = [to for _, to in self.rig.held()]
        for top in ("/tmp", "/dev/shm"):
            root = self.path(top)
            for folder, folders, files in os.walk(root):
                inside = folder[len(self.path("")):]
                for name in list(folders):
                    path = f"{inside}/{name}"
                    if any(to == path or to.startswith(path + "/") for to in held):
                        folders.remove(name)
                found += [f"{inside}/{name}" for name in folders + files]
        return [path for path in found if not KEPT_AGENT.search(path) and path != FULL]

    def left(self):
        """What a run has left: processes and files."""
        if self.is_down:
            return []
        found = [f"{self.name}: process left: {one}" for one in self.processes() if one.pid not in self.servers and
                 one.exe() not in self.rig.daemons and not (self.rig.silence and one.read("cmdline").startswith(b"sshd: "))]
        return found + [f"{self.name}: file left: {path}" for path in self.litter()]

    def restore(self):
        """As it was at first. A host that has been meddled with is booted anew."""
        if self.rate is not None:
            network.limit_rate(self.number, None)
        if self.ruled:
            network.host_rules(self.number, [])
        self.rate, self.ruled = None, False
        if not self.is_down and (not is_alive(self.init) or self.is_cut or self.left() or self.changed()):
            self.crash()
        if self.is_down:
            self.power_on()
        for pid in self.servers:
            kill(pid)
        wait_until(lambda: not any(is_alive(pid) for pid in self.servers), f"the servers of {self.name} end")
        self.servers = []

    def changed(self):
        with open(f"/proc/{self.init}/mounts", encoding="utf-8") as file:
            return sum(line.split()[1] == "/tmp" for line in file) > 1 + self.rig.outer_tmp

    def forget_agent(self):
        """As if it had never run hvdrun."""
        self.run("sh", "-c", f"rm -rf /tmp/hvdrun* /run/user/*/hvdrun* {self.rig.top}/home/.cache/hvdrun")


class Rig:
    """The hosts of this box. One for a test file."""

    one, failed = None, False
    prepare = None  # called with the rig before its hosts boot

    def __init__(self, count):
        self.top = os.environ["HVDRUN_RIG"]
        self.keeper = socket.socket(fileno=int(os.environ["HVDRUN_RIG_KEEPER"]))
        os.set_inheritable(self.keeper.fileno(), False)
        with open("/proc/self/mounts", encoding="utf-8") as file:
            self.outer_tmp = sum(line.split()[1] == "/tmp" for line in file)
        self.silence = False  # somebody went without a word: an sshd may serve his connection for long
        self.daemons = set()  # the paths of programs that belong to the hosts, and are not what a run has left
        self.rules, self.hosts, self.aliases = [], [Host(self, number) for number in range(count)], {}
        ssh_files.make_server_files()
        self.write_names()
        network.make_bridge()
        network.plug(range(count))
        if Rig.prepare is not None:
            Rig.prepare(self)
        for host in self.hosts:
            host.boot()
        for host in self.hosts:
            host.wait_booted()

    @classmethod
    def up(cls, count):
        if cls.failed:
            raise AssertionError("there are no hosts: see the first failure of this file")
        if cls.one is None:
            cls.failed = True
            cls.one = Rig(count)
            cls.failed = False
        return cls.one

    def ask_keeper(self, log, argv):
        self.keeper.send(json.dumps([log, *argv]).encode())
        return int(self.keeper.recv(64))

    def held(self):
        """Folders that are seen on every host through a mount: (where they are held, their path)."""
        try:
            with open(os.path.join(self.top, "hold/list"), encoding="utf-8") as file:
                return [tuple(line.split()) for line in file]
        except FileNotFoundError:
            return []

    def write_names(self):
        lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost", f"{network.LAUNCHER} launcher"]
        lines += [" ".join([host.address, host.name, *self.aliases.get(host.number, [])]) for host in self.hosts]
        with open(os.path.join(self.top, "etc/hosts"), "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")

    def alias(self, number, names):
        """Further names of a host."""
        self.aliases.setdefault(number, []).extend(names)
        self.write_names()

    def add_rules(self, *rules):
        self.rules += rules
        network.switch_rules(self.rules)

    def one_way(self, source, target):
        """Nothing gets from one to the other any more; the way back works. None is the launcher."""
        ends = [network.LAUNCHER if end is None else network.address(end) for end in (source, target)]
        self.add_rules(f"ip saddr {ends[0]} ip daddr {ends[1]} drop")
        self.silence = True

    def loss(self, percent, number=None):
        """So many of all IP packets are lost, or of one host's."""
        chance = f"numgen random mod 100 < {percent} drop"
        if number is None:
            self.add_rules(f"ether type ip {chance}")
        else:
            self.add_rules(*(f"ip {way} {network.address(number)} {chance}" for way in ("saddr", "daddr")))

    def restore(self):
        self.silence = False
        if self.rules:
            self.rules = []
            network.switch_rules([])
        if self.aliases:
            self.aliases = {}
            self.write_names()
        for host in self.hosts:
            host.restore()


class Hosts(flow.Flow):
    """A test on hosts node0..node4: `self.host(2)`, and runs of hvdrun that reach them by ssh."""

    count = 5
    left_timeout = 10

    def setUp(self):
        super().setUp()
        self.rig = Rig.up(self.count)
        self.addCleanup(self._end_hosts)
        self.write_known_hosts("".join(ssh_files.known_hosts_lines(f"{host.name},{host.address}")
                                       for host in self.rig.hosts))
        self.write_ssh_config()

    def _end_hosts(self):
        try:
            if not self._has_failed():
                self.check_hosts()
        finally:
            self.rig.restore()

    def host(self, number):
        return self.rig.hosts[number]

    def check_hosts(self, timeout=10, but=()):
        """Fails when something is left on a host that is up."""
        hosts = [host for host in self.rig.hosts if host.number not in but]
        deadline = time.monotonic() + limit(timeout)
        while True:
            left = [line for host in hosts for line in host.left()]
            if not left or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self.assertEqual(left, [], "something is left on the hosts")

    def expect_none_lost(self, result):
        """No host was. One may have been silent for so long that hvdrun told it, and answered again."""
        self.expect_not_said(result, r"\blost node\d|node\d was lost|[1-9]\d* hosts? lost")
        self.assertEqual(result.said.count("no heartbeat for "), result.said.count("answers again"), result.describe())

    def wait_no_workers(self, *numbers, timeout=15):
        """On these hosts, or on all, no worker and no agent is left."""
        for host in [self.host(number) for number in numbers] or self.rig.hosts:
            wait_until(lambda: not host.workers() and not host.agents(),
                       Later(f"{host.name} is clean; it has ", lambda: [str(one) for one in host.processes()]), timeout)

    def wait_workers(self, counts, timeout=30, job=None):
        """Waits until host K has counts[K] workers; returns {K: {rank: process}}."""
        def there():
            if job is not None and job.popen.poll() is not None:
                raise AssertionError(f"ended before its workers ran{job.describe()}")
            found = {number: self.host(number).workers() for number in counts}
            return found if all(len(found[number]) == count for number, count in counts.items()) else None
        return wait_until(there, f"workers on the hosts: {counts}", timeout)

    # the user's files

    @property
    def ssh_config(self):
        return self.box.path("ssh_config")

    @property
    def known_hosts(self):
        return self.box.path("known_hosts")

    def write_known_hosts(self, text):
        return self.write("known_hosts", text, 0o600)

    def read_known_hosts(self):
        with open(self.known_hosts, encoding="utf-8") as file:
            return file.read()

    def write_ssh_config(self, text="", identity=True, rest="  LogLevel ERROR\n"):
        """The configuration that ssh_job() uses: `text` before what every host gets."""
        key = f"  IdentityFile {ssh_files.client_key()}\n  IdentitiesOnly yes\n" if identity else ""
        return self.write("ssh_config", f"{text}\nHost *\n  User root\n  UserKnownHostsFile {self.known_hosts}\n"
                                        f"  GlobalKnownHostsFile /dev/null\n{key}{rest}", 0o600)

    # runs

    def ssh_words(self):
        return ["--ssh-config", self.ssh_config]

    def ssh_job(self, *args, **options):
        return self.run_job(*self.ssh_words(), *args, **options)

    def ssh_start(self, *args, **options):
        return self.start(*self.ssh_words(), *args, **options)

    @staticmethod
    def with_time(run, is_right):
        """What run(--start-timeout) returns as soon as it is right: a busy machine needs more time for the hosts that do come
        up. On a quick one, the first limit is long enough, and soon over. After 10 s, hvdrun gives up a host that is silent."""
        for seconds in (3, 9, 9, 9):
            result = run(seconds)
            if is_right(result):
                break
        return result

    def start_on(self, number, *args, **options):
        """hvdrun with its driver on a host. What Job.pid says is nsenter's."""
        argv = self.host(number).enter([HVDRUN, *self.ssh_words(), *args], cwd=self.box.work)
        return Job(self.box, argv, **options)

    def driver_on(self, number):
        """The process of the driver there, once it runs."""
        def there():
            found = [one for one in self.host(number).processes() if os.path.basename(one.exe()) == "hvdrun"]
            return min(found, key=lambda one: one.started) if found else None
        return wait_until(there, f"a driver on {self.host(number).name}")

    def plain_ssh(self, name, *command, timeout=20, **options):
        """The ssh program with the test's configuration: (status, stdout, stderr)."""
        done = subprocess.run(["ssh", "-F", self.ssh_config, "-o", "BatchMode=yes", name, *map(str, command)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=limit(timeout), **options)
        return done.returncode, done.stdout, done.stderr


def reap_adopted():
    """A host is down only when all its processes are collected, those too that entered it from here
    and whose nsenter is dead: they are our children then. They have a pid in two namespaces."""
    for one in processes().values():
        if one.ppid == os.getpid() and one.state == "Z" and \
                re.search(rb"^NSpid:(\t\d+){2,}", one.read("status"), re.M):
            try:
                os.waitpid(one.pid, os.WNOHANG)
            except ChildProcessError:
                pass


def freeze(process):
    os.kill(process.pid, signal.SIGSTOP)


def thaw(process):
    os.kill(process.pid, signal.SIGCONT)


def main():
    if "HVDRUN_RIG_KEEPER" not in os.environ:
        entrance.enter([SOURCE, BUILD, os.path.dirname(HVDRUN), WORKERS])
    flow.main()


__all__ = ["Host", "Hosts", "Rig", "freeze", "main", "network", "ssh_files", "thaw", "unittest", "worker"]
