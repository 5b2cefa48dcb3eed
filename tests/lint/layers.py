#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who includes whom (docs/design.md, "Rooms and layers" and "Fences").

Reads every #include under launcher/ and runtime/ and fails on
- an include of a higher layer, or of another room of the same layer,
- a cycle between files,
- a third-party header outside the room it belongs to,
- a quoted include that is not written as "room/file.h", or names no file,
- a header in model/ or wire/ that would make these rooms less than pure.
"""
import re

import tree

# A file may include its own room and rooms of a lower layer. launcher/ and runtime/ share the first
# two: they meet in base, and in the names of environment variables (include).
LAYERS = {
    "launcher": [
        {"base", "include"},
        {"model"},
        {"wire"},
        {"io"},
        {"node", "transport", "output", "rendezvous", "pmix", "pmi1"},
        {"agent", "driver"},
        {"cli", "agent_main"},
    ],
    "runtime": [
        {"base", "include"},
        {"core"},
        {"bootstrap"},
        {"control"},
        {"backend"},
        {"engine"},
        {"elastic"},
        {"api"},
    ],
}
SHARED = {"base", "include"}  # these live under runtime/

# Third-party headers, and the files ("room/...") that may include them.
FENCES = [
    ("libevent", r"event2/|event\.h$|ev(http|dns|rpc|util)\.h$", r"io/"),
    ("libssh2", r"libssh2", r"transport/ssh_module/"),
    ("PMIx", r"pmix", r"pmix/"),
    ("inih", r"ini\.h$|inih/", r"model/settings/ini_lines\.c$"),
    ("libyaml", r"yaml\.h$", r"cli/|model/hosts/hostfile_ini\.c$"),
    ("protobuf-c", r"protobuf-c/", r"wire/"),
    ("jansson", r"jansson", r"(\w+/)+(\w*_)?(report|events|json|story|trace|dry_run|control)(_\w+)?\.[ch]$|driver/control/"),
    ("hwloc", r"hwloc", r"node/"),
    ("OpenSSL", r"openssl/", r"io/module/tls\.c$|transport/ssh_module/|\w+/(hmac|hash)\.[ch]$"),
    ("MPI", r"mpi\.h$", r"backend/mpi"),
    ("Gloo", r"gloo/", r"backend/gloo"),
    ("NCCL", r"nccl\.h$", r"backend/nccl"),
]

# No descriptor, no clock, no loop: what these rooms must not even see.
PURE_ROOMS = {"model", "wire"}
IMPURE = re.compile(r"(base/(fd|clock|log)\.h|fcntl\.h|poll\.h|time\.h|pthread\.h|dirent\.h|netdb\.h|"
                    r"sys/(socket|time|epoll|wait|stat|select|mman|ioctl|uio|un)\.h)$")

# Written by the build (protoc-c makes it from wire/control.proto): belongs to its room all the same.
GENERATED = {"wire/control.pb-c.h": "launcher/wire/control.pb-c.h"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


class Layers:
    def __init__(self, source):
        self.source = source
        self.findings = tree.Findings()
        self.files = {}  # "room/file.h" -> its path in the tree
        for path in source.matching((".c", ".h", ".def"), ("launcher/", "runtime/")):
            _, _, short = path.partition("/")
            if "/" in short:
                self.files[short] = path
        self.edges = {short: [] for short in self.files}

    def layer(self, root, room):
        for number, rooms in enumerate(LAYERS[root]):
            if room in rooms:
                return number
        return None

    def check_file(self, short):
        path = self.files[short]
        root, room = path.split("/")[0], short.split("/")[0]
        if self.layer(root, room) is None or (root == "launcher" and room in SHARED):
            self.findings.add(path, 0, f"{root}/{room} is no room: add it to the table in "
                                       "tests/lint/layers.py and to docs/design.md")
            return
        text = tree.blank_comments(self.source.text(path))
        for match in INCLUDE.finditer(text):
            line = tree.line_of(text, match.start(1))
            self.check_fences(path, line, short, match[2])
            if room in PURE_ROOMS and IMPURE.match(match[2]):
                self.findings.add(path, line, f"{room}/ is pure: it must not include {match[2]}")
            if match[1] == '"':
                self.check_quoted(path, line, short, match[2])

    def check_fences(self, path, line, short, header):
        for name, pattern, allowed in FENCES:
            if re.match(pattern, header) and header not in self.files \
                    and not re.match(allowed, short):
                self.findings.add(path, line, f"{header}: {name} is fenced, only files that match "
                                              f"{allowed} may include it")

    def check_quoted(self, path, line, short, header):
        if header in GENERATED:
            self.check_direction(path, line, header, GENERATED[header])
            return
        if header not in self.files:
            hint = "no such file" if "/" in header else 'write it as "room/file.h"'
            self.findings.add(path, line, f'"{header}": {hint}')
            return
        self.edges[short].append(header)
        self.check_direction(path, line, header, self.files[header])

    def check_direction(self, path, line, header, header_path):
        root, room = path.split("/")[:2]
        other_root, other = header_path.split("/")[:2]
        if room == other and root == other_root:
            return
        if root != other_root and other not in SHARED:
            self.findings.add(path, line, f"{header}: {root}/ and {other_root}/ share only "
                                          "base and include")
            return
        mine, theirs = self.layer(root, room), self.layer(root, other)
        if theirs is None:
            return  # reported at that file
        if theirs > mine:
            self.findings.add(path, line, f"{header}: upward include, {room} (L{mine}) must not "
                                          f"know {other} (L{theirs})")
        elif theirs == mine:
            self.findings.add(path, line, f"{header}: sideways include, {room} and {other} are "
                                          f"both L{mine}")

    def check_cycles(self):
        """Depth-first search; an edge to a file on the current path closes a cycle."""
        done = set()
        for start in sorted(self.edges):
            path, iterators = [], []

            def enter(node):
                path.append(node)
                iterators.append(iter(self.edges[node]))

            if start not in done:
                enter(start)
            while path:
                following = next(iterators[-1], None)
                if following is None:
                    done.add(path.pop())
                    iterators.pop()
                elif following in path:
                    cycle = path[path.index(following):] + [following]
                    self.findings.add(self.files[path[-1]], 0, "cycle: " + " -> ".join(cycle))
                elif following not in done:
                    enter(following)

    def run(self):
        for short in sorted(self.files):
            self.check_file(short)
        self.check_cycles()
        self.findings.finish(f"includes of {len(self.files)} files")


if __name__ == "__main__":
    options = tree.arguments(__doc__).parse_args()
    Layers(tree.Tree(options.root)).run()
