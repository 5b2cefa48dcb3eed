#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs all unit tests once more, on this machine as if it were another one:

  young      its monotonic clock and its boot clock began just now
  old        they began 400 days ago
  user       the tests run as a user without a home folder, and not as root
  one-core   they may use one processor
  read-only  the source tree cannot be written to
  abroad     another language and time zone
  inside     in a process namespace whose first process is in a session of outside, as in some containers

Each word that you name applies. LIST is a file with lines `PROGRAM NOUN`, which the build makes. A regular
expression chooses some of them: `tests/unit/machine.py build/dev/tests/unit/list --only 'unit_driver' young`.
Needs root and namespaces; without them, the tests are skipped (exit status 77), and one line says why.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = 77
LIMIT_S = 180  # as unit.cmake sets it for each of them
DAY_S = 86400
USER, NUMBER = "guest", 4242
OWN = ("HOME", "USER", "LOGNAME", "MAIL", "SHELL", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
ABROAD = {"LANG": "de_DE.UTF-8", "LC_ALL": "C.UTF-8", "LANGUAGE": "de", "TZ": "Asia/Kathmandu"}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def offsets(age_s):
    """What `unshare` needs so that both clocks show `age_s`. It counts from the machine's own clocks."""
    mine = {}
    with open("/proc/self/timens_offsets", encoding="ascii") as file:
        for line in file:
            name, seconds, _ = line.split()
            mine[name] = int(seconds)
    clocks = {"monotonic": time.CLOCK_MONOTONIC, "boottime": time.CLOCK_BOOTTIME}
    return [f"--{name}={mine[name] + age_s - int(time.clock_gettime(clock))}" for name, clock in clocks.items()]


def enter(words):
    """Starts this program again in namespaces of its own."""
    if os.geteuid() != 0:
        skip("only root may make another machine of this one")
    if not os.path.exists("/proc/self/ns/time"):
        skip("this kernel has no time namespaces")
    command = ["unshare", "--mount", "--propagation=private", "--fork", "--kill-child"]
    if {"young", "old"} & words:
        command += ["--time", *offsets(400 * DAY_S if "old" in words else 0)]
    if "inside" in words:
        command += ["--pid", "--mount-proc"]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        skip(f"no namespaces here: {tried.stderr.strip()}")
    os.environ["HVDRUN_MACHINE"] = "entered"
    os.execvp(command[0], [*command, sys.executable, "-B", *sys.argv])


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def open_the_way(folder):
    """Anybody may reach `folder`: if a folder above it is closed, nothing else is seen there."""
    above, part = "/", ""
    for part in folder.strip("/").split("/")[:-1]:
        above = os.path.join(above, part)
        if not os.stat(above).st_mode & 1:
            break
    else:
        return
    held = os.open(folder, os.O_PATH)
    mount("-t", "tmpfs", "-o", "mode=755", "machine", above)
    os.makedirs(folder)
    mount("--no-canonicalize", "--bind", f"/proc/{os.getpid()}/fd/{held}", folder)
    os.close(held)


def add_user():
    """Makes one that may log in, which `nobody` may not."""
    with open("/etc/passwd", encoding="utf-8") as file:
        users = file.read()
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(f"{users}{USER}:*:{NUMBER}:{NUMBER}::/nonexistent:/bin/sh\n")
        file.flush()
        os.fchmod(file.fileno(), 0o644)
        mount("--bind", file.name, "/etc/passwd")


def change(words):
    """What `subprocess` needs to start a test on that machine."""
    environment = {name: value for name, value in os.environ.items()
                   if name != "HVDRUN_MACHINE" and not ("user" in words and name in OWN)}
    process = {"env": {**environment, "HVDRUN_SOURCE": SOURCE, **(ABROAD if "abroad" in words else {})}, "cwd": "/"}
    if "user" in words:
        open_the_way(SOURCE)
        add_user()
        process |= {"user": NUMBER, "group": NUMBER, "extra_groups": []}
    if "read-only" in words:
        mount("--bind", SOURCE, SOURCE)
        mount("-o", "remount,bind,ro", SOURCE)
    if "one-core" in words:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return process


def run(test, process):
    """What is wrong with the test; nothing if it passes."""
    try:
        ran = subprocess.run(test.split(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace", timeout=LIMIT_S, check=False, **process)
    except subprocess.TimeoutExpired:
        return f"{test}: takes more than {LIMIT_S} s"
    return f"{test}: exit status {ran.returncode}\n{ran.stdout}" if ran.returncode != 0 else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list")
    parser.add_argument("words", nargs="+", choices=["young", "old", "user", "one-core", "read-only", "abroad", "inside"])
    parser.add_argument("--only", default="", metavar="REGEX")
    options = parser.parse_intermixed_args()
    with open(options.list, encoding="utf-8") as file:
        tests = [line for line in file.read().splitlines() if re.search(options.only, line)]
    if os.environ.get("HVDRUN_MACHINE") != "entered":
        enter(set(options.words))
    process = change(set(options.words))
    # Half of their time they wait.
    with concurrent.futures.ThreadPoolExecutor(2 * len(os.sched_getaffinity(0))) as pool:
        failed = [text for text in pool.map(lambda test: run(test, process), tests) if text]
    print(*failed, f"{len(tests) - len(failed)} of {len(tests)} pass: {' '.join(options.words)}", sep="\n")
    sys.exit(1 if failed or not tests else 0)


if __name__ == "__main__":
    main()
