# SPDX-License-Identifier: Apache-2.0
"""Agents that srun starts and that dial back over TLS. The test has an srun of its own, which starts them
on this machine, under the names of the nodes. test_slurm_*.py have tests with the real Slurm."""
# ctest waits

import ctypes
import os
import re
import resource
import signal
import socket
import sys

from rig import Flow, main, processes, wait_until, worker

SRUN = """#!PYTHON -IS
# srun of the test: notes what it was told, then does what the file `mode` says.
import json, os, signal, subprocess, sys, time

HELP = '''  -D, --chdir=path
      --export=env_vars|NONE
  -i, --input=in
  -k, --no-kill
  -K, --kill-on-bad-exit
      --mpi=type
      --ntasks-per-node=n
      --overlap
  -w, --nodelist=hosts
  -W, --wait=sec
'''
folder = "FOLDER"
words = sys.argv[1:]
if words == ["--help"]:
    print(HELP)
    sys.exit(0)
with open(f"{folder}/mode") as file:
    mode = file.read().split()
with open(f"{folder}/srun.{os.getpid()}.new", "w") as file:
    json.dump({"pid": os.getpid(), "argv": words, "env": dict(os.environ)}, file)
os.rename(f"{folder}/srun.{os.getpid()}.new", f"{folder}/srun.{os.getpid()}")

def say(text):
    sys.stderr.write(text + "\\n")
    sys.stderr.flush()

tasks = []
def start(name, **changes):
    env = {**os.environ, "SLURMD_NODENAME": name, "TMPDIR": "TEMPORARY", **changes}
    tasks.append(subprocess.Popen(words[-2:], env=env, stdin=subprocess.DEVNULL))

def end(number, frame):
    say("srun: forcing job termination")
    for task in tasks:
        task.kill()
    sys.exit(1)
signal.signal(signal.SIGTERM, end)

if mode[0] == "fail":
    say(" ".join(mode[1:]))
    sys.exit(1)
for name in words[words.index("-w") + 1].split(","):
    key = os.environ["HVDRUN_AGENT_KEY"]
    if mode == ["lacks", name]:
        say(f"srun: error: {name}: task 1: Exited with exit code 2")
        time.sleep(0.05)
        say(f"slurmstepd: error: execve(): {words[-2]}: No such file or directory")
        continue
    if mode == ["astray", name]:
        start(name, HVDRUN_AGENT_DIAL="127.0.0.1:1")
        continue
    start(name)
    if mode == ["twice", name]:
        start(name)
    if mode == ["stranger", name]:
        start("elsewhere")
    if mode == ["thief", name]:
        start(name, HVDRUN_AGENT_KEY=("1" if key[0] == "0" else "0") + key[1:])
while tasks:
    if mode[0] in ("twice", "thief", "stranger") and len(tasks) == 1:
        tasks[0].kill()
    tasks = [task for task in tasks if task.poll() is None]
    time.sleep(0.02)
"""


SYS_PIDFD_GETFD = 438


def borrowed_socket(pid, number):
    """The very socket that is descriptor `number` of a process below us."""
    pidfd = os.pidfd_open(pid)
    try:
        own = ctypes.CDLL(None, use_errno=True).syscall(SYS_PIDFD_GETFD, pidfd, number, 0)
        if own < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        return socket.socket(fileno=own)
    finally:
        os.close(pidfd)


class Dialed(Flow):

    def setUp(self):
        super().setUp()
        text = SRUN.replace("PYTHON", sys.executable).replace("FOLDER", self.box.work)
        self.write("bin/srun", text.replace("TEMPORARY", self.box.tmp), 0o755)
        self.mode("run")
        self.env = {"SLURM_JOB_ID": 5, "PATH": f"{self.box.work}/bin:{os.environ['PATH']}"}

    def mode(self, *words):
        self.write("mode", " ".join(words))

    def options(self, hosts):
        return ["--transport", "srun", "-H", hosts]

    def run_on(self, hosts, *args, **options):
        return self.run_job(*self.options(hosts), *args, env={**self.env, **options.pop("env", {})}, **options)

    def start_on(self, hosts, *args):
        return self.start(*self.options(hosts), *args, env=self.env)

    def sruns(self):
        """What each srun was told, in the order in which they were started."""
        found = []
        for name in os.listdir(self.box.work):
            if re.fullmatch(r"srun\.\d+", name):
                found.append(self.read_json(self.box.path(name)))
        return sorted(found, key=lambda one: one["pid"])

    def port(self):
        dial = self.sruns()[0]["env"]["HVDRUN_AGENT_DIAL"]
        return int(dial.split(",")[0].rsplit(":", 1)[1])

    def sweep(self):
        """Keepers and agents were killed at once, and nobody was left to remove their folders: the next
        run on the node does that."""
        self.expect(self.run_on("a", "true"), 0)

    def hang(self, hosts="a,b,c", *args, count=3):
        job = self.start_on(hosts, *args, worker("hang"))
        job.wait_output("ready", count=count)
        return job


