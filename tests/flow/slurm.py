# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster on one machine, for flow tests: hosts.py with slurmctld on node0 and slurmd on the
others. These are the nodes node1, node2... of partition `rig`. Each has 4 CPUs and 2 GPUs, whatever the
machine has. Partition `urgent` has the same nodes, and preempts jobs of the first.

    class Test(Slurm):
        def test_x(self):
            result = self.batch(f"{HVDRUN} {worker('hello')}", "-N2", "-n4")
            self.expect(result, 0)

The launcher's namespace, where the test runs, is the login node: sbatch, salloc, srun, scontrol work
there, and self.host(k) is node k with all that hosts.py offers (crash, power_off, cut...). After each
test, every host must be clean, as in hosts.py, and the queue must be empty. So the next test finds an
idle cluster. A class may ask for Slurm settings of its own: settings = {"KillWait": 30}.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import unittest

from ground import HVDRUN, limit, wait_until, worker
import hosts
from hosts import Hosts, Rig
from jobs import Job, Result
import entrance
import slurm_files

ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",
         "TIMEOUT"}


def nodes(text):
    """node1,node2 from node[1-2]."""
    return run_tool("scontrol", "show", "hostnames", text).split()


def run_tool(*argv, check=True, timeout=30, **options):
    """A program of Slurm that ends soon; returns its standard output."""
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=limit(timeout), **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, argv))}: status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


class BatchResult(Result):
    """A finished batch job: what Result has, and Slurm's own words for its end (state, such as FAILED)."""

    def __init__(self, job, shown, out, err):
        code, signal_number = map(int, shown["ExitCode"].split(":"))
        super().__init__(["sbatch", *job.options], -signal_number if signal_number else code, out, err, 0)
        self.state, self.shown = shown["JobState"], shown
        self.note = f"\njob {job.id}: {self.state}, reason {shown['Reason']}, script:\n{job.script}"

    def describe(self):
        return self.note + super().describe()


