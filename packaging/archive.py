#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs an installation of hvdrun as a tar.gz that may be unpacked anywhere: archive.py STAGE OUT VERSION MACHINE

STAGE is the prefix of the installation. The name of the archive has the oldest glibc that can run it. Equal stages
give equal archives, whatever the clock, the user and the umask are."""
import gzip
import os
import sys
import tarfile

import glibc

DATE = int(os.environ.get("SOURCE_DATE_EPOCH") or 315532800)  # else 1980, as in a wheel


def plain(info):
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mtime = DATE
    info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
    return info


def main(stage, out, version, machine):
    if not os.path.isfile(os.path.join(stage, "bin/hvdrun")):
        sys.exit(f"archive: {stage} has no bin/hvdrun")
    top = f"hvdrun-{version}"
    path = os.path.join(out, "{}-linux-{}-glibc{}.{}.tar.gz".format(top, machine, *glibc.newest(stage)))
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(stage, top, filter=plain)  # sorted by name
    print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
