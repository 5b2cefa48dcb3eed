# SPDX-License-Identifier: Apache-2.0
"""A file system that never answers a read, as one of a server that is gone: silent_fuse.py FOLDER PIDFILE.
It has one file, `batches`. It needs root; it mounts itself, in the mount namespace that it is in."""

import ctypes
import os
import stat
import struct
import sys

LOOKUP, GETATTR, OPEN, READ, RELEASE, INIT, FLUSH, OPENDIR = 1, 3, 14, 15, 18, 26, 25, 27
FORGET, INTERRUPT, BATCH_FORGET = 2, 36, 42
ROOT, FILE = 1, 2


def attributes(node):
    mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o644
    return struct.pack("<QQQQQQIIIIIIIIII", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer_to(opcode, node, body):
    """The answer; None: none at all; a number: an error."""
    if opcode == INIT:
        return struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0, *[0] * 7)
    if opcode == LOOKUP:
        return struct.pack("<QQQQII", FILE, 0, 60, 60, 0, 0) + attributes(FILE) if body == b"batches\0" else 2
    if opcode == GETATTR:
        return struct.pack("<QII", 60, 0, 0) + attributes(node)
    if opcode in (OPEN, OPENDIR):
        return struct.pack("<QII", 1, 1, 0)
    if opcode in (READ, FORGET, INTERRUPT, BATCH_FORGET):
        return None
    return b"" if opcode in (FLUSH, RELEASE) else 38


def serve(device):
    while True:
        request = os.read(device, 1 << 16)
        length, opcode, unique, node = struct.unpack_from("<IIQQ", request)
        answer = answer_to(opcode, node, request[40:length])
        if isinstance(answer, int):
            os.write(device, struct.pack("<IiQ", 16, -answer, unique))
        elif answer is not None:
            os.write(device, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)


def main():
    folder, pidfile = sys.argv[1:]
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"silent", os.fsencode(folder), b"fuse", 0, options) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    if os.fork() == 0:
        with open(pidfile + ".new", "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        os.rename(pidfile + ".new", pidfile)
        serve(device)


main()
