# SPDX-License-Identifier: Apache-2.0
"""Running jobs and commands for them (docs/jobs.md), and a terminal that vanishes: for tests of what other commands see."""

import glob
import os
import pty
import subprocess

from rig import HVDRUN, Flow, patient, wait_until, worker


class JobCommands(Flow):

    def ask(self, *words, status=0, env=None):
        """A command for a running job; returns its result."""
        return self.expect(self.start(*words, env=env).wait(), status)

    def ask_only(self, verb, *words, status=0):
        """`stop` and `signal` need the job where there is no terminal: this one is for the only running job."""
        name, = self.ask("ps", "-q").lines
        return self.ask(verb, name, *words, status=status)

    def refused(self, pattern, *words, status=1):
        """One line on stderr says why, and nothing is on stdout."""
        result = self.ask(*words, status=status)
        self.assertEqual(result.stdout, "", result.describe())
        self.assertRegex(result.stderr, r"\Ahvdrun: [^\n]+\n\Z", "one line")
        self.assertRegex(result.stderr, pattern)

    def folder(self):
        return self.box.jobs_folder()

    def sockets(self):
        return glob.glob(os.path.join(self.folder(), "*.control"))

    def begin(self, *args, count=1, **options):
        """A job that runs, and its id."""
        known = set(self.sockets())
        job = self.start(*args, **options)
        job.wait_output("ready", count=count)
        path, = wait_until(lambda: set(self.sockets()) - known, "the control socket")
        return job, os.path.basename(path).removesuffix(".control")

    def hang(self, *args, count=1, **options):
        """The same, whose ranks wait until the third, a function, is called."""
        gate, let_go = self.box.gate()
        job, name = self.begin(*args, worker("hang"), "--until", gate, count=count, **options)
        return job, name, let_go

    def on_terminal(self, *args):
        """hvdrun as the leader of a session with a terminal; a function that makes the terminal vanish."""
        master, slave = pty.openpty()
        process = subprocess.Popen(["setsid", "-c", HVDRUN, *map(str, args)], stdin=slave, stdout=slave, stderr=slave,
                                   env=self.box.environment(), cwd=self.box.work)
        os.close(slave)
        self.addCleanup(process.wait, patient(20))

        def read_until(text):
            got = b""
            while text not in got:
                got += os.read(master, 4096)
        return process, read_until, lambda: os.close(master)


__all__ = ["JobCommands"]
