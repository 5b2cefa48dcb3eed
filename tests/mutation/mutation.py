#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws small changes of the source, one at a time, and lists those that no test notices.

It copies the tree first. It compiles each change, links it into the unit tests of its room, and runs these until
one fails. The test with the file's name runs first. See README.md here."""
import argparse
import fnmatch
import json
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import box
from build import PLAIN, SANITIZED, Build, BuildError
from changes import changes_of

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
COUNTED = ("unit", "sanitizer", "flow", "nobody")
EQUAL = "tests/mutation/equal.txt"  # survivors that somebody has read and found to be without effect


class Usage(Exception):
    pass


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="source files, folders or patterns, from the top of the tree")
    parser.add_argument("--room", action="append", default=[], help="all files of a room, as launcher/ROOM and runtime/ROOM")
    parser.add_argument("--range", metavar="A..B", help="only lines that these commits touched, in the tree of B (B left out: as it is now)")
    parser.add_argument("--count", type=int, default=60, help="changes to try in each room; 0: all (default 60)")
    parser.add_argument("--seed", type=int, help="of the draw (default: another one each time)")
    parser.add_argument("--only", metavar="ID,...", help="these changes alone, with what the tests print")
    parser.add_argument("--tests", metavar="REGEX", default="", help="only the unit tests whose ctest name matches (default: all of the room)")
    parser.add_argument("--sanitize", action="store_true", help="give what the unit tests miss to a build with sanitizers")
    parser.add_argument("--flow", metavar="REGEX", help="give what is left to the flow tests whose ctest name matches")
    parser.add_argument("--results", type=pathlib.Path, help="append results to this file; what it has is not tried again but counts for --count")
    parser.add_argument("--survivors", action="store_true", help="try those again that nobody noticed according to --results")
    parser.add_argument("--at-least", type=float, metavar="PERCENT", help="exit with 1 when fewer were noticed")
    parser.add_argument("--limit", type=float, default=6, help="seconds that each test may take at least (default 6; else ten times its usual time)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="changes tried at once (default: one for each processor)")
    parser.add_argument("--work", type=pathlib.Path, help="keep the copy and the builds in this folder for the next run")
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1], help="the source tree")
    parser.add_argument("--unprotected", action="store_true", help="run changed programs without namespaces around them")
    options = parser.parse_args(arguments)
    if not (options.paths or options.room or options.range or options.only or options.survivors):
        parser.error("give files, --room or --range")
    if options.survivors and not options.results:
        parser.error("--survivors needs --results")
    return options


def git(root, *command):
    return subprocess.run(["git", "-C", root, *command], check=True, capture_output=True, text=True).stdout


def copy_tree(options, tree):
    """The tree as it is now, or that of the commit at the end of the range. Equal files keep their time."""
    end = (options.range or "").partition("..")[2]
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        fresh = pathlib.Path(folder)
        if end:
            archive = subprocess.Popen(["git", "-C", options.root, "archive", end], stdout=subprocess.PIPE)
            subprocess.run(["tar", "-x", "-C", fresh], stdin=archive.stdout, check=True)
            archive.stdout.close()
            if archive.wait() != 0:
                raise Usage(f"no commit {end}")
        else:
            copy_files(options.root, fresh)
        update(fresh, tree)


def copy_files(root, fresh):
    if (root / ".git").exists():
        names = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    else:
        names = [path.relative_to(root).as_posix() for path in root.rglob("*")]
    for name in names:
        source, target = root / name, fresh / name
        if name and source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def update(fresh, tree):
    wanted = {path.relative_to(fresh).as_posix() for path in fresh.rglob("*") if not path.is_dir()}
    for path in list(tree.rglob("*")):
        if not path.is_dir() and path.relative_to(tree).as_posix() not in wanted:
            path.unlink()
    for name in wanted:
        source, target = fresh / name, tree / name
        if not target.exists() or source.read_bytes() != target.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
            target.chmod(source.stat().st_mode & 0o777)


def touched_lines(options):
    """{file: line numbers of its new side} of the range."""
    begin, _, end = options.range.partition("..")
    touched, name = {}, None
    for line in git(options.root, "diff", "-U0", "--no-color", "--no-ext-diff", begin, *([end] if end else []), "--").splitlines():
        if line.startswith("+++ "):
            name = line[6:] if line.startswith("+++ b/") else None
        found = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if found and name:
            first, count = int(found.group(1)), int(found.group(2) or 1)
            touched.setdefault(name, set()).update(range(first, first + count))
    return touched


def room_of(file):
    """The room whose unit tests a file has: launcher/ROOM/..., but a module's folder is a room itself."""
    parts = pathlib.PurePosixPath(file).parts
    if parts[1:3] == ("transport", "ssh_module"):
        return "ssh"
    return parts[1] if len(parts) > 2 else ""


