#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks of this folder find what they look for: each is run over a small good tree, which must
pass, and over the same tree with one thing spoilt, which must not, and for the right reason."""
import contextlib
import io
import pathlib
import runpy
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import house  # noqa: E402
import tree  # noqa: E402
SPDX_C = "/* SPDX-License-Identifier: Apache-2.0 */\n"
SPDX_PY = "# SPDX-License-Identifier: Apache-2.0\n"
SKIPPED = 77

GOOD = {
    "runtime/base/error.h": SPDX_C + "#pragma once\n\nstruct error;\n",
    "runtime/base/status.h": SPDX_C + '#define STATUS_LIST(X) X(STATUS_USAGE, 2, "wrong use")\n',
    "runtime/include/hvd_env.h": SPDX_C + "#pragma once\n",
    "runtime/core/tensor.c": SPDX_C + '#include "base/error.h"\n',
    "launcher/model/plan/plan.h": SPDX_C + '#pragma once\n\n#include "base/error.h"\n',
    "launcher/model/plan/plan.c": SPDX_C + '#include "model/plan/plan.h"\n\n#include <string.h>\n',
    "launcher/io/loop.c": SPDX_C + '#include <event2/event.h>\n',
    "launcher/io/loop.h": SPDX_C + '#include "model/plan/plan.h"\n',
    "launcher/node/cpu.h": SPDX_C + '#include "io/loop.h"\n',
    "launcher/output/sink.h": SPDX_C + '#include "io/loop.h"\n',
    "launcher/cli/main.c": SPDX_C + '#include "include/hvd_env.h"\n#include "node/cpu.h"\n'
                                    '#include "output/sink.h"\n',
    "docs/exit-status.md": "# Exit status\n\n| status | meaning |\n| --- | --- |\n| 2 | wrong use |\n",
    "README.md": "# Top\n\nSee [statuses](docs/exit-status.md#exit-status) and [below](#the-end-of-it).\n"
                 "`[not](a-link)` <https://example.org>\n\n## The end of it\n",
    "tool.sh": "#!/bin/sh\n" + SPDX_PY + 'echo "$1"\n',
    ".clang-format": "BasedOnStyle: LLVM\nIndentWidth: 4\n",
}


class Tree:
    """A temporary source tree; add() writes a file into it."""

    def __init__(self, files):
        self.folder = tempfile.TemporaryDirectory(prefix="hvdrun-lint-")
        self.root = pathlib.Path(self.folder.name) / "tree"
        for name, text in files.items():
            self.add(name, text)

    def add(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, check, *more):
        """Exit status and output. A Python program runs in this process, since a new one costs more than the check."""
        if check.endswith(".sh"):
            ran = subprocess.run([HERE / check, self.root], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, timeout=60)
            return ran.returncode, ran.stdout
        output, status, argv = io.StringIO(), 0, sys.argv
        sys.argv = [check, "--root", str(self.root), *map(str, more)]
        try:
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                runpy.run_path(str(HERE / check), run_name="__main__")
        except SystemExit as end:
            status = end.code or 0
        finally:
            sys.argv = argv
        return status, output.getvalue()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()


class Lint(unittest.TestCase):
    def expect(self, check, status, text, changes=None, more=()):
        with Tree({**GOOD, **(changes or {})}) as built:
            got, output = built.run(check, *more)
        if got == SKIPPED:
            self.skipTest(output.strip())
        self.assertEqual(got, status, output)
        self.assertIn(text, output)

    def spoil(self, check, name, body, text):
        self.expect(check, 1, text, {name: body})


class Layers(Lint):
    def test_good(self):
        self.expect("layers.py", 0, "nothing found")

    def test_upward(self):
        self.spoil("layers.py", "launcher/model/plan/plan.c", SPDX_C + '#include "io/loop.h"\n',
                   "upward include, model (L1) must not know io (L3)")

    def test_upward_in_the_library(self):
        self.spoil("layers.py", "runtime/base/error.h", SPDX_C + '#include "core/x.h"\n',
                   '"core/x.h": no such file')
        self.expect("layers.py", 1, "upward include, base (L0) must not know core (L1)",
                    {"runtime/core/x.h": SPDX_C, "runtime/base/fd.c": SPDX_C + '#include "core/x.h"\n'})

    def test_sideways(self):
        self.spoil("layers.py", "launcher/output/sink.c", SPDX_C + '#include "node/cpu.h"\n',
                   "sideways include, output and node are both L4")

    def test_between_the_roots(self):
        self.expect("layers.py", 1, "launcher/ and runtime/ share only base and include",
                    {"runtime/core/x.h": SPDX_C,
                     "launcher/cli/main.c": SPDX_C + '#include "core/x.h"\n'})

    def test_folders(self):
        """In the order of FOLDERS, with `.` for the room's own files."""
        for name, header, text in (
                ("model/settings/x.c", "model/plan/plan.h", "upward include, model/settings must not know model/plan"),
                ("driver/run/x.c", "driver/driver.h", "upward include, driver/run must not know driver"),
                ("driver/run/x.c", "driver/mpi/y.h", "sideways include, driver/run must not know driver/mpi"),
                ("transport/dial.h", "transport/boot/y.h", "upward include, transport must not know transport/boot")):
            with self.subTest(name=name):
                one, other = name.rpartition(".")[0], header.rpartition(".")[0]
                changes = {f"launcher/{name}": SPDX_C + f'#include "{header}"\n', f"launcher/{header}": SPDX_C}
                self.expect("layers.py", 1, f"launcher/{name}:2: {one} -> {other}: {text}", changes)
                self.expect("layers.py", 0, "nothing found", changes, ["--allow", f"{one} -> {other}"])
        self.expect("layers.py", 0, "nothing found", {
            "launcher/driver/driver.c": SPDX_C + '#include "driver/job/job.h"\n', "launcher/driver/job/job.h": SPDX_C})
        self.spoil("layers.py", "launcher/model/attic/x.c", SPDX_C, "model/attic is not in FOLDERS")
        self.spoil("layers.py", "launcher/model/x.c", SPDX_C, "model is not in FOLDERS")

    def test_features(self):
        """X_agent, X_driver and X_cli of a feature are on top of these rooms; the core knows no feature."""
        for name, header, text in (
                ("driver/run/x.c", "features/a/y.h", "include of the feature a, which a build may leave out"),
                ("cli/x.c", "features/a/y_cli.h", "include of the feature a"),
                ("features/a/x.c", "driver/job/y.h", "upward include of driver/, which only X_driver of a feature may know"),
                ("features/a/x_agent.c", "driver/job/y.h", "upward include of driver/"),
                ("features/a/x_driver.c", "agent/y.h", "upward include of agent/"),
                ("features/a/x.c", "features/a/y_driver.h", "include of a file that is on top of driver/"),
                ("features/a/x.c", "features/b/y.h", "the feature a must not know b: see launcher/features/needs.txt")):
            with self.subTest(name=name, header=header):
                self.expect("layers.py", 1, f"{header}: {text}",
                            {f"launcher/{name}": SPDX_C + f'#include "{header}"\n', f"launcher/{header}": SPDX_C})
        for name, header in (("features/a/x.c", "node/y.h"), ("features/a/x_agent.c", "agent/y.h"),
                             ("features/a/x_cli.c", "driver/job/y.h"), ("features/a/x_cli.c", "features/a/y.h"),
                             ("features/metrics/x_driver.c", "features/usage/y_driver.h")):
            with self.subTest(name=name, header=header):
                self.expect("layers.py", 0, "nothing found",
                            {f"launcher/{name}": SPDX_C + f'#include "{header}"\n', f"launcher/{header}": SPDX_C,
                             "launcher/features/needs.txt": "# a comment\nmetrics usage: why\n"})
        self.spoil("layers.py", "launcher/features/hang/hang.c", SPDX_C + "#include <time.h>\n", "is pure: it must not include time.h")

    def test_features_are_listed(self):
        for path, text in (("launcher/cli/features.def", "FEATURE(a)"), ("docs/design.md", "| `a/` | x |")):
            for name, status in (("a", 0), ("b", 1)):
                self.expect("layers.py", status, "launcher/features/b is missing" if status else "nothing found",
                            {f"launcher/features/{name}/x.c": SPDX_C, path: SPDX_C + text + "\n"})

    def test_what_only_tests_use(self):
        """X_test.h belongs to X, so X.c may include it while it includes X.h."""
        self.expect("layers.py", 0, "nothing found", {
            "launcher/output/x.h": SPDX_C, "launcher/output/x_test.h": SPDX_C + '#include "output/x.h"\n',
            "launcher/output/x.c": SPDX_C + '#include "output/x.h"\n#include "output/x_test.h"\n'})

    def test_circle(self):
        self.expect("layers.py", 1, "circle of files: model/plan/a model/plan/b",
                    {"launcher/model/plan/a.h": SPDX_C + '#include "model/plan/b.h"\n',
                     "launcher/model/plan/b.h": SPDX_C + '  #  include "model/plan/a.h"\n'})

    def test_circle_of_calls(self):
        """No header includes itself, but what is called calls back."""
        changes = {"launcher/io/a.h": SPDX_C, "launcher/io/a.c": SPDX_C + '#include "io/a.h"\n#include "io/b.h"\n',
                   "launcher/io/b.h": SPDX_C, "launcher/io/b.c": SPDX_C + '#include "io/b.h"\n#include "io/c.h"\n',
                   "launcher/io/c.h": SPDX_C + '#include "io/c.def"\n', "launcher/io/c.def": SPDX_C + '#include "io/a.h"\n'}
        self.expect("layers.py", 1, "circle of files: io/a io/b io/c", changes)
        self.expect("layers.py", 0, "nothing found", changes, ["--allow", "io/c -> io/a"])
        self.expect("layers.py", 1, "circle of files: io/a io/b io/c", changes, ["--allow", "io/loop -> model/plan/plan"])

    def test_circle_of_folders(self):
        self.expect("layers.py", 1, "circle of folders: driver/elastic driver/job", {
            "launcher/driver/job/a.c": SPDX_C + '#include "driver/elastic/b.h"\n', "launcher/driver/elastic/b.h": SPDX_C,
            "launcher/driver/elastic/c.c": SPDX_C + '#include "driver/job/d.h"\n', "launcher/driver/job/d.h": SPDX_C})

    def test_what_is_allowed_must_be_needed(self):
        for edge in ("io/loop -> model/plan/plan", "io/gone -> io/never"):
            self.expect("layers.py", 1, f"ALLOWED names {edge}, which is not needed any more", None, ["--allow", edge])

    def test_picture(self):
        self.expect("layers.py", 0, '"io/loop" -> "model/plan/plan";', None, ["--dot"])
        self.expect("layers.py", 0, 'subgraph "cluster_model/plan"', None, ["--dot", "files"])
        self.expect("layers.py", 0, '"io" -> "model/plan";', None, ["--dot", "folders"])

    def test_fences(self):
        for name, header in (("launcher/agent/x.c", "event2/event.h"), ("launcher/agent/x.c", "pmix.h"),
                             ("launcher/agent/x.c", "pmix_server.h"), ("launcher/driver/x.c", "yaml.h"),
                             ("launcher/driver/x.c", "ini.h"), ("launcher/io/x.c", "libssh2.h"),
                             ("launcher/io/x.c", "protobuf-c/protobuf-c.h"), ("launcher/io/x.c", "hwloc.h"),
                             ("launcher/driver/job/job.c", "jansson.h"), ("launcher/cli/x.c", "mpi.h"),
                             ("launcher/driver/x.c", "openssl/ssl.h")):
            with self.subTest(header=header):
                self.spoil("layers.py", name, SPDX_C + f"#include <{header}>\n", f"{header}: ")

    def test_inside_the_fence(self):
        self.expect("layers.py", 0, "nothing found",
                    {"launcher/pmix/module/server.c": SPDX_C + "#include <pmix_server.h>\n",
                     "launcher/driver/report.c": SPDX_C + "#include <jansson.h>\n",
                     "launcher/agent/pmix_glue.c": SPDX_C + '#include "pmix/bridge.h"\n',
                     "launcher/pmix/bridge.h": SPDX_C})

    def test_commented_out(self):
        self.expect("layers.py", 0, "nothing found",
                    {"launcher/model/plan/plan.c": SPDX_C + '/*\n#include "io/loop.h"\n*/\n'})

    def test_purity(self):
        self.spoil("layers.py", "launcher/model/plan/plan.c", SPDX_C + "#include <time.h>\n",
                   "model/ is pure: it must not include time.h")

    def test_spelling(self):
        self.spoil("layers.py", "launcher/model/plan/plan.c", SPDX_C + '#include "plan.h"\n',
                   'write it as "room/file.h"')
        self.spoil("layers.py", "launcher/model/plan/plan.c", SPDX_C + '#include "model/none.h"\n',
                   "no such file")

    def test_unknown_room(self):
        self.spoil("layers.py", "launcher/attic/x.c", SPDX_C, "launcher/attic is no room")

    def test_generated(self):
        text = SPDX_C + '#include "wire/control.pb-c.h"\n'
        self.expect("layers.py", 0, "nothing found", {"launcher/io/x.c": text})
        self.spoil("layers.py", "launcher/model/plan/x.c", text, "upward include")


