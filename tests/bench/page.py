#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the status page and the metrics of a job with thousands of ranks cost.

The ranks sleep, on simulated hosts with 100 ranks each (`--transport local`). All is asked as a page and Prometheus do:

  time    from the request until the whole answer is there
  CPU     of the driver for one answer, less than what it takes anyway; "again" is within the same second, from memory

A page with more than 1,000 ranks asks for job.json every 5 s."""

import http.client
import os
import re
import subprocess
import tempfile
import time
import urllib.parse

import bench
from ground import HVDRUN

TICK = os.sysconf("SC_CLK_TCK")
PER_HOST = 100
FRESH_S = 1.2  # after that, the agents measure again


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def start(ranks):
    hosts = ",".join(f"n{number}:{PER_HOST}" for number in range(-(-ranks // PER_HOST)))
    job = subprocess.Popen([HVDRUN, "--transport", "local", "-H", hosts, "-np", str(ranks), "--metrics", "0", "--start-timeout", "600", "--no-label",
                            "sh", "-c", "echo; exec sleep 3600"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for _ in range(ranks):
        job.stdout.readline()
    shown = subprocess.run([HVDRUN, "status", f"{job.pid}"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return job, urllib.parse.urlsplit(re.search(r"page: (\S+)", shown)[1])


def ask(page, path):
    """Seconds and bytes."""
    began = time.monotonic()
    one = http.client.HTTPConnection(page.hostname, page.port, timeout=60)
    one.request("GET", path)
    size = len(one.getresponse().read())
    one.close()
    return time.monotonic() - began, size


def measure(job, page, path, rounds, pause_s):
    found = []
    time.sleep(FRESH_S)
    before = time.monotonic()
    idle = cpu_of(job.pid)
    time.sleep(5)
    idle = (cpu_of(job.pid) - idle) / (time.monotonic() - before)
    before, cpu = time.monotonic(), cpu_of(job.pid)
    for _ in range(rounds):
        found.append(ask(page, path))
        time.sleep(pause_s)
    cpu = max(0, cpu_of(job.pid) - cpu - idle * (time.monotonic() - before)) / rounds
    return {"s": [seconds for seconds, _ in found], "bytes": found[-1][1], "cpu": cpu}


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[100, 1000, 4000])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    bench.begin()
    report = bench.Report("page", options)
    rows, data = [], {}
    with tempfile.TemporaryDirectory(prefix="hvdb-", dir="/tmp") as folder:
        os.environ["TMPDIR"] = folder
        for ranks in options.ranks:
            bench.say(f"page: {ranks} ranks")
            job, page = start(ranks)
            for title, path, pause_s in (("job.json", "/job.json", FRESH_S), ("job.json again", "/job.json", 0),
                                         ("output.json", "/output.json", 0), ("metrics", "/metrics", FRESH_S)):
                data[f"{title} of {ranks}"] = found = measure(job, page, path, options.rounds, pause_s)
                times = bench.summary(found["s"])
                rows.append([ranks, title, f"{found['bytes'] / 1024:.0f}", f"{times['median'] * 1e3:.1f}", f"{times['worst'] * 1e3:.1f}",
                             f"{found['cpu'] * 1e3:.1f}"])
            job.terminate()
            job.communicate()
    head = ["ranks", "answer", "KiB", "median ms", "worst ms", "CPU ms of the driver"]
    report.add("The status page of a large job", bench.table(head, rows), "page", data)
    report.finish()


if __name__ == "__main__":
    main()