def wanted_files(options, known, touched):
    def is_wanted(file):
        if touched is not None and file not in touched:
            return False
        if not options.paths and not options.room:
            return True
        rooms = [room_of(file), pathlib.PurePosixPath(file).parts[1]]
        return any(room in rooms for room in options.room) or any(
            file == path.rstrip("/") or file.startswith(path.rstrip("/") + "/") or fnmatch.fnmatch(file, path) for path in options.paths)

    return sorted(file for file in known if file.startswith(("launcher/", "runtime/")) and is_wanted(file))


class Lab:
    """What the processes that try changes share: the builds, the texts, the tests of each file."""

    def __init__(self, options, work, scratch, build):
        self.options, self.work, self.scratch, self.build = options, work, scratch, build
        self.texts, self.tests, self.limits = {}, {}, {}

    def text(self, file):
        if file not in self.texts:
            self.texts[file] = (self.build.tree / file).read_text()
        return self.texts[file]

    def room_tests(self, file):
        noun = pathlib.PurePosixPath(file).stem
        return [test for test in self.build.tests if re.search(self.options.tests, test.name) and
                (test.room == room_of(file) or (test.noun == noun and room_of(file) == "base"))]

    def prepare(self, files, jobs):
        """Builds what the files need and measures how long each test takes; those that fail are left out."""
        programs = {test.program for file in files for test in self.room_tests(file)}
        if programs:
            self.build.make(programs, jobs)
        tests = {test.name: test for file in files for test in self.room_tests(file)}
        with self.pool(jobs) as pool:
            for name, status, seconds in pool.imap_unordered(try_unchanged, tests.values()):
                if status == 0:
                    self.limits[name] = max(self.options.limit, 10 * seconds)
                else:
                    print(f"mutation: {name} fails unchanged (status {status}); left out", file=sys.stderr)
        for file in files:
            found = [test for test in self.room_tests(file) if test.name in self.limits and self.build.has(test.program, file)]
            self.tests[file] = sorted(found, key=lambda test: (self.distance(file, test), self.limits[test.name], test.name))

    @staticmethod
    def distance(file, test):
        """0 for the test that has the file's name, 1 for one that has its words."""
        stem = pathlib.PurePosixPath(file).stem
        folder = pathlib.PurePosixPath(file).parent.name
        if test.noun in (stem, f"{folder}_{stem}"):
            return 0
        return 1 if set(stem.split("_")) & set(test.noun.split("_")) else 2

    def pool(self, jobs):
        global lab
        lab = self
        return multiprocessing.get_context("fork").Pool(jobs, initializer=enter_worker)

    def execute(self, test, program, place):
        environment = {**os.environ, **dict(word.split("=", 1) for word in test.environment), "TMPDIR": "/tmp"}
        environment.pop("HVDRUN", None)
        closed = not self.options.unprotected
        result = box.run([program, *test.command], self.limits.get(test.name, 60), closed,
                         None if self.build.sanitized else box.MEMORY, cwd=place, env=environment)
        if closed:
            box.empty_folders(self.work)
        return result


lab = None


def enter_worker():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    box.die_with_parent()
    os.nice(5)
    os.environ["CCACHE_DISABLE"] = "1"  # its folder cannot be written from here
    if not lab.options.unprotected:
        box.enter(lab.work)


def try_unchanged(test):
    """Where changed programs run, too: it may look for something beside itself."""
    with tempfile.TemporaryDirectory(dir=lab.scratch) as place:
        status, seconds, output = lab.execute(test, shutil.copy(lab.build.folder / test.program, place), place)
        if status != 0 and lab.options.only:
            print(output, file=sys.stderr)
    return test.name, status, seconds


def try_change(change):
    """(change, outcome, who or why, seconds): outcome is unit, nobody, equal, rejected or untested."""
    began = time.monotonic()
    if not lab.tests.get(change.file):
        return change, "untested", "no unit test of the room has it", 0.0
    with tempfile.TemporaryDirectory(dir=lab.scratch) as folder:
        try:
            outcome, by = try_in(change, pathlib.Path(folder))
        except BuildError as error:
            outcome, by = "rejected", str(error)
    return change, outcome, by, time.monotonic() - began


