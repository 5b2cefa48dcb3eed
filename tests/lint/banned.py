#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What our C does not do: calls without bounds or that block, assignments inside conditions, and
mutable variables outside functions.

The first two are found in the text of the sources. The variables come from symbol tables, so that no way of
writing one escapes. These are the tables of the rooms' static libraries in the build folder (--build), and of the
objects of modules and programs. `static` variables inside functions count too, because they are the same thing.
"""
import pathlib
import re
import subprocess

import tree

UNBOUNDED = "strcpy strcat stpcpy sprintf vsprintf strtok strtok_r gets sscanf atoi atol atof alloca"
SHELL = "system popen"
SLEEP = "sleep usleep nanosleep"
WALL = "clock_wall_ns gettimeofday"
# What differs between machines, and on one from day to day.
MACHINE_TIME = "clock_mono_ns clock_mono_ms clock_wall_ns clock_gettime gettimeofday time localtime localtime_r"
MACHINE_USER = "getuid geteuid getpwuid getpwnam getlogin"
MACHINE_SELF = "gethostname uname sysconf get_nprocs sched_getaffinity setlocale"
MACHINE_VARIABLES = r"HOME|USER|LOGNAME|SHELL|TMPDIR|TZ|LANG\w*|LC_\w+|XDG_\w+"
# Where each set is banned. A worker of the tests may sleep: misbehaving is what it is for.
BANS = [
    (UNBOUNDED, ("launcher/", "runtime/", "examples/", "tests/")),
    (SHELL, ("launcher/", "runtime/", "examples/", "tests/")),
    (SLEEP, ("launcher/", "runtime/", "examples/")),
    # A clock that is set must not change a limit: the day's time is for reports and events alone.
    (WALL, ("launcher/agent", "launcher/io/", "launcher/model/", "launcher/node/", "launcher/output/", "launcher/pmi",
            "launcher/rendezvous/", "launcher/transport/", "launcher/driver/job/node_link", "launcher/driver/reach/",
            "launcher/driver/start/", "launcher/driver/end/teardown", "launcher/driver/run/user_signals")),
    # The result of a unit test is the same on any machine.
    (f"{MACHINE_TIME} {MACHINE_USER} {MACHINE_SELF}", ("tests/unit/",)),
]
# (file, call) -> why.
ALLOWED = {
    ("launcher/agent/departure.c", "clock_wall_ns"): "the deadline that workers read is a time of the day",
    ("launcher/agent/crew_progress.c", "clock_wall_ns"): "the time of a file; a wrong one is not believed",
    ("launcher/features/evidence/host_evidence.c", "clock_wall_ns"): "lines of the kernel are compared with a report",
    ("launcher/features/check/check_agent.c", "clock_wall_ns"): "what it asks is how wrong that clock is",
    **{("tests/unit/clock.c", call): "the tests' own clock" for call in MACHINE_TIME.split()[:4]},
    ("tests/unit/line/test_reader.c", "clock_gettime"): "pthread_cond_timedwait() has a limit on that clock",
    ("tests/unit/features/stacks/test_stack_door.c", "geteuid"): "only root can become another user, who is refused",
    ("tests/unit/cli/test_control_command.c", "clock_wall_ns"): "a job of long ago has no record any more",
    ("tests/unit/cli/test_control_command.c", "geteuid"): "only root has jobs of other users to refuse",
    ("tests/unit/cli/test_control_slurm.c", "geteuid"): "only root may mean the job of another user",
    ("tests/unit/driver/test_control.c", "geteuid"): "only root can become another user, who is refused",
    ("tests/unit/io/test_child.c", "geteuid"): "root becomes another user, who may not do everything",
    ("tests/unit/io/test_child.c", "getuid"): "the same, when it is one",
    ("tests/unit/node/test_facts.c", "gethostname"): "the facts of this machine are tested",
    ("tests/unit/node/test_facts.c", "uname"): "the facts of this machine are tested",
    ("tests/unit/node/test_health.c", "geteuid"): "the name of the user's folder has the number",
    ("tests/unit/node/test_is_local.c", "gethostname"): "what is local depends on this name",
    ("tests/unit/node/test_runtime_dir.c", "geteuid"): "the name of the user's folder has the number",
    ("tests/unit/pmix/test_server.c", "gethostname"): "PMIx clients look for the name of this host",
    ("tests/unit/pmix/test_server.c", "getuid"): "PMIx clients are this user",
    ("tests/unit/rendezvous/test_peer.c", "geteuid"): "the owner of a connection is tested",
    ("tests/unit/rendezvous/test_server.c", "geteuid"): "only root can become another user, who is refused",
    ("tests/unit/ssh/ssh_fixture.h", "geteuid"): "sshd needs a folder when it runs as root",
    ("tests/unit/ssh/test_session.c", "getpwuid"): "who logs in is this user",
    ("tests/unit/ssh/test_session.c", "getuid"): "who logs in is this user",
    ("tests/unit/stacks/test_native.c", "geteuid"): "only root can become another user, who is refused",
    ("tests/unit/stacks/test_process.c", "geteuid"): "only root can become another user, who is refused",
    ("tests/unit/transport/ssh_fixture.h", "getpwuid"): "who logs in is this user",
    ("tests/unit/transport/ssh_fixture.h", "getuid"): "who logs in is this user",
    ("tests/unit/transport/test_boot.c", "geteuid"): "the name of the user's folder has the number",
    ("tests/unit/transport/test_image_facts.c", "uname"): "the facts of this machine are tested",
}
INSTEAD = {
    "sprintf": "buf_printf or snprintf", "vsprintf": "buf_vprintf or vsnprintf",
    "strcpy": "mem_strdup or a struct buf", "strcat": "a struct buf", "stpcpy": "a struct buf",
    "strtok": "strv_add_n", "strtok_r": "strv_add_n", "gets": "fgets",
    "sscanf": "base/parse.h", "atoi": "parse_int", "atol": "parse_int", "atof": "parse_double",
    "alloca": "mem_alloc", "system": "io/child.h", "popen": "io/child.h",
    "sleep": "a timer of the loop", "usleep": "a timer of the loop",
    "nanosleep": "a timer of the loop", "clock_wall_ns": "clock_mono_ns", "gettimeofday": "clock_mono_ns",
}

# Variables that may change although they stand outside functions: (room, symbol) -> why.
MUTABLE_ALLOWED = {
    ("pmix", "process"): "PMIx calls back without a context, and can be started once in a process",
    ("pmix", "operations"): "PMIx_server_init() takes a table that is not const",
    ("api", "attached"): "the timeline and the line of the one library that a process has",
    **{("features", name): "a parallel debugger reads and writes variables of these names (MPIR)" for name in (
        "MPIR_proctable", "MPIR_proctable_size", "MPIR_being_debugged", "MPIR_debug_state", "MPIR_debug_abort_string",
        "MPIR_i_am_starter", "MPIR_partial_attach_ok", "MPIR_force_to_main")},
    ("loop", "library"): "the library's one context: the functions of hvd.h have none as an argument",
    ("loop", "last_error"): "the text of hvd_error_text(), for each thread",
}


def instead_of(name, call):
    if not name.startswith("tests/unit/") or call in UNBOUNDED.split() + SHELL.split():
        return INSTEAD[call]
    return "unit_clock_stop() or unit_limit_ms()" if call in MACHINE_TIME.split() else "what the test sets itself"


def banned_in(name):
    calls = [word for words, places in BANS if name.startswith(places) for word in words.split()
             if (name, word) not in ALLOWED]
    return re.compile(r"(?<![\w.>])(" + "|".join(calls) + r")\s*\(")


def closing(text, start):
    """Offset of the parenthesis that closes the one at `start`."""
    depth = 0
    for i in range(start, len(text)):
        if text[i] in "({[":
            depth += 1
        elif text[i] in ")}]":
            depth -= 1
            if depth == 0:
                return i
    return len(text)


CONDITION = re.compile(r"\b(if|while)\s*\(")
VARIABLE = re.compile(rf'\bgetenv\("({MACHINE_VARIABLES})"\)')
ASSIGNMENT = re.compile(r"(?<![=!<>])(?:<<|>>|[-+*/%&|^])?=(?!=)")


def check_text(source, findings):
    for name, call in ALLOWED:
        if name in source.files and not re.search(rf"\b{call}\s*\(", source.text(name)):
            findings.add("tests/lint/banned.py", 0, f"ALLOWED names {call}() in {name}, which does not call it any more")
    names = source.matching((".c", ".cc", ".h"), ("launcher/", "runtime/", "examples/", "tests/"))
    for name in names:
        text = tree.blank_comments(source.text(name), strings=True)
        for match in banned_in(name).finditer(text):
            findings.add(name, tree.line_of(text, match.start()),
                         f"{match[1]}() is banned: use {instead_of(name, match[1])}")
        if name.startswith("tests/unit/"):
            for match in VARIABLE.finditer(tree.blank_comments(source.text(name))):
                findings.add(name, 0, f"the environment of the machine has another {match[1]}: set it in the test")
        for match in CONDITION.finditer(text):
            inside = text[match.end():closing(text, match.end() - 1)]
            inside = re.sub(r"\{[^{}]*\}", "", inside)  # designated initialisers are no assignments
            if ASSIGNMENT.search(inside):
                findings.add(name, tree.line_of(text, match.start()),
                             f"assignment inside the condition of {match[1]}")
    return len(names)


# One line of `objdump -t`: address, seven flag letters (O: an object), section, size, name.
SYMBOL = re.compile(r"^[0-9a-f]+ (.{7}) (\S+)\s+([0-9a-f]+)\s+(?:\.hidden )?(\S+)$")
# .data.rel.ro is constant once the program is loaded: tables of pointers.
MUTABLE_SECTION = re.compile(r"^\.(bss|tbss|tdata|data(?!\.rel\.ro)|[sl]data|[sl]bss)|^\*COM\*")
# Made by the sanitizers and by C++ (what it throws and catches, the start of <iostream>), not by us.
MADE_BY_COMPILER = re.compile(r"^(__odr_asan|__asan|__tsan|__gcov|\.L|_sub_[DI]_|\*\.L|Lubsan|\.Lubsan|DW\.ref\.|_ZStL8__ioinit$)")


def is_mutable(match):
    flags, section, size, name = match.groups()
    # thread-local symbols carry no O; a lower-case d marks the section itself
    is_object = "O" in flags or (section.startswith(".t") and "d" not in flags)
    return is_object and int(size, 16) > 0 and MUTABLE_SECTION.match(section) \
        and not MADE_BY_COMPILER.match(name)


def objects_outside_rooms(root, build):
    """(room, object) of modules and programs: LAYER/CMakeFiles/TARGET.dir/ROOM/NAME.c.o or .cc.o, if the
    source is still there."""
    for layer in ("launcher", "runtime"):
        for folder in sorted((build / layer).glob("CMakeFiles/*.dir")):
            for path in sorted((*folder.rglob("*.c.o"), *folder.rglob("*.cc.o"))):
                source = path.relative_to(folder).with_suffix("")
                if not folder.name.startswith("room_") and (root / layer / source).is_file():
                    yield source.parts[0], path


def check_symbols(root, build, findings):
    libraries = sorted(build.rglob("libroom_*.a"))
    places = [(library.stem.removeprefix("libroom_"), library) for library in libraries]
    places += objects_outside_rooms(root, build)
    rooms, used = {room for room, _ in places}, set()
    for room, place in places:
        listing = subprocess.run(["objdump", "-t", place], check=True, capture_output=True, text=True).stdout
        member = place.name
        for line in listing.splitlines():
            if ":     file format" in line:
                member = line.split(":")[0].rpartition("/")[2]
            match = SYMBOL.match(line)
            if match is None or not is_mutable(match):
                continue
            symbol = re.sub(r"\.\d+$", "", match[4])  # of a static inside a function
            if (room, symbol) in MUTABLE_ALLOWED:
                used.add((room, symbol))
            else:
                findings.add(f"{room}/{member}", 0, f"'{symbol}' is a variable outside functions "
                                                    f"that can change ({match[2]})")
    for room, symbol in MUTABLE_ALLOWED:
        if room in rooms and (room, symbol) not in used:
            findings.add("tests/lint/banned.py", 0, f"MUTABLE_ALLOWED names {room}/{symbol}, which "
                                                    "is not there any more")
    if not libraries:
        findings.add(str(build), 0, "no libroom_*.a in this build folder: build first")


if __name__ == "__main__":
    parser = tree.arguments(__doc__)
    parser.add_argument("--build", help="the build folder (default: look at the sources only)")
    options = parser.parse_args()
    found = tree.Findings()
    count = check_text(tree.Tree(options.root), found)
    if options.build:
        check_symbols(pathlib.Path(options.root), pathlib.Path(options.build), found)
    found.finish(f"{count} files")
