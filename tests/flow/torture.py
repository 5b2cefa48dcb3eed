# SPDX-License-Identifier: Apache-2.0
"""Runs in which one call of hvdrun fails: the library tests/torture is preloaded and told which.

    torture = Torture(self, Scene("plain", ["-np", 2, worker("hello")], lines=[...]))
    for point in torture.points("alloc", "driver"):
        torture.judge(point)

A scene is a short run with a known right outcome. `points` runs it once without a failure, and returns
each call that can fail, with its place in hvdrun. `judge` runs it again while that call fails.
hvdrun must not crash, hang, leave anything behind, or report success after it has lost output. Nor may it
end with a status that is not its own, or without saying why.
"""

import collections
import os
import re
import subprocess

from ground import WORKERS, wait_until
from jobs import Job
from rig import HVDRUN

LIBRARY = os.path.join(WORKERS, "torture.so")
KINDS = ("alloc", "intr", "again", "short", "nomem", "mfile", "nproc", "nospc", "pipe", "io", "perm")
HARMLESS = ("intr", "again", "short")  # a call that fails so is made again
UNSAID = ("pipe", "io", "nospc")  # of stderr: then nothing can be said, and the status has to be enough
USED_UP = ("alloc", "mfile", "nospc", "nproc")
DEPTH = 8  # so many callers make a way
REMOVAL = "runtime_dir_remove"  # who cannot remove anything any more leaves what is there
RESERVED = {2, 121, 122, 123, 125, 126, 127}
SHARED_MEMORY = f"/dev/shm/hvdrun-{os.geteuid()}"

Point = collections.namedtuple("Point", "kind role number call site mode", defaults=["once"])


class Scene:
    """A run and its right end. `lines`: of stdout, in any order; `check(test, result)`: more. `without`: kinds
    that would prove nothing. `once`: kinds of which one call fails and never all from then on. `reason`: how it
    says why on stdout. `before()`: called before each run; `left()`: fails when it has left something on other hosts."""

    def __init__(self, name, args, status=0, lines=None, check=None, stdin=None, env=None, files=(),
                 roles=("driver", "agent"), without=(), once=(), reason=None, before=None, left=None):
        self.name, self.args, self.status, self.lines, self.check = name, args, status, lines, check
        self.stdin, self.env, self.files, self.roles = stdin, env or {}, files, roles
        self.kinds = [kind for kind in KINDS if kind not in without]
        self.once, self.reason, self.before, self.left = once, reason, before, left


