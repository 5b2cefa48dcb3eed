# SPDX-License-Identifier: Apache-2.0
"""What the documents show is what happens.

Runs every command of README.md and docs/*.md: the lines that begin with "$ " in blocks marked
```console or ```sh. A shell runs each one in a folder that looks like the repository after the build
(examples/, hostfiles/, build/), with hvdrun on PATH. A command ends with status 0, or with N where its line
ends with the comment "# status N". It must print each line that the document shows below it, and equal
lines as often. The order does not matter, because ranks print when they like. "..." means that the document
leaves lines out. The test does not compare what differs from run to run: decimal fractions, pids, the port.

A command that ends with "&" runs until the end of its block. Meanwhile, the test tries the other commands
again until they show what they should, as a person would. It does the same after a --detach and `warm start`.
test_hosts_docs.py runs the blocks marked ```console hosts, on hosts.
"""

import collections
import itertools
import os
import pathlib
import re
import signal
import time

from python import find_python
from rig import BUILD, HVDRUN, SOURCE, Flow, Job, main, patient

BLOCK = re.compile(r"^```(?:console|sh)[ \t]*\n(.*?)^```[ \t]*$", re.M | re.S)


def block_pattern(words):
    """Blocks that begin with these words, such as "console hosts"."""
    return re.compile(BLOCK.pattern.replace("(?:console|sh)", words), re.M | re.S)


