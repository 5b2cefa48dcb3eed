# SPDX-License-Identifier: Apache-2.0
"""--stage: what each host gets before the start, what is kept, and what is refused."""

import fcntl
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys

from hostile import Hostile
from rig import Flow, main, nightly, patient, wait_until

SILENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "silent_fuse.py")
WHERE = 'echo "in $PWD staged $HVDRUN_STAGED"'


def tree(top):
    """What is below a folder: {path: (kind, executable, content or target)}."""
    found = {}
    for folder, folders, files in os.walk(os.fsencode(top)):
        for name in folders + files:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            relative = os.path.relpath(path, os.fsencode(top))
            if stat.S_ISLNK(status.st_mode):
                found[relative] = ("link", False, os.readlink(path))
            elif stat.S_ISDIR(status.st_mode):
                found[relative] = ("folder", False, None)
            else:
                with open(path, "rb") as file:
                    found[relative] = ("file", bool(status.st_mode & 0o100), file.read())
    return found


class Stage(Flow):

    def setUp(self):
        super().setUp()
        self.store = self.box.path("disk")
        os.mkdir(self.store)
        self.addCleanup(self.forget)

    def forget(self):
        if os.path.exists(self.store):
            subprocess.run(["chmod", "-R", "u+rwX", self.store], check=False, stderr=subprocess.DEVNULL)
            shutil.rmtree(self.store)

    def folder(self, name="src", **files):
        for file, content in files.items():
            self.write(f"{name}/{file}", content)
        return self.box.path(name)

    def stage(self, *args, status=0, **options):
        return self.expect(self.run_job("--stage-dir", self.store, *args, **options), status)

    def staged(self, *args, **options):
        """Where rank 0 finds the copies."""
        result = self.stage("-np", 1, *args, "sh", "-c", WHERE, **options)
        return re.search(r"staged (\S+)", result.stdout)[1].split(":")

    def kept(self):
        """The names of all copies, and of what is left of others."""
        found = []
        for folder in os.listdir(self.store):
            found += os.listdir(os.path.join(self.store, folder))
        return sorted(found)

    def refused(self, pattern, *args, status=125):
        result = self.stage("-np", 1, *args, "sh", "-c", "echo ran", status=status)
        self.assertNotIn("ran\n", result.stdout)
        self.expect_said(result, pattern)
        self.assertEqual([name for name in self.kept() if name.startswith(".")], [])
        return result