def try_in(change, place):
    build, text = lab.build, lab.text(change.file)
    before = build.baseline(change.file, text, place)
    source, target = place / pathlib.Path(change.file).name, place / "changed.o"
    source.write_text(change.apply(text))
    ran = subprocess.run(build.compile_command(change.file, source.name, target.name), cwd=place, capture_output=True, text=True)
    if ran.returncode != 0:
        return "rejected", ran.stderr.splitlines()[0] if ran.stderr else "does not compile"
    if target.read_bytes() == before:
        return "equal", "same object"
    for test in lab.tests[change.file]:
        program = place / pathlib.PurePosixPath(test.program).name
        if not program.exists():
            linked = subprocess.run(build.link_command(test.program, change.file, target, program), cwd=build.folder,
                                    capture_output=True, text=True)
            if linked.returncode != 0:
                return "rejected", linked.stderr.splitlines()[-1]
        status, _, output = lab.execute(test, program, place)
        if status != 0:
            if lab.options.only:
                print(output, file=sys.stderr)
            return "sanitizer" if build.sanitized else "unit", test.name + (" (time limit)" if status is None else "")
    return "nobody", ""


def without_effect(root):
    """The ids in equal.txt, each at the beginning of a line, with the file that follows it."""
    path = root / EQUAL
    text = path.read_text() if path.exists() else ""
    return dict(re.findall(r"^([0-9a-f]{8}) ([^ :]+):", text, re.MULTILINE))


def stale(root):
    """The ids in equal.txt that name no change any more, because the line is another one now."""
    equal, real = without_effect(root), {}
    for file in set(equal.values()):
        paths = [top / file for top in (root / "launcher", root / "runtime") if (top / file).exists()]
        real[file] = {change.id for path in paths for change in changes_of(path.relative_to(root).as_posix(), path.read_text(), True)}
    return {name: file for name, file in equal.items() if name not in real[file]}


def draw(options, build, files, touched, known):
    """The changes to try, in their order, for each room."""
    rooms, skipped = {}, set() if options.only else set(without_effect(build.tree))
    only = set(options.only.split(",")) if options.only else None
    if options.survivors:
        only = {name for name, result in known.items() if result["outcome"] in ("nobody", "untested")}
    for file in files:
        text = (build.tree / file).read_text()
        for change in changes_of(file, text, options.sanitize):
            if touched is not None and change.line not in touched[file]:
                continue
            if change.id not in skipped and (only is None or change.id in only):
                rooms.setdefault(room_of(file), []).append(change)
    for room in sorted(rooms):
        rooms[room].sort(key=lambda change: (change.file, change.start, change.end, change.new))
        random.Random(f"{options.seed} {room}").shuffle(rooms[room])
    return rooms


class Report:
    """Shows results as they come and keeps them in the results file."""

    def __init__(self, options, texts):
        self.options, self.texts = options, texts
        self.known, self.more_to_come = {}, options.sanitize or options.flow
        if options.results and options.results.exists():
            for line in options.results.read_text().splitlines():
                result = json.loads(line)
                self.known[result["id"]] = result
        self.now = {}

    def add(self, change, outcome, by, seconds):
        result = {"id": change.id, "room": room_of(change.file), "file": change.file, "line": change.line, "kind": change.kind,
                  "outcome": outcome, "by": by, "seconds": round(seconds, 1), "diff": change.diff(self.texts(change.file))}
        self.now[change.id] = self.known[change.id] = result
        if self.options.results:
            with self.options.results.open("a") as file:
                file.write(json.dumps(result) + "\n")
        if self.options.only or (outcome in ("nobody", "untested") and not self.more_to_come):
            self.show(result)

    @staticmethod
    def show(result):
        print(f"{result['file']}:{result['line']}: {result['id']} ({result['kind']}): "
              f"{'noticed by ' + result['by'] if result['outcome'] in ('unit', 'sanitizer', 'flow') else result['outcome']}")
        print("\n".join(f"    {line}" for line in result["diff"].splitlines()), flush=True)

    def finish(self):
        """Prints the table; returns the share of noticed changes in percent."""
        if self.more_to_come and not self.options.only:
            for result in self.now.values():
                if result["outcome"] in ("nobody", "untested"):
                    self.show(result)
        print(f"\n{'room':12} {'tried':>6} {'unit':>6} {'sanit.':>6} {'flow':>6} {'nobody':>6} {'noticed':>8}   not counted: equal, rejected, untested")
        rooms = sorted({result["room"] for result in self.now.values()})
        for room in rooms:
            self.row(room, [result["outcome"] for result in self.now.values() if result["room"] == room])
        everything = [result["outcome"] for result in self.now.values()]
        if len(rooms) > 1:
            self.row("all", everything)
        return percent(everything)

    @staticmethod
    def row(name, outcomes):
        number = outcomes.count
        tried = sum(number(word) for word in COUNTED)
        print(f"{name:12} {tried:6} {number('unit'):6} {number('sanitizer'):6} {number('flow'):6} {number('nobody'):6} "
              f"{percent(outcomes):7.1f}%   {number('equal')}, {number('rejected')}, {number('untested')}")


def percent(outcomes):
    tried = sum(outcomes.count(word) for word in COUNTED)
    if tried == 0:
        return 0.0 if "rejected" in outcomes else 100.0  # if nothing compiles, nothing is known
    return 100.0 * (tried - outcomes.count("nobody")) / tried


