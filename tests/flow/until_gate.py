# SPDX-License-Identifier: Apache-2.0
"""until_gate.py GATE SCRIPT [ARGUMENT...]: runs a Python script that does not pause any more once the file GATE exists.

So a training with long pauses cannot end before a test has seen what it waits for, even on a slow machine. It ends
soon afterwards."""

import os
import runpy
import sys
import time


def main():
    gate, sleep = sys.argv[1], time.sleep
    time.sleep = lambda seconds: sleep(0 if os.path.exists(gate) else seconds)
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
