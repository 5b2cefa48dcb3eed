#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs an installation of hvdrun as a Python wheel: wheel.py STAGE OUT VERSION MACHINE

STAGE is the prefix of an installation whose libraries are in lib/. pip puts bin/ and the rest into the same
places of an environment, where the parts find each other as in any other prefix. The package `horovod` also
goes where Python looks for its packages, so that it can be imported without hvdrun. Equal stages give equal
wheels, whatever the clock is."""
import base64
import hashlib
import os
import re
import sys
import zipfile

import glibc

PACKAGE = "lib/hvdrun/python/"
DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip file can have
METADATA = """Metadata-Version: 2.1
Name: hvdrun
Version: {version}
Summary: A launcher for distributed training, with Horovod's Python API
License: Apache-2.0
Requires-Python: >=3.8
Requires-Dist: cloudpickle
"""
WHEEL = """Wheel-Version: 1.0
Generator: hvdrun
Root-Is-Purelib: false
Tag: {tag}
"""


def files_of(stage):
    """Names relative to the stage. Links count as files, as pip knows none."""
    return [os.path.relpath(path, stage) for path in glibc.files_of(stage)]


def place_of(name, data):
    """Where a file of the stage is in the wheel; None: the wheel does not need it."""
    if name.endswith((".a", ".pc", ".cmake", ".h")) or name == "lib/libhvd.so" or re.search(r"libhvd\.so\.\d+\.", name):
        return None  # for compilers; the loader uses libhvd.so.NUMBER
    if name.startswith("bin/"):
        return f"{data}/scripts/{name[4:]}"
    return f"{data}/data/{name}"


class Wheel:
    """The file, and its list of contents."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, content, executable=False):
        info = zipfile.ZipInfo(name, DATE)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        self.zip.writestr(info, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")

    def finish(self, name):
        self.record.append(f"{name},,")
        self.zip.writestr(zipfile.ZipInfo(name, DATE), "\n".join(self.record) + "\n")
        self.zip.close()


def main(stage, out, version, machine):
    if not os.path.isfile(os.path.join(stage, "lib/libhvd.so.0")):
        sys.exit(f"wheel: {stage} has no lib/libhvd.so.0: configure the build with -DCMAKE_INSTALL_LIBDIR=lib")
    tag = "py3-none-manylinux_{}_{}_{}".format(*glibc.newest(stage), machine)
    data, info = f"hvdrun-{version}.data", f"hvdrun-{version}.dist-info"
    path = os.path.join(out, f"hvdrun-{version}-{tag}.whl")
    wheel = Wheel(path)
    for name in files_of(stage):
        source = os.path.join(stage, name)
        with open(source, "rb") as file:
            content = file.read()
        place = place_of(name, data)
        if place is not None:
            wheel.add(place, content, os.access(source, os.X_OK))
        if name.startswith(PACKAGE):
            wheel.add(name[len(PACKAGE) :], content)
    wheel.add(f"{info}/METADATA", METADATA.format(version=version).encode())
    wheel.add(f"{info}/WHEEL", WHEEL.format(tag=tag).encode())
    wheel.finish(f"{info}/RECORD")
    print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
