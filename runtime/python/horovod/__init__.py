# SPDX-License-Identifier: Apache-2.0
"""The package `horovod` of hvdrun: Horovod's Python API on libhvd, with nothing to compile."""

__version__ = "0.28.1+hvdrun"  # the version of Horovod whose API this is
