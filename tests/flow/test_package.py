# SPDX-License-Identifier: Apache-2.0
"""The Debian package, made from this build: what is in it, what it asks for, and that it runs."""
# ctest long
# ctest plain

import functools
import gzip
import os
import re
import shutil
import subprocess
import unittest

from rig import BUILD, SOURCE, Flow, main, sanitized, worker

FILES = """usr/bin/hvdrun usr/bin/hvdrun-agent usr/lib/hvdrun/hvdrun-agent usr/lib/hvdrun/hvdrun-pmix.so usr/lib/hvdrun/hvdrun-screen.so
    usr/lib/hvdrun/hvdrun-ssh.so usr/lib/hvdrun/hvdrun-tls.so usr/lib/hvdrun/hvdrun-topology.so
    usr/lib/hvdrun/hvdrun-unwind.so usr/lib/hvdrun/python/horovod/torch/__init__.py usr/share/man/man1/hvdrun.1.gz
    usr/share/bash-completion/completions/hvdrun usr/share/zsh/vendor-completions/_hvdrun
    usr/share/fish/vendor_completions.d/hvdrun.fish usr/share/doc/hvdrun/copyright usr/share/doc/hvdrun/changelog.gz
    usr/share/doc/hvdrun/README.md usr/share/doc/hvdrun/docs/install.md usr/share/doc/hvdrun/hostfiles/cluster.hosts
    usr/share/doc/hvdrun/examples/train/main.c usr/share/doc/hvdrun/examples/plain/worker.sh""".split()

LIBHVD = """usr/include/hvd.h usr/lib/libhvd.a usr/lib/libhvd.so usr/lib/pkgconfig/hvd.pc usr/lib/cmake/hvd/hvd-config.cmake
    usr/lib/cmake/hvd/hvd-config-version.cmake usr/share/man/man3/hvd.3.gz usr/share/man/man3/hvd_allreduce.3.gz""".split()
PYTHON = "python"  # in lib/hvdrun: a folder, and the others are programs and modules


def output(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, **options).stdout


def search_paths(file):
    """Where the loader is told to look, of an ELF file."""
    return re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", output("readelf", "-d", file, env={**os.environ, "LC_ALL": "C"}))


@functools.lru_cache(maxsize=None)
def owner(library):
    """The package that a file came with. It may know it by the other name of a folder: /lib is a link."""
    names = [library, os.path.realpath(library)]
    names += [name[len("/usr"):] for name in names if name.startswith("/usr/lib")]
    for name in names:
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    raise AssertionError(f"{library} belongs to no package")


class BuiltFiles(unittest.TestCase):

    def files(self):
        folders = [os.path.join(BUILD, folder) for folder in ("lib/hvdrun", "lib/hvd", "generated/agent")]
        folders = [folder for folder in folders if os.path.isdir(folder)]
        found = [os.path.join(folder, name) for folder in folders for name in os.listdir(folder) if name != PYTHON]
        self.assertGreaterEqual(len(found), 8)
        return found

    @unittest.skipIf(sanitized(), "sanitizers bring libraries along")
    def test_the_agent_runs_with_an_older_libc(self):
        """Whatever libc it was built with: it and the modules inside need nothing that is newer than 2.34."""
        for file in self.files():
            if file.endswith("/hvdrun-agent") or "/generated/" in file:
                versions = re.findall(r"Name: GLIBC_([\d.]+)", output("readelf", "-VW", file))
                self.assertNotEqual(versions, [], file)
                newest = max(tuple(map(int, version.split("."))) for version in versions)
                self.assertLessEqual(newest, (2, 34), file)

    @unittest.skipIf(sanitized(), "sanitizers bring libraries along")
    def test_no_library_of_mathematics(self):
        """Each start of hvdrun and of an agent would load it."""
        for file in [os.path.join(BUILD, "hvdrun"), os.path.join(BUILD, "lib/hvdrun/hvdrun-agent")]:
            needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", file, env={**os.environ, "LC_ALL": "C"}))
            self.assertNotEqual(needed, [], file)
            self.assertEqual([name for name in needed if name.startswith("libm.")], [], file)

    @unittest.skipIf(sanitized(), "sanitizers have options of their own")
    def test_functions_are_looked_up_before_the_first_fork(self):
        """Otherwise driver and agents do it twice, and where functions are found stays writable."""
        found = output("readelf", "-dlW", os.path.join(BUILD, "hvdrun"), env={**os.environ, "LC_ALL": "C"})
        self.assertRegex(found, r"\(FLAGS(_1)?\).*NOW")
        self.assertIn("GNU_RELRO", found)

    def test_the_loader_is_sent_nowhere_unexpected(self):
        """An empty part of a search path is the current folder, and libraries could be slipped in there."""
        for file in [*self.files(), os.path.join(BUILD, "hvdrun")]:
            for path in search_paths(file):
                for part in path.split(":"):
                    self.assertTrue(part.startswith(("/", "$ORIGIN")), f"{file}: {path!r}")
                    self.assertFalse(part.startswith((BUILD, SOURCE)), f"{file}: {path!r}")


