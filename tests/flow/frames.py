# SPDX-License-Identifier: Apache-2.0
"""The frames of a link, as a test makes and reads them: docs/internals/protocol.md."""

import os
import re
import struct

from ground import SOURCE

HEADER = struct.Struct("!BBHIII")
BODY_MAX = 1 << 20


def _read_types():
    with open(os.path.join(SOURCE, "launcher/wire/frame.h"), encoding="utf-8") as file:
        text = file.read()
    return (int(re.search(r"#define FRAME_VERSION (\d+)", text).group(1)),
            {name: int(number) for name, number in re.findall(r"X\(FRAME_(\w+), (\d+)\)", text)})


VERSION, TYPES = _read_types()
NAMES = {number: name for name, number in TYPES.items()}


def frame(kind, body=b"", epoch=1, node=0, version=VERSION, length=None, number=0):
    return HEADER.pack(version, kind, number, len(body) if length is None else length, node, epoch) + body


def split(data):
    """The whole frames at the beginning of `data`, and what is left."""
    found, at = [], 0
    while len(data) - at >= HEADER.size and data[at] == VERSION:
        end = at + HEADER.size + HEADER.unpack_from(data, at)[3]
        if end > len(data):
            break
        found.append(data[at:end])
        at = end
    return found, data[at:]


def renumber(data, number):
    """A frame, or the beginning of one, under another number."""
    return data[:2] + struct.pack("!H", number % 65536) + data[4:]


def numbered(data, first=0):
    """The frames in `data` numbered as a link numbers them; what is no frame stays as it is. Also the
    next number."""
    frames, rest = split(data)
    if len(rest) >= HEADER.size and rest[0] == VERSION:
        rest = renumber(rest, first + len(frames))
    return b"".join(renumber(one, first + i) for i, one in enumerate(frames)) + rest, first + len(frames)


def kind_of(one):
    return NAMES.get(one[1], "?")