HOSTS_BLOCK = block_pattern("console hosts")
ANY_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```[ \t]*$", re.M | re.S)
STATUS = re.compile(r"#\s*status (\d+)\s*$")
VARYING = [(re.compile(r"\bpid \d+"), "pid N"), (re.compile(r"\bPORT=\d+"), "PORT=N"), (re.compile(r"\b127\.0\.0\.1:\d+"), "HERE:N"),
           (re.compile(r"\d+\.\d+"), "N.N"),
           (re.compile(r"\bhvdrun-\S+-\d+\b"), "JOB"), (re.compile(r"\b\d+ s\b"), "N s"), (re.compile(r" {2,}"), "  "),
           (re.compile(r"^\d\d:\d\d:\d\d\b"), "TIME")]


LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
CONVERSION = re.compile(r"%(?:%|[-+ #0]*[\d.*]*(?:hh|h|ll|l|z|j)?[a-zA-Z])")
PLACEHOLDER = re.compile(r"\.\.\.|\b[A-Z]\b|\bFILE:LINE\b|\bPLACE\b|\bSTAGE\b|\d+\.\d|hvdrun-pmix\.so|\bsshd\b|"
                         r"(?<=was lost): ")


def messages_of_sources():
    """All string constants of the launcher in one text; what printf fills in is a line's end there."""
    found = []
    for path in sorted([*pathlib.Path(SOURCE, "launcher").rglob("*.c"), *pathlib.Path(SOURCE, "runtime/base").rglob("*.c")]):
        for run in LITERALS.findall(path.read_text(encoding="utf-8")):
            text = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', run)).replace('\\"', '"')
            found.append(CONVERSION.sub(lambda match: "%" if match[0] == "%%" else "\n", text))
    return "\n".join(found)


class Shown:
    """One command of a document: where it stands, what it prints, how it ends."""

    def __init__(self, page, line, command, block):
        self.place, self.command, self.lines, self.block = f"{page}:{line}", command, [], block
        status = STATUS.search(command)
        self.status = int(status[1]) if status else 0

    @property
    def stays(self):
        return self.command.endswith("&")


def shown_commands(page, text, block_pattern=BLOCK):
    found = []
    for block in block_pattern.finditer(text):
        first = text.count("\n", 0, block.start(1)) + 1
        current, goes_on = None, False
        for number, line in enumerate(block[1].splitlines(), first):
            if goes_on:
                current.command += "\n" + line
            elif line.startswith("$ "):
                current = Shown(page, number, line[2:], first)
                found.append(current)
            elif current is not None and line.strip() not in ("", "..."):
                current.lines.append(line)
            goes_on = (line.startswith("$ ") or goes_on) and line.endswith("\\")
    return found


def comparable(line):
    for pattern, name in VARYING:
        line = pattern.sub(name, line)
    return line.rstrip()


class Shows:
    """What a test case needs to run what a document shows."""

    block_pattern = BLOCK
    command_timeout = 120

    def make_folder(self):
        self.background, self.detached = [], False
        os.mkdir(self.box.path("bin"))
        os.symlink(HVDRUN, self.box.path("bin", "hvdrun"))
        os.symlink(os.path.join(BUILD, "lib/hvdrun/hvdrun-agent"), self.box.path("bin", "hvdrun-agent"))
        if find_python("torch") is not None:  # the first python3 of PATH may be another one
            os.symlink(find_python("torch"), self.box.path("bin", "python3"))
        for folder in ("examples", "hostfiles"):
            os.symlink(os.path.join(SOURCE, folder), self.box.path(folder))
        os.symlink(BUILD, self.box.path("build"))

    def start_shell(self, command):
        env = {"PATH": self.box.path("bin") + os.pathsep + os.environ["PATH"]}
        return Job(self.box, ["bash", "-o", "pipefail", "-c", command], env=env)

    def check(self, shown):
        if "torch" in shown.command and find_python("torch") is None:
            self.skipTest("no Python has torch")
        if shown.stays:
            self.background.append(self.start_shell("exec " + shown.command.rstrip("& ")))
            return
        deadline = time.monotonic() + patient(20)
        while True:
            try:
                self.check_once(shown)
                return
            except self.failureException:
                if not (self.background or self.detached) or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    def end_background(self):
        for job in self.background:
            job.signal(signal.SIGTERM)
            job.wait()
        if self.background or self.detached:
            self.box.check_nothing_left(self.left_timeout)
        self.background, self.detached = [], False

    def check_once(self, shown):
        result = self.expect(self.start_shell(shown.command).wait(self.command_timeout), shown.status)
        self.detached |= "--detach" in shown.command or "warm start" in shown.command
        if not (self.background or self.detached):
            self.box.check_nothing_left(self.left_timeout)
        printed = collections.Counter(map(comparable, (result.stdout + "\n" + result.stderr).splitlines()))
        missing = collections.Counter(map(comparable, shown.lines)) - printed
        self.assertEqual(list(missing.elements()), [], f"{shown.place} shows lines that were not printed"
                                                       f"{result.describe()}")

    def check_page(self, name):
        path = pathlib.Path(SOURCE, name)
        commands = shown_commands(name, path.read_text(encoding="utf-8"), self.block_pattern)
        for block, inside in itertools.groupby(commands, lambda shown: shown.block):
            for shown in inside:
                with self.subTest(place=shown.place):
                    self.check(shown)
            with self.subTest(place=f"{name}:{block}, its background"):
                self.end_background()
        return commands

    @staticmethod
    def pages():
        return sorted(str(path.relative_to(SOURCE)) for path in pathlib.Path(SOURCE, "docs").rglob("*.md"))


class Docs(Shows, Flow):

    def setUp(self):
        super().setUp()
        self.make_folder()

    def test_readme(self):
        commands = self.check_page("README.md")
        shows = [shown for shown in commands if shown.lines]
        self.assertGreaterEqual(len(shows), 6, "README.md shows too little: are its blocks still recognized?")
        self.assertTrue(any(shown.status != 0 for shown in shows), "README.md shows no failure")

    def test_pages(self):
        self.assertIn("docs/exit-status.md", self.pages())
        counted = sum(len(self.check_page(name)) for name in self.pages())
        self.assertGreater(counted, 0, "no page of docs/ shows a command")

    def test_commands_that_are_not_run(self):
        """Examples of command lines, for programs that you would have: hvdrun accepts their options."""
        lines = [(name, line) for name in ["README.md", *self.pages()]
                 for kind, text in ANY_BLOCK.findall(pathlib.Path(SOURCE, name).read_text(encoding="utf-8"))
                 for line in re.findall(r"^hvdrun (-.*)$", text, re.M) if kind in ("", "sh")]
        self.assertGreater(len(lines), 3, "are the blocks still recognized?")
        for name, line in lines:
            with self.subTest(page=name, line=line):
                result = self.start_shell(f"hvdrun --dry-run {line}").wait()
                if "--host-discovery-script" in line:
                    self.expect_said(self.expect(result, 2), "hosts of this job only when the job runs")
                else:
                    self.assertIn("RANK", self.expect(result, 0).stdout)

    def test_messages_are_those_of_the_sources(self):
        """The first column of docs/troubleshooting.md, in pieces between what varies."""
        known = messages_of_sources()
        rows = re.findall(r"^\| (`.*?) \| ", pathlib.Path(SOURCE, "docs/troubleshooting.md").read_text(encoding="utf-8"), re.M)
        pieces = [piece.strip(" ,;:()'") for row in rows for span in re.findall(r"`([^`]+)`", row)
                  for piece in PLACEHOLDER.split(span)]
        pieces = [piece for piece in pieces if len(piece) > 3]
        self.assertGreater(len(pieces), 60, "are the tables still recognized?")
        self.assertEqual([piece for piece in pieces if piece not in known], [])

    def test_the_comparison_notices(self):
        """The judge itself: a changed line, a line too few, a wrong status."""
        good = "```console\n$ hvdrun -np 2 echo hello\n[0]<stdout>:hello\n...\n```\n"
        bad = [good.replace("[0]<stdout>:hello", "[0]<stdout>:hullo"),
               good.replace("...", "[0]<stdout>:hello"),
               good.replace("echo hello", "sh -c 'echo hello; exit 4'"),
               good.replace("echo hello", "echo hello  # status 4")]
        self.check(*shown_commands("good", good))
        for text in bad:
            with self.assertRaises(self.failureException, msg=text):
                self.check(*shown_commands("bad", text))


if __name__ == "__main__":
    main()