class Start(Dialed):

    def test_one_srun_for_all(self):
        result = self.expect(self.run_on("a:2,b,c", "sh", "-c", "echo $RANK on $HVDRUN_HOSTNAME"), 0)
        self.expect_lines(result, ["[0]<stdout>:0 on a", "[1]<stdout>:1 on a", "[2]<stdout>:2 on b", "[3]<stdout>:3 on c"])
        # all tasks of this srun run here
        self.assertRegex(result.said, r"^hvdrun: b and 1 other host are the same machine as a: [^\n]*\n$")
        sruns = self.sruns()
        self.assertEqual(len(sruns), 1, sruns)
        agent = sruns[0]["argv"][-2]
        self.assertEqual(sruns[0]["argv"], ["-N3", "-n3", "-w", "a,b,c", "--ntasks-per-node=1", "--export=ALL", "--overlap",
                                            "--kill-on-bad-exit=1", "--no-kill", "--wait=0", "--mpi=none", "--input=none",
                                            "--chdir=/", agent, "--dial"])
        self.assertEqual(os.path.basename(agent), "hvdrun-agent")

    def test_variables_of_the_batch_job_are_no_options_of_srun(self):
        env = {"SLURM_NTASKS": 8, "SLURM_CPUS_PER_TASK": 2, "SLURM_GPUS_PER_TASK": 1, "SLURM_HINT": "x", "SLURM_KEPT": "y"}
        self.expect(self.run_on("a,b", "true", env=env), 0)
        told = self.sruns()[0]["env"]
        self.assertEqual([name for name in env if name in told], ["SLURM_KEPT"])
        self.assertNotIn("TMPDIR", told)

    def test_arguments_of_the_user(self):
        self.expect(self.run_on("a,b", "--srun-args", "--comment='two words' --x", "true"), 0)
        self.assertEqual(self.sruns()[0]["argv"][-4:-2], ["--comment=two words", "--x"])
        result = self.expect(self.run_on("a,b", "--srun-args", "'open", "true"), 2)
        self.expect_said(result, r"--srun-args")

    def test_in_an_allocation_this_node_needs_no_srun(self):
        env = {**self.env, "SLURM_JOB_NODELIST": "a,b", "SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_NNODES": 2, "SLURM_NTASKS": 2,
               "SLURMD_NODENAME": "a"}
        result = self.expect(self.run_job("sh", "-c", "echo $RANK on $HVDRUN_HOSTNAME", env=env), 0)
        self.expect_lines(result, ["[0]<stdout>:0 on a", "[1]<stdout>:1 on b"])
        self.assertEqual([one["argv"][one["argv"].index("-w") + 1] for one in self.sruns()], ["b"])

    def test_an_elastic_job_has_one_srun_for_each_node(self):
        self.expect(self.run_on("a,b,c", "--min-np", "3", "true"), 0)
        self.assertEqual(sorted(one["argv"][one["argv"].index("-w") + 1] for one in self.sruns()), ["a", "b", "c"])
        for one in self.sruns():
            self.assertIn("--no-kill", one["argv"])

    def test_output_and_input(self):
        data = os.urandom(3 << 20)
        result = self.expect(self.run_on("a", "--no-label", "cat", stdin=data), 0)
        self.assertEqual(result.out, data)
        lines = self.expect(self.run_on("a,b", "--no-label", "seq", "200000"), 0).lines
        self.assertEqual(sorted(map(int, lines)), sorted([number + 1 for number in range(200000)] * 2))

    def test_outside_of_slurm(self):
        result = self.expect(self.run_on("a,b", "true", env={"SLURM_JOB_ID": None}), 2)
        self.expect_said(result, r"SLURM_JOB_ID.*sbatch")
        self.assertEqual(self.sruns(), [])


