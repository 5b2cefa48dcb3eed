#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon an attached terminal shows a line of a job, and what the log of a job costs.

  first    from the start of `hvdrun attach` until its first line, of a job with 100,000 lines in its log
  live     from a rank's write until an attached reader has the line
  status   from the start of `hvdrun status` until its end
  start    a job of `true`, with the log and the progress of the ranks as usual, and without a log

`tail -f` of the same file is the floor of the first two, and `hvdrun --version` that of the third. All of them take
turns, and the table has the median of the ratios of the rounds as well."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import bench

LINES = 100000
LIVE = r'''
import sys, time
while True:
    time.sleep(0.05)
    print("at", time.monotonic(), flush=True)
'''


def hvdrun(*words):
    from ground import HVDRUN
    return [HVDRUN, *map(str, words)]


def first_line(argv):
    began = time.monotonic()
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reader:
        reader.stdout.readline()
        took = time.monotonic() - began
        reader.kill()
    return took


def whole_run(argv):
    began = time.monotonic()
    subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def live_lines(argv, count):
    """The delays of `count` lines; the first ones are of the past."""
    delays = []
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as reader:
        began = time.monotonic()
        for line in reader.stdout:
            now = time.monotonic()
            words = line.split("at ")
            if len(words) == 2 and float(words[1]) > began:
                delays.append(now - float(words[1]))
            if len(delays) >= count:
                break
        reader.kill()
    return delays


def detach(*words):
    done = subprocess.run(hvdrun("--detach", *words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def log_file(job):
    folder = os.path.join(os.environ["TMPDIR"], f"hvdrun-{os.getuid()}")
    jobs = next(name for name in os.listdir(folder) if name.startswith(".jobs-"))
    return os.path.join(folder, jobs, f"{job}.0.log")


def measure(options):
    """{name: [seconds...]}"""
    script = f"i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo line $i; done; echo whole; sleep 3600"
    talker, live = detach("--no-label", "-np", 1, "sh", "-c", script), detach("--no-label", "-np", 1, sys.executable, "-c", LIVE)
    found = {name: [] for name in ("attach", "tail", "live attach", "live tail", "status", "version", "start", "start, no log")}
    try:
        bench.wait_for(lambda: "whole" in subprocess.run(hvdrun("logs", talker, "-n", 1), stdout=subprocess.PIPE, text=True,
                                                         check=True).stdout, "the log of all lines")
        for number in range(options.rounds):
            found["attach"].append(first_line(hvdrun("attach", talker)))
            found["tail"].append(first_line(["tail", "-n", "+1", "-f", log_file(talker)]))
            found["live attach"].append(statistics.median(live_lines(hvdrun("attach", live), 10)))
            found["live tail"].append(statistics.median(live_lines(["tail", "-n", "0", "-f", log_file(live)], 10)))
            found["status"].append(whole_run(hvdrun("status", talker)))
            found["version"].append(whole_run(hvdrun("--version")))
            starts = [("start", ()), ("start, no log", ("--log-size", 0))]
            for name, words in starts if number % 2 == 0 else reversed(starts):  # the second of two has warm caches
                found[name].append(whole_run(hvdrun(*words, "-np", 1, "true")))
            bench.say(f"round {number + 1} of {options.rounds}: " + ", ".join(f"{name} {1000 * values[-1]:.1f} ms"
                                                                              for name, values in found.items()))
    finally:
        for job in (talker, live):
            subprocess.run(hvdrun("stop", job), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return found


def as_table(found):
    floors = {"attach": "tail", "live attach": "live tail", "status": "version", "start": "start, no log"}
    rows = []
    for name, values in found.items():
        floor = found.get(floors.get(name))
        ratio = f"{statistics.median(one / other for one, other in zip(values, floor)):.2f}" if floor else "-"
        rows.append([name, f"{1000 * statistics.median(values):.2f}", f"{1000 * max(values):.2f}", ratio])
    return bench.table(["", "ms, median", "ms, worst", "/ floor"], rows)


def main():
    parser = bench.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    bench.begin()
    report = bench.Report("attach", options)
    with tempfile.TemporaryDirectory(prefix="hvdb-", dir="/tmp") as folder:
        os.environ["TMPDIR"] = folder
        found = measure(options)
    report.add("Lines of a job at another terminal", as_table(found), "attach", found)
    report.finish()


if __name__ == "__main__":
    main()
