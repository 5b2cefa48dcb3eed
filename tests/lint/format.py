#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""C is formatted as .clang-format says. Other versions of clang-format than 14 format a little
differently, so without that version the check is skipped (exit status 77).

clang-format takes `a < 0, b = c > 0` for a template, and removes blanks. A comparison without them is found too."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

import tree

VERSION = "14"
BATCH = 50  # files of one call: starting the program costs more than reading a file
UNBLANKED = re.compile(r"(?<=[\w\])])(?:<(?=[\w(&*-])|>(?= ?\w))(?!-)")
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


def comparisons(text):
    """The lines of those without blanks on both sides."""
    if not UNBLANKED.search(re.sub(r"^[ \t]*(#|/?\*).*", "", text, flags=re.MULTILINE)):
        return
    for number, line in enumerate(tree.blank_comments(text, strings=True).split("\n"), 1):
        if not line.lstrip().startswith("#") and UNBLANKED.search(line):
            yield number


if __name__ == "__main__":
    options = tree.arguments(__doc__).parse_args()
    source = tree.Tree(options.root)
    formatter = find_formatter()
    if formatter is None:
        print(f"skipped: clang-format {VERSION} is not installed")
        sys.exit(tree.SKIPPED)
    names = source.matching((".c", ".cc", ".h"))
    findings = tree.Findings()
    for name in source.matching((".c", ".h")):
        for number in comparisons(source.text(name)) if "/gloo" not in name else ():  # C++ has templates
            findings.add(name, number, "a comparison without blanks: write it so that clang-format does not take it for a template")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        batches = [names[start:start + BATCH] for start in range(0, len(names), BATCH)]
        for found in pool.map(lambda batch: check(formatter, source.root, batch), batches):
            for name, line in sorted(found.items()):
                findings.add(name, line, f"not formatted: run clang-format -i {name}")
    findings.finish(f"{len(names)} files")
