#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source file says its licence in its first line (the second one of a script)."""
import re

import tree

IDENTIFIER = "SPDX-License-Identifier: Apache-2.0"
SUFFIXES = (".c", ".cc", ".h", ".def", ".proto", ".py", ".sh", ".cmake", "CMakeLists.txt", ".ci/run", ".in")
C_SUFFIXES = (".c", ".cc", ".h", ".def")


def licence_line(name, lines):
    """The number of the line that should hold the licence: after an interpreter line, and after the
    one that tells shellcheck which shell a sourced file is for (it must be the first)."""
    first = lines[0] if lines else ""
    return 1 if first.startswith(("#!", "# shellcheck ")) else 0


if __name__ == "__main__":
    options = tree.arguments(__doc__).parse_args()
    source = tree.Tree(options.root)
    findings = tree.Findings()
    names = source.matching(SUFFIXES)
    for name in names:
        lines = source.text(name).splitlines()
        at = licence_line(name, lines)
        line = lines[at] if at < len(lines) else ""
        wanted = rf"/\* {IDENTIFIER} \*/" if name.endswith(C_SUFFIXES) else rf".*{IDENTIFIER}\W*"
        if not re.fullmatch(wanted, line):
            findings.add(name, at + 1, f"this line must be the licence: {IDENTIFIER}")
    findings.finish(f"{len(names)} files")
