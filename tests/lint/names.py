#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One name, one thing: two headers of one program do not both define a struct, union, enum, macro or constant of
the same name. A search for the one finds the other too, and no file can include both.

The launcher is one program, with the rooms of runtime/ that it shares; libhvd is another. Parameters of lists
may have any name. These are macros that a header undefines, or that the lines of a .def file call.
"""
import collections
import re

import tree

PROGRAMS = {
    "the launcher": ("launcher/", "runtime/base/", "runtime/include/", "runtime/line/"),
    "libhvd": ("runtime/",),
}
# (name, headers) -> why.
ALLOWED = {}

TAG = re.compile(r"\b(struct|union|enum)\s+(?:__attribute__\s*\(\([^()]*\)\)\s*)?(\w+)\s*\{")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
UNDEFINED = re.compile(r"^[ \t]*#[ \t]*undef[ \t]+(\w+)", re.MULTILINE)
CONSTANTS = re.compile(r"\benum\b[^;{}]*\{([^{}]*)\}")
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
CONSTANT = re.compile(r"\s*(\w+)\s*(?:=|$)")


def definitions(text, parameters):
    """(name, line) of all that a header defines."""
    own = parameters | set(UNDEFINED.findall(text))
    for match in MACRO.finditer(text):
        if match[1] not in own:
            yield match[1], tree.line_of(text, match.start(1))
    code = DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for match in TAG.finditer(code):
        yield f"{match[1]} {match[2]}", tree.line_of(code, match.start(2))
    for match in CONSTANTS.finditer(code):
        for item in re.sub(r"\([^()]*\)", "", match[1]).split(","):
            constant = CONSTANT.match(item)
            if constant:
                yield constant[1], tree.line_of(code, match.start(1))


def check(source, findings):
    headers = source.matching((".h",), ("launcher/", "runtime/"))
    lists = "\n".join(source.text(name) for name in source.matching((".def",), ("launcher/", "runtime/")))
    parameters, used = set(re.findall(r"^(\w+)\(", lists, re.MULTILINE)), set()
    found = {name: list(definitions(tree.blank_comments(source.text(name), strings=True), parameters)) for name in headers}
    for program, places in PROGRAMS.items():
        where = collections.defaultdict(dict)  # name -> {header: line}
        for header in headers:
            for name, line in found[header] if header.startswith(places) else ():
                where[name].setdefault(header, line)
        for name, lines in sorted(where.items()):
            if len(lines) < 2:
                continue
            if (name, " ".join(lines)) in ALLOWED:
                used.add((name, " ".join(lines)))
                continue
            first, *others = lines
            for header in others:
                findings.add(header, lines[header], f"{name} is another one in {first} of {program}: rename one, or share it")
    for name, places in ALLOWED:
        if (name, places) not in used and set(places.split()) <= set(headers):
            findings.add("tests/lint/names.py", 0, f"ALLOWED names {name}, which is not needed any more")
    return len(headers)


if __name__ == "__main__":
    options = tree.arguments(__doc__).parse_args()
    found = tree.Findings()
    count = check(tree.Tree(options.root), found)
    found.finish(f"{count} headers")
