# SPDX-License-Identifier: Apache-2.0
"""The harness of the flow tests: whole runs of hvdrun, each ending with the nothing-left check.

    class Test(Flow):
        def test_x(self):
            result = self.run_job("-np", 2, worker("hello"))
            self.expect(result, 0)

Every test has a box of its own: TMPDIR, XDG_RUNTIME_DIR, HOME and the working folder are fresh, and
all processes of its runs have the box's tag in their environment. After the test, and after each
run_job(), no process may remain. The harness is a subreaper, so a process that loses its parent becomes
its child, with or without the tag. Nor may any file remain below TMPDIR and XDG_RUNTIME_DIR, except the
records of jobs that have ended, which stay for a day (docs/jobs.md). A process that remains fails the test.
The harness reports it with its state and its listening sockets, and kills it by pid.

Waits have deadlines, which say "did not hang" and nothing about speed; under sanitizers they are
longer. Nothing here asserts a time.
"""

import faulthandler
import json
import os
import re
import signal
import sys
import unittest

from box import Box
from ground import (BUILD, HERE, HVDRUN, SOURCE, WORKERS, loader, mpi_worker, nightly, patient, plain, sanitized,
                    wait_until, worker)
from jobs import LABELLED, Helper, Job, Terminal
from procfs import descendants, is_alive, process, processes, state, tcp_listeners


class Flow(unittest.TestCase):
    """A test case whose every test ends with the nothing-left check."""

    maxDiff = None
    left_timeout = 5

    def setUp(self):
        if not os.access(HVDRUN, os.X_OK):
            self.fail(f"no hvdrun at {HVDRUN}: build it, or set HVDRUN")
        self.box = Box()
        self.addCleanup(self._end)

    def _end(self):
        try:
            if self._has_failed():
                return  # it has failed already: what it left says nothing, and is killed below
            for job in self.box.jobs + self.box.helpers:
                if job.popen.poll() is None:
                    self.box.complaints.append(f"still running at the end of the test: {job.popen.args}")
            self.box.check_nothing_left(self.left_timeout)
        finally:
            self.box.kill_strays()
            self.box.close()

    def _has_failed(self):
        result = getattr(getattr(self, "_outcome", None), "result", None)
        known = getattr(result, "failures", []) + getattr(result, "errors", [])
        return any(getattr(test, "test_case", test) is self for test, _ in known)

    # starting

    def start(self, *args, **options):
        return Job(self.box, [HVDRUN, *args], **options)

    def run_job(self, *args, timeout=60, **options):
        """Runs hvdrun to its end and checks that nothing is left."""
        result = self.start(*args, **options).wait(timeout)
        if all(job.popen.poll() is not None for job in self.box.jobs):
            self.box.check_nothing_left(self.left_timeout)
        return result

    def terminal(self, *args, **options):
        return Terminal(self.box, [HVDRUN, *args], **options)

    def helper(self, *argv, **options):
        return Helper(self.box, argv, **options)

    def write(self, name, content, mode=0o644):
        """A file in the test's working folder."""
        path = self.box.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, mode)
        return path

    # judging

    def expect(self, result, status):
        self.assertEqual(result.status, status, result.describe())
        return result

    def expect_lines(self, result, lines):
        """stdout, its lines in any order."""
        self.assertEqual(sorted(result.lines), sorted(lines), result.describe())

    def expect_said(self, result, pattern):
        """The launcher said something that matches (on stderr, not from a rank)."""
        self.assertRegex(result.said, re.compile(pattern, re.I | re.S), result.describe())

    def expect_not_said(self, result, pattern):
        self.assertNotRegex(result.said, re.compile(pattern, re.I), result.describe())

    def expect_blame(self, result, rank, code=None, signal_number=None, host=None):
        """The failure block names this rank first, with pid and exit code or signal."""
        said = result.said
        named = re.search(r"\brank (\d+)\b", said)
        self.assertTrue(named, f"no rank is named{result.describe()}")
        self.assertEqual(int(named.group(1)), rank, f"another rank is blamed{result.describe()}")
        block = said[named.start():]
        self.assertRegex(block, r"\bpid \d+", result.describe())
        if code is not None:
            self.assertRegex(block, rf"\bexit code {code}\b", result.describe())
        if signal_number is not None:
            name = signal.Signals(signal_number).name
            self.assertRegex(block, rf"\bsignal {signal_number} \({name}\)", result.describe())
        if host is not None:
            self.assertRegex(said, rf"(?<![\w.]){re.escape(host)}(?![\w.])", result.describe())

    def read_json(self, path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def parse_self(text, rank=None):
    """The KEY=VALUE lines of the worker `self`, of one rank when the lines are labelled."""
    found = {}
    for line in text.split("\n"):
        label = re.match(r"\[(\d+)\]<stdout>:(.*)", line)
        if label and (rank is None or int(label.group(1)) == rank):
            line = label.group(2)
        elif label or rank is not None:
            continue
        if "=" in line:
            name, value = line.split("=", 1)
            found[name] = value
    return found


def _abandon(number, _):
    """The whole file takes too long, or is interrupted: says where, and takes everything with it."""
    print(f"\n{signal.Signals(number).name}: the tests are abandoned here:", file=sys.stderr)
    faulthandler.dump_traceback(all_threads=False)
    for box in list(Box.alive):
        for job in box.jobs:
            print(job.describe() if job.popen.poll() is None else "", file=sys.stderr, flush=True)
        box.kill_strays()
        box.close()
    os._exit(1)


def main():
    for number in (signal.SIGHUP, signal.SIGQUIT):  # what nohup ignores, hvdrun would inherit
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, _abandon)
    signal.alarm(int(os.environ.get("HVDRUN_TEST_LIMIT", "0")))
    unittest.main(verbosity=2, testLoader=loader())


__all__ = ["BUILD", "HERE", "HVDRUN", "LABELLED", "SOURCE", "WORKERS", "Box", "Flow", "Helper", "Job", "Terminal",
           "descendants", "is_alive", "main", "mpi_worker", "nightly", "parse_self", "patient", "plain", "process",
           "processes", "sanitized", "state", "tcp_listeners", "wait_until", "worker"]
