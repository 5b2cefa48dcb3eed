# SPDX-License-Identifier: Apache-2.0
"""Flow tests that ask a running job where its ranks are."""

import glob
import os
import re

from ground import HVDRUN
from jobs import Job
from rig import Flow, wait_until

LATE = "not all of its processes were read in time"  # what a stack is then


class Asked(Flow):

    become = ()  # the words before hvdrun that make it run as another user

    def command(self, *words):
        return Job(self.box, [*self.become, HVDRUN, *words])

    def begin(self, *args, count, how=None, **options):
        """A job whose ranks are ready, and that can be asked. `how` starts it in another way."""
        job = (how or self.start)(*args, **options)
        job.wait_output("ready", count=count)
        wait_until(lambda: glob.glob(os.path.join(self.box.tmp, "hvdrun-*", ".jobs-*", "*.control")), "the control socket")
        return job

    def end(self, job):
        name, = self.command("ps", "-q").wait(60).lines
        self.expect(self.command("stop", name).wait(60), 0)
        job.wait(60)

    def ask(self, *words, status=0):
        return self.expect(self.command("stacks", *words).wait(60), status)

    def ask_whole(self, *words):
        """The text of `hvdrun stacks` with the stacks of all ranks. On a busy machine, some may not come in time."""
        for _ in range(60):
            result = self.ask(*words)
            if LATE not in result.stdout:
                return result.stdout
        raise AssertionError(f"never all in time{result.describe()}")

    def until(self, patterns, *words):
        """The text of `hvdrun stacks` as soon as it has these lines: a rank may still be on its way."""
        for _ in range(60):
            result = self.ask(*words)
            if all(re.search(pattern, result.stdout, re.M) for pattern in patterns):
                return result.stdout
        raise AssertionError(f"never all of {patterns}{result.describe()}")
