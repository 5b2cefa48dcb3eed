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
import time

import bench
from commands import hvdrun, in_rounds, output, run, stop, timed

LINES = 100000
LIVE = r'''
import sys, time
while True:
    time.sleep(0.05)
    print("at", time.monotonic(), flush=True)
'''


def first_line(argv):
    began = time.monotonic()
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reader:
        reader.stdout.readline()
        took = time.monotonic() - began
        reader.kill()
    return took


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


def log_file(job):
    folder = os.path.join(os.environ["TMPDIR"], f"hvdrun-{os.getuid()}")
    jobs = next(name for name in os.listdir(folder) if name.startswith(".jobs-"))
    return os.path.join(folder, jobs, f"{job}.0.log")


def measure(rounds):
    script = f"i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo line $i; done; echo whole; sleep 3600"
    talker = output("--detach", "--no-label", "-np", 1, "sh", "-c", script).strip()
    live = output("--detach", "--no-label", "-np", 1, sys.executable, "-c", LIVE).strip()

    def one_round(number):
        seconds = {"attach": first_line(hvdrun("attach", talker)),
                   "tail": first_line(["tail", "-n", "+1", "-f", log_file(talker)]),
                   "live attach": statistics.median(live_lines(hvdrun("attach", live), 10)),
                   "live tail": statistics.median(live_lines(["tail", "-n", "0", "-f", log_file(live)], 10)),
                   "status": timed(hvdrun("status", talker)),
                   "version": timed(hvdrun("--version"))}
        starts = [("start", ()), ("start, no log", ("--log-size", 0))]
        for name, words in starts if number % 2 == 0 else reversed(starts):  # the second of two has warm caches
            seconds[name] = timed(hvdrun(*words, "-np", 1, "true"))
        return seconds

    try:
        bench.wait_for(lambda: "whole" in output("logs", talker, "-n", 1), "the log of all lines")
        return in_rounds(rounds, one_round)
    finally:
        stop(talker, live)


if __name__ == "__main__":
    run(__doc__, "attach", "Lines of a job at another terminal", measure,
        {"attach": "tail", "live attach": "live tail", "status": "version", "start": "start, no log"})
