# SPDX-License-Identifier: Apache-2.0
"""A file system of a server that is gone: silent_fuse.py FOLDER PIDFILE [PROGRAM].
It needs root; it mounts itself, in the mount namespace that it is in. It has two files. It never answers a read of
`batches`. It answers for `program`, which is PROGRAM, until SIGUSR1. Then it drops what is in memory of that file."""

import ctypes
import os
import signal
import stat
import struct
import sys

LOOKUP, GETATTR, OPEN, READ, RELEASE, INIT, FLUSH, OPENDIR = 1, 3, 14, 15, 18, 26, 25, 27
FORGET, INTERRUPT, BATCH_FORGET = 2, 36, 42
DROP = 2  # a notice to the kernel
ROOT, BATCHES, PROGRAM = 1, 2, 3
NAMES = {b"batches\0": BATCHES, b"program\0": PROGRAM}


def attributes(node, program):
    mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o755
    size = len(program) if node == PROGRAM else 4096
    return struct.pack("<QQQQQQIIIIIIIIII", node, size, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer_to(opcode, node, body, program):
    """The answer; None: none at all; a number: an error."""
    if opcode == INIT:
        return struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0, *[0] * 7)
    if opcode == LOOKUP:
        found = NAMES.get(body)
        return struct.pack("<QQQQII", found, 0, 60, 60, 0, 0) + attributes(found, program) if found else 2
    if opcode == GETATTR:
        return struct.pack("<QII", 60, 0, 0) + attributes(node, program)
    if opcode in (OPEN, OPENDIR):
        return struct.pack("<QII", 1, 0 if node == PROGRAM else 1, 0)
    if opcode == READ and node == PROGRAM:
        offset, size = struct.unpack_from("<QI", body, 8)
        return program[offset:offset + size]
    if opcode in (READ, FORGET, INTERRUPT, BATCH_FORGET):
        return None
    return b"" if opcode in (FLUSH, RELEASE) else 38


def serve(device, program):
    def fall_silent(*_):
        os.write(device, struct.pack("<IiQQqq", 40, DROP, 0, PROGRAM, 0, 0))
        while True:
            signal.pause()

    signal.signal(signal.SIGUSR1, fall_silent)
    while True:
        request = os.read(device, 1 << 16)
        length, opcode, unique, node = struct.unpack_from("<IIQQ", request)
        answer = answer_to(opcode, node, request[40:length], program)
        if isinstance(answer, int):
            os.write(device, struct.pack("<IiQ", 16, -answer, unique))
        elif answer is not None:
            os.write(device, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)


def main():
    folder, pidfile, *files = sys.argv[1:]
    program = b"".join(open(file, "rb").read() for file in files)
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"silent", os.fsencode(folder), b"fuse", 0, options) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    if os.fork() == 0:
        for stream in range(3):  # whoever reads them waits for their end
            os.dup2(os.open(os.devnull, os.O_RDWR), stream)
        with open(pidfile + ".new", "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        os.rename(pidfile + ".new", pidfile)
        serve(device, program)


main()
