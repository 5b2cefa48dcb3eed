#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents are true to the tree:
- every exit status of runtime/base/status.h has its row in docs/exit-status.md,
- every topic of wire/topic.h has one in docs/internals/protocol.md, every command of cli/control_words.h one in
  docs/jobs.md, and a header shows every request over the control socket,
- every relative link in a Markdown file leads to a file, and its #anchor to a heading,
- CHANGELOG.md begins with the version of CMakeLists.txt, and documents that show one show that one,
- nothing says that a host needs a shell alone: docs/install.md says what it needs,
- no file names a place of the machine it was written on.
"""
import pathlib
import re
import urllib.parse

import tree

STATUS = re.compile(r'\bX\(\s*(STATUS_\w+)\s*,\s*(\d+)\s*,')
FENCED = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
VERSION = re.compile(r"^project\(\w+ VERSION (\d+\.\d+\.\d+)", re.MULTILINE)
NEWEST = re.compile(r"^## \[([^\]]+)\]", re.MULTILINE)
SHOWN = re.compile(r"\bhvdrun[ _](\d+\.\d+\.\d+)")
CODE_SPAN = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[[^\]\[]*\]\(\s*<?([^)<>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)

# A list in the source, its entries, the page with a row for each, and how that begins.
LISTS = (("launcher/wire/topic.h", r"\bX\((\w+), (\d+),", "docs/internals/protocol.md", r"\| {1} \| {0} \|"),
         ("launcher/cli/control_words.h", r'\bX\(CONTROL_\w+, *"(\w+)"', "docs/jobs.md", r"\|[^|]*[ `]{0}\b"))
RULES = re.compile(r"\bcontrol_rule \w+\[\] = \{([^;]*)\};")

SHELL_ALONE = re.compile(r"\b(?:nothing\s+but|only|just)\s+a\s+shell\b")

# Folders that are on every machine: naming them gives nothing away.
EVERYWHERE = {"/", "/tmp", "/home", "/usr", "/usr/src", "/opt", "/srv", "/var", "/var/tmp", "/mnt"}


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def check_statuses(source, findings):
    header, page = "runtime/base/status.h", "docs/exit-status.md"
    if header not in source.files:
        return
    if page not in source.files:
        findings.add(page, 0, f"missing: it lists the exit statuses of {header}")
        return
    statuses = STATUS.findall(source.text(header))
    if not statuses:
        findings.add(header, 0, "no STATUS_LIST was found")
    text = source.text(page)
    for name, value in statuses:
        if not re.search(rf"^\|\s*`?{value}`?\s*\|", text, re.MULTILINE):
            findings.add(page, 0, f"no row that begins with {value} ({name})")


def check_lists(source, findings):
    for header, entries, page, row in LISTS:
        if header not in source.files:
            continue
        if page not in source.files:
            findings.add(page, 0, f"missing: it lists what {header} has")
            continue
        for entry in re.findall(entries, source.text(header)):
            words = [entry] if isinstance(entry, str) else entry
            if not re.search("^" + row.format(*words), source.text(page), re.MULTILINE):
                findings.add(page, 0, f"no row for {words[0]} of {header}")
    headers = "".join(source.text(name) for name in source.matching((".h",), ("launcher/",)))
    for name in source.matching((".c",), ("launcher/",)):
        for request in re.findall(r'\{"(\w+)"', "".join(RULES.findall(source.text(name)))):
            if f'{{"do": "{request}"' not in headers:
                findings.add(name, 0, f"no header shows the request {request}, as driver/control/request.h does")


def check_version(source, findings):
    if "CMakeLists.txt" not in source.files:
        return
    version = VERSION.search(source.text("CMakeLists.txt"))
    if version is None:
        findings.add("CMakeLists.txt", 0, "project() has no VERSION")
        return
    newest = NEWEST.search(source.text("CHANGELOG.md")) if "CHANGELOG.md" in source.files else None
    if newest is None or newest[1] != version[1]:
        findings.add("CHANGELOG.md", 0, f"does not begin with {version[1]}, the version of CMakeLists.txt")
    for name in source.matching((".md",), ("docs/", "README.md")):
        text = source.text(name)
        for match in SHOWN.finditer(text):
            if match[1] != version[1]:
                findings.add(name, tree.line_of(text, match.start()), f"shows version {match[1]}, not {version[1]}")


def anchors(text):
    """The anchors that a Markdown page offers, as GitHub makes them from its headings."""
    found = set()
    for heading in HEADING.findall(FENCED.sub(blank, text)):
        words = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        anchor, number = words, 0
        while anchor in found:
            number += 1
            anchor = f"{words}-{number}"
        found.add(anchor)
    return found


def check_links(source, findings):
    for name in source.matching((".md",)):
        text = CODE_SPAN.sub(blank, FENCED.sub(blank, source.text(name)))
        for match in [*LINK.finditer(text), *DEFINITION.finditer(text)]:
            target = urllib.parse.unquote(match[1])
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            path, _, anchor = target.partition("#")
            line = tree.line_of(text, match.start(1))
            place = (source.root / name).parent / path if path else source.root / name
            if not place.exists():
                findings.add(name, line, f"dead link: {target}")
            elif anchor and place.suffix == ".md" \
                    and anchor not in anchors(place.read_text(encoding="utf-8")):
                findings.add(name, line, f"dead link: {path or name} has no heading #{anchor}")


def check_needs(source, findings):
    """In documents, help and the description of the package."""
    for name in source.matching((".md", ".cmake", ".def", ".c"), ("README.md", "docs/", "cmake/", "launcher/")):
        text = source.text(name)
        for match in SHELL_ALONE.finditer(text):
            findings.add(name, tree.line_of(text, match.start()), f"'{match[0]}': docs/install.md says what a host needs")


def machine_places(root, home):
    """This tree, the folder around it and the home folder, as far as they say something."""
    places = {str(root), str(root.parent), str(home)}
    return sorted(place for place in places if place not in EVERYWHERE)


def check_places(source, places, findings):
    if not places:
        return
    pattern = re.compile(r"(?<![\w./-])(" + "|".join(map(re.escape, places)) + r")(?![\w-])")
    for name in source.files:
        if name.endswith((".csv", ".png", ".gz")):
            continue
        text = source.text(name)
        for match in pattern.finditer(text):
            findings.add(name, tree.line_of(text, match.start()),
                         f"names a place of this machine: {match[1]}")


if __name__ == "__main__":
    options = tree.arguments(__doc__).parse_args()
    tree_here = tree.Tree(options.root)
    found = tree.Findings()
    check_statuses(tree_here, found)
    check_lists(tree_here, found)
    check_version(tree_here, found)
    check_links(tree_here, found)
    check_needs(tree_here, found)
    check_places(tree_here, machine_places(tree_here.root, pathlib.Path.home()), found)
    found.finish(f"{len(tree_here.files)} files")
