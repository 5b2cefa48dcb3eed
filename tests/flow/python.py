# SPDX-License-Identifier: Apache-2.0
"""A Python with PyTorch, for the tests of the package `horovod`."""

import functools
import os
import subprocess
import sys
import unittest

from ground import BUILD, sanitized

PACKAGE = os.path.join(BUILD, "lib/hvdrun/python")


@functools.lru_cache(maxsize=None)
def find_python(*modules):
    """The first Python that has the modules; None: there is not one."""
    words = f"import importlib.util, sys; sys.exit(any(importlib.util.find_spec(name) is None for name in {modules!r}))"
    for path in (sys.executable, "/usr/bin/python3"):
        if os.access(path, os.X_OK) and subprocess.run([path, "-c", words], capture_output=True, check=False).returncode == 0:
            return path
    return None


def python_with(*modules):
    """SkipTest with one line if there is not such a Python, or if it cannot load libhvd."""
    if sanitized():
        raise unittest.SkipTest("a Python without sanitizers cannot load a library with them")
    if not os.path.exists(os.path.join(BUILD, "lib/hvd/hvd-gloo.so")):
        raise unittest.SkipTest("the engine gloo was not built")
    found = find_python(*modules)
    if found is None:
        packages = " ".join(f"python3-{module}" for module in modules)
        raise unittest.SkipTest(f"no Python has {', '.join(modules)} (Debian: apt install {packages})")
    return found


def package_environment(**more):
    """For workers that use the package of the build. One thread for each rank: the ranks share two CPUs."""
    return {"PYTHONPATH": PACKAGE, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **more}