class Secrets(Dialed):

    def test_the_key_is_nowhere(self):
        """Neither on a command line nor in the environment of agents and workers; srun's has it."""
        job = self.hang()
        key = self.sruns()[0]["env"]["HVDRUN_AGENT_KEY"]
        self.assertRegex(key, r"^[0-9a-f]{64}$")
        seen = set()
        for one in processes().values():
            self.assertNotIn(key.encode(), one.read("cmdline"), one)
            if self.box.tag.encode() not in one.read("environ"):
                continue
            seen.add(os.path.basename(one.exe()))
            if one.pid != self.sruns()[0]["pid"]:
                self.assertNotIn(key.encode(), one.read("environ"), one)
                if os.path.basename(one.exe()) == "hang":
                    self.assertNotIn(b"HVDRUN_AGENT_", one.read("environ"), one)
        self.assertLessEqual({"hvdrun", "hvdrun-agent", "hang"}, seen)
        job.signal(signal.SIGINT)
        self.assertNotIn(key, job.wait().stderr)

    def test_each_job_has_another_key(self):
        for _ in range(2):
            self.expect(self.run_on("a", "true"), 0)
        keys = {one["env"]["HVDRUN_AGENT_KEY"] for one in self.sruns()}
        self.assertEqual(len(keys), 2)

    def refused(self, mode, pattern):
        """The job runs on, and ends only after hvdrun has said that it refused an agent."""
        self.mode(*mode)
        job = self.start_on("a,b", worker("hang"))
        job.wait_output("ready", count=2)
        job.wait_output(pattern, name="stderr")
        job.signal(signal.SIGINT)
        self.expect(job.wait(), 130)

    def test_a_second_agent_of_a_name_is_refused(self):
        self.refused(("twice", "b"), r"refused a second agent of b, from \S+: the first came from")

    def test_an_agent_that_nobody_waits_for_is_refused(self):
        self.refused(("stranger", "b"), r"refused an agent from \S+: it identifies itself as elsewhere")

    def test_a_wrong_key_is_refused(self):
        self.mode("thief", "a")
        job = self.start_on("a,b", worker("hang"))
        job.wait_output("ready", count=2)
        job.wait_output(r"refused a connection from \S+: it does not have the key of this job", name="stderr")
        os.kill(self.sruns()[0]["pid"], signal.SIGTERM)
        self.expect(job.wait(), 121)
        self.sweep()

    def test_rubbish_on_the_port(self):
        job = self.hang("a,b", "-v", count=2)
        port = self.port()
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        for rubbish in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 5000, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(500),
                        os.urandom(5000)):
            with socket.create_connection(("127.0.0.1", port)) as one:
                one.settimeout(20)
                try:
                    one.sendall(rubbish)
                    while one.recv(4096):
                        pass
                except ConnectionError:
                    pass  # hung up on, as it should be
        with socket.create_connection(("::1", port)) as half:
            half.settimeout(20)
            half.sendall(b"\x16\x03\x01")
            self.assertEqual(half.recv(100), b"")
        for one in silent:  # all of them are hung up on, too
            one.settimeout(20)
            self.assertEqual(one.recv(100), b"")
            one.close()
        job.wait_output("the TLS handshake failed", name="stderr", count=3)
        self.assertIsNone(job.popen.poll(), job.describe())
        self.assertEqual(len([one for one in processes().values() if os.path.basename(one.exe()) == "hang" and
                              self.box.tag.encode() in one.read("environ")]), 2)
        job.signal(signal.SIGTERM)
        job.wait()


