# SPDX-License-Identifier: Apache-2.0
"""Places and people that mean hvdrun no good: mount namespaces of one run, users with limits,
terminals that hang up. Beside Flow:

    class Test(Hostile, Flow):
        def test_x(self):
            self.expect(self.in_place("mount -t tmpfs none /proc").wait(), 0)
"""

import functools
import os
import re
import shlex
import subprocess
import unittest
import zlib

from ground import HVDRUN, wait_until, worker
from jobs import Helper, Job
from procfs import descendants

STRANGER = 54321  # a user that nobody is, so that a limit of processes counts only ours


@functools.lru_cache(maxsize=None)
def lacks(*command):
    """What the machine says when a command that a test needs does not work; "" when it does."""
    try:
        probe = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return "" if probe.returncode == 0 else probe.stderr.strip() or f"status {probe.returncode}"


class Hostile:

    # places

    def start_in_place(self, script, *args, stranger=False, **options):
        """hvdrun in a mount namespace of its own, which the shell script has changed before; as a
        user without rights, if need be."""
        why = lacks("unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt")
        if why:
            raise unittest.SkipTest(f"cannot mount in a namespace of its own: {why}")
        return Job(self.box, ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                              f'{script} && exec "$@"', "sh", *(self.become_stranger() if stranger else []), HVDRUN,
                              *args], **options)

    def in_place(self, script, *args, timeout=60, **options):
        result = self.start_in_place(script, *args, **options).wait(timeout)
        self.box.check_nothing_left(self.left_timeout)
        return result

    def small_folder(self, name="small", size="256k"):
        """A script that mounts a file system of this size, and its folder."""
        path = self.box.path(name)
        os.mkdir(path)
        return f"mount -t tmpfs -o size={size} none '{path}'", path

    # users

    def start_as_stranger(self, *args, **options):
        """hvdrun as a user without rights."""
        return Job(self.box, [*self.become_stranger(), HVDRUN, *args], **options)

    def become_stranger(self):
        """The words before a command that such a user runs; the test's folders become theirs."""
        become = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
        why = lacks(*become, "test", "-x", HVDRUN) or lacks(*become, "test", "-x", worker("hang"))
        if why:
            raise unittest.SkipTest(f"cannot run {HVDRUN} as another user: {why}")
        for folder in (self.box.root, self.box.tmp, self.box.run, self.box.home, self.box.work):
            os.chown(folder, STRANGER, STRANGER)
        return become

    # a terminal that goes away with the program that shows it

    def start_in_window(self, *args):
        """hvdrun below `script`, whose end hangs the terminal up; the window and hvdrun's pid."""
        why = lacks("script", "--version")
        if why:
            raise unittest.SkipTest(f"no script(1): {why}")
        words = " ".join(shlex.quote(str(word)) for word in (HVDRUN, *args))
        window = Helper(self.box, ["script", "-qfc", f"exec {words}", "/dev/null"], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE)

        def there():
            found = [one for one in descendants(window.popen.pid) if one.exe() == HVDRUN and one.ppid == window.popen.pid]
            return found[0].pid if found else None
        return window, wait_until(there, "hvdrun in its window")

    def close_window(self, window, pid, timeout=60):
        """Kills the window; returns how hvdrun ended, as a status of the shell."""
        window.popen.kill()
        window.popen.wait()
        _, status = wait_until(lambda: (lambda ended: ended if ended[0] else None)(os.waitpid(pid, os.WNOHANG)),
                               "hvdrun's end after its terminal's", timeout)
        return os.waitstatus_to_exitcode(status)

    # what came out

    def expect_whole(self, text, rank, lines):
        """All lines of a rank that wrote as spew does are there, whole and in order."""
        own = b"".join(re.findall(rb"(?m)^\[%d\]<stdout>:.*\n" % rank, text))
        checked = subprocess.run([worker("lines_verify"), "--ranks", str(rank + 1), "--only", str(rank), "--lines",
                                  str(lines)], input=own, capture_output=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stderr.decode(errors="replace"))

    def expect_noise(self, said, rank, data):
        """These are the bytes that the worker `noise` says it wrote."""
        want = re.search(rf"noise r={rank} bytes=(\d+) crc=(\w+)", said)
        self.assertTrue(want, said)
        self.assertEqual((len(data), f"{zlib.crc32(data):08x}"), (int(want.group(1)), want.group(2)))
