#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the shape of the house, prints it, and fails where it is above the limits of LIMITS.

A *node* is X.c with X.h. What the path of a request enters is found in the text of the sources:
- PATHS has each path as *legs*. A leg begins in a function that the event loop, a thread or a table of functions
  calls. It goes on through all functions that this one calls by name, and so on.
- It ends at functions that hand the work on: those of HAND_ON, which wait until their caller has returned, and the
  ones that the leg names because they serve other requests or end the link. Such a function still counts.
- A call through a pointer ends a leg as well. What it reaches is the beginning of another leg.
- All nodes in which a function of some leg is defined count, except those of base/, which everything enters.

So the number is an upper bound for one request: it has each branch that the request could take.
The largest circle of calls needs --build: it comes from the symbol tables of the objects.
"""
import pathlib
import re

import layers
import symbols
import tree

# What is measured: (limit, goal, what it is). A limit is the number of the day on which it was set; those of lines and
# files leave room for a feature (1,500 lines, 12 files). A commit that lowers a number lowers its limit too, and one
# that must raise a limit says why. Both paths are at their goals, a third below their first limits, which were 44
# (output) and 85 (stacks).
LIMITS = {
    "lines": (155500, 116000, "raw lines of .c and .h in launcher and runtime"),
    "files": (925, 950, "files"),
    "fields": (35, 35, "fields of struct job"),
    "includes": (11, 11, "includes of driver.c"),
    "output": (29, 29, "nodes that a line of output enters"),
    "stacks": (58, 58, "nodes that 'hvdrun stacks' enters"),
    "circle": (0, 0, "nodes in the largest circle of calls"),
}

HAND_ON = {"link_send", "link_send_message", "link_send_shared", "link_send_pieces", "link_data_commit",
           "link_data_splice", "node_link_send", "node_link_send_pieces", "post_message", "post_pieces", "log_debug", "log_info", "log_notice", "log_warning", "log_error"}
# (file, function where the leg begins, functions where it ends).
LINK = [
    ("launcher/io/link.c", "flush_deferred", ""),
    ("launcher/io/link.c", "link_readable", "link_ended"),
]
DRIVER_FRAME = [
    *LINK,
    ("launcher/driver/job/node_link.c", "link_frame", "on_hello on_farewell on_log on_heartbeat"),
    ("launcher/driver/job/job_nodes.c", "node_frame", "node_link_give_up"),
]
PATHS = {
    # From the pipe of a worker to the terminal and the log of the job.
    "output": [
        ("launcher/agent/stream.c", "stream_readable", "stream_end"),
        *DRIVER_FRAME,
        ("launcher/driver/run/job_output.c", "collect_bytes", ""),
        ("launcher/features/hang/hang_watch_driver.c", "output", ""),
        ("launcher/features/metrics/metrics_out_driver.c", "output", ""),
        ("launcher/output/mux.c", "on_piece", ""),
        ("launcher/driver/run/job_output.c", "keep", ""),
        ("launcher/driver/run/job_output.c", "output_consumed", ""),
        ("launcher/output/writer.c", "run", ""),
    ],
    # From the command to the memory of a worker's interpreter, and back to the command's output.
    "stacks": [
        ("launcher/features/hang/stacks_cli.c", "control_stacks", ""),
        ("launcher/driver/control/control.c", "connection_ready", ""),
        ("launcher/driver/control/control.c", "ready", ""),
        ("launcher/driver/job_control.c", "find_rule", ""),
        ("launcher/features/hang/stacks_driver.c", "stacks", ""),
        ("launcher/agent/agent.c", "link_frame", "agent_end_breach"),
        ("launcher/agent/orders.c", "ask", "agent_end_breach"),
        ("launcher/features/stacks/state_desk_agent.c", "answer", ""),
        ("launcher/features/stacks/stack_helper_agent.c", "serve", "number_calls"),
        ("launcher/features/stacks/stack_pool_agent.c", "answer_ready", ""),
        ("launcher/features/stacks/state_desk_agent.c", "stacks_are_read", ""),
        *DRIVER_FRAME,
        ("launcher/driver/job/ask.c", "ask_take", ""),
        ("launcher/features/hang/stacks_driver.c", "looked", ""),
        ("launcher/driver/control/control.c", "later_answered", ""),
    ],
}

# A function as clang-format leaves it: a head that begins in the first column, and braces there.
FUNCTION = re.compile(r"^(?P<head>[A-Za-z_][^\n;={}#]*(?:\n[ \t][^\n;{}]*)*)\n\{\n(?P<body>.*?)^\}", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"(?<!->)(?<!\.)\b(?!__attribute__\b)(\w+)\s*\(")


class Functions:
    """Every function of the launcher, and what it calls by name."""

    def __init__(self, source):
        self.bodies, self.static, self.shared, self.called = {}, {}, {}, {}
        for name in source.matching((".c", ".h"), ("launcher/", *symbols.SHARED)):
            for match in FUNCTION.finditer(source.text(name)):
                head = NAME.search(match["head"])
                if head is None:
                    continue
                self.bodies[name, head[1]] = match["body"]
                if match["head"].startswith("static") and not name.endswith(".h"):
                    self.static[name, head[1]] = (name, head[1])
                else:
                    self.shared[head[1]] = (name, head[1])

    def calls(self, function):
        if function not in self.called:
            words = NAME.findall(tree.blank_comments(self.bodies[function], strings=True))
            found = (self.static.get((function[0], word)) or self.shared.get(word) for word in words)
            self.called[function] = {callee for callee in found if callee}
        return self.called[function]

    def leg(self, file, first, ends):
        """All functions of it; None: it begins nowhere."""
        if (file, first) not in self.bodies:
            return None
        ends, found, work = HAND_ON.union(ends.split()), {(file, first)}, [(file, first)]
        while work:
            for callee in self.calls(work.pop()) - found:
                found.add(callee)
                if callee[1] not in ends:
                    work.append(callee)
        return found


def entered(functions, legs, findings):
    """The nodes of a path."""
    nodes = set()
    for file, first, ends in legs:
        leg = functions.leg(file, first, ends)
        if leg is None:
            findings.add("tests/lint/house.py", 0, f"PATHS begins a leg in {first}() of {file}, which is not there any more")
        nodes.update(layers.node_of(name) for name, _ in leg or () if not name.startswith("runtime/base/"))
    return nodes


def fields_of(text, struct):
    """How many members a struct has: `int a, *b;` are two."""
    match = re.search(rf"^struct {struct} \{{\n(.*?)^\}}", tree.blank_comments(text), re.MULTILINE | re.DOTALL)
    members = re.sub(r"\([^()]*\)|\{[^{}]*\}", "", match[1] if match else "").split(";")
    return sum(member.count(",") + 1 for member in members if member.strip())


def measure(source, findings, build):
    names = source.matching((".c", ".h"), ("launcher/", "runtime/"))
    functions = Functions(source)

    def text(name):
        return source.text(name) if name in names else ""

    found = {
        "lines": sum(source.text(name).count("\n") for name in names),
        "files": len(names),
        "fields": fields_of(text("launcher/driver/job/job.h"), "job"),
        "includes": len(re.findall(r'^#include "', text("launcher/driver/driver.c"), re.MULTILINE)),
    }
    for path, legs in PATHS.items():
        found[path] = len(entered(functions, legs, findings))
    if build:
        edges = {(layers.node_of(one), layers.node_of(other)) for one, other in symbols.calls(source.root, build)}
        found["circle"] = max((len(circle) for circle in layers.circles(edges)), default=0)
    return found


def report(numbers, findings, limits):
    for key, number in numbers.items():
        limit, goal, what = limits[key]
        print(f"{number:8}  limit {limit:6}  goal {goal:6}  {what}")
        if number > limit:
            findings.add("tests/lint/house.py", 0, f"{what}: {number}, and the limit is {limit}")


if __name__ == "__main__":
    parser = tree.arguments(__doc__)
    parser.add_argument("--build", help="the build folder (default: the circle is not measured)")
    parser.add_argument("--list", choices=PATHS, help="print the nodes of this path instead")
    options = parser.parse_args()
    sources, wrong = tree.Tree(options.root), tree.Findings()
    if options.list:
        print("\n".join(sorted(entered(Functions(sources), PATHS[options.list], wrong))))
    else:
        report(measure(sources, wrong, options.build and pathlib.Path(options.build)), wrong, LIMITS)
    wrong.finish("the house")