class Failures(Dialed):

    def tcp_connections(self):
        """Those of the agents, and how long data may wait there before the kernel gives a connection up."""
        found = []
        for one in processes().values():
            if os.path.basename(one.exe()) != "hvdrun-agent" or self.box.tag.encode() not in one.read("environ"):
                continue
            for number in os.listdir(f"/proc/{one.pid}/fd"):
                if os.readlink(f"/proc/{one.pid}/fd/{number}").startswith("socket:"):
                    with borrowed_socket(one.pid, int(number)) as borrowed:
                        if borrowed.family != socket.AF_UNIX and borrowed.type == socket.SOCK_STREAM:
                            found.append(borrowed.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))
        return found

    def test_a_driver_that_does_not_read_is_not_cut_off(self):
        """It may be suspended for hours, while heartbeats fill the window: no limit of the kernel's on that."""
        job = self.hang("a,b", count=2)
        connections = self.tcp_connections()
        self.assertGreaterEqual(len(connections), 2)
        self.assertEqual(set(connections), {0})
        job.signal(signal.SIGTERM)
        job.wait()

    def test_no_srun(self):
        os.unlink(self.box.path("bin/srun"))
        path = ":".join(one for one in os.environ["PATH"].split(":") if not os.access(os.path.join(one, "srun"), os.X_OK))
        result = self.expect(self.run_on("a,b", "true", env={"PATH": f"{self.box.work}/bin:{path}"}), 125)
        self.expect_said(result, r"\bsrun\b.*not found|no.*\bsrun\b")

    def test_srun_that_has_no_help(self):
        """A wrapper of the site's: nothing is assumed about it."""
        text = SRUN.replace("PYTHON", sys.executable).replace("FOLDER", self.box.work).replace("TEMPORARY", self.box.tmp)
        self.write("bin/srun", text.replace("print(HELP)", ""), 0o755)
        self.expect(self.run_on("a,b", "true"), 0)
        self.assertEqual(self.sruns()[0]["argv"][:-2], ["-N2", "-n2", "-w", "a,b"])

    def test_srun_cannot_make_a_step(self):
        self.mode("fail", "srun: error: Unable to create step for job 5: Requested node configuration is not available")
        result = self.expect(self.run_on("a,b", "true"), 125)
        self.expect_said(result, r"hvdrun: a: start: Slurm does not give this node to the job.*hvdrun: b: start: ")
        self.expect_said(result, r"2 of 2 hosts cannot be reached")

    def test_a_node_without_the_agent(self):
        self.mode("lacks", "b")
        result = self.expect(self.run_on("a,b,c", "true"), 125)
        self.expect_said(result, r"b: start: the node does not have hvdrun-agent: .*share.*--bcast")
        self.expect_not_said(result, r"\b[ac]: start")

    def test_an_agent_that_finds_no_way_back(self):
        self.mode("astray", "b")
        # a tenth of the limit is for saying why; srun itself must have started in it
        result = self.expect(self.run_on("a,b", "--start-timeout", "10", "true"), 125)
        self.expect_said(result, r"b: start: no agent has dialled back .*firewall")

    def test_an_agent_that_gives_up(self):
        """It says so itself, in one line, with what it has tried."""
        self.mode("astray", "b")
        result = self.expect(self.run_on("a,b", "--start-timeout", "60", "true", timeout=90), 125)
        self.expect_said(result, r"b: connect: cannot reach hvdrun \(.*127\.0\.0\.1:1: Connection refused")

    def test_no_descriptors_for_all_agents(self):
        """That they came and could not be taken in is the cause, and no firewall."""
        limits = {resource.RLIMIT_NOFILE: (64, 64)}
        result = self.run_on(",".join(f"n{i}" for i in range(24)), "--start-timeout", "100", "true", limits=limits, timeout=60)
        self.expect(result, 125)
        self.expect_said(result, r"n\d+: agent: cannot accept its agent: .*Too many open files.*ulimit -n")
        self.expect_not_said(result, r"firewall|does not expect")

    def test_the_agent_by_itself(self):
        agent = os.path.join(os.path.dirname(self.hvdrun_agent()), "hvdrun-agent")
        helper = self.helper(agent, "--dial")
        self.assertNotEqual(helper.popen.wait(30), 0)

    def hvdrun_agent(self):
        self.expect(self.run_on("a", "true"), 0)
        return self.sruns()[0]["argv"][-2]

    def test_srun_killed(self):
        """Slurm kills a step whose srun has gone, as it comes; the job ends of that, not of a worker."""
        job = self.hang()
        os.kill(self.sruns()[0]["pid"], signal.SIGKILL)
        result = self.expect(job.wait(), 121)
        self.expect_said(result, r"\b[abc]\b[^\n]*lost: srun was killed by signal 9")
        self.sweep()

    def test_srun_ended_and_took_the_agents_along(self):
        job = self.hang()
        os.kill(self.sruns()[0]["pid"], signal.SIGTERM)
        result = self.expect(job.wait(), 121)
        self.expect_said(result, r"\b[abc]\b[^\n]*lost.*srun: forcing job termination")
        self.sweep()

    def test_driver_killed(self):
        job = self.hang()
        job.popen.kill()
        job.popen.wait()
        self.box.check_nothing_left(10)

    def test_agent_killed(self):
        job = self.hang()
        agents = [one for one in processes().values() if os.path.basename(one.exe()) == "hvdrun-agent" and
                  self.box.tag.encode() in one.read("environ")]
        below = [one for one in agents if one.ppid in {other.pid for other in agents}]
        self.assertEqual((len(agents), len(below)), (6, 3))
        os.kill(below[1].pid, signal.SIGKILL)
        result = self.expect(job.wait(), 121)
        self.expect_said(result, r"\b[abc]\b[^\n]*lost")

    def test_interrupted_while_agents_are_awaited(self):
        self.mode("astray", "b")
        job = self.start_on("a,b", "true")
        wait_until(self.sruns, "srun runs")
        job.signal(signal.SIGINT)
        self.expect(job.wait(), 130)


if __name__ == "__main__":
    main()