@unittest.skipUnless(shutil.which("dpkg-deb") and shutil.which("dpkg-shlibdeps"), "packages are made on Debian only")
@unittest.skipIf(sanitized(), "a package is not made with sanitizers")
class Package(Flow):

    def setUp(self):
        super().setUp()
        place = self.box.path("made")
        made = subprocess.run(["cpack", "-G", "DEB", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", place],
                              capture_output=True, text=True, check=False, cwd=self.box.work)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        self.deb, = (os.path.join(place, name) for name in os.listdir(place) if name.endswith(".deb"))
        self.root = self.box.path("root")
        output("dpkg-deb", "-R", self.deb, self.root)

    def field(self, name):
        return output("dpkg-deb", "-f", self.deb, name).strip()

    def has_libhvd(self):
        return os.path.exists(os.path.join(BUILD, "lib/libhvd.so"))

    def libhvd_files(self):
        """The library and its engines, below usr/."""
        engines = os.path.join(self.root, "usr/lib/hvd")
        return ["lib/libhvd.so", *(f"lib/hvd/{name}" for name in os.listdir(engines))] if self.has_libhvd() else []

    def test_package(self):
        """One package, looked at from all sides: making it takes seconds."""
        for look in (self.see_control, self.see_dependencies, self.see_files, self.see_checksums, self.see_texts,
                     self.see_programs, self.see_that_it_runs):
            with self.subTest(look.__name__):
                look()

    def see_control(self):
        with open(os.path.join(SOURCE, "CMakeLists.txt"), encoding="utf-8") as file:
            version = re.search(r"project\(hvdrun VERSION (\S+)", file.read())[1]
        architecture = output("dpkg", "--print-architecture").strip()
        self.assertEqual(os.path.basename(self.deb), f"hvdrun_{version}_{architecture}.deb")
        for name, value in (("Package", "hvdrun"), ("Version", version), ("Architecture", architecture),
                            ("Section", "net"), ("Priority", "optional")):
            self.assertEqual(self.field(name), value, name)
        self.assertRegex(self.field("Maintainer"), r"^.+ <\S+@\S+>$")
        summary, *description = self.field("Description").split("\n")
        self.assertLess(len(summary), 80)
        self.assertGreater(len(description), 4)

    def programs(self):
        return [f"{folder}/{name}" for folder in ("bin", "lib/hvdrun") for name in os.listdir(os.path.join(self.root, "usr", folder))
                if name != PYTHON]

    def see_dependencies(self):
        """Every library that a part of it is linked with belongs to a package that is named."""
        named = {name: self.field(name) for name in ("Depends", "Recommends", "Suggests")}
        self.assertIn("openssh-client", named["Recommends"])
        for name in (*self.programs(), *self.libhvd_files()):
            where = "Recommends" if name.endswith(("-pmix.so", "-unwind.so")) else "Suggests" if name.startswith("lib/hvd/") else "Depends"
            libraries = re.findall(r"=> (/\S+)", output("ldd", os.path.join(self.root, "usr", name)))
            needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", os.path.join(self.root, "usr", name)))
            for library in libraries:
                if os.path.basename(library) not in needed:
                    continue
                self.assertRegex(f'{named[where]}, {named["Depends"]}', rf"(^|[ ,]){re.escape(owner(library))}\b",
                                 f"{name} needs {library}")
        for optional in ("pmix", "gloo", "openmpi", "stdc++"):
            self.assertNotIn(optional, named["Depends"])

    def see_files(self):
        listing = output("dpkg-deb", "-c", self.deb)
        self.assertEqual(set(re.findall(r"^\S+ (\S+) ", listing, re.M)), {"root/root"})
        self.assertEqual(len(set(re.findall(r" (\d{4}-\d\d-\d\d \d\d:\d\d) ", listing))), 1, "one date for all")
        there = dict(reversed(line.split()[0:6:5]) for line in listing.splitlines())
        for name in FILES + (LIBHVD if self.has_libhvd() else []):
            self.assertIn("./" + name, there)
        for name, mode in there.items():
            if mode.startswith("l"):
                self.assertRegex(name, r"^./usr/(lib/libhvd\.so(\.\d+)?|bin/hvdrun-agent)$")
                continue
            original = os.path.join(SOURCE, name.removeprefix("./usr/share/doc/hvdrun/"))
            runs = os.access(original, os.X_OK) or name.endswith(("/bin/hvdrun", "/hvdrun-agent"))
            self.assertEqual(mode, "drwxr-xr-x" if name.endswith("/") else "-rwxr-xr-x" if runs else "-rw-r--r--", name)
            self.assertNotRegex(name, r"__pycache__|/tests/|\.o$")

    def see_checksums(self):
        with open(os.path.join(self.root, "DEBIAN/md5sums"), encoding="utf-8") as file:
            listed = {line.split(maxsplit=1)[1].strip() for line in file}
        output("md5sum", "--strict", "-c", "DEBIAN/md5sums", cwd=self.root)
        found = {os.path.relpath(os.path.join(folder, name), self.root)
                 for folder, _, names in os.walk(os.path.join(self.root, "usr")) for name in names
                 if not os.path.islink(os.path.join(folder, name))}
        self.assertEqual(listed, found)

    def see_texts(self):
        share = os.path.join(self.root, "usr/share")
        with gzip.open(os.path.join(share, "man/man1/hvdrun.1.gz"), "rt") as file:
            self.assertIn(f'hvdrun {self.field("Version")}', file.read())
        changes = os.path.join(share, "doc/hvdrun/changelog.gz")
        with gzip.open(changes, "rt") as file:
            self.assertRegex(file.read(), r"^hvdrun \(\S+\) unstable; urgency=medium\n\n  \* .*\n\n -- .* <\S+>  \w{3}, \d\d \w{3} \d{4} ")
        with open(changes, "rb") as file:
            self.assertEqual(file.read(10)[3:8], bytes(5), "a name or a date is in the compressed file")
        with open(os.path.join(share, "doc/hvdrun/copyright"), encoding="utf-8") as file:
            self.assertIn("/usr/share/common-licenses/Apache-2.0", file.read())

    def see_programs(self):
        for name in self.programs() + self.libhvd_files():
            file = os.path.join(self.root, "usr", name)
            self.assertNotRegex(output("readelf", "-SW", file), r"\.(symtab|debug_info|comment)\b", name)
            with open(file, "rb") as opened:
                self.assertNotIn(os.fsencode(BUILD), opened.read(), name)
        agent = output("readelf", "-d", os.path.join(self.root, "usr/lib/hvdrun/hvdrun-agent"))
        self.assertEqual(set(re.findall(r"\(NEEDED\).*\[(.*)\]", agent)) - {"libc.so.6", "libm.so.6"}, set())

    def see_that_it_runs(self):
        program = os.path.join(self.root, "usr/bin/hvdrun")
        done = subprocess.run([program, "-np", "2", "--bind-to", "none", worker("hello")], capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, env=self.box.environment(), timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("hello from rank 1 of 2", done.stdout)
        told = output(program, "--version", env=self.box.environment())
        self.assertTrue(told.startswith(f'hvdrun {self.field("Version")}\n'), told)
        self.assertNotIn("cannot be loaded", told)
        for name in ("glibc", "PMIx", "hwloc", "libssh2", "OpenSSL", "libdw"):
            self.assertRegex(told, rf"\n  {name} +\d\S*( \(API \d+\.\d+\))?  +(API )?\d")


if __name__ == "__main__":
    main()
