#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much each host costs the driver, with simulated hosts: real agents under invented names on this machine.

The benchmark starts jobs on 250, 500, 1000... hosts (`--transport local`) with one rank each. The jobs do not use MPI,
because that many PMIx servers on one machine would take most of the time. All ranks wait while the benchmark looks at
the driver, and then they end:

  start     from the start of hvdrun until the last rank has reported that it runs
  CPU       of the driver alone: until then, and for one second in which only heartbeats pass
  memory    of the driver alone: anonymous (allocated by it), and resident

If the cost grew faster than the number of hosts, the columns "per host" would grow.

Then jobs with four ranks on each host run, in which every second agent is killed:

  end       from the first SIGKILL until hvdrun has ended
  CPU       of the driver alone, in that time"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bench
from ground import HVDRUN

TICK = os.sysconf("SC_CLK_TCK")
IDLE_S = 5
LOST_RANKS = 4  # on each host


def cpu_of(pid):
    """CPU time of this process alone, in seconds."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory_of(pid):
    """{"Rss", "Anonymous"} in KiB."""
    found = {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            name, *rest = line.split()
            if name in ("Rss:", "Anonymous:"):
                found[name[:-1]] = int(rest[0])
    return found


def environment(folder):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HVDRUN", "SLURM", "PMI"))}
    return {**kept, "TMPDIR": folder, "XDG_RUNTIME_DIR": folder}


def hosts(count, ranks):
    return ",".join(f"n{number:04}:{ranks}" for number in range(count))


def start(count, folder, words, ranks=1, stderr=subprocess.PIPE):
    return subprocess.Popen([HVDRUN, "--transport", "local", "-H", hosts(count, ranks), "--start-timeout", "600", "--no-label",
                             "--mpi=none", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, env=environment(folder))


def look(count, folder):
    gate = os.path.join(folder, "gate")
    os.mkfifo(gate)
    before = time.monotonic()
    job = start(count, folder, ["sh", "-c", f"echo; read -r x <{gate}"])
    for _ in range(count):
        if not job.stdout.readline():
            return {"error": job.communicate()[1].decode()[-300:]}
    found = {"start": time.monotonic() - before, "cpu": cpu_of(job.pid), **memory_of(job.pid),
             "descriptors": len(os.listdir(f"/proc/{job.pid}/fd"))}
    time.sleep(IDLE_S)
    found["idle"] = (cpu_of(job.pid) - found["cpu"]) / IDLE_S
    let_go = os.open(gate, os.O_RDWR)
    os.write(let_go, b"\n" * count)
    job.communicate()
    os.close(let_go)
    found["total"] = time.monotonic() - before - IDLE_S
    os.unlink(gate)
    return found if job.returncode == 0 else {"error": f"status {job.returncode}"}


def lose(count, folder):
    """Kills every second agent. The driver's last CPU time is the one before it can be waited for."""
    with open(os.path.join(folder, "messages"), "w+b") as messages:
        job = start(count, folder, ["sh", "-c", "echo; exec sleep 1000"], LOST_RANKS, messages)
        for _ in range(count * LOST_RANKS):
            if not job.stdout.readline():
                job.wait()
                messages.seek(0)
                return {"error": messages.read().decode()[-300:]}
        with open(f"/proc/{job.pid}/task/{job.pid}/children", encoding="ascii") as file:
            agents = [int(pid) for pid in file.read().split()]
        before, cpu = time.monotonic(), cpu_of(job.pid)
        for pid in agents[::2]:
            os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, job.pid, os.WEXITED | os.WNOWAIT)
        found = {"end": time.monotonic() - before, "cpu": cpu_of(job.pid) - cpu}
        job.communicate()
    return found if len(agents) == count else {"error": f"{len(agents)} agents"}


def add_lost(report, counts):
    rows, data = [], {}
    for count in counts:
        bench.say(f"scaling: {count} hosts, of which half are lost")
        folder = tempfile.mkdtemp(prefix="hvd-scaling-", dir="/dev/shm")
        try:
            found = data[count] = lose(count, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        times = [found["error"], "-"] if "error" in found else [bench.seconds(found["end"]), bench.seconds(found["cpu"])]
        rows.append([count, *times])
    report.add("The driver alone, when every second agent is killed", bench.table(["hosts", "end, s", "CPU, s"], rows), "lost", data)


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--hosts", default="250,500,1000,2000,4000")
    parser.add_argument("--lost", default="100,200,300", help="numbers of hosts for the jobs whose agents are killed")
    options = parser.parse_args()
    bench.begin()
    report, rows, data = bench.Report("scaling", options), [], {}
    for count in map(int, options.hosts.split(",")):
        bench.say(f"scaling: {count} hosts")
        folder = tempfile.mkdtemp(prefix="hvd-scaling-", dir="/dev/shm")
        try:
            found = look(count, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        data[count] = found
        if "error" in found:
            rows.append([count, found["error"]] + ["-"] * 9)
            continue
        per_host = [f"{found['cpu'] * 1e6 / count:.0f}", f"{found['idle'] * 1e6 / count:.1f}",
                    f"{found['Anonymous'] / count:.1f}"]
        rows.append([count, bench.seconds(found["start"]), bench.seconds(found["total"]), bench.seconds(found["cpu"]),
                     f"{found['Anonymous'] / 1024:.1f}", f"{found['Rss'] / 1024:.1f}", found["descriptors"], *per_host])
    head = ["hosts", "start, s", "whole job, s", "CPU at the start, s", "anonymous, MiB", "RSS, MiB", "descriptors",
            "CPU per host, us", "idle CPU per host and second, us", "anonymous per host, KiB"]
    report.add("The driver alone, with local agents", bench.table(head, rows), "driver", data)
    add_lost(report, map(int, options.lost.split(",")))
    report.finish()


if __name__ == "__main__":
    sys.exit(main())