def try_all(options, lab_, rooms, report, count):
    """Tries changes of each room until `count` of them have been run; returns those that nobody noticed."""
    left = []
    for room, changes in rooms.items():
        tried = sum(result["room"] == room and result["outcome"] in COUNTED for result in report.known.values())
        waiting = [change for change in changes if options.only or options.survivors or change.id not in report.known]
        if count and tried >= count:
            continue
        with lab_.pool(options.jobs) as pool:
            for result in pool.imap_unordered(try_change, waiting):
                report.add(*result)
                tried += result[1] in COUNTED
                if result[1] == "nobody":
                    left.append(result[0])
                if count and tried >= count:
                    pool.terminate()
                    break
    return left


def again(options, lab_, changes, report):
    """Gives changes that nobody noticed to a build with sanitizers; returns those that are left."""
    left = []
    with lab_.pool(options.jobs) as pool:
        for change, outcome, by, seconds in pool.imap_unordered(try_change, changes):
            if outcome in ("sanitizer",):
                report.add(change, outcome, by, seconds)
            else:
                left.append(change)
    return left


class Flow:
    """Flow tests need the whole program: the copy itself is changed, built and changed back."""

    def __init__(self, options, work, tree):
        self.options, self.work, self.tree = options, work, tree
        self.build = Build(tree, work / "flow", PLAIN)
        self.limit = 600

    def prepare(self):
        self.build.configure()
        self.build.make(["all"], self.options.jobs)
        status, seconds, output = self.run()
        if status != 0:
            raise BuildError(f"the flow tests fail unchanged:\n{output[-4000:]}")
        self.limit = 5 * seconds + 30

    def run(self):
        # the box hides the folders below /tmp that are not the work folder
        return box.run(["ctest", "--test-dir", self.build.folder, "-R", self.options.flow, "-LE", "nightly", "--no-tests=error",
                        "--stop-on-failure", "--output-on-failure"], self.limit, not self.options.unprotected, cwd=self.work)

    def try_change(self, change):
        path = self.tree / change.file
        text = path.read_text()
        began = time.monotonic()
        try:
            path.write_text(change.apply(text))
            try:
                self.build.make(["all"], self.options.jobs)
            except BuildError:
                return "rejected", "does not build", time.monotonic() - began
            status, _, output = self.run()
        finally:
            path.write_text(text)
        failed = re.findall(r"^\s*\d+ - (\S+)", output, re.MULTILINE)
        by = failed[0] if failed else "time limit" if status is None else "ctest"
        return ("nobody", "", time.monotonic() - began) if status == 0 else ("flow", by, time.monotonic() - began)


def try_flow(options, work, tree, changes, report):
    flow = Flow(options, work, tree)
    flow.prepare()
    for change in changes:
        report.add(change, *flow.try_change(change))


def run(options, work, scratch):
    tree = work / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    copy_tree(options, tree)
    build = Build(tree, work / "plain", PLAIN)
    build.configure()
    touched = touched_lines(options) if options.range else None
    plain = Lab(options, work, scratch, build)
    report = Report(options, plain.text)
    rooms = draw(options, build, wanted_files(options, build.compiles, touched), touched, report.known)
    if not rooms:
        print("mutation: nothing to change there")
        return 0
    for name, file in stale(tree).items():
        print(f"mutation: equal.txt: {name} names no change of {file} any more: remove it", file=sys.stderr)
    files = sorted({change.file for changes in rooms.values() for change in changes})
    plain.prepare(files, options.jobs)
    for file in files:
        plain.text(file)
    left = try_all(options, plain, rooms, report, 0 if options.only or options.survivors else options.count)
    if left and options.sanitize:
        second = Lab(options, work, scratch, Build(tree, work / "sanitized", SANITIZED))
        second.build.configure()
        second.prepare(sorted({change.file for change in left}), options.jobs)
        left = again(options, second, left, report)
    if left and options.flow:
        try_flow(options, work, tree, left, report)
    share = report.finish()
    return 1 if options.at_least is not None and share < options.at_least else 0


def main():
    options = read_options(sys.argv[1:])
    options.root = options.root.resolve()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    if not options.unprotected and not box.possible():
        print("mutation: needs root and namespaces (--unprotected runs changed programs without them)", file=sys.stderr)
        return SKIPPED
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1, 1_000_000)
    print(f"mutation: seed {options.seed}", flush=True)
    try:
        if options.work:
            options.work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="hvdrun-mutation-", dir=options.work) as scratch:
            scratch = pathlib.Path(scratch).resolve()
            return run(options, options.work.resolve() if options.work else scratch, scratch)
    except (BuildError, Usage) as error:
        print(f"mutation: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
