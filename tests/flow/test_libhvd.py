# SPDX-License-Identifier: Apache-2.0
"""libhvd as it is installed: a program finds it with pkg-config and with CMake, shared and static."""

import os
import re
import shutil
import subprocess

from rig import BUILD, Flow, main, sanitized

PROGRAM = """
#include <hvd.h>
#include <stdio.h>
int main(void) { printf("%zu %d\\n", hvd_type_bytes(HVD_FLOAT64), hvd_engine_built("self")); return 0; }
"""
GREEDY = """
#include <hvd.h>
#include <stdint.h>
int main(void)
{
    float one = 1;
    struct hvd_tensor tensor = {.size = sizeof tensor, .name = "one", .input = &one, .output = &one, .type = HVD_FLOAT32};
    if (hvd_init(0) != HVD_OK)
        return 1;
    return hvd_grouped_allreduce(&tensor, SIZE_MAX, 0);
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES C)
find_package(hvd 0.1 REQUIRED)
add_executable(shared main.c)
target_link_libraries(shared PRIVATE hvd::hvd)
add_executable(static main.c)
target_link_libraries(static PRIVATE hvd::hvd_static)
"""


class Libhvd(Flow):

    def setUp(self):
        super().setUp()
        if not os.path.exists(os.path.join(BUILD, "lib/libhvd.so")):
            self.skipTest("the build does not have libhvd")
        if sanitized():
            self.skipTest("a program without sanitizers cannot load a library with them")
        self.prefix, self.work = self.box.path("prefix"), self.box.path("work")
        os.makedirs(self.work)
        self.call("cmake", "--install", BUILD, "--prefix", self.prefix)
        with open(os.path.join(self.work, "main.c"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)

    def call(self, *command, **env):
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.work if os.path.isdir(self.work) else None,
                              env={**os.environ, **env}, timeout=60)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def find(self, pattern):
        found = [os.path.join(folder, name) for folder, _, names in os.walk(self.prefix) for name in names if re.fullmatch(pattern, name)]
        self.assertTrue(found, pattern)
        return found

    def test_pkg_config(self):
        folder = os.path.dirname(self.find(r"hvd\.pc")[0])
        flags = self.call("pkg-config", "--cflags", "--libs", "hvd", PKG_CONFIG_PATH=folder).split()
        self.call("cc", "main.c", "-o", "shared", *flags)
        self.assertEqual(self.call("./shared", LD_LIBRARY_PATH=os.path.dirname(folder)), "8 1\n")
        more = self.call("pkg-config", "--static", "--libs-only-l", "hvd", PKG_CONFIG_PATH=folder).replace("-lhvd", "").split()
        self.call("cc", "main.c", "-o", "static", flags[0], self.find(r"libhvd\.a")[0], *more)
        self.assertEqual(self.call("./static"), "8 1\n")

    def test_cmake(self):
        with open(os.path.join(self.work, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(PROJECT)
        self.call("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.call("cmake", "--build", "build")
        for name in ("shared", "static"):
            self.assertEqual(self.call(f"build/{name}"), "8 1\n")

    def test_no_memory_for_its_own_blocks(self):
        """The process ends, and the line says whose memory it was."""
        with open(os.path.join(self.work, "main.c"), "w", encoding="utf-8") as file:
            file.write(GREEDY)
        folder = os.path.dirname(self.find(r"hvd\.pc")[0])
        flags = self.call("pkg-config", "--cflags", "--libs", "--static", "hvd", PKG_CONFIG_PATH=folder).split()
        self.call("cc", "main.c", "-o", "shared", *flags)
        self.call("cc", "main.c", "-o", "static", flags[0], self.find(r"libhvd\.a")[0], *[flag for flag in flags[1:] if flag != "-lhvd"])
        for name in ("shared", "static"):
            env = {**os.environ, "LD_LIBRARY_PATH": os.path.dirname(folder)}
            done = subprocess.run([os.path.join(self.work, name)], capture_output=True, text=True, check=False, env=env, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (125, "libhvd: out of memory; this process ends\n"), name)

    def test_only_its_own_names_are_visible(self):
        for options, file in ((("-D",), self.find(r"libhvd\.so")[0]), (("-g",), self.find(r"libhvd\.a")[0])):
            names = re.findall(r"^[0-9a-f]+ [A-Z] (\S+)$", self.call("nm", *options, "--defined-only", file), re.M)
            self.assertTrue(names)
            self.assertEqual([name for name in names if not name.startswith("hvd_")], [], file)
        for module in self.find(r"hvd-\w+\.so"):
            names = re.findall(r"^[0-9a-f]+ T (\S+)$", self.call("nm", "-D", "--defined-only", module), re.M)
            self.assertEqual(names, ["hvd_engine_module"], module)

    def test_the_library_needs_neither_mpi_nor_gloo(self):
        needed = re.findall(r"NEEDED.*\[(\S+)\]", self.call("readelf", "-d", self.find(r"libhvd\.so")[0], LC_ALL="C"))
        system = r"lib(c|m|pthread|dl)\.so\.\d|ld-linux.*"  # the loader has the variables of threads
        self.assertEqual([name for name in needed if not re.fullmatch(system, name)], [])

    def pages(self):
        """The text of each man page by its name, in roff; a page that only names another one is that one."""
        texts = {}
        for path in self.find(r"hvd\w*\.3"):
            self.assertTrue(path.endswith("/man/man3/" + os.path.basename(path)), path)
            with open(path, encoding="utf-8") as file:
                texts[os.path.basename(path)[:-2]] = file.read()
        for name, text in texts.items():
            if text.startswith(".so "):
                texts[name] = texts[text.split("/")[1].rpartition(".")[0]]
                self.assertFalse(texts[name].startswith(".so "), name)
        return texts

    def test_each_function_has_a_man_page(self):
        pages = self.pages()
        exported = re.findall(r" T (hvd_\w+)$", self.call("nm", "-D", "--defined-only", self.find(r"libhvd\.so")[0]), re.M)
        self.assertIn("hvd_allreduce", exported)
        for name in exported:
            names, _, summary = pages[name].partition(".SH NAME\n")[2].partition("\n")[0].partition(" \\- ")
            self.assertIn(name, names.split(", "))
            self.assertRegex(summary, "^[a-z].*[a-z]", name)
            synopsis = pages[name].partition(".SH SYNOPSIS")[2].partition(".SH DESCRIPTION")[0]
            self.assertRegex(synopsis, rf"\b{name}\(")
        self.assertIn("Concatenates \\fIinput\\fP of all ranks", pages["hvd_allgather"])
        for constant in ("HVD_BFLOAT16", "HVD_ADASUM", "HVD_ERR_PEER_LOST", "HVD_NAME_MAX"):
            self.assertIn(f"\\fB{constant}\\fP (", pages["hvd"])

    def test_man_pages_name_pages_that_exist(self):
        pages = self.pages()
        for name, text in pages.items():
            for other in re.findall(r"\\fB(hvd\w*)\\fP\(3\)|^\.BR (hvd\w*) \(3\)", text, re.M):
                self.assertIn("".join(other), pages, name)

    def test_man_pages_are_right(self):
        if not shutil.which("groff") or not shutil.which("lexgrog"):
            self.skipTest("groff or man-db is not installed")
        for path in self.find(r"hvd\w*\.3"):
            with open(path, encoding="utf-8") as file:
                if file.read().startswith(".so "):
                    continue
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", path], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(" - ", self.call("lexgrog", path))


if __name__ == "__main__":
    main()