class BatchJob:
    """A job that was handed to sbatch."""

    def __init__(self, test, script, options, env, arguments=()):
        self.test, self.script, self.options = test, script, [str(word) for word in options]
        number = len(test.batch_jobs)
        self.out, self.err = test.box.path(f"job{number}.out"), test.box.path(f"job{number}.err")
        text = script if script.startswith("#!") else f"#!/bin/bash\n{script}\n"
        path = test.write(f"job{number}.sh", text, 0o755)
        self.id = run_tool("sbatch", "--parsable", "-o", self.out, "-e", self.err, *self.options, path, *arguments,
                           env=test.batch_environment(env), cwd=test.box.work).strip()
        test.batch_jobs.append(self)

    def show(self):
        """`scontrol show job` as a dictionary."""
        return shown_fields(run_tool("scontrol", "show", "job", "-o", self.id))

    def state(self):
        return self.show()["JobState"]

    def nodes(self):
        """The names of its nodes now."""
        return nodes(self.show()["NodeList"])

    def bytes(self, name="stdout"):
        try:
            with open(self.out if name == "stdout" else self.err, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def output(self, name="stdout"):
        return self.bytes(name).decode("utf-8", "surrogateescape")

    def so_far(self):
        return BatchResult(self, self.show(), self.bytes(), self.bytes("stderr"))

    def describe(self):
        return self.so_far().describe()

    def cancel(self, *options):
        run_tool("scancel", *options, self.id)

    def wait_state(self, *states, timeout=30):
        return wait_until(lambda: self.state() in states, f"job {self.id} is {states}; it is {self.show()}", timeout)

    def wait_output(self, pattern, name="stdout", timeout=30, count=1):
        """Waits until `pattern` stands `count` times in the file; returns the last match."""
        def found():
            matches = list(re.finditer(pattern, self.output(name), re.M))
            if len(matches) >= count:
                return matches[count - 1]
            if self.state() in ENDED and len(re.findall(pattern, self.output(name), re.M)) < count:
                raise AssertionError(f"ended without {pattern!r} x {count} on {name}{self.describe()}")
            return None
        try:
            return wait_until(found, f"{pattern!r} x {count} on {name}", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}{self.describe()}") from None

    def wait(self, timeout=60):
        """Waits for the end of the job, its last processes included."""
        try:
            wait_until(lambda: self.state() in ENDED and not run_tool("squeue", "-h", "-j", self.id, check=False).strip(),
                       f"job {self.id} ends", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}{self.describe()}") from None
        return self.so_far()


def shown_fields(text):
    """NAME=VALUE words of scontrol, whose values may hold spaces."""
    found = re.findall(r"(?:^|\s)([A-Z][A-Za-z/:]*)=(.*?)(?=\s+[A-Z][A-Za-z/:]*=|\s*$)", text, re.S)
    return {name: value.strip() for name, value in found}


class Cluster:
    """The cluster of this box. One for a test file; settings may change from class to class."""

    one = None

    def __init__(self, rig, names, settings):
        self.rig, self.wanted, self.names = rig, (names, settings), names
        Cluster.one = self
        slurm_files.mount()
        slurm_files.write(names, settings)
        rig.daemons.update(os.path.realpath(shutil.which(name)) for name in slurm_files.DAEMONS)
        rig.ask_keeper(slurm_files.log("munged.out"), slurm_files.munged())
        wait_until(lambda: os.path.exists(slurm_files.munge_socket()), "munged answers")

    def configure(self, names, settings):
        """Daemons with these settings, which may run already."""
        if (names, settings) == self.wanted:
            return
        self.wanted, self.names = (names, settings), names
        for host in self.rig.hosts:
            daemons = [one.pid for one in host.processes() if one.exe() in self.rig.daemons]
            for pid in daemons:
                hosts.kill(pid)
            wait_until(lambda pids=daemons: not any(map(hosts.is_alive, pids)), f"the daemons of {host.name} end")
        slurm_files.write(names, settings)
        for host in self.rig.hosts:
            host.run("sh", "-c", "rm -rf /run/slurm*")
            host.run(os.path.join(os.environ["HVDRUN_RIG"], "etc/boot"), host.name)

    def states(self):
        """{node: state}, such as idle, mixed, down*; {} while there is no answer."""
        text = run_tool("sinfo", "-h", "-N", "-p", "rig", "-o", "%N %T", check=False)
        return dict(line.split() for line in text.splitlines())

    def wait_idle(self):
        """Every node answers and has nothing to do; one that Slurm holds for broken is made whole."""
        patience = time.monotonic() + 10
        def idle():
            states = self.states()
            for name, state in states.items():
                if state.startswith(("down", "drain", "fail")) and not state.endswith("*"):
                    run_tool("scontrol", "update", f"nodename={name}", "state=resume", check=False)
                elif state.startswith("completing") and time.monotonic() > patience:
                    run_tool("scontrol", "update", f"nodename={name}", "state=down", "reason=test", check=False)
            return len(states) == len(self.names) and set(states.values()) == {"idle"}
        try:
            wait_until(idle, "all nodes are idle", 60)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.states()}\n{run_tool('squeue', check=False)}{self.logs()}") from None

    def logs(self, lines=25):
        """The last lines of every daemon's log."""
        text = ""
        for name in sorted(os.listdir(slurm_files.log(""))):
            with open(slurm_files.log(name), encoding="utf-8", errors="replace") as file:
                text += f"--- {name}\n" + "".join(file.readlines()[-lines:])
        return text


