# SPDX-License-Identifier: Apache-2.0
"""A build folder of the copied tree: its unit tests as ctest knows them, and how one changed file is
compiled and linked into them. The folder itself stays as it is, so any number of changes can be tried
at once."""
import hashlib
import json
import pathlib
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass

PLAIN, SANITIZED = "-O1", "-O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined"


@dataclass(frozen=True)
class Test:
    name: str      # as ctest knows it
    program: str   # relative to the build folder
    command: tuple
    environment: tuple

    @property
    def room(self):
        return self.name.split(".")[1]

    @property
    def noun(self):
        return self.name.split(".")[2]


class BuildError(Exception):
    pass


class Build:
    def __init__(self, tree, folder, flags):
        self.tree, self.folder, self.flags = pathlib.Path(tree), pathlib.Path(folder), flags
        self.sanitized = "-fsanitize" in flags
        self.links, self.names_of, self.symbols = {}, {}, {}

    def configure(self):
        compiler = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        self.call("cmake", "-G", "Ninja", "-S", self.tree, "-B", self.folder, "-DCMAKE_BUILD_TYPE=None",
                  f"-DCMAKE_C_FLAGS={self.flags}", "-DHVDRUN_TESTS=ON", "-DHVDRUN_EXAMPLES=OFF",
                  "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *compiler)
        entries = json.loads((self.folder / "compile_commands.json").read_text())
        self.compiles = {}
        for entry in entries:
            name = pathlib.Path(entry["directory"], entry["file"]).resolve()
            if name.is_relative_to(self.tree.resolve()):
                self.compiles.setdefault(name.relative_to(self.tree.resolve()).as_posix(), entry)
        self.tests = self.unit_tests()

    def call(self, *command):
        ran = subprocess.run([str(word) for word in command], cwd=self.tree, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ran.returncode != 0:
            raise BuildError(f"{shlex.join(str(word) for word in command[:2])} failed:\n{ran.stdout[-4000:]}")
        return ran.stdout

    def unit_tests(self):
        """ctest names a program only when it is there, so the commands come from the files that it reads."""
        commands = {}
        for file in self.folder.rglob("CTestTestfile.cmake"):
            for name, words in re.findall(r"^add_test\((?:\[=*\[)?([\w.]+)(?:\]=*\])? (.*)\)$", file.read_text(), re.MULTILINE):
                commands[name] = shlex.split(words)
        listing = json.loads(self.call("ctest", "--test-dir", self.folder, "--show-only=json-v1"))
        tests = []
        for test in listing["tests"]:
            if not re.fullmatch(r"unit\.\w+\.\w+", test["name"]):
                continue
            command = commands[test["name"]]
            wanted = [value for prop in test.get("properties", []) if prop["name"] == "ENVIRONMENT" for value in prop["value"]]
            program = pathlib.Path(command[0]).resolve().relative_to(self.folder.resolve()).as_posix()
            tests.append(Test(test["name"], program, tuple(command[1:]), tuple(wanted)))
        return tests

    def make(self, programs, jobs):
        self.call("nice", "ninja", "-C", self.folder, "-j", str(jobs), "--quiet", *sorted(programs))

    # How one file becomes an object, with a name of its own and as if it lay in the working folder.
    def compile_command(self, file, source, target):
        words, result, skip = shlex.split(self.compiles[file]["command"]), [], False
        for at, word in enumerate(words):
            if skip or word == "-c" or word.endswith("/ccache"):
                skip = False
            elif word == "-o":
                skip = True
            elif not (word.endswith(".c") and at == len(words) - 1):
                result.append(word)
        return result + ["-O2", "-w", "-Werror=implicit-function-declaration", "-o", str(target), "-c", str(source)]

    def object_of(self, file):
        words = shlex.split(self.compiles[file]["command"])
        path = pathlib.Path(self.compiles[file]["directory"], words[words.index("-o") + 1])
        return path.resolve().relative_to(self.folder.resolve()).as_posix()

    def link_words(self, program):
        if program not in self.links:
            text = self.call("ninja", "-C", self.folder, "-t", "commands", "-s", program).strip().splitlines()[-1]
            self.links[program] = shlex.split(text.removeprefix(": && ").removesuffix(" && :"))
        return self.links[program]

    def archive_of(self, file):
        return re.sub(r"CMakeFiles/(\w+)\.dir/.*", r"lib\1.a", self.object_of(file))

    def link_command(self, program, file, changed, target):
        """The changed object stands before the archive that has the old one, so the linker takes it."""
        words = list(self.link_words(program))
        words[words.index("-o") + 1] = str(target)
        own, archive = self.object_of(file), self.archive_of(file)
        if own in words:
            words[words.index(own)] = str(changed)
        else:
            words.insert(words.index(archive), str(changed))
        return words + (["-fuse-ld=gold"] if shutil.which("ld.gold") else [])

    def external_names(self, path):
        if path not in self.names_of:
            listing = self.call("nm", "--defined-only", self.folder / path)
            self.names_of[path] = {line.split()[-1] for line in listing.splitlines() if line.strip()}
        return self.names_of[path]

    def has(self, program, file):
        """Whether the program contains the file's object."""
        words = self.link_words(program)
        if self.object_of(file) in words:
            return True
        if self.archive_of(file) not in words:
            return False
        if file not in self.symbols:
            listing = self.call("nm", "--defined-only", "--extern-only", self.folder / self.object_of(file))
            self.symbols[file] = {line.split()[-1] for line in listing.splitlines() if line.strip()}
        return bool(self.symbols[file] & self.external_names(program))

    def baseline(self, file, text, place):
        """The bytes of the unchanged object; kept beside the build."""
        kept = self.folder / "mutation" / hashlib.sha256(f"{file}\0{text}".encode()).hexdigest()
        if not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            source, target = place / pathlib.Path(file).name, place / "unchanged.o"
            source.write_text(text)
            ran = subprocess.run(self.compile_command(file, source.name, target.name), cwd=place, capture_output=True, text=True)
            if ran.returncode != 0:
                raise BuildError(ran.stderr)
            target.rename(kept)
        return kept.read_bytes()
