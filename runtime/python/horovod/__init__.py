# SPDX-License-Identifier: Apache-2.0
"""The package `horovod` of hvdrun: Horovod's Python API on libhvd, with nothing to compile.

hvdrun --horovod=auto puts this folder into PYTHONPATH, so Python finds it before its own packages. If a
real Horovod is there, this package gives way to it: it makes the real one the module `horovod`."""
import importlib.machinery
import importlib.util
import os
import sys


def _find_other():
    """A package `horovod` in the folders behind this one, if this one must give way; otherwise None."""
    if os.environ.get("HVDRUN_HOROVOD") != "auto":
        return None
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [os.path.abspath(folder) for folder in sys.path]
    behind = folders[folders.index(here) + 1 :] if here in folders else []
    found = importlib.machinery.PathFinder.find_spec(__name__, behind)
    return found if found is not None and found.origin is not None else None  # not a mere folder


_other = _find_other()
if _other is None:
    from horovod.common import missing
    from horovod.runner import run  # noqa: F401

    missing.announce()
    __version__ = "0.28.1+hvdrun"  # the version of Horovod whose API this is
else:
    sys.modules[__name__] = importlib.util.module_from_spec(_other)
    _other.loader.exec_module(sys.modules[__name__])
