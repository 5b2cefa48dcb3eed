# SPDX-License-Identifier: Apache-2.0
"""The key TAB in bash, zsh and fish: what the completions of hvdrun make of a line."""
# ctest waits

import os
import re
import shutil
import subprocess
import unittest

from rig import BUILD, HVDRUN, SOURCE, Flow, Terminal, main, wait_until

DOCS = os.path.join(BUILD, "generated/docs")
PROMPT = "-ready-"
# The help of an option, and how it stands between single quotes. unit.cli.docs reads it, too.
with open(os.path.join(SOURCE, "tests/unit/cli/data/quoting.txt"), encoding="ascii") as quoting:
    NASTY, IN_ZSH, IN_FISH = quoting.read().splitlines()


class Shell:
    """An interactive shell that completes the words of hvdrun, and nothing from the user's own files."""

    def __init__(self, test, name, *argv, setup):
        self.name = name
        path = os.pathsep.join([os.path.dirname(HVDRUN), test.box.path("bin"), os.environ["PATH"]])
        self.terminal = Terminal(test.box, [shutil.which(name), *argv], rows=60, columns=200,
                                 env={"PATH": path, "XDG_RUNTIME_DIR": test.box.home})  # where fish keeps a file
        self.prompts = 0
        for line in setup:
            self.terminal.type(line + "\r")
        self.terminal.type(f"echo {PROMPT[:3]}''{PROMPT[3:]}\r")
        self.terminal.wait_output(PROMPT)

    def words(self, typed):
        """Types a line, in which \\t is the key, and returns its words when the shell runs it."""
        self.prompts += 1
        self.terminal.type(f"{typed}\x01printf \"<%s>\" GOT{self.prompts} \x05; echo END\r")
        self.terminal.wait_output(rf"<GOT{self.prompts}>.*END")
        last = re.findall(rf"<GOT{self.prompts}>(.*?)END", self.terminal.output())[-1]
        return re.findall("<(.*?)>", last)

    def leave(self):
        self.terminal.type("exit\r")
        self.terminal.wait()