class Slurm(Hosts):
    """A test on a cluster of `nodes` nodes: node1, node2...; host 0 holds slurmctld."""

    nodes = 4
    settings = {}

    @property
    def count(self):
        return self.nodes + 1

    def node_names(self):
        """What Slurm calls its nodes: their host names, if the class says nothing else."""
        return [f"node{number}" for number in range(1, self.count)]

    def setUp(self):
        names, self.batch_jobs = self.node_names(), []
        Rig.prepare = lambda rig: Cluster(rig, names, self.settings)
        super().setUp()
        self.cluster = Cluster.one
        for number, name in enumerate(names, 1):
            if name != self.host(number).name:
                self.rig.alias(number, [name])
        self.cluster.configure(names, self.settings)
        self.addCleanup(self._end_jobs)
        self.cluster.wait_idle()

    def _end_jobs(self, timeout=10):
        """Before the hosts are looked at: the queue is empty, or it is said, and made so. Slurm waits for
        half a minute for what a dead node has to say about its jobs."""
        def queue():
            return run_tool("squeue", "-h", "-o", "%i %j %T %R")
        left = ""
        if self.tell_dead_nodes():
            timeout += 50
        if not self._has_failed():
            try:
                wait_until(lambda: not queue().strip(), "the queue is empty", timeout)
            except AssertionError:
                left = queue()
        if queue().strip():
            run_tool("scancel", "--quiet", "--user", "root", check=False)
            run_tool("scancel", "--quiet", "--user", "root", "--signal=KILL", "--full", check=False)
        self.assertEqual(left, "", f"jobs are left in the queue; output of the first:"
                                   f"{self.batch_jobs[0].describe() if self.batch_jobs else ''}")

    def tell_dead_nodes(self):
        """Slurm is told which nodes are dead, before it finds out itself; returns whether there are any."""
        dead = [host.number for host in self.rig.hosts[1:] if host.is_down or host.is_cut]
        for number in dead:
            self.node_down(number)
        return bool(dead)

    # runs

    def batch_environment(self, changes=None):
        """What sbatch takes along: no TMPDIR, so that each node has /tmp to itself."""
        return self.box.environment({"TMPDIR": None, "XDG_RUNTIME_DIR": None, **(changes or {})})

    def submit(self, script, *options, env=None, arguments=()):
        """sbatch of a script; bash, when it has no #! line."""
        return BatchJob(self, script, options, env, arguments)

    def batch(self, script, *options, env=None, timeout=60):
        """The same, to its end."""
        return self.submit(script, *options, env=env).wait(timeout)

    def salloc(self, options, *argv, **more):
        """A command on the login node, in an allocation; a Job of the flow tests."""
        return Job(self.box, ["salloc", "--quiet", *options, *argv], **more)

    def srun(self, *argv, **more):
        return Job(self.box, ["srun", *argv], **more)

    def scontrol(self, *words):
        return run_tool("scontrol", *words)

    def node_down(self, number):
        """What an administrator says: at once the node has failed, for Slurm."""
        self.scontrol("update", f"nodename={self.cluster.names[number - 1]}", "state=down", "reason=test")

    def no_ssh(self):
        """Nobody gets anywhere by ssh."""
        for host in self.rig.hosts:
            host.refuse()


class Runs(Slurm):
    """Whole runs of hvdrun in Slurm jobs."""

    def hvdrun(self, *words):
        """A line of a batch script that becomes hvdrun."""
        return "exec " + shlex.join(map(str, [HVDRUN, *words]))

    def counted(self):
        """An environment in which every srun writes a line into the file that is returned too."""
        path = self.box.path("sruns")
        script = self.write("bin/srun", f"#!/bin/sh\necho \"$$ $*\" >> '{path}'\nexec /usr/bin/srun \"$@\"\n", 0o755)
        return {"PATH": f"{os.path.dirname(script)}:{os.environ['PATH']}"}, path

    def sruns(self, path):
        """The command lines that were counted, those that only ask what srun can do left out."""
        try:
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            return []
        return [line for line in lines if "--help" not in line and "--version" not in line]

    def environments(self, size):
        """What the workers `show_env` have written: a dictionary for each rank."""
        found = []
        for rank in range(size):
            with open(self.box.path(f"env.{rank}"), "rb") as file:
                pairs = [entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry]
            found.append({os.fsdecode(name): os.fsdecode(value) for name, value in pairs})
        return found

    def hang(self, *options, words=(), count):
        """A job whose workers hang, once they all run."""
        job = self.submit(self.hvdrun("--grace", 1, *words, worker("hang")), *options)
        job.wait_output("ready", count=count)
        return job

    def everything(self):
        """Every process on every host but the daemons."""
        return [one for host in self.rig.hosts for one in host.processes() if one.exe() not in self.rig.daemons]


def main():
    if "HVDRUN_RIG_KEEPER" not in os.environ:
        os.environ["PATH"] = os.environ.get("PATH", "") + ":" + entrance.SYSTEM_PATH
        lack = slurm_files.missing()
        if lack:
            print(f"skipped: a Slurm cluster on one machine needs {lack}", flush=True)
            sys.exit(entrance.SKIPPED)
    hosts.main()


__all__ = ["HVDRUN", "Runs", "Slurm", "main", "nodes", "run_tool", "unittest", "worker"]
