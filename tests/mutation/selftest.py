#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tool is run over a tiny tree, whose one unit test notices all changes but a known one."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import mutation
from changes import changes_of

HERE = pathlib.Path(__file__).resolve().parent
LIMITS_C = """#include "limits.h"

/* a < b, which is not code */
int limits_hold(int value, int most)
{
    return value >= 0 && value <= most;
}

int limits_count(int most)
{
    int count = 0;
    while (limits_hold(count, most))
        count++;
    return count;
}
"""
TREE = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.22)
project(tiny LANGUAGES C)
enable_testing()
add_library(room_toy STATIC launcher/toy/limits.c)
target_include_directories(room_toy PUBLIC launcher/toy)
add_executable(unit_toy tests/test_limits.c)
target_link_libraries(unit_toy PRIVATE room_toy)
add_test(NAME unit.toy.limits COMMAND unit_toy limits)
""",
    "launcher/toy/limits.h": "int limits_hold(int value, int most);\nint limits_count(int most);\n",
    "launcher/toy/limits.c": LIMITS_C,
    # Nothing here asks for limits_count(-1), so nobody notices a count that begins with 1.
    "tests/test_limits.c": """#include "limits.h"

int main(int count, char **words)
{
    if (count != 2 || words[1][0] != 'l')
        return 1;
    return limits_hold(0, 5) && limits_hold(5, 5) && !limits_hold(6, 5) && limits_count(3) == 4 ? 0 : 1;
}
""",
}


def changes(code):
    return sorted((change.kind, change.apply(code)) for change in changes_of("x.c", code))


class Changes(unittest.TestCase):
    def expect(self, code, *wanted):
        head, tail = "void f(void)\n{\n    ", "\n}\n"
        got = sorted(text[len(head):-len(tail)] for _, text in changes(head + code + tail))
        self.assertEqual(got, sorted(wanted))

    def test_operators(self):
        self.expect("if (a < b && c)\n        return;", "if (a <= b && c)\n        return;", "if (a < b || c)\n        return;")
        self.expect("if (!a)\n        return;", "if (a)\n        return;")
        self.expect("if (a)\n        return;", "if (!(a))\n        return;")
        self.expect("return a + 1;", "return a - 1;", "return a ;", "return a + 0;", "return 0;")
        self.expect("return a == b;", "return a != b;")

    def test_statements(self):
        self.expect("f(a);", ";")
        self.expect("a->b = c;", ";")
        self.expect("struct x *y = z;")
        self.expect("char *y = z;")
        self.expect("for (;;)\n        break;", "for (;;)\n        ;")
        self.expect("return 0;", "return -1;")
        self.expect("return true;", "return false;")

    def test_left_alone(self):
        for code in ("/* a < b */", "// a < b", "const char *g = \"a < b\";", "log_info(log, \"%d\", a < 1);", "assert(a < b);",
                     "_Static_assert(1 < 2, \"\");", "free(a);", "thing_destroy(a);", "\n#define A (1 + 2)\n"):
            with self.subTest(code):
                self.expect(code)

    def test_lines_stay(self):
        code = "int f(void)\n{\n    g(a,\n      b);\n    return h;\n}\n"
        for _, text in changes(code):
            self.assertEqual(text.count("\n"), code.count("\n"), text)

    def test_ids_are_stable(self):
        later = changes_of("launcher/toy/limits.c", "\n\n" + LIMITS_C)
        self.assertEqual([change.id for change in changes_of("launcher/toy/limits.c", LIMITS_C)], [change.id for change in later])
        self.assertEqual(len({change.id for change in later}), len(later))


class Equal(unittest.TestCase):
    def test_each_id_names_a_change(self):
        self.assertEqual(mutation.stale(HERE.parents[1]), {}, "remove these from equal.txt: their lines are others now")


class Tool(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hvdrun-mutation-selftest-")
        self.addCleanup(folder.cleanup)
        self.root, self.folder = pathlib.Path(folder.name) / "tree", pathlib.Path(folder.name)
        for name, text in TREE.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tool(self, *more, status=0, env=None):
        ran = subprocess.run([sys.executable, "-B", HERE / "mutation.py", "--root", self.root, "--work", self.folder / "work",
                              "--unprotected", "--jobs", "2", "--limit", "1", *more], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=120, env={**os.environ, **(env or {})})
        self.assertEqual(ran.returncode, status, ran.stdout)
        return ran.stdout

    def git(self, *command):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", self.root, *command],
                       check=True, capture_output=True)

    def test_survivors(self):
        results = self.folder / "results"
        output = self.run_tool("--room", "toy", "--count", "0", "--seed", "1", "--results", results)
        listed = re.findall(r"^launcher/toy/limits.c:(\d+): (\w+) \((\w+)\): nobody\n    -.*\n    \+(.*)$", output, re.MULTILINE)
        self.assertEqual([(line, after) for line, _, _, after in listed], [("11", "    int count = 1;")], output)
        self.assertRegex(output, r"(?m)^toy +\d+ ")

        name = listed[0][1]
        self.assertIn(f"limits.c:11: {name} (constant): nobody", self.run_tool("--only", name, "--at-least", "50", status=1))
        self.write("tests/test_limits.c", TREE["tests/test_limits.c"].replace("? 0 : 1", "&& limits_count(-1) == 0 ? 0 : 1"))
        self.assertNotIn("nobody\n", self.run_tool("--survivors", "--results", results, "--at-least", "100"))
        self.assertEqual([path.name for path in (self.folder / "work").glob("hvdrun-*")], [])

    def test_without_effect(self):
        known = next(change for change in changes_of("launcher/toy/limits.c", LIMITS_C) if change.line == 11)
        self.write("tests/mutation/equal.txt", f"# read\n{known.id} toy/limits.c: x -- why\n0123abcd toy/limits.c: y -- gone\n"
                                               "0123abce toy/other.c: z -- gone\n")
        output = self.run_tool("--room", "toy", "--count", "0")
        self.assertNotIn("limits.c:11", output)
        self.assertEqual(set(re.findall(r"equal.txt: (\w+) names no change of (\S+)", output)),
                         {("0123abcd", "toy/limits.c"), ("0123abce", "toy/other.c")}, output)

    def test_that_depends_on_its_place(self):
        """It would fail for each changed program, and seem to notice the change."""
        self.write("tests/test_limits.c", '''#include <string.h>
#include <unistd.h>

#include "limits.h"

int main(void)
{
    char path[4096] = "";
    return limits_count(3) == 4 && readlink("/proc/self/exe", path, sizeof(path) - 1) > 0 && strstr(path, "/plain/unit_toy") != NULL ? 0 : 1;
}
''')
        output = self.run_tool("--room", "toy", "--count", "0")
        self.assertIn("unit.toy.limits fails unchanged", output)
        self.assertRegex(output, r"(?m)^toy +0 +0 ")

    def compiler(self, condition):
        """As CC: a compiler that compiles a changed file only if the condition holds."""
        path = self.folder / "cc"
        path.write_text(f'#!/bin/sh\ncase "$*" in *changed.o*) {condition} || exit 1;; esac\nexec cc "$@"\n')
        path.chmod(0o755)
        return {"CC": str(path)}

    def test_no_cache_for_changed_files(self):
        """The compiler may be ccache, which cannot write its cache where changed programs run."""
        output = self.run_tool("--room", "toy", "--count", "0", env=self.compiler('[ -n "$CCACHE_DISABLE" ]'))
        self.assertIn("limits.c:11: ", output)

    def test_no_change_compiles(self):
        self.run_tool("--room", "toy", "--count", "0", "--at-least", "50", env=self.compiler("false"), status=1)

    def test_range(self):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "one")
        self.write("launcher/toy/limits.c", LIMITS_C.replace("int count = 0", "int count = 0 * most"))
        self.git("commit", "-qam", "two")
        self.assertIn("nothing to change", self.run_tool("--range", "HEAD..HEAD"))
        output = self.run_tool("--range", "HEAD~1..HEAD", "--count", "0")
        self.assertEqual(set(re.findall(r"limits.c:(\d+): ", output)), {"11"}, output)


if __name__ == "__main__":
    unittest.main()
