# SPDX-License-Identifier: Apache-2.0
"""Agents that a user starts and that dial in (--transport dial): on hosts that share only the network."""
# ctest waits
# ctest long

import hashlib
import hmac
import itertools
import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import threading
import time

from ground import BUILD, HVDRUN, limit, wait_until, worker
from hosts import Hosts, main, network
from jobs import Job
from procfs import kill, processes

AGENT = os.path.join(BUILD, "lib/hvdrun/hvdrun-agent")
PORT = 4000
SECRET = "0fd7d0c4c5a2f3ad76f7e9b1c0a3d5e8"
KEY = hmac.digest(hmac.digest(b"hvdrun dial 1", SECRET.encode(), hashlib.sha256), b"hvdrun\x01", hashlib.sha256).hex()
WHERE = ("sh", "-c", "echo $RANK on $HVDRUN_HOSTNAME")


class Dialing(Hosts):

    def setUp(self):
        super().setUp()
        self.secret = self.write("secret", SECRET + "\n", 0o600)
        self.env = {"HVDRUN_DIAL_SECRET": self.secret}

    def drive(self, hosts, *args, env=None, **options):
        named = ["-H", hosts] if hosts else []
        return self.start("--transport", "dial", "--dial-port", PORT, *named, *args, env={**self.env, **(env or {})}, **options)

    def agent(self, number, *args, name=None, before=()):
        """An agent on a host, as a container would start it."""
        words = [*before, AGENT, "--dial", f"launcher:{PORT}", "--name", name or f"pod-{number}", *args]
        return Job(self.box, self.host(number).enter(words), env={**self.env, "TMPDIR": "/tmp", "XDG_RUNTIME_DIR": None})

    def waiting(self, agent, why="Connection refused"):
        agent.wait_output(rf"waiting for hvdrun: .*{why}", name="stderr")
        return agent

    def stop_waiting(self, number, agent):
        """Ends the one agent of a host that has not come in."""
        for one in self.host(number).agents():
            os.kill(one.pid, signal.SIGTERM)
        self.expect(agent.wait(), 143)

    def end(self, agents, status=0):
        return [self.expect(agent.wait(), status) for agent in agents]

    def until_gate(self):
        """A script for workers that end when open_gate() is called."""
        gate, self.open_gate = self.box.gate()
        return f"echo $RANK of $WORLD_SIZE on $HVDRUN_HOSTNAME; while [ ! -e {gate} ]; do sleep 0.05; done"

    @staticmethod
    def wait_port():
        def answers():
            try:
                socket.create_connection(("127.0.0.1", PORT), 5).close()
                return True
            except ConnectionRefusedError:
                return False
        wait_until(answers, "hvdrun listens")


def is_open(connection, data):
    """Sends the data; whether the peer has not closed the connection."""
    try:
        connection.sendall(data)
        connection.settimeout(0.01)
        return connection.recv(65536) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False


class Relay(threading.Thread):
    """Stands between the first agent and the driver, and keeps what the agent sends."""

    def __init__(self):
        super().__init__(daemon=True)
        self.server, self.heard = socket.create_server(("", 0)), b""
        self.port, self.ends = self.server.getsockname()[1], []
        self.start()

    def run(self):
        try:
            self.ends.append(self.server.accept()[0])
            self.ends.append(socket.create_connection(("127.0.0.1", PORT), 20))
            self.relay(*self.ends)
        except OSError:
            pass
        for one in self.ends:
            shut(one)

    def relay(self, agent, driver):
        while True:
            for one in select.select([agent, driver], [], [])[0]:
                data = one.recv(65536)
                self.heard += data if one is agent else b""
                if not data:
                    return
                (driver if one is agent else agent).sendall(data)

    def close(self):
        """Wakes the thread, whatever it waits for."""
        for one in [self.server, *self.ends]:
            shut(one)
        self.join(limit(20))
        for one in [self.server, *self.ends]:
            one.close()