class Torture:

    def __init__(self, test, scene, limit=40):
        self.test, self.scene, self.limit = test, scene, limit
        self.folder = os.path.join(test.box.root, "torture")
        os.makedirs(self.folder, exist_ok=True)

    def _file(self, name):
        try:
            with open(os.path.join(self.folder, name), "rb") as file:
                return file.read()
        except OSError:
            return b""

    def _run(self, kind, role, number, mode):
        for name in ("count", "failed"):
            try:
                os.unlink(os.path.join(self.folder, name))
            except OSError:
                pass
        for name in os.listdir(self.test.box.work):
            path = os.path.join(self.test.box.work, name)
            if name in self.scene.files:
                subprocess.run(["rm", "-rf", path], check=True)
        if self.scene.before is not None:
            self.scene.before()
        job = Job(self.test.box, [HVDRUN, *self.scene.args], stdin=self.scene.stdin,
                  env={**self.scene.env, "LD_PRELOAD": LIBRARY, "TORTURE_FOLDER": self.folder,
                       "TORTURE": f"{kind}:{role}:{number}:{mode}"})
        try:
            return job.wait(self.limit)
        finally:
            job.close()
            self.test.box.jobs.remove(job)

    def _written(self, *calls):
        """What the library wrote: [number, role, pid, kind, call, places...]; PROCESS and CRASH are no calls."""
        lines = [line.split() for line in self._file("failed").decode(errors="replace").splitlines()]
        return [words for words in lines
                if (words[4] in calls if calls else words[4] not in ("PROCESS", "CRASH"))]

    def _folders_left(self):
        """In shared memory, where other jobs of this user have theirs."""
        try:
            names = os.listdir(SHARED_MEMORY)
        except OSError:
            return []
        own = {words[2] for words in self._written("PROCESS")}
        return [name for name in names if name.split(".")[0] in own]

    def points(self, kind, role):
        """Each call that could fail so, in their order; the run has to be right without a failure."""
        result = self._run(kind, role, 0, "once")
        self._right(result)
        self.test.box.check_nothing_left()
        return [Point(kind, role, int(words[0]), words[4], tuple(words[5:])) for words in self._written()]

    def _right_output(self, result):
        if self.scene.lines is not None:
            self.test.assertEqual(sorted(result.lines), sorted(self.scene.lines), result.describe())

    def _right(self, result, whole=True):
        self.test.assertEqual(result.status, self.scene.status, result.describe())
        self._right_output(result)
        if self.scene.check is not None and (whole or result.status == 0):
            try:
                self.scene.check(self.test, result)
            except (OSError, ValueError, LookupError) as error:
                self.test.fail(f"{error!r}{result.describe()}")

    def _says_why(self, result):
        if self.scene.reason is not None and re.search(self.scene.reason, result.stdout, re.M):
            return True
        return re.search(r"^hvdrun(-agent)?: .{10}", result.said, re.M) is not None

    def _wrong(self, result, kind):
        """Not the right end, which has been said: by a status of its own. What could not be written leaves
        the job's status as it is."""
        a_rank = re.search(r"rank \d+ (exited with code|was killed by|aborted the job)", result.said)  # has its own word to say
        self.test.assertTrue(a_rank or result.status in RESERVED | {self.scene.status},
                             "no status of the launcher" + result.describe())
        self.test.assertNotRegex(result.said, r"Success\b|\(null\)", result.describe())
        if kind != "mfile":
            self.test.assertNotIn("open files", result.said, "another cause than the real one" + result.describe())
        if kind != "pipe" and "the connection to its agent ended" in result.said:  # EPIPE says that it is the driver that has
            reasons = re.findall(r"^hvdrun(?:-agent)?: .{10}", result.said, re.M)
            self.test.assertGreater(len(reasons), 1, "why did it?" + result.describe())
        if result.status == 0 and "cannot write to" not in result.said:
            self._right_output(result)

    def _check_left(self, cannot_remove):
        """Calls are counted in the order of events, so that a point may be another one than it was."""
        try:
            self.test.box.check_nothing_left(1 if cannot_remove else 10)
            wait_until(lambda: not self._folders_left(), f"something is left below {SHARED_MEMORY}")
        except AssertionError as error:
            if not cannot_remove or "process left" in str(error):
                raise

    def judge(self, point):
        """None, or what is wrong with hvdrun when the call of this point fails."""
        try:
            result = self._run(point.kind, point.role, point.number, point.mode)
            for words in self._written("CRASH"):
                self.test.fail(f"signal {words[0]} at\n{places(words[5:])}{result.describe()}")
            if point.kind == "pipe" and result.status == 141:
                pass  # as SIGPIPE ends a program: who could be told has gone
            elif point.kind in HARMLESS or not self._says_why(result):
                self._right(result, whole=point.kind not in UNSAID)
            else:
                self._wrong(result, point.kind)
            self._check_left(point.mode == "on" and REMOVAL in describe(self._written()))
            if self.scene.left is not None:
                self.scene.left()
        except AssertionError as error:
            return f"{self.scene.name}: {point.kind} in {point.role}, call {point.number}: {describe(self._written())}\n{error}"
        return None


    def _modes(self, point):
        """Where something is used up, all calls from then on fail as well."""
        on = point.kind in USED_UP and point.kind not in self.scene.once and REMOVAL not in places(point.site)
        return ("once", "on") if on else ("once",)

    def judge_all(self, each=False):
        """Yields (point, what is wrong) for every call of the scene that could fail. One counts as another
        when hvdrun comes to it another way; `each` takes every one by itself."""
        seen = set()
        for kind in self.scene.kinds:
            for role in self.scene.roles:
                points = self.points(kind, role)
                learn([frame for point in points for frame in point.site])
                for point in points:
                    for mode in self._modes(point):
                        way = (kind, role, point.call, point.number if each else tuple(point.site[:DEPTH]), mode)
                        if way not in seen:
                            seen.add(way)
                            point = point._replace(mode=mode)
                            yield point, self.judge(point)
        print(f"{self.scene.name}: {len(seen)} runs", flush=True)


_names = {}  # of the places that have been asked for: path+offset -> functions and lines


def learn(frames):
    """Looks up many places at once, one program for each file."""
    wanted = {}
    for frame in set(frames) - set(_names):
        path, _, offset = frame.rpartition("+")
        wanted.setdefault(path, []).append((frame, f"{int(offset, 16) - 1:#x}"))
    for path, pairs in wanted.items():
        text = subprocess.run(["addr2line", "-Cafpi", "-e", path], input="\n".join(offset for _, offset in pairs),
                              capture_output=True, text=True, check=False).stdout
        found = re.split(r"^0x[0-9a-f]+: ", text, flags=re.M)[1:]
        for (frame, _), name in zip(pairs, found):
            _names[frame] = name.strip()


def places(frames):
    """Functions and lines of hvdrun, the innermost first."""
    frames = [frame for frame in frames if "/libc" not in frame and "/ld-linux" not in frame]
    learn(frames)
    return "\n".join(f"    {_names.get(frame, frame)}" for frame in frames)


def describe(failed):
    return "\n".join(f"{words[4]} in {words[1]}\n{places(words[5:])}" for words in failed[:2])
