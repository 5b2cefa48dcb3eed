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

Then hvdrun runs again in three ways: on hosts that do not have the agent's program ("first"), on hosts whose keys are
new to it ("new keys"), and with the keys of 10,000 other hosts in known_hosts ("many keys"). The tables show the CPU
time of both ends: of the launcher and of sshd, each with all processes that it starts.

After that, hvdrun and the floor keep their sessions open, and the benchmark measures the memory of each. The unit is
PSS: a process counts its share of a page that several processes use.

Before all this, the benchmark measures the agent alone: from the start of its program to its first frame, in turns
with `true`."""

import os
import shutil
import socket
import subprocess
import tempfile
import time

import bench
import ssh_world
from ground import BUILD

GOAL = 1.3
AGENT = os.path.join(BUILD, "lib/hvdrun/hvdrun-agent")
AGENT_GOAL = 0.003
AGENT_ROUNDS = 100
OTHERS = 10000  # hosts in known_hosts that are not of the job
UP_LIMIT = 120  # s
END_LIMIT = 30
MPIRUN_HOSTS = 32  # its daemons share one host name here and get into each other's way


class Contest:

    def __init__(self, world, count, is_chosen):
        self.world, self.count, self.numbers, self.is_chosen = world, count, range(1, count + 1), is_chosen
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
        return {name: argv for name, argv in found.items() if self.is_chosen(name)}

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
        for turn in range(rounds if commands else 0):
            for name, argv in commands[turn % len(commands):] + commands[:turn % len(commands)]:
                self.run(name, argv)
        for name, prepare in (("first", self.world.forget_agent),
                              ("new keys", lambda: self.world.know_hosts(known=False)),
                              ("many keys", lambda: self.world.know_hosts(others=OTHERS))):
            for _ in range(rounds if self.is_chosen(name) else 0):
                prepare()
                self.run(f"hvdrun, {name}", self.world.hvdrun(self.numbers, "true"))
        self.world.know_hosts()

    def rows(self):
        floor = self.median("floor", "wall")
        for name, values in self.values.items():
            wall = self.median(name, "wall")
            good = [value["wall"] for value in values if "wall" in value]
            yield [self.count, name, len(good), bench.pair(good), bench.seconds(min(good, default=None)),
                   f"{wall / floor:.2f}" if wall and floor else "-",
                   f"{self.count / wall:.0f}" if wall else "-", self.per_host(name, "own"),
                   self.per_host(name, "hosts"), len(values) - len(good)]

    def median(self, name, what):
        return bench.summary([value.get(what) for value in self.values.get(name, [])])["median"]

    def per_host(self, name, what):
        value = self.median(name, what)
        return "-" if value is None else f"{value * 1000 / self.count:.2f}"

    def verdict(self):
        mine, floor = self.median("hvdrun", "wall"), self.median("floor", "wall")
        if not mine or not floor:
            return f"- {self.count} hosts: hvdrun or the floor did not run"
        return f"- {self.count} hosts: goal ({GOAL} x floor) {'met' if mine <= GOAL * floor else 'NOT met'}: {mine / floor:.2f}"

    def errors(self):
        for name, values in self.values.items():
            yield from [f"- {self.count} hosts, {name}: {value['error']}" for value in values if "error" in value][:1]


def pss_mib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024


def lines_that_end(file, word):
    file.seek(0)
    return sum(line.endswith(word) for line in file.read().decode(errors="replace").split("\n")[:-1])


def end(process):
    process.terminate()
    try:
        process.wait(END_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(END_LIMIT)


def memory_of(world, argv, stream, word, lines):
    """MiB of a launcher, when so many lines on its "stdout" or "stderr" end in the word that says that a host is up. Then
    it is told to end, and its hosts are quiet again."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        said = {"stdout": out, "stderr": errors}[stream]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out, stderr=errors, env=world.environment())
        try:
            ends = time.monotonic() + UP_LIMIT
            while lines_that_end(said, word) < lines:
                if process.poll() is not None or time.monotonic() > ends:
                    errors.seek(0)
                    raise RuntimeError(f"it has not reached all hosts: {errors.read()[-300:].decode(errors='replace')!r}")
                time.sleep(0.02)
            time.sleep(1)  # until the work that follows the start is done
            return pss_mib(process.pid)
        finally:
            end(process)
            process.stdin.close()
            world.wait_quiet()


def memory(world, counts, is_chosen, report):
    kinds = {"floor": lambda numbers: (world.floor(numbers, "-k"), "stderr", "open", 1),
             "hvdrun": lambda numbers: (world.hvdrun(numbers, "sh", "-c", "echo up; exec sleep 600"), "stdout", "up", len(numbers))}
    values, rows, notes = {}, [], []
    for name in filter(is_chosen, kinds):
        values[name], cells = [], []
        for count in counts:
            try:
                mib = memory_of(world, *kinds[name](range(1, count + 1)))
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                cells.append("failed")
                notes.append(f"\n- {count} hosts, {name}: failed: {error}")
                continue
            cells.append(f"{mib:.1f}")
            values[name].append((count, mib))
        each = bench.slope(values[name]) * 1024 if len(values[name]) > 1 else None
        rows.append([name, *cells, "-" if each is None else f"{each:.0f}"])
    if not counts or not rows:
        return
    head = ["launcher", *(f"{count} hosts, MiB" for count in counts), "for each host, KiB"]
    text = bench.table(head, rows) + ("\n" + "".join(notes) if notes else "")
    report.add("Memory of a launcher that has sessions open, one to each host", text, "memory", values)


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
    parser.add_argument("--only", default="", help="only these, separated by commas: floor, hvdrun, first, new keys, "
                                                       "many keys, hydra, mpirun, pdsh, xargs ssh")
    parser.add_argument("--memory", default="", help="measure the memory with so many hosts (default: those of --hosts)")
    options = parser.parse_args()
    counts = list(map(int, options.hosts.split(","))) if options.hosts else []
    memory_counts = list(map(int, options.memory.split(","))) if options.memory else counts
    chosen = options.only.split(",") if options.only else []

    def is_chosen(name):
        return not chosen or name in chosen

    world = ssh_world.begin("ssh_start", max(counts + memory_counts, default=1))
    report = bench.Report("ssh_start", options)
    agent_start(report)
    rows, notes, data = [], [], {}
    for count in counts:
        bench.say(f"ssh_start: {count} hosts")
        contest = Contest(world, count, is_chosen)
        contest.rounds(options.rounds if count <= 100 else max(1, options.rounds // 2))
        rows += contest.rows()
        notes += contest.errors()
        data[count] = contest.values
        notes.append(contest.verdict())
    head = ["hosts", "launcher", "n", "median / worst", "best", "/ floor", "hosts/s", "CPU here, ms per host",
            "CPU on hosts, ms per host", "failed"]
    if counts:
        report.add("Start of `true` on hosts over SSH, seconds", bench.table(head, rows) + "\n\n" + "\n".join(notes), "start", data)
    memory(world, memory_counts, is_chosen, report)
    report.finish()
    world.close()


if __name__ == "__main__":
    main()
