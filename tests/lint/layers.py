#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which file includes and calls which (docs/design.md, "Rooms and layers" and "Fences").

Reads every #include under launcher/ and runtime/. With --build, it also reads which file defines the functions
that another one calls, because a header can declare what any file defines. Fails on
- an include or a call of a higher layer, or of another room of the same layer,
- inside a room, one of a later folder, or of another folder of the same place in the order,
- a circle of files or of folders. X.c, X.h, X.def and X_test.h are one node: when a.c includes b.h and b.c
  includes a.h, that is a circle of calls, although no header includes itself,
- a third-party header outside the room it belongs to,
- a quoted include that is not written as "room/file.h", or names no file,
- a header in model/, wire/ or core/ that would make these rooms less than pure.

--dot files prints the graph of the nodes in Graphviz's language, clustered by folder; --dot folders
that of the folders.
"""
import pathlib
import re

import symbols
import tree

# A file may include its own room and rooms of a lower layer. launcher/ and runtime/ share
# some: they meet in base, in the names of environment variables (include), and in the packets between
# an agent and its workers (line).
LAYERS = {
    "launcher": [
        {"base", "include"},
        {"model", "line"},
        {"wire"},
        {"io"},
        {"node", "stacks", "transport", "output", "rendezvous", "pmix", "pmi1"},
        {"agent", "driver"},
        {"cli", "agent_main"},
    ],
    "runtime": [
        {"base", "include"},
        {"core", "line"},
        {"engine", "timeline"},
        {"loop", "elastic"},
        {"api"},
    ],
}
# launcher/features/NAME/ is a feature. X_agent, X_driver and X_cli are on top of these rooms, every other file is below
# them. Nothing outside includes a feature: these TABLES name it with weak symbols.
SIDES = {"agent": {"agent"}, "driver": {"driver"}, "cli": {"driver", "cli"}}
# The nodes that name features, with weak symbols.
TABLES = {"agent/parts", "agent_main/main", "cli/features", "driver/parts"}
FEATURES, DESIGN = "launcher/cli/features.def", "docs/design.md"
NEEDS = "launcher/features/needs.txt"  # which feature may know which other one

SHARED = {"base", "include", "line"}  # these live under runtime/

# The folders of a room, lowest first. Those of one set do not know each other; "." holds the files
# that lie in the room itself. A room that is not here has no folders.
FOLDERS = {
    "model": ["settings", "binding", "net", "hosts", "plan", "env", "exit", "progress", "allocation", "elastic", "usage"],
    "io": [".", "module"],
    "node": ["module", "."],
    "stacks": ["module", "."],
    "pmix": [".", "module"],
    "transport": [".", "boot", "exec", {"srun", "dial_in", "ssh_module"}, "ssh"],
    "driver": ["job", "tell", "end", "control", {"reach", "mpi", "run"}, "start", "elastic", "."],
    "cli": ["module", ".", "tools"],
    "engine": [".", {"mpi", "gloo", "nccl"}],
}

# Includes that break the order of folders or close a circle: "node -> node". What is not needed any
# more must go: the list only shrinks.
ALLOWED = """
"""

# Calls that the linker alone knows: "node -> node", and why. The list only shrinks, too.
ALLOWED_CALLS = {
    "agent/modules -> agent_main/modules_inside": "a weak name: only the program hvdrun-agent contains modules",
    "agent/worker -> agent_main/older_libc": "pidfd_open() is of libc, and hvdrun-agent has its own",
}

# Third-party headers, and the files ("room/...") that may include them.
FENCES = [
    ("libevent", r"event2/|event\.h$|ev(http|dns|rpc|util)\.h$", r"io/"),
    ("libssh2", r"libssh2", r"transport/ssh_module/"),
    ("PMIx", r"pmix", r"pmix/"),
    ("inih", r"ini\.h$|inih/", r"model/settings/ini_lines\.c$"),
    ("libyaml", r"yaml\.h$", r"cli/"),
    ("protobuf-c", r"protobuf-c/", r"wire/"),
    ("zlib", r"zlib\.h$", r"wire/packing\.c$"),
    ("jansson", r"jansson", r"(\w+/)+(\w*_)?(report|events|json|story|trace|dry_run|control|request)(_\w+)?\.[ch]$|agent/progress\.c$|driver/control/|features/"),
    ("hwloc", r"hwloc", r"node/module/"),
    ("ncurses", r"n?curses", r"cli/module/screen\.c$"),
    ("elfutils", r"elfutils/|dwarf\.h$|gelf\.h$|libelf\.h$", r"stacks/module/"),
    ("OpenSSL", r"openssl/", r"io/module/tls\.c$|transport/ssh_module/"),
    ("MPI", r"mpi\.h$", r"engine/mpi"),
    ("Gloo", r"gloo/", r"engine/gloo"),
    ("NCCL", r"nccl\.h$", r"engine/nccl"),
]

# No descriptor, no clock, no loop: what these rooms must not even see.
PURE_ROOMS = {"model", "wire", "core"}
# The same for what a feature has without _agent, _driver or _cli, but for these.
IMPURE_FILES = re.compile(r"features/(check/door|evidence/host_evidence|hang/ras_client|"
                          r"metrics/page|stacks/stack_door|stage/(copy|source|store|work_thread)|torch_store/torch_(look|server)|"
                          r"tree/tree_link|warm/holder)$")
IMPURE = re.compile(r"(base/(fd|clock|log)\.h|fcntl\.h|poll\.h|time\.h|pthread\.h|dirent\.h|netdb\.h|"
                    r"sys/(socket|time|epoll|wait|stat|select|mman|ioctl|uio|un)\.h)$")

# Written by the build (protoc-c makes it from wire/control.proto): belongs to its room all the same.
GENERATED = {"wire/control.pb-c.h": "launcher/wire/control.pb-c.h", "node/calls.def": "launcher/node/calls.def"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def node_of(short):
    """X.c, X.h and X.def are one, with X_test.h, which has what only tests use."""
    return re.sub(r"(_test)?\.[^./]*$", "", short)


def feature_of(short):
    """The feature of a file or node and the room it is on top of, or None: ("check", "driver")."""
    parts = node_of(short).split("/")
    side = parts[-1].rpartition("_")[2]
    return (parts[1], side if side in SIDES else None) if len(parts) > 2 and parts[0] == "features" else (None, None)


def folder_of(short):
    return short.rpartition("/")[0]


def place(short):
    """Where the folder of a file or node is in the order of its room; None: it is not in the table."""
    room, _, folder = folder_of(short).partition("/")
    if room == "features":
        return 0
    for number, folders in enumerate(FOLDERS.get(room, ["."])):
        if (folder or ".") in ({folders} if isinstance(folders, str) else folders):
            return number
    return None


def circles(edges):
    """The sets of nodes that reach each other (Tarjan's components of two nodes and more)."""
    following = {}
    for one, other in sorted(edges):
        following.setdefault(one, []).append(other)
        following.setdefault(other, [])
    number, low, stack, found = {}, {}, [], []

    def enter(node, work):
        number[node] = low[node] = len(number)
        stack.append(node)
        work.append((node, iter(following[node])))

    for start in following:
        work = []
        if start not in number:
            enter(start, work)
        while work:
            node, rest = work[-1]
            other = next(rest, None)
            if other is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        found.append(set(stack[at:]))
                    del stack[at:]
            elif other not in number:
                enter(other, work)
            elif other in stack:
                low[node] = min(low[node], number[other])
    return found


class Layers:
    def __init__(self, source, allowed, allowed_calls=()):
        self.source = source
        self.findings = tree.Findings()
        self.files = {}  # "room/file.h" -> its path in the tree
        for path in source.matching((".c", ".cc", ".h", ".def"), ("launcher/", "runtime/")):
            _, _, short = path.partition("/")
            if "/" in short:
                self.files[short] = path
        self.edges = {}  # (node, node) -> the line of the first such include; 0: a call
        self.paths = {}  # (node, node) -> the file that has it
        lines = source.text(NEEDS).splitlines() if NEEDS in source.files else []
        self.needs = {tuple(line.partition(":")[0].split()) for line in lines if line and not line.startswith("#")}
        self.called = {}  # (node, node) -> the functions, of a call without an include
        self.allowed = {tuple(line.split(" -> ")) for line in allowed}
        self.allowed_calls = {tuple(line.split(" -> ")) for line in allowed_calls}
        self.used = set()

    def layer(self, root, room):
        for number, rooms in enumerate(LAYERS[root]):
            if room in rooms:
                return number
        return None

    def check_file(self, short):
        path = self.files[short]
        root, room = path.split("/")[0], short.split("/")[0]
        if feature_of(short)[0] is not None:
            pass
        elif self.layer(root, room) is None or (root == "launcher" and room in SHARED):
            self.findings.add(path, 0, f"{root}/{room} is no room: add it to the table in "
                                       "tests/lint/layers.py and to docs/design.md")
            return
        text = tree.blank_comments(self.source.text(path))
        for match in INCLUDE.finditer(text):
            line = tree.line_of(text, match.start(1))
            self.check_fences(path, line, short, match[2])
            if (room in PURE_ROOMS or self.is_pure(short)) and IMPURE.match(match[2]):
                self.findings.add(path, line, f"{room}/ is pure: it must not include {match[2]}")
            if match[1] == '"':
                self.check_quoted(path, line, short, match[2])

    def is_pure(self, short):
        feature, side = feature_of(short)
        return feature is not None and side is None and not IMPURE_FILES.match(node_of(short))

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
        edge = (node_of(short), node_of(header))
        if edge[0] != edge[1]:
            self.edges.setdefault(edge, line)
            self.paths.setdefault(edge, path)
        self.check_direction(path, line, header, self.files[header])

    def add_calls(self, build):
        """Those that no include shows. A circle may consist of both."""
        edges = symbols.calls(self.source.root, build)
        if not edges:
            self.findings.add(str(build), 0, "no objects with calls in this build folder: build first")
        for (path, other), names in sorted(edges.items()):
            short, callee = path.partition("/")[2], other.partition("/")[2]
            edge = (node_of(short), node_of(callee))
            if edge[0] == edge[1] or edge in self.edges or (edge[0] in TABLES and feature_of(callee)[0]):
                continue
            if edge in self.allowed_calls:
                self.used.add(edge)
                continue
            self.edges[edge], self.paths[edge], self.called[edge] = 0, path, sorted(names)
            self.check_direction(path, 0, callee, other, f"call of {sorted(names)[0]}()")
        for edge in sorted(self.allowed_calls - self.used):
            self.findings.add("tests/lint/layers.py", 0,
                              f"ALLOWED_CALLS names {' -> '.join(edge)}, which is not needed any more")

    def check_direction(self, path, line, header, header_path, how="include"):
        root, room = path.split("/")[:2]
        other_root, other = header_path.split("/")[:2]
        if "features" in (room, other):
            self.check_feature(path, line, header, header_path, how)
            return
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
            self.findings.add(path, line, f"{header}: upward {how}, {room} (L{mine}) must not "
                                          f"know {other} (L{theirs})")
        elif theirs == mine:
            self.findings.add(path, line, f"{header}: sideways {how}, {room} and {other} are "
                                          f"both L{mine}")

    def check_feature(self, path, line, header, header_path, how):
        """An edge from or to a feature."""
        mine, side = feature_of(path.partition("/")[2])
        theirs, other_side = feature_of(header_path.partition("/")[2])
        room = header_path.split("/")[1]
        if mine is None:
            self.findings.add(path, line, f"{header}: {how} of the feature {theirs}, which a build may leave out")
        elif theirs is not None and mine != theirs and (mine, theirs) not in self.needs:
            self.findings.add(path, line, f"{header}: the feature {mine} must not know {theirs}: see {NEEDS}")
        elif theirs is not None:
            if other_side not in (None, side):
                self.findings.add(path, line, f"{header}: {how} of a file that is on top of {other_side}/")
        elif room not in SHARED and self.layer("launcher", room) >= self.layer("launcher", "agent") \
                and room not in SIDES.get(side, ()):
            self.findings.add(path, line, f"{header}: upward {how} of {room}/, which only X_{room} of a feature may know")

    def check_folders(self):
        """Each file is in a folder of the table, and includes earlier ones of its room."""
        for short, path in sorted(self.files.items()):
            if place(short) is None:
                self.findings.add(path, 0, f"{folder_of(short)} is not in FOLDERS of tests/lint/layers.py")
        for (one, other), line in sorted(self.edges.items()):
            if one.split("/")[0] != other.split("/")[0] or "features/" in one or None in (place(one), place(other)):
                continue
            mine, theirs = folder_of(one), folder_of(other)
            if mine == theirs or place(other) < place(one):
                continue
            how = "sideways" if place(one) == place(other) else "upward"
            self.complain((one, other), f"{how} {self.kind((one, other))}, {mine} must not know {theirs}")

    def kind(self, edge):
        return f"call of {self.called[edge][0]}()" if edge in self.called else "include"

    def complain(self, edge, message):
        if edge in self.allowed:
            self.used.add(edge)
        else:
            self.findings.add(self.paths[edge], self.edges[edge], f"{' -> '.join(edge)}: {message}")

    def check_circles(self):
        """Of nodes, then of folders: without the allowed includes there is none."""
        allowed = {edge for edge in self.edges if edge in self.allowed}
        for circle in circles(set(self.edges) - allowed):
            inside = [f"{' -> '.join(edge)} ({', '.join(self.called[edge])})" if edge in self.called else " -> ".join(edge)
                      for edge in sorted(self.edges) if circle.issuperset(edge)]
            self.findings.add("circle of files", 0, f"{' '.join(sorted(circle))}\n    " + "\n    ".join(inside))
        for circle in circles(set(self.edges)):
            self.used.update((one, other) for one, other in allowed if one in circle and other in circle)
        folders = {(folder_of(one), folder_of(other)) for one, other in set(self.edges) - allowed}
        for circle in circles({(one, other) for one, other in folders if one != other}):
            self.findings.add("circle of folders", 0, " ".join(sorted(circle)))

    def check_features(self):
        """Each folder of launcher/features is in cli/features.def, and in the table of docs/design.md."""
        folders = {feature_of(short)[0] for short in self.files} - {None}
        for path, pattern in ((FEATURES, r"^FEATURE\((\w+)\)"), (DESIGN, r"^\| `(\w+)/` \|")):
            if path in self.source.files:
                missing = folders - set(re.findall(pattern, self.source.text(path), re.MULTILINE))
                for name in sorted(missing):
                    self.findings.add(path, 0, f"the feature launcher/features/{name} is missing")

    def check_allowed(self):
        for edge in sorted(self.allowed - self.used):
            self.findings.add("tests/lint/layers.py", 0, f"ALLOWED names {' -> '.join(edge)}, which is not needed any more")

    def dot(self, what):
        """The graph in Graphviz's language."""
        edges = set(self.edges)
        if what == "folders":
            edges = {(folder_of(one), folder_of(other)) for one, other in edges}
            edges = {(one, other) for one, other in edges if one != other}
        print("digraph includes {\n    rankdir=BT; node [shape=box, fontname=monospace];")
        if what == "files":
            for folder in sorted({folder_of(short) for short in self.files}):
                print(f'    subgraph "cluster_{folder}" {{\n        label="{folder}";')
                for node in sorted({node_of(short) for short in self.files if folder_of(short) == folder}):
                    print(f'        "{node}" [label="{node.rpartition("/")[2]}"];')
                print("    }")
        for one, other in sorted(edges):
            print(f'    "{one}" -> "{other}";')
        print("}")

    def run(self, dot, build=None):
        for short in sorted(self.files):
            self.check_file(short)
        if build:
            self.add_calls(pathlib.Path(build))
        if dot:
            self.dot(dot)
            return
        self.check_folders()
        self.check_features()
        self.check_circles()
        self.check_allowed()
        self.findings.finish(f"includes{' and calls' if build else ''} of {len(self.files)} files")


if __name__ == "__main__":
    parser = tree.arguments(__doc__)
    parser.add_argument("--dot", choices=("files", "folders"), nargs="?", const="files", help="print the graph instead")
    parser.add_argument("--allow", action="append", metavar="'NODE -> NODE'", help="(default: those of ALLOWED)")
    parser.add_argument("--build", help="the build folder (default: read the includes only)")
    options = parser.parse_args()
    own = parser.get_default("root") == options.root
    if options.allow is None:
        options.allow = ALLOWED.split("\n")[1:-1] if own else []
    Layers(tree.Tree(options.root), options.allow, ALLOWED_CALLS if own and options.build else ()).run(options.dot, options.build)
