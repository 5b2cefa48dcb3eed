# SPDX-License-Identifier: Apache-2.0
"""A tree of hvdrun that was moved runs from anywhere; which glibc its parts need is found in their symbols."""
# ctest plain

import os
import subprocess
import sys
import tarfile

from rig import BUILD, SOURCE, Flow, main, sanitized, worker

PACKAGING = os.path.join(SOURCE, "packaging")
LIBC = {"GLIBC_2.17": "old", "GLIBC_2.29": "later", "GLIBC_ABI_DT_NEW": "odd"}  # a version, and its function


class Caller(Flow):

    def call(self, *command, status=0, cwd=None, **env):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=600,
                              stdin=subprocess.DEVNULL, cwd=cwd or self.box.path(), env=self.box.environment(env))
        self.assertEqual(done.returncode, status, f"{command}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr


class Tree(Caller):

    def setUp(self):
        super().setUp()
        if sanitized():
            self.skipTest("a package is not made with sanitizers")
        self.stage = self.box.path("stage")
        self.call("cmake", "--install", BUILD, "--prefix", self.stage, "--strip")

    def pack(self, name):
        """As the target package_tar of the build does."""
        os.mkdir(self.box.path(name))
        made = self.call(sys.executable, "-B", f"{PACKAGING}/archive.py", self.stage, self.box.path(name), "0.1.0", os.uname().machine,
                         SOURCE_DATE_EPOCH="")
        return made.strip()

    def test_archive(self):
        archive = self.pack("one")
        self.assertRegex(os.path.basename(archive), rf"^hvdrun-0\.1\.0-linux-{os.uname().machine}-glibc2\.\d+\.tar\.gz$")
        with open(archive, "rb") as one, open(self.pack("two"), "rb") as two:
            self.assertEqual(one.read(), two.read(), "two archives of one tree differ")
        with tarfile.open(archive) as file:
            members = file.getmembers()
            for member in members:
                self.assertEqual((member.uid, member.gid, member.mode & 0o7022), (0, 0, 0), member.name)
                self.assertRegex(member.name, r"^hvdrun-0\.1\.0(/|$)")
            names = {member.name.partition("/")[2] for member in members}
        self.assertTrue({"bin/hvdrun", "bin/hvdrun-agent", "include/hvd.h", "share/doc/hvdrun/LICENSE"} <= names, names)
        self.see_it_run(archive)

    def see_it_run(self, archive):
        """In a folder whose name has a blank, through a link, by a user who may not write there."""
        place = self.box.path("else where")
        os.makedirs(place)
        self.call("tar", "-C", place, "-xzf", archive)
        os.rename(self.stage, self.stage + ".gone")
        tree = os.path.join(place, "hvdrun-0.1.0")
        self.call("chmod", "-R", "a-w", tree)
        self.addCleanup(subprocess.run, ["chmod", "-R", "u+w", tree], check=False)
        link = self.box.path("link")
        os.symlink(os.path.join(tree, "bin/hvdrun"), link)
        for program in (os.path.join(tree, "bin/hvdrun"), link, "./hvdrun"):
            told = self.call(program, "-np", 4, worker("hello"), cwd=os.path.join(tree, "bin"))
            self.assertIn("hello from rank 3 of 4", told)
        self.assertNotIn("cannot be loaded", self.call(link, "--version"))
        away = self.box.path("away")
        os.mkdir(away)
        told = self.call(link, "-H", "a:1,b:1", "--launch-agent", f"env -u XDG_RUNTIME_DIR TMPDIR={away} HOME={away} HOST=%h", worker("hello"))
        self.assertIn("hello from rank 1 of 2", told)
        folders = [folder for folder, _, names in os.walk(tree) if "hvd.pc" in names]
        flags = self.call("pkg-config", "--cflags", "--libs", "hvd", PKG_CONFIG_PATH=folders[0])
        self.call("sh", "-ec", f"eval cc -o fit {SOURCE}/examples/libhvd/fit.c '{flags.strip()}'")
        told = self.call(link, "-np", 2, "./fit", LD_LIBRARY_PATH=os.path.dirname(folders[0]))
        self.assertIn("2 ranks: y = 3.000 x + 1.000", told)


class Glibc(Caller):

    def setUp(self):
        super().setUp()
        with open(self.box.path("libc.c"), "w", encoding="ascii") as file:
            file.write("".join(f"void {name}(void) {{}}\n" for name in LIBC.values()))
        with open(self.box.path("libc.map"), "w", encoding="ascii") as file:
            file.write("".join(f"{version} {{ {name}; }};\n" for version, name in LIBC.items()))
        self.call("cc", "-shared", "-nostdlib", "-o", "libc.so", "-Wl,--version-script=libc.map", "-Wl,-soname,libc.so.6", "libc.c")

    def needs(self, *names, limit="2.28", status=0):
        """What the program says of a library that calls these functions of a libc that was made up."""
        os.makedirs(self.box.path("tree/lib"), exist_ok=True)
        with open(self.box.path("made.c"), "w", encoding="ascii") as file:
            file.write("".join(f"void {name}(void);\n" for name in names) + "void run(void);\nvoid run(void)\n{\n"
                       + "".join(f"    {name}();\n" for name in names) + "}\n")
        self.call("cc", "-shared", "-fPIC", "-nostdlib", "-o", "tree/lib/made.so", "made.c", "libc.so")
        return self.call(sys.executable, "-B", f"{PACKAGING}/glibc.py", limit, "tree", status=status)

    def test_old_enough(self):
        self.assertIn("1 programs and libraries run with glibc 2.28", self.needs("old"))
        self.needs("old", "later", limit="2.29")

    def test_too_new(self):
        told = self.needs("old", "later", status=1)
        self.assertIn("tree/lib/made.so: later needs GLIBC_2.29\n", told)
        self.assertNotIn("old", told)
        self.assertIn("made.so: odd needs GLIBC_ABI_DT_NEW\n", self.needs("odd", status=1))

    def test_wrong_use(self):
        os.mkdir(self.box.path("empty"))
        told = self.call(sys.executable, "-B", f"{PACKAGING}/glibc.py", "2.28", "empty", status=1)
        self.assertIn("there is no program and no library", told)
        self.call(sys.executable, "-B", f"{PACKAGING}/glibc.py", "tree", "2.28", status=1)


class Ended(Caller):
    """packaging/build.sh that is ended: nothing goes on, and nothing stays."""

    FAKES = {"apt-get": "echo 'Debian|bookworm|http://nowhere.invalid/'", "apt-config": "true",
             "debootstrap": 'mkdir -p "$4/proc"\nmount -t proc proc "$4/proc"\necho >"$READY"\nfor n in $(seq 5000); do mkdir -p "$4/$n"; done'}

    def test_sigterm(self):
        if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], check=False).returncode != 0:
            self.skipTest("making a Debian needs root and namespaces")
        for folder in ("fakes", "work"):
            os.mkdir(self.box.path(folder))
        ready = self.box.path("ready")
        os.mkfifo(ready)
        for name, script in self.FAKES.items():
            with open(self.box.path(f"fakes/{name}"), "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\n{script}\n")
            os.chmod(file.name, 0o755)
        env = self.box.environment({"TMPDIR": self.box.path("work"), "READY": ready, "PATH": f"{self.box.path('fakes')}:{os.environ['PATH']}"})
        with subprocess.Popen([f"{PACKAGING}/build.sh", self.box.path("out")], env=env, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
            with open(ready, encoding="ascii") as file:
                file.read()
            job.terminate()
            told = job.communicate(timeout=600)[0]
        self.assertEqual((job.returncode, told), (1, "build: makes a Debian 11\n"))
        self.assertEqual(os.listdir(self.box.path("work")), [])


if __name__ == "__main__":
    main()