class Copies(Stage):

    def test_a_copy_is_the_same(self):
        src = self.folder(small="x", empty="", big=os.urandom(1500000) + bytes(2000000) + b"end")
        self.write("src/bin/run", "#!/bin/sh\n", 0o755)
        self.write("src/deep/er/than/that", "x")  # the content of `small`
        self.write(os.fsdecode(b"src/new\nline"), "1")
        self.write(os.fsdecode(b"src/not-utf8-\xff\xfe"), "2")
        self.write("src/..data", "not a way up")
        os.symlink("bin", os.path.join(src, "link"))
        os.symlink("../small", os.path.join(src, "bin/up"))
        os.symlink(".", os.path.join(src, "loop"))
        os.mkdir(os.path.join(src, "nothing"))
        os.utime(os.path.join(src, "small"), ns=(1, 1234567890123456789))
        os.link(os.path.join(src, "small"), os.path.join(src, "hard"))
        copy, = self.staged("--stage", "src")
        self.assertEqual(tree(copy), tree(src))
        self.assertEqual(os.stat(os.path.join(copy, "small")).st_mtime_ns, 1234567890123456789)
        modes = {stat.S_IMODE(os.lstat(os.path.join(at, name)).st_mode) & 0o277
                 for at, folders, files in os.walk(copy) for name in files + folders
                 if not os.path.islink(os.path.join(at, name))}
        self.assertEqual(modes, {0}, "nobody can write, and nobody else can read")

    def test_one_file(self):
        self.write("train.py", "import sys; print('args', *sys.argv)\n")
        result = self.stage("-np", 1, "--stage", "train.py", sys.executable, "train.py", "train.pyc")
        self.assertRegex(result.stdout, rf"args {self.store}/\S+/train.py train.pyc\n")

    def test_several_roots(self):
        self.folder("a", x="1"), self.folder("b/a", y="2")
        first, second = self.staged("--stage", "a", "--stage", "b/a")
        self.assertEqual(os.listdir(first), ["x"])
        self.assertEqual(os.listdir(second), ["y"])

    def test_a_root_that_is_a_link(self):
        self.folder(x="1")
        os.symlink("src", self.box.path("name"))
        result = self.stage("-np", 1, "--stage", "name", "sh", "-c", 'echo "$@"', "-", "name/x", "src/x")
        self.assertRegex(result.stdout, rf"{self.store}/\S+/copy/name/x {self.store}/\S+/copy/name/x\n")

    def test_many_small_files(self):
        for number in range(60):
            self.folder(f"src/{number}", **{f"f{i}": f"{number} {i % 7}" for i in range(50)})
        copy, = self.staged("--stage", "src")
        self.assertEqual(tree(copy), tree(self.box.path("src")))

    @nightly("it makes 100,000 files four times")
    def test_100_000_files(self):
        names = [f"{number // 1000}/{number}.py" for number in range(100000)]
        for name in names:
            self.write(f"src/{name}", f"x = {name!r}\n" * (int(name[-4]) % 3))
        job = self.stage("-H", "a:1,b:1", "--transport", "local", "--stage", "src", "sh", "-c",
                         'find "$HVDRUN_STAGED" -type f | wc -l; cat "$HVDRUN_STAGED/99/99998.py"', timeout=patient(300))
        self.expect_lines(job, [f"[{rank}]<stdout>:{line}" for rank in range(2) for line in
                                ["100000", "x = '99/99998.py'", "x = '99/99998.py'"]])
        again = self.stage("-np", 1, "--verbose", "--stage", "src", "true", timeout=patient(300))
        self.expect_said(again, r"has .*/src \((\d+) of \1 bytes were there\)")

    def test_links_that_lead_out(self):
        self.folder("other", x="1")
        src = self.folder(y="1")
        os.symlink("../other/x", os.path.join(src, "relative"))
        os.symlink(self.box.path("other"), os.path.join(src, "absolute"))
        os.symlink(os.path.join(src, "y"), os.path.join(src, "inside"))
        copy, = self.staged("--stage", "src")
        self.assertEqual(os.readlink(os.path.join(copy, "relative")), self.box.path("other/x"))
        self.assertEqual(os.readlink(os.path.join(copy, "absolute")), self.box.path("other"))
        self.assertEqual(os.readlink(os.path.join(copy, "inside")), "y")

    def test_hosts_and_epochs(self):
        self.folder(x=os.urandom(3000000))
        script = self.write("once.sh", """#!/bin/sh
cmp src/x "$HVDRUN_STAGED/x" || exit 9
echo "$HVDRUN_HOSTNAME $HVDRUN_EPOCH"
[ "$HVDRUN_EPOCH" != 1 ] || [ "$HVDRUN_RANK" != 0 ] || exit 1
""", 0o755)
        result = self.stage("--transport", "local", "-H", "a,b,c", "--on-failure", "restart", "--blacklist-after", 5,
                            "--stage", "src", script)
        for host in "abc":
            self.assertRegex(result.stdout, rf"{host} 2\n")
        self.assertEqual(len(self.kept()), 1)