def compile_all(built, sources):
    """Writes C sources into a tree, and their objects to where CMake puts them. The build folder."""
    build = built.root.parent / "out"
    for name, code in sources.items():
        built.add(name, SPDX_C + code)
        layer, _, short = name.partition("/")
        place = build / layer / f"CMakeFiles/room_{short.split('/')[0]}.dir" / f"{short}.o"
        place.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-c", built.root / name, "-o", place], check=True)
    return build


@unittest.skipIf(shutil.which("cc") is None or shutil.which("nm") is None, "no compiler")
class Calls(Lint):
    """What layers.py reads from objects: no include shows these calls."""

    def check(self, sources, status, text, more=()):
        with Tree(GOOD) as built:
            got, output = built.run("layers.py", "--build", compile_all(built, sources), *more)
        self.assertEqual(got, status, output)
        self.assertIn(text, output)

    def test_good(self):
        self.check({"launcher/node/a.c": "void b(void);\nvoid a(void) { b(); }\n", "launcher/io/b.c": "void b(void) {}\n"},
                   0, "includes and calls of")

    def test_circle(self):
        sources = {"runtime/loop/top.c": "void low(void);\nvoid hvd_bytes(void) {}\nvoid top(void) { low(); }\n",
                   "runtime/loop/low.c": "void hvd_bytes(void);\nvoid low(void) { hvd_bytes(); }\n"}
        self.check(sources, 1, "circle of files: loop/low loop/top\n    loop/low -> loop/top (hvd_bytes)\n")
        self.check(sources, 0, "nothing found", ["--allow", "loop/low -> loop/top"])

    def test_circle_with_an_include(self):
        """A file that implements a part of another one's header."""
        with Tree({**GOOD, "launcher/io/x.h": SPDX_C + "void x_part(void);\n"}) as built:
            build = compile_all(built, {
                "launcher/io/x.c": "void x_part(void);\nvoid x(void) { x_part(); }\n",
                "launcher/io/x_part.c": "void x_part(void) {}\n"})
            built.add("launcher/io/x_part.c", SPDX_C + '#include "io/x.h"\n')
            status, output = built.run("layers.py", "--build", build)
        self.assertEqual(status, 1, output)
        self.assertIn("circle of files: io/x io/x_part", output)

    def test_direction(self):
        low, high = "void high(void);\nvoid low(void) { high(); }\n", "void high(void) {}\n"
        self.check({"launcher/io/low.c": low, "launcher/node/high.c": high}, 1,
                   "launcher/io/low.c: node/high.c: upward call of high(), io (L3) must not know node (L4)")
        self.check({"launcher/driver/run/low.c": low, "launcher/driver/start/high.c": high}, 1,
                   "upward call of high(), driver/run must not know driver/start")

    def test_tables_of_features(self):
        """A table may name what a feature defines; nothing else may."""
        names, defines = "extern int a __attribute__((weak));\nint *b(void) { return &a; }\n", "int a;\n"
        for name, status in (("agent/parts", 0), ("agent/x", 1)):
            self.check({f"launcher/{name}.c": names, "launcher/features/x/y_agent.c": defines}, status,
                       "call of a() of the feature x" if status else "nothing found")

    def test_two_programs(self):
        """Both have a function of this name."""
        self.check({"launcher/io/low.c": "void same(void);\nvoid low(void) { same(); }\n",
                    "launcher/model/plan/same.c": "void same(void) {}\n", "runtime/core/same.c": "void same(void) {}\n"},
                   0, "nothing found")

    def test_no_objects(self):
        with Tree(GOOD) as built:
            status, output = built.run("layers.py", "--build", built.root)
        self.assertEqual(status, 1)
        self.assertIn("build first", output)


