#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the start of a job on many hosts over SSH takes, compared with other launchers and a floor.

All hosts are one sshd on loopback addresses of this machine (tests/bench/ssh_world.py), so both ends
of every login share its cores. In turns, for 1, 8, 32, 100 and 300 hosts, each of these starts `true` on
every host and ends:

  floor       one thread, libssh2, 64 logins at once, TCP_QUICKACK, host keys checked; nothing on the
              host but the command (floor_ssh.c)
  hvdrun      the agent's program is already on the hosts, as it is from the second job on
  hydra, mpirun, pdsh, xargs ssh (32 at a time): those that are installed

Then hvdrun runs again on hosts that do not have the agent's program ("first"). The tables show the CPU time of both
ends: of the launcher and of sshd, each with all processes that it starts.

Before all this, the benchmark measures the agent alone: from the start of its program to its first frame, in turns
with `true`."""

import os
import shutil
import socket
import time

import bench
import ssh_world
from ground import BUILD

GOAL = 1.3
AGENT = os.path.join(BUILD, "lib/hvdrun/hvdrun-agent")
AGENT_GOAL = 0.003
AGENT_ROUNDS = 100
MPIRUN_HOSTS = 32  # its daemons share one host name here and get into each other's way


class Contest:

    def __init__(self, world, count):
        self.world, self.count, self.numbers = world, count, range(1, count + 1)
        self.names = [f"h{number}" for number in self.numbers]
        self.values = {}

    def commands(self):
        """{name: argv}"""
        names, count = self.names, str(self.count)
        found = {"floor": self.world.floor(self.numbers), "hvdrun": self.world.hvdrun(self.numbers, "true")}
        if shutil.which("mpiexec.hydra"):
            found["hydra"] = ["mpiexec.hydra", "-launcher", "ssh", "-hosts", ",".join(names), "-n", count, "true"]
        if shutil.which("mpirun.openmpi") and self.count <= MPIRUN_HOSTS:
            found["mpirun"] = ["mpirun.openmpi", "--host", ",".join(names), "-np", count, "true"]
        if shutil.which("pdsh"):
            found["pdsh"] = ["pdsh", "-R", "ssh", "-w", ",".join(names), "true"]
        found["xargs ssh"] = ["xargs", "-P32", "-I{}", "ssh", "-oBatchMode=yes", "{}", "true"]
        return found

    def run(self, name, argv):
        options = {}
        if name == "xargs ssh":
            argv = ["sh", "-c", f"printf '%s\\n' {' '.join(self.names)} | exec \"$@\"", "sh", *argv]
        if name == "pdsh":
            options["env"] = self.world.environment(PDSH_SSH_ARGS_APPEND="-oBatchMode=yes")
        self.values.setdefault(name, []).append(self.world.measure(argv, **options))

    def rounds(self, rounds):
        commands = list(self.commands().items())
        self.world.measure(self.world.hvdrun([1], "true"))  # copies the agent's program to the hosts
        for turn in range(rounds):
            for name, argv in commands[turn % len(commands):] + commands[:turn % len(commands)]:
                self.run(name, argv)
        for _ in range(rounds):
            self.world.forget_agent()
            self.run("hvdrun, first", self.world.hvdrun(self.numbers, "true"))

    def rows(self):
        floor = self.median("floor", "wall")
        for name, values in self.values.items():
            wall = self.median(name, "wall")
            good = [value["wall"] for value in values if "wall" in value]
            yield [self.count, name, len(good), bench.pair(good), bench.seconds(min(good, default=None)),
                   f"{wall / floor:.2f}" if wall and floor else "-", self.per_host(name, "own"),
                   self.per_host(name, "hosts"), len(values) - len(good)]

    def median(self, name, what):
        return bench.summary([value.get(what) for value in self.values[name]])["median"]

    def per_host(self, name, what):
        value = self.median(name, what)
        return "-" if value is None else f"{value * 1000 / self.count:.1f}"

    def verdict(self):
        mine, floor = self.median("hvdrun", "wall"), self.median("floor", "wall")
        if not mine or not floor:
            return f"- {self.count} hosts: hvdrun or the floor did not run"
        return f"- {self.count} hosts: goal ({GOAL} x floor) {'met' if mine <= GOAL * floor else 'NOT met'}: {mine / floor:.2f}"

    def errors(self):
        for name, values in self.values.items():
            yield from [f"- {self.count} hosts, {name}: {value['error']}" for value in values if "error" in value][:1]


def time_of(argv, expected):
    """Seconds from the start of a program until it has written more than `expected` bytes, or has ended."""
    ours, theirs = socket.socketpair()
    began = time.monotonic()
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), end) for end in (0, 1)])
    theirs.close()
    got = b"."
    written = 0
    while got and written <= expected:
        got = ours.recv(4096)
        written += len(got)
    spent = time.monotonic() - began
    ours.close()
    os.waitpid(pid, 0)
    if expected and written <= expected:
        raise RuntimeError(f"{argv[0]} has ended before its first frame")
    return spent


def agent_start(report):
    marker = "x" * 32
    kinds = {"true": ([shutil.which("true")], 0), "hvdrun-agent": ([AGENT, "--marker", marker], len(f"{marker} agent\n"))}
    values = {name: [] for name in kinds}
    for _ in range(AGENT_ROUNDS):
        for name, what in kinds.items():
            values[name].append(time_of(*what))
    rows = [[name, len(found), f"{bench.summary(found)['median'] * 1000:.2f}", f"{min(found) * 1000:.2f}"]
            for name, found in values.items()]
    mine = bench.summary(values["hvdrun-agent"])["median"]
    text = bench.table(["program", "n", "median, ms", "best, ms"], rows)
    report.add("The agent's own start, from its exec to its first frame",
               f"{text}\n\n- goal ({AGENT_GOAL * 1000:.0f} ms) {'met' if mine <= AGENT_GOAL else 'NOT met'}", "agent", values)


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds (5); with more than 100 hosts, half as many")
    parser.add_argument("--hosts", default="1,8,32,100,300")
    parser.add_argument("--only", default="", help="only these launchers, separated by commas")
    options = parser.parse_args()
    world = ssh_world.begin("ssh_start")
    report = bench.Report("ssh_start", options)
    agent_start(report)
    rows, notes, data = [], [], {}
    for count in map(int, options.hosts.split(",")):
        bench.say(f"ssh_start: {count} hosts")
        contest = Contest(world, count)
        if options.only:
            chosen = {name: argv for name, argv in contest.commands().items() if name in options.only.split(",")}
            contest.commands = lambda chosen=chosen: chosen
        contest.rounds(options.rounds if count <= 100 else max(1, options.rounds // 2))
        rows += contest.rows()
        notes += contest.errors()
        data[count] = contest.values
        notes.append(contest.verdict())
    head = ["hosts", "launcher", "n", "median / worst", "best", "/ floor", "CPU here, ms per host", "CPU on hosts, ms per host",
            "failed"]
    report.add("Start of `true` on hosts over SSH, seconds", bench.table(head, rows) + "\n\n" + "\n".join(notes), "start", data)
    report.finish()
    world.close()


if __name__ == "__main__":
    main()