class Rewriting(Stage):

    def test_working_folder(self):
        self.folder("src/sub", x="1")
        result = self.stage("-np", 1, "--stage", "src", "--wdir", "src/sub", "sh", "-c", "pwd; ls")
        self.assertRegex(result.stdout, rf"{self.store}/\S+/copy/src/sub\n.*x\n")
        self.assertEqual("root can write there" in result.said, os.geteuid() == 0)

    def test_here(self):
        src = self.folder(x="1")
        self.write("src/run.sh", "#!/bin/sh\npwd\n", 0o755)
        result = self.stage("-np", 1, "--stage", ".", "./run.sh", cwd=src)
        self.assertRegex(result.stdout, rf"{self.store}/\S+/copy/src\n")

    def test_words_that_are_no_paths_stay(self):
        self.folder("train", x="1")
        result = self.stage("-np", 1, "--stage", "train", "sh", "-c", 'echo "$@"', "-", "train", "./train", "trainer/x",
                            "--data=train/x")
        self.assertRegex(result.stdout, rf"train {self.store}/\S+/copy/train trainer/x --data=train/x\n")

    def test_words_are_not_cleaned(self):
        self.write("code/a.sh", "echo \"got $1\"\n")
        words = "code/a.sh http://x//y a/../b"
        result = self.stage("-np", 1, "--stage", "code", "sh", "-c", 'echo "$1 $2"', "-", words, ".//code//a.sh")
        self.assertRegex(result.stdout, rf"{words} {self.store}/\S+/copy/code//a.sh\n")

    def test_path_and_environment(self):
        bin_folder = os.path.join(self.folder("env", x="1"), "bin")
        self.write("env/bin/hello", "#!/bin/sh\necho \"$0 $VIRTUAL_ENV $OTHER\"\n", 0o755)
        env = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "VIRTUAL_ENV": self.box.path("env")}
        result = self.stage("-np", 1, "--stage", "env", "-x", f"OTHER={bin_folder}", "hello", env=env)
        self.assertRegex(result.stdout, rf"{self.store}/(\S+)/copy/env/bin/hello {self.store}/\1/copy/env {bin_folder}\n")

    def test_a_python_environment(self):
        made = subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.box.path("venv")], check=False)
        self.assertEqual(made.returncode, 0)
        site, = [folder for folder, _, _ in os.walk(self.box.path("venv")) if folder.endswith("site-packages")][:1]
        self.write(os.path.join(os.path.relpath(site, self.box.path(".")), "only_here.py"), "place = __file__\n")
        code = "import sys, only_here; print(sys.prefix); print(only_here.place)"
        result = self.stage("-np", 1, "--stage", "venv", "venv/bin/python", "-c", code)
        self.assertRegex(result.stdout, rf"{self.store}/\S+/copy/venv\n.*{self.store}/\S+/only_here.py\n")

    def test_a_link_at_dest(self):
        for content in "12":
            self.folder(x=content)
            result = self.stage("-np", 2, "--stage", "src:here", "cat", "here/x")
            self.assertEqual(len(re.findall(f"{content}$", result.stdout, re.M)), 2, result.describe())
            self.assertFalse(os.path.lexists(self.box.path("here")))
        self.stage("-np", 1, "--stage", f"src:{self.box.path('here')}", "cat", "here/x")
        self.write("file", "mine")
        self.refused("something else of that name", "--stage", "src:file")
        self.assertEqual(tree(self.box.path("."))[b"file"][2], b"mine")

    def test_a_link_that_another_job_uses(self):
        self.folder(x="1")
        job = self.start("-np", 1, "--stage-dir", self.store, "--stage", "src:here", "sh", "-c",
                         "echo ready; until [ -e go ]; do sleep 0.05; done; cat here/x")
        job.wait_output("ready")
        self.stage("-np", 1, "--stage-keep", 0, "--stage", "src:here", "cat", "here/x")
        self.folder(x="2")
        self.refused("something else of that name", "--stage", "src:here")
        self.write("go", "")
        self.assertRegex(self.expect(job.wait(), 0).stdout, ">:1$")

    def test_a_link_in_a_staged_folder(self):
        """It would be part of the next copy."""
        src = self.folder(x="1")
        for dest in ("src/copy", os.path.join(src, "copy")):
            self.refused("cannot make the link .*src/copy in .*src, which is staged", "--stage", f"src:{dest}", status=2)
        os.symlink("src", self.box.path("name"))
        self.refused("which is staged", "--stage", "src:name/copy", status=2)
        self.refused("which is staged", "--stage", "src:copy", "--wdir", src, status=2)
        self.assertEqual(os.listdir(src), ["x"])

    def test_words_that_lead_out(self):
        src = self.folder(x="1")
        self.write("data/f", "2")
        result = self.stage("-np", 1, "--stage", ".", "sh", "-c", 'cat "$1"; echo " $*"', "-", "../data/f", "../data/new", "./x", cwd=src)
        self.assertRegex(result.stdout, rf"2 {src}/../data/f ../data/new ./x\n")

    def test_nothing_is_kept(self):
        self.folder(x="1")
        self.stage("-np", 1, "--stage-keep", 0, "--stage", "src:here", "cat", "here/x")
        self.assertEqual(self.kept(), [])
        self.assertFalse(os.path.lexists(self.box.path("here")))
        self.stage("-np", 1, "--stage", "src", "true")
        self.stage("-np", 1, "--stage-keep", 0, "--stage", "src", "true")
        self.assertEqual(len(self.kept()), 1, "an earlier job keeps it")