class Names(Lint):
    def both(self, one, other, text=None, places=("launcher/io/a.h", "launcher/node/b.h")):
        self.expect("names.py", 1 if text else 0, text or "nothing found",
                    {places[0]: SPDX_C + one, places[1]: SPDX_C + other})

    def test_good(self):
        self.both("struct a;\nstruct b { int c; };\nenum { D, E = 1 };\n#define F 1\n",
                  "struct a { struct b b; };\nenum g { H };\n#define I D\n")

    def test_double(self):
        self.both("struct a { int b; };\n", "struct a { int c; };\n",
                  "launcher/node/b.h:2: struct a is another one in launcher/io/a.h of the launcher")
        self.both("#define MOST 1\n", "enum { LEAST, MOST = (1 + 2) };\n", "b.h:2: MOST is another one")
        self.both("enum way { A };\n", "enum way { B };\n", "b.h:2: enum way is another one")

    def test_parameters_of_lists(self):
        """Undefined after the list, or called by the lines of a .def file."""
        self.both("#define X(a) a\n#undef X\n", "#define X(a) #a\n#undef X\n")
        self.expect("names.py", 0, "nothing found", {
            "launcher/io/a.def": "ROW(b, 1)\n", "launcher/io/a.h": SPDX_C + "#define ROW(a, b) a\n",
            "launcher/io/b.h": SPDX_C + "#define ROW(a, b) b\n"})

    def test_programs(self):
        code = "struct a { int b; };\n"
        self.both(code, code, places=("launcher/io/a.h", "runtime/core/b.h"))
        self.both(code, code, "a.h of libhvd", ("runtime/base/a.h", "runtime/core/b.h"))
        self.both(code, code, "of the launcher", ("launcher/io/a.h", "runtime/line/b.h"))