class Tab(Flow):

    def setUp(self):
        super().setUp()
        self.write("bin/pythagoras", "#!/bin/sh\n", 0o755)
        self.write("results.csv", "")

    def open(self, name):
        if shutil.which(name) is None:
            raise unittest.SkipTest(f"no {name} on this machine")
        return {"bash": self.bash, "zsh": self.zsh, "fish": self.fish}[name]()

    def bash(self):
        return Shell(self, "bash", "--norc", "--noprofile", "-i",
                     setup=["bind 'set completion-query-items 0'", f"source {DOCS}/hvdrun.bash"])

    def zsh(self):
        return Shell(self, "zsh", "-f", "-i", setup=["bindkey -e", "LISTMAX=10000", f"fpath=({DOCS} $fpath)",
                                                     "autoload -Uz compinit", "compinit -u -D"])

    def fish(self):
        os.makedirs(os.path.join(self.box.home, ".local/share/fish/generated_completions"))  # fish would read all manuals
        return Shell(self, "fish", "-i", "--private", setup=["set -g fish_greeting", f"source {DOCS}/hvdrun.fish"])

    def press(self, which):
        """What each line becomes. The X says whether the key has completed a whole word."""
        shell = self.open(which)
        job = self.start("--job-name", "curie", "-np", 1, "sh", "-c", "echo $HVDRUN_JOB_ID; exec sleep 300")
        name = job.wait_output("hvdrun-.*").group()
        wait_until(lambda: self.start("ps", "-q").wait().lines == [name], "the control socket")
        table = [
            ("hvdrun stac\tX", ["hvdrun", "stacks", "X"]),
            ("hvdrun undra\tX", ["hvdrun", "undrain", "X"]),
            ("hvdrun pythag\tX", ["hvdrun", "pythagoras", "X"]),
            ("hvdrun -np 2 pythag\tX", ["hvdrun", "-np", "2", "pythagoras", "X"]),
            ("hvdrun --detach pythag\tX", ["hvdrun", "--detach", "pythagoras", "X"]),
            ("hvdrun --output-fil\tX", ["hvdrun", "--output-filename", "X"]),
            ("hvdrun logs --foll\tX", ["hvdrun", "logs", "--follow", "X"]),
            ("hvdrun stop --wi\tX", ["hvdrun", "stop", "--wiX"]),
            ("hvdrun -np 2 undra\tX", ["hvdrun", "-np", "2", "undraX"]),
            ("hvdrun status hvdrun-\tX", ["hvdrun", "status", name, "X"]),
            ("hvdrun attach cur\tX", ["hvdrun", "attach", "curie", "X"]),
            ("hvdrun drain h --job hvdrun-\tX", ["hvdrun", "drain", "h", "--job", name, "X"]),
            ("hvdrun signal cur\tX", ["hvdrun", "signal", "curie", "X"]),
            ("hvdrun signal USR1 hvdrun-\tX", ["hvdrun", "signal", "USR1", "hvdrun-X"]),
            (f"hvdrun signal {name} QUI\tX", ["hvdrun", "signal", name, "QUIT", "X"]),
            ("hvdrun status resul\tX", ["hvdrun", "status", "resulX"]),
            ("hvdrun logs --ranks resul\tX", ["hvdrun", "logs", "--ranks", "resulX"]),
            ("hvdrun explain ./resul\tX", ["hvdrun", "explain", "./results.csv", "X"]),
        ]
        got = [(typed, shell.words(typed)) for typed, _ in table]
        shell.leave()
        self.assertEqual(got, table, shell.terminal.describe())
        self.expect(self.start("stop", "curie").wait(), 0)
        job.wait()

    def run_shell(self, *argv):
        path = os.pathsep.join([os.path.dirname(HVDRUN), os.environ["PATH"]])
        return subprocess.run(argv, stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=120,
                              env={"PATH": path, "HOME": self.box.home, "XDG_RUNTIME_DIR": self.box.home})

    def ask(self, name, script, *args):
        """What the script prints; the test is skipped without the shell."""
        if shutil.which(name) is None:
            raise unittest.SkipTest(f"no {name} on this machine")
        done = self.run_shell(name, *args, "-c", script)
        self.assertEqual((done.returncode, done.stderr), (0, ""), script)
        return done.stdout

    def test_quoting_in_zsh(self):
        """_arguments removes the backslashes, which the shell has left."""
        self.assertEqual(self.ask("zsh", f"print -rn -- '{IN_ZSH}'", "-f"), re.sub(r"[][:\\]", r"\\\g<0>", NASTY))
        specs = self.ask("zsh", "_arguments() { print -rl -- \"$@\" }; words=(hvdrun debug ''); CURRENT=3; "
                                f"source {DOCS}/_hvdrun", "-f")
        self.assertIn("\n--with[gdb, lldb, or a command with {pid}, as in 'strace -f -p {pid}'. Default\\: gdb", specs)
        everything = self.ask("zsh", "_arguments() { print -rl -- \"$@\" }; words=(hvdrun ''); CURRENT=2; "
                                     f"source {DOCS}/_hvdrun", "-f").splitlines()
        self.assertEqual([line for line in everything if not re.match(r"-S$|\*-.*\[.*\]|\(-\)1:|\*::", line)], [])

    def test_quoting_in_fish(self):
        self.assertEqual(self.ask("fish", f"printf %s '{IN_FISH}'", "--private"), NASTY)
        found = self.ask("fish", f"source {DOCS}/hvdrun.fish; complete -C 'hvdrun debug --with'", "--private")
        self.assertEqual(found, "--with\tgdb, lldb, or a command with {pid}, as in 'strace -f -p {pid}'. Default: gdb, else lldb\n")

    def test_the_scripts_can_be_read(self):
        for name, file in ("bash", "hvdrun.bash"), ("zsh", "_hvdrun"), ("fish", "hvdrun.fish"):
            with self.subTest(name):
                if shutil.which(name) is None:
                    raise unittest.SkipTest(f"no {name} on this machine")
                done = self.run_shell(name, "-n", os.path.join(DOCS, file))
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_bash(self):
        self.press("bash")

    def test_zsh(self):
        self.press("zsh")

    def test_fish(self):
        self.press("fish")


if __name__ == "__main__":
    main()
