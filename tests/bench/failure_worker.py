#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank of failure.py: `failure_worker.py FOLDER obeys|ignores`. It writes FOLDER/PID when it is ready, and then
sleeps. At SIGUSR1 it writes the time to FOLDER/failed and exits with 3. It obeys SIGTERM, or ignores it."""

import os
import signal
import sys
import time


def main():
    folder, manner = sys.argv[1:]
    if manner == "ignores":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    with open(os.path.join(folder, str(os.getpid())), "x", encoding="ascii"):
        pass
    signal.sigwait([signal.SIGUSR1])
    note = os.open(os.path.join(folder, "failed"), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(note, repr(time.monotonic()).encode())
    os._exit(3)


main()