class House(unittest.TestCase):
    FILES = {
        "launcher/io/a.c": SPDX_C + "static void low(void)\n{\n    /* gone() */ text(\"gone()\");\n    b(1);\n}\n\n"
                                    "int a(int x,\n      int y)\n{\n    low();\n    link_send(x);\n    end();\n}\n",
        "launcher/io/b.c": SPDX_C + "static void low(void)\n{\n    gone();\n}\n\nvoid b(int x)\n{\n    mem_free();\n}\n",
        "launcher/io/link.c": SPDX_C + "void link_send(int x)\n{\n    gone();\n}\n",
        "launcher/io/end.c": SPDX_C + "void end(void)\n{\n    gone();\n}\n",
        "launcher/io/gone.c": SPDX_C + "void gone(void)\n{\n}\n",
        "runtime/base/mem.c": SPDX_C + "void mem_free(void)\n{\n}\n",
    }

    def test_path(self):
        """By names that are called, to where work is handed on; a static function is its own file's."""
        with Tree(self.FILES) as built:
            functions, found = house.Functions(tree.Tree(built.root)), tree.Findings()
            nodes = house.entered(functions, [("launcher/io/a.c", "a", "end")], found)
            self.assertEqual(nodes, {f"launcher/io/{name}" for name in ("a", "b", "link", "end")})
            self.assertEqual(found.lines, [])
            house.entered(functions, [("launcher/io/a.c", "never", "")], found)
            self.assertIn("never() of launcher/io/a.c, which is not there any more", found.lines[0])

    def test_fields(self):
        text = "struct job;\nstruct job {\n    int a, *b; /* c, d; */\n    void (*e)(int, int);\n    struct { int f; } g;\n};\n"
        self.assertEqual(house.fields_of(text, "job"), 4)
        self.assertEqual(house.fields_of(text, "other"), 0)

    def test_limits(self):
        for number, wrong in ((3, []), (4, ["tests/lint/house.py: things: 4, and the limit is 3"])):
            found, output = tree.Findings(), io.StringIO()
            with contextlib.redirect_stdout(output):
                house.report({"x": number}, found, {"x": (3, 1, "things")})
            self.assertEqual(found.lines, wrong)
            self.assertIn("limit      3  goal      1  things", output.getvalue())

    def test_every_number_has_a_limit(self):
        with Tree(self.FILES) as built:
            self.assertEqual({*house.measure(tree.Tree(built.root), tree.Findings(), None), "circle"}, set(house.LIMITS))


