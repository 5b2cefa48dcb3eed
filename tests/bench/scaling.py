#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much each host costs the driver, with simulated hosts: real agents under invented names on this machine.

The benchmark starts jobs on 250, 500, 1000... hosts (`--transport local`) with one rank each. The jobs do not use MPI,
because that many PMIx servers on one machine would take most of the time. All ranks wait while the benchmark looks at
the driver, and then they end:

  start     from the start of hvdrun until the last rank has reported that it runs
  CPU       of the driver alone: until then, and for one second in which only heartbeats pass
  memory    of the driver alone: anonymous (allocated by it), resident, and the most that was resident
  sent      all that the driver has written

If the cost grew faster than the number of hosts, the columns "per host" would grow.

Then jobs with four ranks on each host run, in which every second agent is killed:

  end       from the first SIGKILL until hvdrun has ended
  CPU       of the driver alone, in that time

With --fence, jobs with four ranks on each host run, which pass a PMIx fence with 1 KiB of each rank: the same bytes
from all, or random ones, which all hosts get, or which ranks fetch. Then each rank reads one value, or all of them."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bench
from ground import HVDRUN, worker

TICK = os.sysconf("SC_CLK_TCK")
IDLE_S = 5
RANKS = 4  # on each host, in the jobs that lose hosts or pass a fence


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


def most_of(pid):
    """How many KiB were resident at most, and how many bytes the process has written."""
    found = {}
    for name in ("status", "io"):
        with open(f"/proc/{pid}/{name}", encoding="ascii") as file:
            found.update(line.split(":", 1) for line in file)
    return {"peak": int(found["VmHWM"].split()[0]), "sent": int(found["wchar"])}


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
    found = {"start": time.monotonic() - before, "cpu": cpu_of(job.pid), **memory_of(job.pid), **most_of(job.pid),
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
        job = start(count, folder, ["sh", "-c", "echo; exec sleep 1000"], RANKS, messages)
        for _ in range(count * RANKS):
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


FENCES = {"the same bytes, one is read": ([], []), "random bytes, one is read": ([], ["random"]),
          "random bytes, one is fetched": (["--mpi-direct", "0"], ["random"]),
          "random bytes, all are read": ([], ["random", "all"]),
          "random bytes, all are fetched": (["--mpi-direct", "0"], ["random", "all"])}


def fence(count, folder, options, words):
    before = time.monotonic()
    job = start(count, folder, ["--mpi=pmix", *options, worker("mpi_fence"), "stay", "1024", *words], RANKS)
    for _ in range(count * RANKS):
        if not job.stdout.readline():
            return {"error": job.communicate()[1].decode()[-300:]}
    found = {"there": time.monotonic() - before, **most_of(job.pid)}
    job.terminate()
    job.communicate()
    return found


def each(counts, run, what=""):
    """{number of hosts: what the jobs on them have shown}"""
    found = {}
    for count in (int(word) for word in counts.split(",") if word):
        bench.say(f"scaling: {count} hosts{what}")
        folder = tempfile.mkdtemp(prefix="hvd-scaling-", dir="/dev/shm")
        try:
            found[count] = run(count, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return found


def most(found):
    return [f"{found['peak'] / 1024:.1f}", f"{found['sent'] / 1e6:.1f}"]


def add(report, title, head, data, name, columns):
    rows = [[count, *([found["error"]] + ["-"] * (len(head) - 2) if "error" in found else columns(count, found))] for count, found in data.items()]
    if rows:
        report.add(f"The driver alone, {title}", bench.table(head, rows), name, data)


def start_columns(count, found):
    return [bench.seconds(found["start"]), bench.seconds(found["total"]), bench.seconds(found["cpu"]),
            f"{found['Anonymous'] / 1024:.1f}", f"{found['Rss'] / 1024:.1f}", *most(found), found["descriptors"],
            f"{found['cpu'] * 1e6 / count:.0f}", f"{found['idle'] * 1e6 / count:.1f}", f"{found['Anonymous'] / count:.1f}"]


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--hosts", default="250,500,1000,2000,4000")
    parser.add_argument("--lost", default="100,200,300", help="numbers of hosts for the jobs whose agents are killed")
    parser.add_argument("--fence", default="", help="numbers of hosts for the jobs that pass a fence")
    options = parser.parse_args()
    bench.begin()
    report = bench.Report("scaling", options)
    add(report, "with local agents", ["hosts", "start, s", "whole job, s", "CPU at the start, s", "anonymous, MiB", "RSS, MiB", "peak RSS, MiB",
                                      "sent, MB", "descriptors", "CPU per host, us", "idle CPU per host and second, us",
                                      "anonymous per host, KiB"], each(options.hosts, look), "driver", start_columns)
    add(report, "when every second agent is killed", ["hosts", "end, s", "CPU, s"], each(options.lost, lose, ", of which half are lost"), "lost",
        lambda _, found: [bench.seconds(found["end"]), bench.seconds(found["cpu"])])
    for name, (given, words) in FENCES.items():
        found = each(options.fence, lambda count, folder, given=given, words=words: fence(count, folder, given, words), ", with a fence")
        add(report, f"when ranks pass a fence, {name}", ["hosts", "until all have passed, s", "peak RSS, MiB", "sent, MB"], found,
            f"fence {name}", lambda _, found: [bench.seconds(found["there"]), *most(found)])
    report.finish()


if __name__ == "__main__":
    sys.exit(main())