def shut(one):
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class Start(Dialing):

    def test_agents_come_first(self):
        """They wait until there is a driver."""
        agents = [self.waiting(self.agent(number)) for number in (3, 1, 2)]
        result = self.expect(self.drive("pod-1:1,pod-2:2,pod-3:1", *WHERE).wait(), 0)
        self.expect_lines(result, ["[0]<stdout>:0 on pod-1", "[1]<stdout>:1 on pod-2", "[2]<stdout>:2 on pod-2",
                                   "[3]<stdout>:3 on pod-3"])
        self.assertEqual(result.said, "")
        for result in self.end(agents):
            self.assertRegex(result.stderr, r"pod-\d: connected to hvdrun\n$")

    def test_the_driver_comes_first(self):
        job = self.drive("pod-1:1,pod-2:1,pod-3:1", *WHERE)
        self.wait_port()
        agents = [self.agent(number) for number in (2, 3, 1)]
        self.expect_lines(self.expect(job.wait(), 0), [f"[{rank}]<stdout>:{rank} on pod-{rank + 1}" for rank in range(3)])
        for result in self.end(agents):
            self.assertEqual(result.stderr, "")

    def test_one_job_after_the_other(self):
        """The port is the same, although connections of the job before may still be there."""
        for _ in range(2):
            agent = self.agent(1)
            self.expect(self.drive("pod-1", "true").wait(), 0)
            self.end([agent])

    def test_the_status_of_the_job(self):
        agents = [self.agent(1), self.agent(2)]
        self.expect(self.drive("pod-1,pod-2", "sh", "-c", "[ $RANK = 0 ] || exit 7").wait(), 7)
        self.end(agents, 7)

    def test_the_own_host_of_the_driver(self):
        """It needs no agent that dials in."""
        agent = self.agent(1)
        result = self.expect(self.drive("localhost:1,pod-1:1", *WHERE).wait(), 0)
        self.expect_lines(result, ["[0]<stdout>:0 on localhost", "[1]<stdout>:1 on pod-1"])
        self.end([agent])

    def test_any_place(self):
        agents = [self.agent(number, name="auto") for number in (1, 2)]
        result = self.expect(self.drive("node-0:1,node-1:1", *WHERE).wait(), 0)
        self.expect_lines(result, ["[0]<stdout>:0 on node-0", "[1]<stdout>:1 on node-1"])
        self.end(agents)

    def test_the_host_name_is_the_name(self):
        agent = Job(self.box, self.host(2).enter([AGENT, f"--dial=launcher:{PORT}"]), env={**self.env, "TMPDIR": "/tmp"})
        self.expect_lines(self.expect(self.drive("node2", *WHERE).wait(), 0), ["[0]<stdout>:0 on node2"])
        self.end([agent])

    def test_variables_alone(self):
        agent = Job(self.box, self.host(1).enter([AGENT]), env={
            **self.env, "TMPDIR": "/tmp", "HVDRUN_DIAL": f"launcher:{PORT}", "HVDRUN_DIAL_NAME": "pod-1"})
        self.expect_lines(self.expect(self.drive("pod-1", *WHERE).wait(), 0), ["[0]<stdout>:0 on pod-1"])
        self.end([agent])

    def test_another_version(self):
        version = subprocess.run([AGENT, "--version"], stdout=subprocess.PIPE, check=True).stdout.split()[1]
        other = b"9" + version[1:]
        with open(HVDRUN, "rb") as file:
            program = file.read().replace(b"welcome " + version, b"welcome " + other)
        os.symlink(os.path.join(BUILD, "lib"), self.box.path("lib"))
        job = Job(self.box, [self.write("hvdrun", program, 0o755), "--transport", "dial", "--dial-port", PORT, "-H", "pod-1", "true"],
                  env=self.env)
        result, = self.end([self.agent(1)])
        self.assertIn(f"pod-1: this agent is hvdrun {version.decode()}, but it is {other.decode()} at launcher:{PORT}; "
                      "install the same version on both", result.stderr)
        self.expect(job.wait(), 0)

    def test_a_name_that_is_not_known_yet(self):
        """The name of a pod exists only when it runs."""
        agent = Job(self.box, self.host(1).enter([AGENT, "--dial", f"later:{PORT}", "--name", "pod-1"]),
                    env={**self.env, "TMPDIR": "/tmp"})
        self.waiting(agent, "cannot look up later")
        path = os.path.join(self.rig.top, "etc/hosts")
        with open(path, encoding="ascii") as file:
            before = file.read()
        with open(path, "a", encoding="ascii") as file:
            file.write(f"{network.LAUNCHER} later\n")
        try:
            self.expect(self.drive("pod-1", "true").wait(), 0)
            self.end([agent])
        finally:
            with open(path, "w", encoding="ascii") as file:
                file.write(before)

    def test_who_has_not_come(self):
        agent = self.agent(1)
        job = self.drive("pod-1,pod-2,pod-3", "--start-timeout", 20, "true")
        result = self.expect(job.wait(90), 125)
        self.expect_said(result, r"pod-2: connect: no agent of this name has dialled in.*"
                                 r"pod-3: connect: no agent of this name.*2 of 3 hosts cannot be reached")
        self.expect_not_said(result, r"pod-1: ")
        self.end([agent], 125)

    def test_a_secret_that_all_can_change(self):
        os.chmod(self.secret, 0o602)
        said = "every user can change the secret in .*secret; chmod go-w it"
        agent = self.agent(1)
        self.expect_said(self.expect(self.drive("pod-1", "true").wait(), 0), said)
        self.assertRegex(self.end([agent])[0].stderr, said)

    def test_mistakes(self):
        for words, said in (((), r"--dial-port PORT and --dial-secret FILE"),
                            (("--dial-port", PORT, "--dial-secret", "/nowhere"), r"/nowhere"),
                            (("--dial-port", PORT, "--dial-secret", self.write("short", "x")), r"less than 16 bytes"),
                            (("--dial-port", PORT, "--dial-secret", self.secret, "--dial-id", "a b"), r"--dial-id")):
            for elastic in ((), ("--min-np", 1)):
                with self.subTest(words=words, elastic=elastic):
                    result = self.run_job("--transport", "dial", "-H", "pod-1", *elastic, *words, "true")
                    self.expect_said(self.expect(result, 2), said)
        with socket.create_server(("127.0.0.1", PORT)):
            result = self.run_job("--transport", "dial", "-H", "pod-1", "--dial-port", PORT, "--dial-secret", self.secret, "true")
        self.expect_said(self.expect(result, 125), rf"port {PORT}, where agents dial in .*: Address already in use")


