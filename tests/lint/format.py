#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""C is formatted as .clang-format says. Other versions of clang-format than 14 format a little
differently, so without that version the check is skipped (exit status 77)."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

import tree

VERSION = "14"
BATCH = 50  # files of one call: starting the program costs more than reading a file
COMPLAINT = re.compile(r"^(.+?):(\d+):\d+: error:", re.MULTILINE)


def find_formatter():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path is None:
            continue
        answer = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        if re.search(rf"version {VERSION}\.", answer):
            return path
    return None


def check(formatter, root, names):
    """Name and first line of those that are not formatted."""
    ran = subprocess.run([formatter, "--dry-run", "-Werror", "--style=file", *names],
                         cwd=root, capture_output=True, text=True)
    found = {}
    for name, line in COMPLAINT.findall(ran.stderr):
        found.setdefault(name, int(line))
    if ran.returncode != 0 and not found:
        raise SystemExit(f"clang-format ended with {ran.returncode}: {ran.stderr}")
    return found


if __name__ == "__main__":
    options = tree.arguments(__doc__).parse_args()
    source = tree.Tree(options.root)
    formatter = find_formatter()
    if formatter is None:
        print(f"skipped: clang-format {VERSION} is not installed")
        sys.exit(tree.SKIPPED)
    names = source.matching((".c", ".cc", ".h"))
    findings = tree.Findings()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        batches = [names[start:start + BATCH] for start in range(0, len(names), BATCH)]
        for found in pool.map(lambda batch: check(formatter, source.root, batch), batches):
            for name, line in sorted(found.items()):
                findings.add(name, line, f"not formatted: run clang-format -i {name}")
    findings.finish(f"{len(names)} files")
