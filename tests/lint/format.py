#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""C is formatted as .clang-format says. Other versions of clang-format than 14 format a little
differently, so without that version the check is skipped (exit status 77)."""
import re
import shutil
import subprocess
import sys

import tree

VERSION = "14"


def find_formatter():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path is None:
            continue
        answer = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        if re.search(rf"version {VERSION}\.", answer):
            return path
    return None


if __name__ == "__main__":
    options = tree.arguments(__doc__).parse_args()
    source = tree.Tree(options.root)
    formatter = find_formatter()
    if formatter is None:
        print(f"skipped: clang-format {VERSION} is not installed")
        sys.exit(tree.SKIPPED)
    names = source.matching((".c", ".h"))
    findings = tree.Findings()
    for name in names:
        ran = subprocess.run([formatter, "--dry-run", "-Werror", "--style=file", name],
                             cwd=source.root, capture_output=True, text=True)
        if ran.returncode != 0:
            where = re.search(r":(\d+):\d+: error:", ran.stderr)
            findings.add(name, int(where[1]) if where else 0,
                         f"not formatted: run clang-format -i {name}")
    findings.finish(f"{len(names)} files")
