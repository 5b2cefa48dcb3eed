# SPDX-License-Identifier: Apache-2.0
"""Where things are, and how long to wait for them."""

import functools
import os
import shutil
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("HVDRUN_SOURCE", os.path.dirname(os.path.dirname(HERE)))


def _find_build():
    for place in ("build/dev", "build/ci", "build/asan", "build"):
        path = os.path.join(SOURCE, place)
        if os.access(os.path.join(path, "hvdrun"), os.X_OK):
            return path
    return os.path.join(SOURCE, "build/dev")


BUILD = os.environ.get("HVDRUN_BUILD") or _find_build()
HVDRUN = os.environ.get("HVDRUN") or os.path.join(BUILD, "hvdrun")
WORKERS = os.environ.get("HVDRUN_WORKERS") or os.path.join(BUILD, "tests/workers")

@functools.lru_cache(maxsize=None)
def sanitized():
    """Whether hvdrun was built with AddressSanitizer: everything is slower and larger then."""
    try:
        with open(HVDRUN, "rb") as file:
            return b"__asan_init" in file.read()
    except OSError:
        return False


def plain(test):
    """Decorates a test that means less under sanitizers, where it is smaller or skipped: .ci/run, which runs
    a file under sanitizers only, runs it without them as well."""
    test.is_plain = True
    return test


def nightly(why):
    """Decorates a test that another one, a unit test or the simulator tells well enough for every day."""
    return unittest.skipUnless(os.environ.get("HVDRUN_NIGHTLY"), f"at night only: {why}")


class PlainOnly(unittest.TestLoader):
    """Finds only those."""

    def getTestCaseNames(self, testCaseClass):
        return [name for name in super().getTestCaseNames(testCaseClass)
                if getattr(getattr(testCaseClass, name), "is_plain", False)]


def loader():
    return PlainOnly() if os.environ.get("HVDRUN_ONLY_PLAIN") else unittest.defaultTestLoader


def patient(seconds):
    return seconds * 4 if sanitized() else seconds


def limit(seconds):
    """How long to wait for what must come, since a busy machine may need several times as long. Only a failure waits
    to the end."""
    return 3 * patient(seconds)


def worker(name):
    """The path of a built worker; a missing one is a failure, not a skip."""
    path = os.path.join(WORKERS, name)
    if not os.access(path, os.X_OK):
        raise AssertionError(f"the worker {path} is not built")
    return path


def mpi_worker(name, kind):
    """The path of an MPI worker (kind: openmpi, mpich); skips where that MPI is not installed."""
    path = os.path.join(WORKERS, f"{name}.{kind}")
    if not os.access(path, os.X_OK):
        if shutil.which(f"mpicc.{kind}") is None:
            raise unittest.SkipTest(f"no mpicc.{kind} on this machine")
        raise AssertionError(f"the worker {path} is not built")
    return path


class Later:
    """A text that is made when a test fails, and not for every assertion that holds: to describe a job
    means to read much of /proc."""

    def __init__(self, *parts):
        self.parts = parts

    def __str__(self):
        return "".join(str(part() if callable(part) else part) for part in self.parts)

    def __radd__(self, text):
        return Later(text, self)


def wait_until(condition, what, timeout=20):
    """Polls until condition() is true and returns its value; fails after the deadline. `what` may be a Later."""
    deadline = time.monotonic() + limit(timeout)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {limit(timeout)} s in vain: {what}")
        time.sleep(0.02)