class Banned(Lint):
    def body(self, statement):
        return SPDX_C + f"int f(char *a, int b)\n{{\n    {statement}\n}}\n"

    def test_good(self):
        self.expect("banned.py", 0, "nothing found", {"launcher/io/good.c": self.body(
            'if (a == 0 || b != 1 || b <= 2) /* strcpy(a) */ return my_sleep(1), ops->system(a); '
            'while (put((struct x){.a = 1}) > 0) printf("sprintf(x) a = b"); // gets(a)')})

    def test_calls(self):
        for call in ("strcpy(a, a)", "sprintf (a, a)", "strtok(a, a)", "atoi(a)", "sscanf(a, a)",
                     "system(a)", "popen(a, a)", "usleep(1)", "sleep(1)", "alloca(1)", "gets(a)"):
            with self.subTest(call=call):
                self.spoil("banned.py", "launcher/io/bad.c", self.body(f"return {call};"),
                           f"bad.c:4: {call.partition('(')[0].strip()}() is banned")

    def test_tests_may_sleep_but_not_overflow(self):
        self.expect("banned.py", 0, "nothing found", {"tests/workers/x.c": self.body("sleep(1);")})
        self.spoil("banned.py", "tests/workers/x.c", self.body("strcpy(a, a);"), "strcpy() is banned")

    def test_limits_do_not_know_the_time_of_day(self):
        self.expect("banned.py", 0, "nothing found", {"launcher/driver/tell/events.c": self.body("clock_wall_ns();")})
        for name in ("launcher/agent/x.c", "launcher/io/x.c", "launcher/model/x.c", "launcher/driver/job/node_link.c"):
            with self.subTest(name=name):
                self.spoil("banned.py", name, self.body("clock_wall_ns();"), "clock_wall_ns() is banned: use clock_mono_ns")

    def test_unit_tests_do_not_read_the_machine(self):
        self.expect("banned.py", 0, "nothing found", {
            "tests/unit/io/x.c": self.body('char *a = getenv("PATH"); setenv("TZ", a, 1); unit_limit_ms(0);'),
            "launcher/io/x.c": self.body('char *a = getenv("HOME"); clock_mono_ns(); geteuid(); time(NULL);')})
        for call in ("clock_mono_ns()", "clock_gettime(CLOCK_MONOTONIC, a)", "time(NULL)", "geteuid()", "sysconf(1)"):
            with self.subTest(call=call):
                self.spoil("banned.py", "tests/unit/io/x.c", self.body(f"return {call};"), "() is banned: use ")
        for name in ("HOME", "TZ", "LC_ALL", "XDG_RUNTIME_DIR"):
            with self.subTest(name=name):
                self.spoil("banned.py", "tests/unit/io/x.c", self.body(f'return getenv("{name}") != 0;'),
                           f"has another {name}: set it in the test")

    def test_assignments(self):
        for statement in ("if (b = 1) return 1;", "while ((b = f(a, b)) != 0) ;", "if (b || (b |= 2)) ;",
                          "if (f(a,\n b = 3)) ;"):
            with self.subTest(statement=statement):
                self.spoil("banned.py", "launcher/io/bad.c", self.body(statement),
                           "bad.c:4: assignment inside the condition")


