#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which glibc programs and libraries need: glibc.py NEWEST FILE_OR_FOLDER...

Status 1: one of them needs a newer glibc than NEWEST, such as 2.28. A line for each symbol names it and its file."""
import os
import re
import subprocess
import sys

SYMBOL = re.compile(r" UND (\S+?)@+(GLIBC_\S+)")
VERSION = re.compile(r"Name: (GLIBC_\S+)")


def files_of(place):
    """All files below a folder, sorted; or the file itself. Links count as files."""
    if not os.path.isdir(place):
        yield place
    for folder, folders, names in os.walk(place):
        folders.sort()
        for name in sorted(names):
            yield os.path.join(folder, name)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def number(version):
    """GLIBC_2.3.4 is (2, 3, 4). Names without a number, as GLIBC_ABI_DT_RELR, are of glibc 2.36 or newer."""
    found = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)*)", version)
    return tuple(map(int, found[1].split("."))) if found else (2, 36)


def needs(path):
    """{"GLIBC_2.36": {"pidfd_open"}}; {} for what is not an ELF file."""
    if not os.path.isfile(path) or not is_elf(path):
        return {}
    told = subprocess.run(["readelf", "-VW", "--dyn-syms", path], capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout
    found = {version: set() for version in VERSION.findall(told)}
    for symbol, version in SYMBOL.findall(told):
        found.setdefault(version, set()).add(symbol)
    return found


def newest(place, least=(2, 28)):
    """The version that a folder needs, as (2, 36)."""
    versions = [number(version) for path in files_of(place) for version in needs(path)]
    return max([least, *versions])


def main(limit, *places):
    count, bad = 0, []
    for place in places:
        for path in files_of(place):
            found = needs(path)
            count += bool(found)
            bad += [f"{path}: {symbol} needs {version}" for version in sorted(found) if number(version) > number(f"GLIBC_{limit}")
                    for symbol in sorted(found[version]) or ["the file"]]
    if count == 0:
        sys.exit(f"glibc: {' '.join(places)}: there is no program and no library that needs glibc")
    if bad:
        sys.exit("\n".join([*bad, f"glibc: these need a newer glibc than {limit}"]))
    print(f"glibc: {count} programs and libraries run with glibc {limit}")


if __name__ == "__main__":
    if len(sys.argv) < 3 or not re.fullmatch(r"\d+\.\d+", sys.argv[1]):
        sys.exit(__doc__)
    main(*sys.argv[1:])
