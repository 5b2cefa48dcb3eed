# SPDX-License-Identifier: Apache-2.0
"""Ranks with memory on a file system that does not answer. The kernel holds whoever reads that memory (docs/hangs.md)."""
# ctest waits

import os
import shutil
import signal
import subprocess
import sys

from asked import Asked
from hostile import Hostile
from procfs import descendants
from rig import main

SILENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "silent_fuse.py")
TRAIN = "import os, time\ndef step():\n    os.write(1, b'ready\\n')\n    time.sleep(1000)\nstep()\n"
HELD = "its memory cannot be read, most likely because a file system or swap space does not answer"

# For hvdrun, this is Python 3.8, whose first interpreter is in the file. Not even SIGKILL ends a read of that.
LIKE_PYTHON = """\
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
void *_PyRuntime[200];
int main(int argc, char **argv)
{
    _PyRuntime[4] = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, open(argv[1], O_RDONLY), 0);
    puts(argc == 2 && _PyRuntime[4] != MAP_FAILED ? "ready" : "no");
    fflush(stdout);
    for (;;)
        pause();
}
"""


class Held(Asked, Hostile):

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
            self.skipTest("no right to mount with /dev/fuse")
        self.folder, self.pidfile = self.box.path("mounted"), self.box.path("fuse.pid")
        os.mkdir(self.folder)

    def begin_on(self, *args, count, program=""):
        """A job that sees the file system, and the pid of the latter."""
        mount = (f"{sys.executable} {SILENT} {self.folder} {self.pidfile} {program} && "
                 f"while test ! -s {self.pidfile}; do sleep 0.1; done")
        job = self.begin("--grace", 1, *args, count=count, how=lambda *words: self.start_in_place(mount, *words))
        with open(self.pidfile, encoding="ascii") as file:
            return job, int(file.read())

    def like_python(self):
        source, program = self.write("like.c", LIKE_PYTHON), self.box.path("python3.8")
        if shutil.which("cc") is None:
            self.skipTest("no C compiler here")
        subprocess.run(["cc", "-rdynamic", "-o", program, source], check=True)
        return [program, os.path.join(self.folder, "batches")]

    def helpers(self, job):
        return sum(one.comm == "hvdrun-stacks" for one in descendants(job.popen.pid))

    def test_the_interpreter_of_most_ranks(self):
        """The others are shown, and no helper follows one that the kernel holds."""
        python, script = os.path.realpath("/usr/bin/python3"), self.write("train.py", TRAIN)
        start = f'test $RANK -gt 1 && exec {self.folder}/program {script}; exec {python} {script}'
        job, server = self.begin_on("-np", 12, "sh", "-c", start, count=12, program=python)
        try:
            self.until([r"^    \[0-11\] train\.py:5 <module> > train\.py:4 step; calls clock_nanosleep$"])
            os.kill(server, signal.SIGUSR1)
            self.until([rf"^    \[2-11\] process program; calls clock_nanosleep.*; {HELD}$",
                        r"^    \[0-1\] train\.py:5 <module> > train\.py:4 step; calls clock_nanosleep$"])
            for _ in range(4):
                self.ask()
            self.assertLess(self.helpers(job), 20)
            self.end(job)
        finally:
            os.kill(server, signal.SIGKILL)

    def expect_end(self, *options):
        """The job ends, although the kernel holds the helpers of its agents."""
        job, server = self.begin_on(*options, *self.like_python(), count=3)
        try:
            self.until([rf"^    \[0-2\] process python3\.8; calls p\w+.*; {HELD}$"])
            self.assertGreater(self.helpers(job), 0)
            job.signal(signal.SIGTERM)
            result = job.wait(60)
            self.expect_not_said(result, "could not kill|lost|do not end")
        finally:
            os.kill(server, signal.SIGKILL)  # the agents' processes end then

    def test_the_end_of_the_job(self):
        self.expect_end("-np", 3)

    def test_the_end_of_agents_that_have_a_keeper(self):
        away = self.box.path("away")
        os.mkdir(away)
        agent = f"env -u XDG_RUNTIME_DIR TMPDIR={away} HOME={away} HOST=%h"
        self.expect_end("-H", "a:2,b:1", "--launch-agent", agent)


if __name__ == "__main__":
    main()
