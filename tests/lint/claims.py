#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each claim of docs/internals/claims.md names tests, and these are there:
- `unit.ROOM.NOUN test_x`: a function of tests/unit/ROOM/test_NOUN.c, or of that file in a folder of the room's,
- `flow.NAME Class.test_x`: a method of a class of tests/flow/test_NAME.py,
- `fuzz.NAME`: tests/fuzz/fuzz_NAME.c.
"""
import re

import tree

PAGE = "docs/internals/claims.md"
ROW = re.compile(r"^\|(?P<claim>[^|]+)\|(?P<tests>[^|]*)\|$")
NAMED = re.compile(r"`([^`]+)`")
UNIT = re.compile(r"unit\.(\w+?)\.(\w+) (test_\w+)")
FLOW = re.compile(r"flow\.(\w+) (\w+)\.(test_\w+)")
FUZZ = re.compile(r"fuzz\.(\w+)")


def problem(source, name):
    """Why there is no such test; None: there is."""
    unit, flow, fuzz = UNIT.fullmatch(name), FLOW.fullmatch(name), FUZZ.fullmatch(name)
    if unit:
        path = f"tests/unit/{unit[1]}/test_{unit[2]}.c"
        in_folder = re.compile(rf"tests/unit/{unit[1]}/\w+/test_{unit[2]}\.c")
        path = next(filter(in_folder.fullmatch, source.files), path)
        wanted = [rf"^static void {unit[3]}\(", rf"\(\s*{unit[3]}\b[^;]*[,)]"]
    elif flow:
        path = f"tests/flow/test_{flow[1]}.py"
        wanted = [rf"^class {flow[2]}\b(?:(?!^class )[\s\S])*?^    def {flow[3]}\("]
    elif fuzz:
        path, wanted = f"tests/fuzz/fuzz_{fuzz[1]}.c", []
    else:
        return "is no name of a test"
    if path not in source.files:
        return f"there is no {path}"
    text = source.text(path)
    if not all(re.search(one, text, re.MULTILINE) for one in wanted):
        return f"not in {path}"
    return None


def check(source, findings):
    """How many tests are named."""
    if PAGE not in source.files:
        return 0
    count, in_table = 0, False
    for number, line in enumerate(source.text(PAGE).splitlines(), 1):
        row = ROW.match(line)
        if row is None:
            in_table = False
            continue
        if row["claim"].strip() == "claim":
            in_table = True
        if not in_table or row["claim"].strip() == "claim" or set(row["claim"]) <= set("-: "):
            continue
        names = NAMED.findall(row["tests"])
        count += len(names)
        if not names:
            findings.add(PAGE, number, "a claim without a test")
        for name in names:
            why = problem(source, name)
            if why is not None:
                findings.add(PAGE, number, f"{name}: {why}")
    return count


if __name__ == "__main__":
    options = tree.arguments(__doc__).parse_args()
    found = tree.Findings()
    named = check(tree.Tree(options.root), found)
    found.finish(f"{named} tests of claims")
