# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks share: the search path of the flow tests' helpers, time stamps of workers, numbers, and tables.
A result has two forms: Markdown for people, and JSON for a later comparison.

All times are in seconds. The programs take them from CLOCK_MONOTONIC, which is the same in every namespace of a machine.
"""

import argparse
import collections
import datetime
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for _folder in ("rig", "flow"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), _folder))

from ground import HVDRUN, sanitized  # noqa: E402

Stamp = collections.namedtuple("Stamp", "what time group pid rank rest")


class Stamps:
    """The files of a folder, to which workers append lines "WHAT SECONDS PID RANK [MORE]". The name of a file
    is the group of its stamps. The group is a host, because workers on two hosts may have the same pid."""

    def __init__(self, folder):
        self.folder, self.read, self.all = folder, {}, []
        os.makedirs(folder, exist_ok=True)

    def update(self):
        """Reads the lines that are new since the last call. Returns all stamps, not sorted by time."""
        for group in os.listdir(self.folder):
            with open(os.path.join(self.folder, group), "rb") as file:
                file.seek(self.read.get(group, 0))
                text = file.read()
            whole = text[:text.rfind(b"\n") + 1]
            self.read[group] = self.read.get(group, 0) + len(whole)
            for line in whole.decode().splitlines():
                what, moment, pid, rank, *rest = line.split()
                self.all.append(Stamp(what, float(moment), group, int(pid), int(rank), rest))
        return self.all

    def since(self, moment, what):
        return sorted((one for one in self.update() if one.time > moment and one.what == what), key=lambda one: one.time)


def wait_for(condition, what, timeout=60, period=0.02):
    """Polls until condition() is true, and returns its value. Its own delay is not a part of any measured time."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"did not happen within {timeout} s: {what}")
        time.sleep(period)


def wall_to_monotonic(seconds):
    """Converts a wall-clock time of this machine, as --events has it, to the clock of the stamps."""
    return seconds - (time.time() - time.monotonic())


# numbers

def summary(values):
    """n, median and worst of the values that are not None."""
    there = [value for value in values if value is not None]
    if not there:
        return {"n": 0, "median": None, "worst": None}
    return {"n": len(there), "median": statistics.median(there), "worst": max(there)}


def slope(points):
    """The slope of y over x, by least squares."""
    middle_x, middle_y = (statistics.fmean(point[i] for point in points) for i in (0, 1))
    below = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / below if below else 0.0


def seconds(value):
    """Three decimals below 10 s, else one: two runs differ by more than that."""
    if value is None:
        return "-"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def pair(values):
    """"median / worst"."""
    found = summary(values)
    return "-" if not found["n"] else f"{seconds(found['median'])} / {seconds(found['worst'])}"


def table(header, rows):
    lines = ["| " + " | ".join(map(str, line)) + " |" for line in [header, *rows]]
    lines.insert(1, "|" + " --- |" * len(header))
    return "\n".join(lines)


# the machine and the program

def _first_line(path, prefix):
    try:
        with open(path, encoding="utf-8") as file:
            return next((line[len(prefix):].strip() for line in file if line.startswith(prefix)), "")
    except OSError:
        return ""


def machine():
    """What a reader needs to judge the numbers, without names and paths of the machine."""
    memory = _first_line("/proc/meminfo", "MemTotal:").split()[0]
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory) / (1 << 20)),
        "system": _first_line("/etc/os-release", "PRETTY_NAME=").strip('"'),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def version():
    done = subprocess.run([HVDRUN, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[0]


class Report:
    """The results of a benchmark."""

    def __init__(self, name, options):
        self.name, self.options, self.parts = name, options, []
        self.data = {"benchmark": name, "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                     "hvdrun": version(), "machine": machine(), "results": {}}

    def add(self, title, text, name, result):
        """Adds one part: Markdown, and the same as data."""
        self.parts.append(f"### {title}\n\n{text}\n")
        self.data["results"][name] = result

    def finish(self):
        at = self.data["machine"]
        print(f"## {self.name}\n\n{self.data['date'][:10]}, {self.data['hvdrun']}; {at['cores']} cores, "
              f"{at['memory_gib']} GiB, {at['system']}, Linux {at['kernel']}, load at the start {at['load_at_start']}\n")
        print("\n".join(self.parts), flush=True)
        if self.options.json:
            with open(self.options.json, "w", encoding="utf-8") as file:
                json.dump(self.data, file, indent=1)
                file.write("\n")


def say(text):
    """Prints a line about the progress."""
    print(text, file=sys.stderr, flush=True)


def arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="also writes the results, every single value included, as JSON")
    return parser


def begin():
    """Checks the build before a benchmark. A SIGTERM to the benchmark ends its jobs too."""
    if not os.access(HVDRUN, os.X_OK):
        sys.exit(f"{os.path.basename(sys.argv[0])}: no hvdrun at {HVDRUN}: use tests/bench/run.sh, or set HVDRUN_BUILD")
    if sanitized():
        sys.exit(f"{os.path.basename(sys.argv[0])}: {HVDRUN} was built with sanitizers, which change its times")
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
