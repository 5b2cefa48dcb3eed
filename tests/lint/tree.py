# SPDX-License-Identifier: Apache-2.0
"""What all lint programs share: the files of the repository, and how findings are reported."""
import argparse
import pathlib
import subprocess
import sys

SKIPPED = 77  # the exit status that ctest takes for "skipped"


class Tree:
    """The files of a source tree: those that git tracks or would track, or, without git, all but
    hidden ones and build folders."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.files = sorted(self._git_files() or self._found_files())

    def _git_files(self):
        if not (self.root / ".git").exists():
            return None
        try:
            listing = subprocess.run(
                ["git", "-C", self.root, "ls-files", "-z", "--cached", "--others",
                 "--exclude-standard"], check=True, capture_output=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return None
        names = (name for name in listing.split("\0") if name)
        return [name for name in names if (self.root / name).is_file()]

    def _found_files(self):
        found = []
        for path in self.root.rglob("*"):
            parts = path.relative_to(self.root).parts
            hidden = any(part.startswith(".") and part != ".ci" for part in parts)
            if path.is_file() and not hidden and parts[0] != "build":
                found.append(path.relative_to(self.root).as_posix())
        return found

    def matching(self, suffixes, under=("",)):
        return [name for name in self.files
                if name.endswith(tuple(suffixes)) and name.startswith(tuple(under))]

    def text(self, name):
        return (self.root / name).read_text(encoding="utf-8", errors="replace")


class Findings:
    """Collects what is wrong as `file:line: message` and ends the program."""

    def __init__(self):
        self.lines = []

    def add(self, name, line, message):
        self.lines.append(f"{name}:{line}: {message}" if line else f"{name}: {message}")

    def finish(self, checked):
        for line in self.lines:
            print(line)
        if self.lines:
            print(f"{len(self.lines)} found")
            sys.exit(1)
        print(f"{checked}: nothing found")


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2],
                        help="the source tree (default: the one this program is in)")
    return parser


def blank_comments(text, strings=False):
    """C text with comments (and, if asked for, the insides of strings) replaced by blanks; lines
    and columns stay where they were."""
    out, i, end = [], 0, len(text)

    def blank(stop):
        out.append("".join("\n" if c == "\n" else " " for c in text[i:stop]))
        return stop

    while i < end:
        if text.startswith("/*", i):
            stop = text.find("*/", i + 2)
            i = blank(end if stop < 0 else stop + 2)
        elif text.startswith("//", i):
            stop = text.find("\n", i)
            i = blank(end if stop < 0 else stop)
        elif text[i] in "\"'":
            stop = i + 1
            while stop < end and text[stop] not in (text[i], "\n"):
                stop += 2 if text[stop] == "\\" else 1
            stop = min(stop + 1, end)
            if strings and stop - i > 2:
                quote = text[i]
                out.append(quote + " " * (stop - i - 2) + quote)
                i = stop
            else:
                out.append(text[i:stop])
                i = stop
        else:
            out.append(text[i])
            i += 1
    return "".join(out)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1