class Pods(Dialing):
    """What docs/kubernetes.md promises, on hosts in place of pods."""

    def test_sigterm_to_the_first_process_of_a_pod(self):
        """The agent is that process, as which the kernel would let it ignore the signal."""
        job = self.drive("pod-1:1,pod-2:1", "-np", 2, "--min-np", 1, "sh", "-c", self.until_gate())
        agents = [self.agent(1), self.agent(2, before=("unshare", "--pid", "--fork"))]
        job.wait_output("1 of 2 on pod-2")
        first, = [one for one in processes().values() if re.search(rb"^NSpid:.*\t1$", one.read("status"), re.M) and
                  b"pod-2" in one.read("cmdline")]
        os.kill(first.pid, signal.SIGTERM)
        job.wait_output("0 of 1 on pod-1")
        self.end([agents.pop()], 143)
        agents.append(self.agent(2))  # Kubernetes starts another pod in its place
        job.wait_output("1 of 2 on pod-2", count=2)
        self.open_gate()
        self.expect(job.wait(), 0)
        self.end(agents)

    def test_the_grace_of_a_pod(self):
        """Workers that only end at a checkpoint learn when their pod goes, and no longer hold it up than that."""
        told = "trap 'echo until $(cut -d\" \" -f2- $HVDRUN_DEADLINE_FILE); exit 143' TERM"
        for elastic, stays in itertools.product(((), ("--min-np", 1)), (False, True)):
            with self.subTest(elastic=elastic, stays=stays):
                script = f"{'trap : TERM' if stays else told}; echo up; while :; do sleep 0.05; done"
                grace = "1s" if stays else "5m"
                job = self.drive("pod-1:1,pod-2:1", *elastic, "-np", 2, "--grace", grace, "sh", "-c", script)
                agents = [self.agent(1), self.agent(2, "--grace", grace)]
                job.wait_output("up", count=2)
                os.kill(self.host(2).agents()[0].pid, signal.SIGTERM)
                if not stays:
                    job.wait_output(r"\[1\]<stdout>:until .*SIGTERM")
                self.end([agents.pop()], 143)
                if elastic:
                    job.wait_output("up", count=3)
                    job.signal(signal.SIGTERM)
                self.expect(job.wait(), 143)
                self.end(agents, 143)

    def test_sigterm_to_one_pod_after_the_other(self):
        """The later ones are no further requests of the user, which would end the workers sooner."""
        job = self.drive("pod-1:1,pod-2:1", "--grace", "5m", "sh", "-c", f"trap 'echo term' TERM; echo up; {self.until_gate()}; exit 143")
        agents = [self.agent(1), self.agent(2)]
        job.wait_output("up", count=2)
        os.kill(self.host(1).agents()[0].pid, signal.SIGTERM)
        job.wait_output("term", count=2)
        time.sleep(6)  # what comes within 5 s is one request anyway
        os.kill(self.host(2).agents()[0].pid, signal.SIGTERM)
        time.sleep(0.5)  # in which nothing must happen
        self.open_gate()
        result = self.expect(job.wait(), 143)
        self.assertEqual(len(re.findall("term", result.stdout)), 2, result.describe())
        self.end(agents, 143)

    def test_sigterm_to_the_pod_of_hvdrun(self):
        """All pods end with the status that says that nothing is wrong, after the workers have had time."""
        job = self.drive("localhost:1,pod-1:1", "--min-np", 2, "sh", "-c", "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done")
        agents = [self.agent(1)]
        job.wait_output("up", count=2)
        job.signal(signal.SIGTERM)
        result = self.expect(job.wait(), 143)
        self.assertEqual(len(re.findall("saved", result.stdout)), 2, result.describe())
        self.end(agents, 143)