@unittest.skipIf(shutil.which("cc") is None or shutil.which("objdump") is None, "no compiler")
class Variables(Lint):
    def library(self, built, code):
        build = built.root.parent / "out"
        build.mkdir()
        (build / "x.c").write_text(code)
        subprocess.run(["cc", "-c", "-fPIC", "-fno-common", "x.c"], cwd=build, check=True)
        subprocess.run(["ar", "rc", "libroom_io.a", "x.o"], cwd=build, check=True)
        return build

    def check(self, code):
        with Tree(GOOD) as built:
            return built.run("banned.py", "--build", self.library(built, code))

    def test_constants_are_fine(self):
        status, output = self.check(
            "int f(void);\nstatic const int table[] = {1, 2};\nconst char *const names[] = {\"a\"};\n"
            "static int (*const calls[])(void) = {f};\n"
            "int f(void) { return table[0] + names[0][0] + (calls[0] != 0); }\n")
        self.assertEqual(status, 0, output)

    def test_variables_are_not(self):
        for code in ("int counter;", "static int counter = 3; int *f(void) { return &counter; }",
                     "_Thread_local int counter;", "const char *counter = \"\";",
                     "int f(void) { static int counter; return counter++; }"):
            with self.subTest(code=code):
                status, output = self.check(code + "\n")
                self.assertEqual(status, 1, output)
                self.assertIn("io/x.o: 'counter' is a variable outside functions", output)

    def test_modules(self):
        """Their objects lie where CMake puts them; one without a source is of an older build."""
        code = "int counter;\n"
        with Tree({**GOOD, "launcher/pmix/module/x.c": SPDX_C + code}) as built:
            build = self.library(built, "int f(void);\n")
            for name in ("x.c.o", "gone.c.o"):
                place = build / "launcher/CMakeFiles/hvdrun_pmix.dir/pmix/module" / name
                place.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cc", "-c", "-fno-common", "-xc", "-", "-o", place], input=code, text=True, check=True)
            status, output = built.run("banned.py", "--build", build)
        self.assertEqual(status, 1, output)
        self.assertIn("pmix/x.c.o: 'counter' is a variable outside functions", output)
        self.assertNotIn("gone.c.o", output)

    @unittest.skipIf(shutil.which("c++") is None, "no compiler of C++")
    def test_modules_in_cxx(self):
        fine = ("#include <iostream>\n#include <stdexcept>\nvoid g();\n"
                "int f() { try { g(); } catch (const std::exception &) { return 1; } return 0; }\n")
        for code, found in ((fine, False), (fine + "int *h() { static int counter; return &counter; }\n", True)):
            with self.subTest(found=found), Tree({**GOOD, "runtime/engine/gloo/x.cc": SPDX_C + code}) as built:
                build = self.library(built, "int f(void);\n")
                place = build / "runtime/CMakeFiles/hvd_gloo.dir/engine/gloo/x.cc.o"
                place.parent.mkdir(parents=True)
                subprocess.run(["c++", "-c", "-fPIC", "-xc++", "-", "-o", place], input=code, text=True, check=True)
                status, output = built.run("banned.py", "--build", build)
                self.assertEqual(status, int(found), output)
                self.assertEqual("engine/x.cc.o: " in output and "counter" in output, found, output)

    def test_no_library(self):
        with Tree(GOOD) as built:
            status, output = built.run("banned.py", "--build", built.root)
        self.assertEqual(status, 1)
        self.assertIn("build first", output)


