# SPDX-License-Identifier: Apache-2.0
"""The link between driver and agent is cut after each byte of a short job. Each of its frames is dropped,
repeated, swapped with the next, or has a bit flipped. Every job ends, says why, does not succeed if anything was
lost, and leaves nothing behind. HVDRUN_SECURITY_SEED chooses the bits."""
# ctest limit: 7200
# ctest waits

import os
import random

from middle import ELASTIC, STATIC, Change, Middle
from rig import Flow, main

SEED = int(os.environ.get("HVDRUN_SECURITY_SEED") or random.randrange(1 << 32))
FLIPS = 200
DIALOGUE_STEP = 11  # of the bytes before the first frame
ELASTIC_STEP = 13


class Link(Middle, Flow):

    def test_frames(self):
        for kind in (STATIC, ELASTIC):
            lengths = self.lengths(kind)
            self.spoil_all(kind, [Change(way, do, at) for way, (_, frames, _) in lengths.items()
                                  for do in ("drop", "repeat", "swap") for at in range(frames)])

    def test_cut_after_each_byte(self):
        for kind, step in ((STATIC, 1), (ELASTIC, ELASTIC_STEP)):
            changes = []
            for way, (size, _, framed) in self.lengths(kind).items():
                places = [*range(0, size - framed, DIALOGUE_STEP), *range(size - framed, size, step)]
                changes += [Change(way, "half" if at % 2 else "cut", at) for at in places]
            self.spoil_all(kind, changes)

    def test_bits(self):
        print(f"HVDRUN_SECURITY_SEED={SEED}", flush=True)
        draw = random.Random(SEED)
        for way, (_, _, framed) in self.lengths(STATIC).items():
            self.spoil_all(STATIC, [Change(way, "flip", draw.randrange(framed), draw.randrange(8)) for _ in range(FLIPS)])


if __name__ == "__main__":
    main()
