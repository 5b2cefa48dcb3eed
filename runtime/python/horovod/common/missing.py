# SPDX-License-Identifier: Apache-2.0
"""The modules of Horovod that this package does not have: an import of one says what to use instead."""
import importlib.abc
import importlib.machinery
import sys

_OTHERS = "it has only horovod.torch. Install Horovod in this Python, and use hvdrun without the option --horovod"
_LAUNCHER = "hvdrun itself starts the ranks; use the program hvdrun, or horovod.run()"

MISSING = {
    **dict.fromkeys(
        (f"horovod.{name}" for name in ("keras", "mxnet", "ray", "spark", "tensorflow", "_keras")), _OTHERS
    ),
    **dict.fromkeys(
        (
            f"horovod.runner.{name}"
            for name in ("driver", "gloo_run", "http", "js_run", "launch", "mpi_run", "service", "task")
        ),
        _LAUNCHER,
    ),
    **dict.fromkeys(
        (f"horovod.runner.util.{name}" for name in ("cache", "lsf", "network", "remote", "streams")), _LAUNCHER
    ),
    "horovod.run": "run is a function; write from horovod import run",
    "horovod.runner.elastic": "hvdrun itself finds hosts and notifies workers; use hvdrun --host-discovery-script",
    "horovod.runner.common.service": _LAUNCHER,
    "horovod.runner.common.util.hosts": "hvdrun itself places the ranks; hvdrun --dry-run shows where",
}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name in MISSING else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        raise ImportError(f"{name} is not in hvdrun's package horovod: {MISSING[name]}", name=name)


def announce():
    """From now on, an import of these modules says why it fails."""
    sys.meta_path.append(_Finder())
