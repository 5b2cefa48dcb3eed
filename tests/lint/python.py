#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package `horovod`, its tests and its examples are formatted by black, and flake8 finds nothing in
them. Without these programs the check is skipped (exit status 77)."""
import shutil
import subprocess
import sys

import tree

FOLDERS = ("runtime/python/", "tests/python/", "examples/horovod/")
CONFIG = "runtime/python/pyproject.toml"
FLAKE8 = ["--max-line-length", "120", "--extend-ignore", "E203,E731"]  # E203: black writes a[b : c]


def complaints(root, command, names):
    """The lines that a program printed if it was not content."""
    ran = subprocess.run([*command, *names], cwd=root, capture_output=True, text=True)
    return [] if ran.returncode == 0 else (ran.stdout + ran.stderr).splitlines()


if __name__ == "__main__":
    options = tree.arguments(__doc__).parse_args()
    source = tree.Tree(options.root)
    missing = [name for name in ("black", "flake8") if shutil.which(name) is None]
    if missing:
        print(f"skipped: {' and '.join(missing)} not installed")
        sys.exit(tree.SKIPPED)
    names = source.matching((".py",), FOLDERS)
    findings = tree.Findings()
    findings.lines = [
        *complaints(source.root, ["black", "--quiet", "--diff", "--check", "--config", CONFIG], names),
        *complaints(source.root, ["flake8", *FLAKE8], names)]
    findings.finish(f"{len(names)} files")
