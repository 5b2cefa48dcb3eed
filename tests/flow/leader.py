# SPDX-License-Identifier: Apache-2.0
"""A very small shell with job control, for tests that need a terminal.

leader.py STATUS_FD COMMAND_FD fg|bg PROGRAM [ARGUMENT...]

It takes its stdin as controlling terminal, and starts the program in a process group of its own, in the
foreground or not. It reports what happens to the program on STATUS_FD, with a word and a number on each line:
"pid N", "stopped SIGNAL", "continued 0", "exited CODE", "killed SIGNAL". It reads commands from COMMAND_FD, one
letter each: "f" continues the group in the foreground, "b" in the background. It ends with its program.
"""

import fcntl
import os
import select
import signal
import sys
import termios


def main():
    status_fd, command_fd, place = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    argv = sys.argv[4:]
    for fd in (status_fd, command_fd):
        os.set_inheritable(fd, False)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    ready_read, ready_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.read(ready_read, 1)
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP, signal.SIGTTOU,
                       signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execv(argv[0], argv)
        finally:
            os._exit(127)
    try:
        os.setpgid(child, child)
    except OSError:
        pass
    if place == "fg":
        os.tcsetpgrp(0, child)
    os.write(status_fd, b"pid %d\n" % child)
    os.write(ready_write, b"g")
    while True:
        pid, status = os.waitpid(child, os.WUNTRACED | os.WCONTINUED | os.WNOHANG)
        if pid == 0:
            readable, _, _ = select.select([command_fd], [], [], 0.02)
            if readable:
                letter = os.read(command_fd, 1)
                if letter == b"f":
                    os.tcsetpgrp(0, child)
                if letter in (b"f", b"b"):
                    os.killpg(child, signal.SIGCONT)
                if not letter:
                    command_fd = ready_read
        elif os.WIFSTOPPED(status):
            os.tcsetpgrp(0, os.getpgrp())
            os.write(status_fd, b"stopped %d\n" % os.WSTOPSIG(status))
        elif os.WIFCONTINUED(status):
            os.write(status_fd, b"continued 0\n")
        else:
            os.tcsetpgrp(0, os.getpgrp())
            if os.WIFSIGNALED(status):
                os.write(status_fd, b"killed %d\n" % os.WTERMSIG(status))
            else:
                os.write(status_fd, b"exited %d\n" % os.WEXITSTATUS(status))
            return


main()