class Words(Lint):
    def read(self, texts):
        """What is found in each of these pages, all of them read at once."""
        pages = {f"docs/x{i}.md": f"# A heading may be as it likes and is no sentence\n\n{text}\n" for i, text in enumerate(texts)}
        with Tree({**GOOD, **pages}) as built:
            status, output = built.run("words.py")
        found = [[line for line in output.splitlines() if line.startswith(f"{name}:")] for name in pages]
        self.assertEqual(status, int(any(found)), output)
        return found

    def test_good(self):
        many = " ".join(["word"] * 20)
        texts = ("One sentence, e.g. this.\nAnother one of 3.5 words.",
                 f"The options are: {many},\n{many},\n{many},\n{many}.",  # a list after a colon
                 f"- {many}\n- {many}\n1. {many}",
                 f"| {many} | {many} |\n|---|---|\n| {many} | {many}. Then {many}. |",
                 "```\nit is no sentence. It was told.\n```",
                 f"A `{many} {many}` is one word.",
                 "Nothing is left of it, and there is no more.",
                 "Who sent it?\nA process that knows who sent it.",
                 "See [this](README.md \"title\") and <https://example.org/a/very/long/one>.")
        for text, found in zip(texts, self.read(texts)):
            self.assertEqual(found, [], text)

    def test_sentences(self):
        cases = (("word " * 26 + ".", ":3: 26 words in a sentence"),
                 ("word\n" * 30 + ".", ":3: 30 words in a sentence"),
                 ("- " + "word " * 26, ":3: 26 words in a sentence"),
                 ("One. Two.", ":3: more than one sentence on a line"),
                 ("word `" + "x" * 120 + "` " + "word " * 20, ":3: 228 columns"),
                 ("wordy " * 21, ":3: 126 columns"))
        for (text, finding), found in zip(cases, self.read([text for text, _ in cases])):
            self.assertIn(finding, "\n".join(found), text)

    def test_words(self):
        texts = ("It is no sentence.", "The slot is put aside.", "The third strike.", "The host is left.", "It was told.",
                 "A made-up host.", "What stands here.", "Who reads it knows.", "It knows the host; who asks gets it.",
                 "It goes by itself.", "A host that is taken back.")
        for text, found in zip(texts, self.read(texts)):
            self.assertRegex("\n".join(found), r"^docs/x\d+\.md:3: '", text)

    def test_help(self):
        for text, status in (("Allow more workers than slots", 0), ("A host that is put aside", 1)):
            options = SPDX_C + f'OPTION(np, INT, 0, "put aside", "-np", "N", GROUP_JOB, 0, NONE,\n       "{text}")\n'
            self.expect("words.py", status, "option.def:3: 'put aside'" if status else "nothing found",
                        {"launcher/model/settings/option.def": options})

    def header(self, comment, text="", status=0):
        self.expect("words.py", status, text or "nothing found", {"launcher/io/x.h": SPDX_C + comment + "\nint put_aside;\n"})

    def test_headers(self):
        many, less = " ".join(["word"] * 25), " ".join(["word"] * 20)
        self.header(f"/* {many}. Another one. */")
        self.header(f"/* {many}. io_loop() is the next one. -1: an error. hvdrun {less}. */")
        self.header(f"/*\n * {less}\n * {less}.\n */", "launcher/io/x.h:2: 40 words in a sentence", 1)
        self.header("int x; /* The host is\n * put aside. */", "launcher/io/x.h:2: 'put aside'", 1)
        self.expect("words.py", 1, "runtime/core/x.h:1: 'put aside'", {"runtime/core/x.h": "/* It is put aside. */\n"})

    def test_openings(self):
        """Of a test or an example, the comment after the licence and no other one."""
        files = {"tests/unit/x.h": SPDX_C + "/* %s */\n", "examples/x.c": SPDX_C + "/* %s */\n",
                 "tests/flow/x.py": '# SPDX-License-Identifier: Apache-2.0\n"""%s"""\n',
                 "examples/x.sh": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n# %s\n"}
        for name, text in files.items():
            fine, more = text % "It is fine.", "\n/* It is put aside. */\n# It is put aside.\n"
            self.expect("words.py", 0, "nothing found", {name: fine + more})
            line = text.count("\n")
            self.expect("words.py", 1, f"{name}:{line}: 'put aside'", {name: text % "It is put aside."})

    def test_tables_in_headers(self):
        """A line with a gap is a row of a table, and each cell is a sentence of its own."""
        row = f" *   state   {' '.join(['word'] * 15)}   {' '.join(['word'] * 15)}\n"
        self.header(f"/*\n{row}{row}{row} */")
        self.header(f"/*\n{row} *   state   is put aside   next\n */", "launcher/io/x.h:4: 'put aside'", 1)

    def test_files_that_are_named(self):
        header = SPDX_C + "/* The host is\n * put aside. */\nint put_aside; /* fine */\n"
        self.expect("words.py", 0, "nothing found", {"other/x.h": header})
        self.expect("words.py", 1, "other/x.h:2: 'put aside'", {"other/x.h": header}, ["other/x.h"])


class Others(Lint):
    def test_format(self):
        self.expect("format.py", 0, "nothing found")
        self.spoil("format.py", "launcher/io/bad.c", SPDX_C + "int  f( void );\n",
                   "launcher/io/bad.c:2: not formatted")
        self.spoil("format.py", "launcher/io/bad.c", SPDX_C + "int f(int a, int b)\n{\n    return a && b<0, a> 0;\n}\n",
                   "launcher/io/bad.c:4: a comparison without blanks")

    def test_spdx(self):
        self.expect("spdx.py", 0, "nothing found")
        for name, body in (("launcher/io/bad.c", "int x;\n" + SPDX_C), ("bad.py", "#!/bin/sh\n\n" + SPDX_PY),
                           ("x/CMakeLists.txt", ""), ("launcher/io/bad.h", SPDX_PY)):
            with self.subTest(name=name):
                self.spoil("spdx.py", name, body, f"{name}:")

    def test_statuses(self):
        self.expect("docs.py", 0, "nothing found")
        self.spoil("docs.py", "docs/exit-status.md", "# Exit status\n\nSome 2 words.\n",
                   "no row that begins with 2 (STATUS_USAGE)")

    def test_lists_in_documents(self):
        good = {"launcher/wire/topic.h": SPDX_C + "    X(states, 1, request, report) \\\n    X(usage, 12, nothing, usage)\n",
                "launcher/cli/control_words.h": SPDX_C + '    X(CONTROL_PS,   "ps",  "", "List jobs") \\\n',
                "launcher/driver/x.c": SPDX_C + 'static const struct control_rule requests[] = {{"ps", ps},\n    {"stop", stop}, {NULL}};\n',
                "launcher/driver/x.h": SPDX_C + '/* {"do": "ps"}\n * {"do": "stop", "grace_s": 1} */\n',
                "docs/internals/protocol.md": "| 1 | states | x |\n| 12 | usage | x |\n", "docs/jobs.md": "| `hvdrun ps` | x |\n"}
        self.expect("docs.py", 0, "nothing found", good)
        for name, old, text in (("docs/internals/protocol.md", "| 12 | usage", "no row for usage of launcher/wire/topic.h"),
                                ("docs/jobs.md", "hvdrun ps", "no row for ps of launcher/cli/control_words.h"),
                                ("launcher/driver/x.h", '"do": "stop"', "launcher/driver/x.c: no header shows the request stop")):
            with self.subTest(name=name):
                self.expect("docs.py", 1, text, {**good, name: good[name].replace(old, "x")})

    def test_claims(self):
        tests = {"tests/unit/io/test_link.c": SPDX_C + "static void test_a(void **state)\n{\n}\n\nstatic void test_b(void **state)\n{\n}\n"
                                              "tests[] = {cmocka_unit_test(test_a)};\n",
                 "tests/flow/test_x.py": SPDX_PY + "class One:\n    def test_c(self):\n        pass\n\n\nclass Two:\n    pass\n",
                 "tests/fuzz/fuzz_y.c": SPDX_C}
        head = "| claim | tests |\n|---|---|\n"
        self.expect("claims.py", 0, "0 tests")
        self.expect("claims.py", 0, "3 tests", {
            **tests, "docs/internals/claims.md": f"{head}| it holds | `unit.io.link test_a`, `flow.x One.test_c`, `fuzz.y` |\n"})
        for row, text in (("| it holds | none |", "docs/internals/claims.md:3: a claim without a test"),
                          ("| it holds | `unit.io.link test_z` |", "not in tests/unit/io/test_link.c"),
                          ("| it holds | `unit.io.link test_b` |", "not in tests/unit/io/test_link.c"),
                          ("| it holds | `flow.x Two.test_c` |", "not in tests/flow/test_x.py"),
                          ("| it holds | `fuzz.z` |", "there is no tests/fuzz/fuzz_z.c"),
                          ("| it holds | `test_a` |", "is no name of a test")):
            with self.subTest(row):
                self.expect("claims.py", 1, text, {**tests, "docs/internals/claims.md": f"{head}{row}\n"})

    def test_links(self):
        self.spoil("docs.py", "docs/x.md", "[a](../nothing.md)\n", "docs/x.md:1: dead link")
        self.spoil("docs.py", "docs/x.md", "[a](exit-status.md#no)\n", "has no heading #no")
        self.spoil("docs.py", "docs/x.md", "[a][b]\n\n[b]: nothing.md\n", "docs/x.md:3: dead link")
        self.expect("docs.py", 0, "nothing found", {"docs/x.md": "```\n[a](nothing.md)\n```\n"})

    def test_versions(self):
        good = {"CMakeLists.txt": SPDX_PY + "project(hvdrun VERSION 1.2.3 LANGUAGES C)\n",
                "CHANGELOG.md": "# Changelog\n\n## [1.2.3] - unreleased\n\n## [1.2.2] - 2020-01-01\n",
                "docs/x.md": "Installs hvdrun_1.2.3_amd64.deb and prints hvdrun 1.2.3.\n"}
        self.expect("docs.py", 0, "nothing found", good)
        for name, body, text in (("CHANGELOG.md", "## [1.2.4]\n\n## [1.2.3]\n", "does not begin with 1.2.3"),
                                 ("CMakeLists.txt", SPDX_PY + "project(hvdrun LANGUAGES C)\n", "has no VERSION"),
                                 ("docs/x.md", "\nhvdrun 1.2.2\n", "docs/x.md:2: shows version 1.2.2, not 1.2.3")):
            with self.subTest(name=name):
                self.expect("docs.py", 1, text, {**good, name: body})

    def test_what_a_host_needs(self):
        self.spoil("docs.py", "docs/x.md", "It needs nothing\nbut a shell.\n", "docs/x.md:1: 'nothing")
        self.spoil("docs.py", "cmake/x.cmake", "Hosts need only a shell\n", "docs/install.md says what a host needs")
        self.expect("docs.py", 0, "nothing found", {"docs/x.md": "It opens a pipe to a shell.\n"})

    def test_places(self):
        with Tree(GOOD) as built:
            built.add("docs/x.md", f"first\nin {built.root}/docs\n")
            status, output = built.run("docs.py")
        self.assertEqual(status, 1, output)
        self.assertIn("docs/x.md:2: names a place of this machine", output)

    def test_shell(self):
        self.expect("shell.sh", 0, "1 files: nothing found")
        self.spoil("shell.sh", "bad.sh", "#!/bin/sh\n" + SPDX_PY + "echo $1\n", "SC2086")
        self.spoil("shell.sh", ".ci/run", "#!/usr/bin/env bash\ncd $1\n", "SC2086")


if __name__ == "__main__":
    unittest.main()