class Secrets(Dialing):

    def hang(self, hosts, count, *args):
        job = self.drive(hosts, *args, worker("hang"))
        agents = [self.agent(number) for number in range(1, count + 1)]
        job.wait_output("ready", count=count)
        return job, agents

    def refused(self, agent, job, said, why):
        """The agent, on host 3, tries again and again, and the job goes on."""
        self.waiting(agent, why)
        job.wait_output(said, name="stderr")
        self.stop_waiting(3, agent)
        self.assertIsNone(job.popen.poll(), job.describe())

    def interrupt(self, job, agents):
        job.signal(signal.SIGINT)
        result = self.expect(job.wait(), 130)
        self.end(agents, 130)
        return result

    def test_another_secret(self):
        job = self.drive("pod-1,pod-2", worker("hang"))
        other = self.write("other", "x" * 32)
        thief = self.agent(3, "--dial-secret", other, name="pod-1")
        self.refused(thief, job, r"refused a connection from \S+: it does not have the key of this job", "have the key")
        agents = [self.agent(1), self.agent(2)]
        job.wait_output("ready", count=2)
        self.interrupt(job, agents)

    def test_another_run(self):
        job, agents = self.hang("pod-1", 1, "--dial-id", "hvdrun")
        stale = self.agent(3, "--dial-id", "yesterday", name="pod-1")
        self.refused(stale, job, r"refused a connection from \S+: it does not have the key", "have the key")
        self.interrupt(job, agents)

    def test_two_agents_of_one_name(self):
        job, agents = self.hang("pod-1,pod-2", 2)
        second = self.agent(3, name="pod-2")
        self.refused(second, job, rf"refused a second agent of pod-2, from {network.address(3)}: the first came from "
                                  rf"{network.address(2)}", "an agent of this name is connected already")
        result = self.interrupt(job, agents)
        self.assertEqual(len(re.findall("refused a second agent", result.said)), 1, result.describe())

    def test_a_name_that_is_not_expected(self):
        job, agents = self.hang("pod-1", 1)
        stranger = self.agent(3, name="pod-9")
        self.refused(stranger, job, r"refused an agent from \S+: it identifies itself as pod-9, which hvdrun does not expect",
                     "does not expect an agent of this name")
        self.interrupt(job, agents)

    def test_a_flood(self):
        """Many more connections of strangers than hvdrun can have open, while the job starts and while it runs. If each could stay
        for its 5 s, agents would come too late."""
        job = self.drive("pod-1,pod-2", "--start-timeout", 20, worker("hang"), limits={resource.RLIMIT_NOFILE: (128, 128)})
        self.wait_port()

        def knock(number):
            one = socket.create_connection(("127.0.0.1", PORT), 20)
            if number % 50 == 0:
                one.sendall(os.urandom(100))
            return one
        first = [knock(number) for number in range(800)]
        agents = [self.agent(1), self.agent(2)]
        job.wait_output("ready", count=2)
        second = [knock(number) for number in range(100)]
        for one in first + second:  # all are hung up on
            one.settimeout(60)
            try:
                while one.recv(4096):
                    pass
            except ConnectionError:
                pass
            one.close()
        self.assertIsNone(job.popen.poll(), job.describe())
        self.interrupt(job, agents)

    def drip(self):
        """Many connections, which send a byte now and then, are hung up on. Returns how many bytes the last one of them sent."""
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(500)
        slow = [socket.create_connection(("127.0.0.1", PORT), 20) for _ in range(40)]
        for one in slow:
            self.addCleanup(one.close)
        for sent in range(len(hello)):
            slow = [one for one in slow if is_open(one, hello[sent:sent + 1])]
            if not slow:
                return sent
        self.fail("slow clients have sent all, and are still connected")

    def test_slow_clients(self):
        """As if the next byte would be the last that is missing. Agents come in meanwhile."""
        job = self.drive("pod-1,pod-2", "-v", worker("hang"))
        self.wait_port()
        agents = [self.agent(1), self.agent(2)]
        wait_until(lambda: self.drip() > 1, "clients that are slow, and not late", 60)
        job.wait_output("ready", count=2)
        job.wait_output("closed the connection from 127.0.0.1: it did not identify itself within 5 s", name="stderr", count=40)
        self.interrupt(job, agents)

    def test_a_replay(self):
        """All that an agent has sent, or a part, recorded on the network, when its place is free again."""
        job = self.drive("pod-1:1,pod-2:1", "-np", 2, "--min-np", 1, "-v", "sh", "-c", self.until_gate())
        self.wait_port()
        relay = Relay()
        self.addCleanup(relay.close)
        agents = [self.agent(1), self.agent(2, "--dial", f"launcher:{relay.port}")]
        job.wait_output("1 of 2 on pod-2")
        kill(self.host(2).agent().pid)
        job.wait_output("0 of 1 on pod-1")
        agents.pop().wait()
        for count, part in enumerate((relay.heard, relay.heard[:len(relay.heard) // 2], relay.heard[:300]), 1):
            with socket.create_connection(("127.0.0.1", PORT), 20) as one:
                one.settimeout(60)
                one.sendall(part)
                wait_until(lambda: not is_open(one, b""), "the connection is closed", 60)
            job.wait_output(r"(refused a|closed the) connection from 127.0.0.1: (the TLS handshake failed|it did not identify itself)", name="stderr",
                            count=count)
        agents.append(self.agent(2))
        job.wait_output("1 of 2 on pod-2", count=2, timeout=60)
        self.open_gate()
        self.expect(job.wait(), 0)
        self.end(agents)

    def steal(self, said):
        """Takes the place of pod-2 as soon as it is free, says this, and waits until it is hung up on."""
        words = ["openssl", "s_client", "-quiet", "-connect", f"127.0.0.1:{PORT}", "-tls1_3", "-psk", KEY, "-psk_identity",
                 "hvdrun:hvdrun:pod-2", "-ciphersuites", "TLS_AES_128_GCM_SHA256"]

        def has_come():
            thief = Job(self.box, words, stdin=said or "pipe")
            return "welcome" in thief.wait(60).stdout
        wait_until(has_come, "the place is free", 60)

    def test_a_thief_of_the_secret(self):
        """Whoever has it can take a place, but not keep it with silence or rubbish: hvdrun says so, and the job goes on."""
        job = self.drive("pod-1:1,pod-2:1", "--min-np", 1, "-v", "sh", "-c", self.until_gate())
        agents = [self.agent(1)]
        job.wait_output("0 of 1 on pod-1")
        self.steal(None)
        job.wait_output("pod-2: no heartbeat for", name="stderr")
        self.steal(b"rubbish\n" * 1000)
        job.wait_output("pod-2: the other side speaks protocol", name="stderr")
        agents.append(self.agent(2))
        job.wait_output("1 of 2 on pod-2", timeout=60)
        self.open_gate()
        self.expect(job.wait(), 0)
        self.end(agents)

    def test_the_secret_is_nowhere(self):
        report, events = self.box.path("report"), self.box.path("events")
        job, agents = self.hang("pod-1", 1, "-v", "--report", report, "--events", events)
        for one in processes().values():
            seen = one.read("cmdline") + one.read("environ")
            for word in (SECRET, KEY):
                self.assertNotIn(word.encode(), seen.lower(), one)
        result = self.interrupt(job, agents)
        texts = [result.stdout, result.stderr, agents[0].wait().stderr]
        for path in (report, events):
            with open(path, encoding="utf-8") as file:
                texts.append(file.read())
        for word in (SECRET, KEY):
            self.assertNotIn(word, "".join(texts).lower())


class Failures(Dialing):

    def hang(self):
        job = self.drive("pod-1,pod-2", worker("hang"))
        agents = [self.agent(1), self.agent(2)]
        job.wait_output("ready", count=2)
        return job, agents

    def test_an_agent_is_killed(self):
        job, agents = self.hang()
        kill(self.host(2).agent().pid)
        self.expect_said(self.expect(job.wait(), 121), r"\bpod-2\b[^\n]*lost")
        self.end(agents[:1], 121)
        self.assertNotEqual(agents[1].wait().status, 0)

    def test_a_host_crashes(self):
        job, agents = self.hang()
        self.host(2).crash()
        self.expect_said(self.expect(job.wait(), 121), r"\bpod-2\b[^\n]*lost")
        self.end(agents[:1], 121)
        agents[1].wait()

    def test_the_driver_is_killed(self):
        job, agents = self.hang()
        job.popen.kill()
        job.popen.wait()
        for result in self.end(agents, 125):
            self.assertEqual(result.stderr.splitlines()[-1:], ["hvdrun-agent: lost the connection to hvdrun, and ends the workers"])
        self.wait_no_workers()
        self.expect(self.run_job("true"), 0)  # sweeps what the driver has left

    def test_interrupted_while_agents_are_awaited(self):
        job = self.drive("pod-1,pod-2", "-v", "true")
        agent = self.agent(1)
        job.wait_output("pod-1: agent .* is up", name="stderr")
        job.signal(signal.SIGINT)
        self.expect(job.wait(), 130)
        self.end([agent], 130)

    def test_an_agent_that_gives_up(self):
        result = self.expect(self.agent(1, "--start-timeout", 5).wait(), 125)
        self.assertRegex(result.stderr.splitlines()[-1], rf"^hvdrun-agent: cannot reach hvdrun \({network.LAUNCHER}:{PORT}: "
                                                         rf"Connection refused\): does it run at launcher:")

    def test_an_agent_that_is_ended_while_it_waits(self):
        self.stop_waiting(1, self.waiting(self.agent(1)))


class Elastic(Dialing):

    def train(self, hosts, *args):
        return self.drive(hosts, *args, "sh", "-c", self.until_gate())

    def test_one_goes_and_comes_back(self):
        job = self.train("pod-1:1,pod-2:1", "-np", 2, "--min-np", 1)
        agents = [self.agent(1), self.agent(2)]
        job.wait_output(r"1 of 2 on pod-2")
        kill(self.host(2).agent().pid)
        job.wait_output(r"0 of 1 on pod-1")
        self.assertNotEqual(agents.pop().wait().status, 0)
        agents.append(self.agent(2))
        job.wait_output(r"1 of 2 on pod-2", count=2, timeout=60)  # its old place
        self.open_gate()
        self.expect(job.wait(), 0)
        self.end(agents)

    def test_one_comes_back_before_it_counts_as_lost(self):
        job = self.train("pod-1:1,pod-2:1", "-np", 2, "--min-np", 1)
        agents = [self.agent(1), self.agent(2)]
        job.wait_output(r"1 of 2 on pod-2")
        agents.append(self.waiting(self.agent(3, name="pod-2"), "an agent of this name is connected already"))
        job.wait_output(r"refused a second agent of pod-2, .*it comes in when .* counts as lost \(--node-timeout\)", name="stderr")
        self.host(2).cut()
        job.wait_output(r"1 of 2 on pod-2", count=2, timeout=60)
        self.open_gate()
        self.expect(job.wait(), 0)
        self.end([agents[0], agents[2]])
        self.host(2).heal()
        agents[1].wait(90)

    def test_one_waits_longer_than_its_own_limit(self):
        """As long as hvdrun says that it may come in."""
        job = self.train("pod-1:1,pod-2:1", "-np", 2, "--min-np", 1, "-v")
        agents = [self.agent(1), self.agent(2)]
        job.wait_output(r"1 of 2 on pod-2")
        agents.append(self.agent(3, "--start-timeout", 8, name="pod-2"))
        self.waiting(agents[2], "an agent of this name is connected already")
        time.sleep(10)
        kill(self.host(2).agent().pid)
        job.wait_output(r"1 of 2 on pod-2", count=2, timeout=60)
        self.open_gate()
        self.expect(job.wait(), 0)
        self.end([agents[0], agents[2]])

    def test_a_drained_one_goes_sooner(self):
        """Its workers learn of the earlier end, and not of a later one."""
        script = ("trap : TERM; while [ ! -e $0 ]; do now=$(cut -d' ' -f2- $HVDRUN_DEADLINE_FILE 2>&-); [ \"$now\" = \"$last\" ] || echo until $now; "
                  "last=$now; sleep 0.05; done")
        gate, open_gate = self.box.gate()
        job = self.drive("pod-1:1,pod-2:1", "-np", 2, "--min-np", 1, "--job-name", "sooner", "--grace", "30m", "sh", "-c", "echo up; " + script, gate)
        agents = [self.agent(1), self.agent(2, "--grace", "5m")]
        job.wait_output("up", count=2)
        self.expect(self.start("drain", "pod-2", "--job", "sooner", "--within", "10m").wait(), 0)
        job.wait_output(r"\[1\]<stdout>:until .*drain")
        os.kill(self.host(2).agents()[0].pid, signal.SIGTERM)
        job.wait_output(r"\[1\]<stdout>:until .*SIGTERM")
        open_gate()
        self.expect(job.wait(), 0)
        for agent in agents:
            agent.wait()

    def test_the_rest_comes_later(self):
        job = self.train("pod-1:1,pod-2:1,pod-3:1", "--min-np", 1)
        agents = [self.agent(1)]
        job.wait_output(r"0 of 1 on pod-1")
        agents.append(self.agent(2))
        job.wait_output(r"1 of 2 on pod-2")
        self.open_gate()
        result = self.expect(job.wait(), 0)
        self.expect_not_said(result, "pod-3")
        self.end(agents)

    def test_a_drained_one_stays_out(self):
        job = self.train("pod-1:1,pod-2:1", "-np", 2, "--min-np", 1, "--job-name", "drained")
        agents = [self.agent(1), self.agent(2)]
        job.wait_output(r"1 of 2 on pod-2")
        self.expect(self.start("drain", "pod-2", "--job", "drained").wait(), 0)
        job.wait_output(r"0 of 1 on pod-1")
        self.end([agents.pop()])
        self.stop_waiting(2, self.waiting(self.agent(2), "hvdrun no longer waits for this agent"))
        self.assertIsNone(job.popen.poll(), job.describe())
        self.open_gate()
        self.expect(job.wait(), 0)
        self.end(agents)

    def test_a_name_that_the_script_does_not_list(self):
        script = self.write("hosts.sh", "#!/bin/sh\necho pod-1:1\n", 0o755)
        job = self.drive(None, "--min-np", 1, "--host-discovery-script", script, "sh", "-c", self.until_gate())
        agents = [self.agent(1)]
        job.wait_output("0 of 1 on pod-1")
        stranger = self.waiting(self.agent(3, name="pod-9"), "does not expect an agent of this name")
        job.wait_output(r"refused an agent from \S+: it identifies itself as pod-9, which hvdrun does not expect", name="stderr")
        self.stop_waiting(3, stranger)
        self.open_gate()
        self.expect(job.wait(), 0)
        self.end(agents)

    def test_who_has_not_come(self):
        agent = self.agent(1)
        result = self.expect(self.train("pod-1:1,pod-2:1", "--min-np", 2, "--elastic-timeout", 15).wait(), 123)
        self.expect_said(result, r"2 wanted, 1 found \(pod-2: no answer yet\)")
        self.end([agent], 123)


class Whoever(Dialing):
    """Nobody has named hosts: an elastic job takes those that come."""

    def train(self, *args):
        return self.drive(None, *args, "sh", "-c", self.until_gate())

    def test_they_come_and_go(self):
        job = self.train("--min-np", 2, "--max-np", 3, "--job-name", "open")
        agents = {number: self.agent(number, name=name) for number, name in ((1, "train-x7k2"), (2, "localhost"), (3, "node1"))}
        job.wait_output(r" of 3 on train-x7k2")  # with two of them at first, perhaps
        job.wait_output(r" of 3 on localhost")
        job.wait_output(r" of 3 on node1")
        late = self.waiting(self.agent(1, name="late"), r"hvdrun has as many hosts as it may use \(--max-np\)")
        kill(self.host(3).agent().pid)
        job.wait_output(r" of 3 on late", timeout=60)
        self.assertNotEqual(agents.pop(3).wait().status, 0)
        hosts = json.loads(self.start("status", "open", "--json").wait().stdout)["hosts"]
        self.assertEqual({one["host"] for one in hosts}, {"train-x7k2", "localhost", "late"})  # node1 left the list
        os.kill(self.host(2).agents()[0].pid, signal.SIGTERM)
        job.wait_output(r" of 2 on late", timeout=60)
        self.end([agents.pop(2)], 143)
        agents[2] = self.agent(2, name="train-z1")
        job.wait_output(r" of 3 on train-z1", timeout=60)
        self.open_gate()
        result = self.expect(job.wait(), 0)
        self.expect_not_said(result, "does not expect")
        self.end([*agents.values(), late])

    def test_slots(self):
        job = self.train("--min-np", 4, "--slots-per-host", 2)
        agents = [self.agent(1, name="a"), self.agent(2, name="b")]
        job.wait_output(r" of 4 on ", count=4)
        self.open_gate()
        self.expect(job.wait(), 0)
        self.end(agents)

    def test_a_job_that_only_restarts(self):
        """It has exactly -np ranks."""
        job = self.train("-np", 1, "--max-restarts", 1)
        agents = [self.agent(1, name="a")]
        job.wait_output("0 of 1 on a")
        self.stop_waiting(2, self.waiting(self.agent(2, name="b"), "as many hosts as it may use"))
        self.open_gate()
        self.expect(job.wait(), 0)
        self.end(agents)

    def test_one_without_a_name(self):
        """There is no list that has a place for it."""
        job = self.train("--min-np", 1, "--max-np", 2)
        agents = [self.agent(1, name="a")]
        job.wait_output("0 of 1 on a")
        self.stop_waiting(2, self.waiting(self.agent(2, name="auto"), r"each agent needs a name of its own \(--name\)"))
        self.open_gate()
        self.expect(job.wait(), 0)
        self.end(agents)

    def test_mistakes(self):
        for words, said in ((("--max-restarts", 2), r"--transport: dial without a host list needs a number of ranks: give -np, or --min-np"),
                            (("--min-np", 2, "--map-by", "ppr:2:node"), r"--map-by: there is no host list; .*--slots-per-host")):
            with self.subTest(words=words):
                self.expect_said(self.expect(self.drive(None, *words, "true").wait(), 2), said)

    def test_none_comes(self):
        result = self.expect(self.train("--min-np", 2, "--elastic-timeout", 1).wait(), 123)
        self.expect_said(result, r"2 wanted, 0 found")

    def test_a_fixed_job_does_not_take_them(self):
        job = self.drive("pod-1", "--start-timeout", 20, worker("hang"))
        agent = self.waiting(self.agent(1, name="pod-7"), "does not expect an agent of this name")
        self.stop_waiting(1, agent)
        job.signal(signal.SIGINT)
        self.expect(job.wait(), 130)


if __name__ == "__main__":
    main()