class Kept(Stage):

    def told(self, *args):
        """How many bytes were there already, of how many."""
        result = self.stage("-np", 1, "-v", "--stage", "src", *args, "true")
        return tuple(int(number) for number in re.search(r"\((\d+) of (\d+) bytes were there\)", result.said).groups())

    def test_only_what_is_missing_is_sent(self):
        self.folder(big=os.urandom(2000000), a="1")
        self.assertEqual(self.told(), (0, 2000001))
        self.assertEqual(self.told(), (2000001, 2000001))
        self.folder(a="12", b="3")
        self.assertEqual(self.told(), (2000000, 2000003))
        os.utime(self.box.path("src/big"), ns=(0, 10**18))
        self.assertEqual(self.told(), (2000003, 2000003))
        self.assertEqual(len(self.kept()), 3)

    def damage(self, path, content=b"X"):
        status = os.stat(path)
        os.chmod(path, 0o600)
        with open(path, "r+b") as file:
            file.write(content)
        os.chmod(path, stat.S_IMODE(status.st_mode))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def test_a_copy_that_is_damaged(self):
        self.folder(x="good")
        copy, = self.staged("--stage", "src")
        os.chmod(copy, 0o700)
        os.remove(os.path.join(copy, "x"))
        self.assertEqual(self.told(), (0, 4))
        self.damage(os.path.join(copy, "x"))
        self.assertEqual(self.told(), (4, 4), "size and time are those of the file")
        os.remove(os.path.join(copy, "../../boot"))
        self.assertEqual(self.told(), (0, 4), "what another boot has written is read")
        with open(os.path.join(copy, "x"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "good")

    def test_size_and_age(self):
        self.folder(x=os.urandom(700000))
        first, = self.staged("--stage", "src")
        self.folder(x=os.urandom(700001))
        second, = self.staged("--stage", "src", "--stage-keep", "1M")
        self.assertFalse(os.path.exists(first))
        os.utime(os.path.join(second, "../../list"), (1, 1))
        self.folder(x="3")
        third, = self.staged("--stage", "src", "--stage-keep", "1M:1d")
        self.assertFalse(os.path.exists(second))
        self.assertTrue(os.path.exists(third))

    def test_what_is_mounted_in_a_copy_stays(self):
        self.folder(x=os.urandom(700000))
        self.write("src/data/x", "1")
        copy, = self.staged("--stage", "src")
        mine = self.folder("mine", precious="1")
        if os.geteuid() != 0 or subprocess.run(["mount", "--bind", mine, os.path.join(copy, "data")], check=False,
                                               stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("needs a mount")
        try:
            self.folder(x=os.urandom(700001))
            self.stage("-np", 1, "--stage-keep", "1M", "--stage", "src", "true")
            self.assertFalse(os.path.exists(copy))
            self.assertEqual(os.listdir(mine), ["precious"])
        finally:
            with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
                for place in [line.split()[4] for line in mounts if self.store in line]:
                    subprocess.run(["umount", place], check=True)
        self.stage("-np", 1, "--stage", "src", "true")
        self.assertEqual([name for name in self.kept() if name.startswith(".")], [])

    def test_what_a_job_uses_stays(self):
        self.folder(x=os.urandom(700000))
        job = self.start("-np", 1, "--stage-dir", self.store, "--stage-keep", "0", "--stage", "src", "sh", "-c",
                         "echo ready $HVDRUN_STAGED; until [ -e go ]; do sleep 0.05; done; cat $HVDRUN_STAGED/x | wc -c")
        job.wait_output("ready")
        copy, = self.staged("--stage", "src", "--stage-keep", "0")
        self.write("src/x", "2")
        self.stage("-np", 1, "--stage-keep", "1M", "--stage", "src", "true")
        self.assertTrue(os.path.exists(copy))
        self.write("go", "")
        self.assertRegex(self.expect(job.wait(), 0).stdout, "700000")
        self.assertFalse(os.path.exists(copy))

    def test_what_a_dead_job_has_left(self):
        self.folder(x="1")
        self.staged("--stage", "src")
        top = os.path.join(self.store, os.listdir(self.store)[0])
        for name in (".new-1-1", ".old-1-1", ".new-2-2"):
            os.makedirs(os.path.join(top, name, "copy"))
        held = os.open(os.path.join(top, ".new-2-2"), os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        self.staged("--stage", "src")
        os.close(held)
        self.assertEqual([name for name in self.kept() if name.startswith(".")], [".new-2-2"])

    def test_many_agents_at_once(self):
        self.folder(x=os.urandom(3000000), y="1")
        hosts = ",".join(f"h{number}" for number in range(8))
        result = self.stage("--transport", "local", "-H", hosts, "--stage", "src", "sh", "-c",
                            'cmp src/x "$HVDRUN_STAGED/x" && echo same')
        self.assertEqual(len(re.findall("same", result.stdout)), 8)
        self.assertEqual(len(self.kept()), 1)

    def test_a_job_that_is_killed_leaves_what_the_next_one_repairs(self):
        self.folder(x=os.urandom(30000000))
        job = self.start("-np", 1, "--stage-dir", self.store, "--stage", "src", "true")
        wait_until(lambda: os.listdir(self.store), "the store is there")
        job.popen.send_signal(signal.SIGKILL)
        job.popen.wait()
        self.box.check_nothing_left(10)
        copy, = self.staged("--stage", "src")
        self.assertEqual(tree(copy), tree(self.box.path("src")))


class Refused(Stage):
    FULL = r"no space for staged files \(another --stage-dir\?\): "

    def reads(self, pid, name):
        folder = f"/proc/{pid}/fd"
        return self.box.path(name) in [os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder)
                                       if os.path.lexists(os.path.join(folder, fd))]

    def test_what_cannot_be_staged(self):
        src = self.folder(x="1")
        os.mkfifo(os.path.join(src, "pipe"))
        self.refused(r"src/pipe is a socket, a pipe or a device", "--stage", "src")
        os.remove(os.path.join(src, "pipe"))
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.relpath(os.path.join(src, "door")))
            self.refused(r"src/door is a socket", "--stage", "src")
        os.remove(os.path.join(src, "door"))
        os.symlink("gone", os.path.join(src, "broken"))
        self.refused(r"src/broken is a symbolic link to gone, which cannot be followed: No such file", "--stage", "src")
        os.remove(os.path.join(src, "broken"))
        os.symlink("round", os.path.join(src, "round"))
        self.refused(r"src/round is a symbolic link to round, which cannot be followed: Too many levels", "--stage", "src")

    def test_words(self):
        self.folder(x="1")
        self.refused("--stage: cannot stage missing: No such file", "--stage", "missing", status=2)
        self.refused("--stage: 'src:': expected PATH or PATH:DEST", "--stage", "src:", status=2)
        self.refused("--stage-keep: '5': expected SIZE", "--stage", "src", "--stage-keep", "5", status=2)
        self.refused("the folder / cannot be staged", "--stage", "/")
        result = self.run_job("-np", 1, "--stage", "src", "--stage-dir", "here", "true")
        self.expect_said(self.expect(result, 2), "--stage-dir: 'here' is not an absolute path")

    def test_a_stage_dir_that_cannot_be(self):
        self.folder(x="1")
        self.write("file", "")
        for folder, why in (("missing/a", "No such file or directory"), ("file/a", "Not a directory")):
            folder = self.box.path(folder)
            result = self.run_job("-np", 1, "--stage", "src", "--stage-dir", folder, "sh", "-c", "echo ran")
            self.expect_said(self.expect(result, 125), f"--stage-dir: cannot create the folder {folder}: {why}")
            self.assertNotIn("ran\n", result.stdout)

    def mount(self, options):
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", self.store],
                                               check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("needs a file system of its own")

    def test_a_disk_with_room_for_few_files(self):
        self.folder(**{str(number): bytes([number]) for number in range(60)})
        self.mount("size=4m,nr_inodes=40")
        try:
            self.refused(self.FULL + "cannot write .*: No space left", "--stage", "src")
        finally:
            subprocess.run(["umount", "-l", self.store], check=True)

    def test_a_full_disk(self):
        self.folder(x=os.urandom(3000000), y=os.urandom(3000000))
        self.mount("size=4m")
        try:
            self.refused(self.FULL + r"\S+/hvdrun-stage-\d+ has \d MiB of free space, and they need 6 MiB", "--stage", "src")
            self.write("src/x", bytes(3000000))
            self.write("src/y", os.urandom(3900000))
            self.refused(self.FULL, "--stage", "src")
        finally:
            subprocess.run(["umount", "-l", self.store], check=True)

    def test_a_store_that_is_not_ours(self):
        self.folder(x="1")
        name = os.path.join(self.store, f"hvdrun-stage-{os.geteuid()}")
        os.symlink(self.box.path("src"), name)
        self.refused("is not a folder to which only you can write", "--stage", "src")
        self.assertEqual(list(tree(self.box.path("src"))), [b"x"])
        os.remove(name)
        os.mkdir(name)
        os.chmod(name, 0o777)
        self.refused("is not a folder to which only you can write", "--stage", "src")
        os.chmod(name, 0o700)
        os.chmod(self.store, 0o777)
        self.refused("not safe for staged files, since others can write", "--stage", "src")
        os.chmod(self.store, 0o1777)
        self.staged("--stage", "src")
        if os.geteuid() == 0:
            os.chown(self.store, 4711, -1)
            self.refused("not safe for staged files, since it belongs to another user", "--stage", "src")

    def test_a_host_that_another_job_has_damaged(self):
        self.folder(x="good")
        job = self.start("-np", 1, "--stage-dir", self.store, "--stage", "src", "sh", "-c",
                         "echo ready $HVDRUN_STAGED; until [ -e go ]; do sleep 0.05; done")
        job.wait_output("ready")
        copy, = [os.path.join(at, "src") for at, folders, _ in os.walk(self.store) if "src" in folders]
        os.chmod(os.path.join(copy, "x"), 0o600)
        with open(os.path.join(copy, "x"), "a", encoding="utf-8") as file:
            file.write("bad")
        self.refused("the staged copy of src/x in .* has changed, and another job uses it", "--stage", "src")
        self.write("go", "")
        self.expect(job.wait(), 0)

    def test_files_that_change(self):
        """A writer that goes on: whatever is seen of it, no job runs on half of a file."""
        src = self.folder(x=os.urandom(20000000))
        before = os.stat(os.path.join(src, "x")).st_mtime_ns
        writer = self.helper(sys.executable, "-c", "import os, sys, time\nfile = open(sys.argv[1], 'r+b')\nwhile True:\n"
                             "    file.seek(19000000); file.write(os.urandom(8)); file.flush()",
                             os.path.join(src, "x"))
        wait_until(lambda: os.stat(os.path.join(src, "x")).st_mtime_ns != before, "the writer has begun")
        job = self.start("-np", 1, "--stage-dir", self.store, "--stage", "src", "sh", "-c", "echo ran")
        result = self.expect(job.wait(), 125)
        writer.popen.kill()
        writer.popen.wait()
        self.expect_said(result, "src/x changed while it was staged")
        self.assertEqual(result.stdout, "")

    def test_interrupted(self):
        self.folder(x=bytes(1))
        with open(self.box.path("src/sparse"), "wb") as file:
            file.truncate(40 << 30)  # half a minute to read, or more
        job = self.start("-np", 1, "--stage-dir", self.store, "--stage", "src", "true")
        wait_until(lambda: self.reads(job.popen.pid, "src/sparse"), "the driver reads")
        job.popen.send_signal(signal.SIGINT)
        self.assertEqual(job.wait(patient(20)).status, 130)


class Silent(Stage, Hostile):

    @nightly("it takes the 30 s of the limit")
    def test_a_folder_that_does_not_answer(self):
        if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
            self.skipTest("no right to mount with /dev/fuse")
        folder, pidfile = self.box.path("mounted"), self.box.path("fuse.pid")
        os.mkdir(folder)
        job = self.start_in_place(f"{sys.executable} {SILENT} {folder} {pidfile} && while test ! -s {pidfile}; do sleep 0.1; done",
                                  "-np", 1, "--stage-dir", self.store, "--stage", f"{folder}/batches", "echo", "ran")
        job.wait_output("does not answer", "stderr", patient(90))
        with open(pidfile, encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)  # the read fails then
        result = self.expect(job.wait(patient(60)), 125)
        self.expect_said(result, "--stage cannot go on: the folder does not answer from which it reads")
        self.assertNotIn("ran", result.stdout)


if __name__ == "__main__":
    main()
