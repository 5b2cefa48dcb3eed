# SPDX-License-Identifier: Apache-2.0
"""keeper.py COMMAND...: pid 1 of a box. Runs COMMAND and ends the box with its status.

It also starts the hosts, since they must not be children of the test: what is below the test counts
as left over. COMMAND finds a socket in HVDRUN_RIG_KEEPER; one packet is one request: a JSON list
[LOG FILE, ARGV...]; the answer is the pid.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys


def start(request):
    log, *argv = json.loads(request)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HVDRUN_RIG": os.environ["HVDRUN_RIG"]}
    with open(log, "ab") as file:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment,
                                cwd="/", start_new_session=True)


def reap(child):
    """Collects all that have ended; the status of `child` when it is among them."""
    status = None
    while True:
        try:
            pid, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == child:
            status = code


def main():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    environment = {**os.environ, "HVDRUN_RIG_KEEPER": str(theirs.fileno())}
    child = subprocess.Popen(sys.argv[1:], env=environment, pass_fds=(theirs.fileno(),))
    theirs.close()
    hosts = []  # their Popen objects stay referenced: reap() collects them
    waited = [ours, wake_read]
    while True:
        status = reap(child.pid)
        if status is not None:
            os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
        ready = select.select(waited, [], [])[0]
        if wake_read in ready:
            os.read(wake_read, 4096)
        if ours in ready:
            request = ours.recv(65536)
            if not request:
                waited.remove(ours)
                continue
            hosts.append(start(request))
            ours.send(str(hosts[-1].pid).encode())


if __name__ == "__main__":
    main()
