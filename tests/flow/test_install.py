# SPDX-License-Identifier: Apache-2.0
"""cmake --install: program, modules, man page and completion are in place and work from there."""

import os
import re
import shutil
import subprocess

from rig import BUILD, SOURCE, Flow, main, mpi_worker, plain, sanitized, worker


class Install(Flow):

    def setUp(self):
        super().setUp()
        self.prefix = self.box.path("prefix")
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", self.prefix], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def find(self, name):
        found = [os.path.join(folder, name) for folder, _, files in os.walk(self.prefix) if name in files]
        found = [path for path in found if not os.path.islink(path)]
        self.assertEqual(len(found), 1, f"{name}: {found}")
        return found[0]

    def installed(self, *args):
        command = [os.path.join(self.prefix, "bin", "hvdrun"), *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120,
                              stdin=subprocess.DEVNULL, env=self.box.environment())

    def test_runs_from_there_with_its_modules(self):
        done = self.installed("-np", 2, worker("hello"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("hello from rank 1 of 2", done.stdout)
        done = self.installed("-np", 2, mpi_worker("mpi_hello", "openmpi"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("rank 1 of 2", done.stdout)
        done = self.installed("-np", 1, "--report-bindings", worker("hello"))
        self.assertRegex(done.stderr, r"rank 0  CPUs \S+  (GPU \S+  )?\[")

    @plain
    def test_libhvd_as_the_docs_say(self):
        """The lines of docs/runtime.md, for an installation in the home folder; then plain flags."""
        if sanitized():
            self.skipTest("a program that is not built with sanitizers cannot load a library that is")
        with open(os.path.join(SOURCE, "docs/runtime.md"), encoding="utf-8") as file:
            text = file.read()
        lines = re.search(r"```sh\n(export PKG_CONFIG_PATH.*?)```", text, re.S)[1]
        flags = re.search(r"Without pkg-config, write `(.*)`", text)[1]
        home, folder = self.box.path("home"), self.box.path("program")
        os.makedirs(home)
        os.makedirs(folder)
        os.symlink(self.prefix, os.path.join(home, ".local"))
        shutil.copy(os.path.join(SOURCE, "examples/libhvd/fit.c"), folder)
        environment = self.box.environment({"HOME": home, "PATH": f"{home}/.local/bin:{os.environ['PATH']}"})
        environment.pop("LD_LIBRARY_PATH", None)
        for script in (lines, f"cc -o fit fit.c {flags}\nhvdrun -np 4 ./fit\n"):
            done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=False, timeout=120,
                                  stdin=subprocess.DEVNULL, env=environment, cwd=folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""), script)
            self.assertIn("4 ranks: y = 3.000 x + 1.000", done.stdout)
            os.remove(os.path.join(folder, "fit"))

    def test_its_agent_goes_to_other_hosts(self):
        """A stand-in for a host: a shell with folders of its own, to which the installed agent is sent."""
        away = self.box.path("away")
        os.makedirs(away)
        template = f"env -u XDG_RUNTIME_DIR TMPDIR={away} HOME={away} HOST=%h"
        done = self.installed("-H", "a:1,b:1", "--launch-agent", template, "sh", "-c", "echo $RANK on $HVDRUN_HOSTNAME")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.split("\n")[:2]), ["[0]<stdout>:0 on a", "[1]<stdout>:1 on b"])
        kept = [name for _, _, names in os.walk(away) for name in names if not name.startswith("checked-")]
        self.assertEqual([name.startswith("hvdrun-agent-") for name in kept], [True], kept)
        for module in ("hvdrun-agent", "hvdrun-ssh.so", "hvdrun-tls.so", "hvdrun-pmix.so", "hvdrun-topology.so",
                       "hvdrun-unwind.so", "hvdrun-screen.so"):
            self.find(module)
        link = os.path.join(self.prefix, "bin", "hvdrun-agent")  # for agents that dial in
        self.assertTrue(os.path.samefile(link, self.find("hvdrun-agent")))

    def test_man_page(self):
        page = self.find("hvdrun.1")
        self.assertTrue(page.endswith("man/man1/hvdrun.1"), page)
        if shutil.which("groff"):
            text = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-P-cbou", page], capture_output=True, text=True, check=False)
            self.assertEqual((text.returncode, text.stderr), (0, ""))
            self.assertIn("output-filename", text.stdout)

    def complete(self, *words):
        """What bash offers for the last word."""
        script = os.path.join(self.prefix, "share/bash-completion/completions/hvdrun")
        ask = ('source "$1"; shift; COMP_WORDS=(hvdrun "$@"); COMP_CWORD=$#; COMP_LINE="hvdrun $*"; '
               'COMP_POINT=${#COMP_LINE}; name=$(complete -p hvdrun | sed -n "s/.*-F \\([^ ]*\\).*/\\1/p"); '
               '"$name" hvdrun "${!#}" "${COMP_WORDS[COMP_CWORD-1]}"; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", ask, "-", script, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        return [word.strip(" =") for word in done.stdout.split()]

    def test_bash_completion(self):
        self.assertEqual(self.complete("--output-f"), ["--output-filename"])
        self.assertEqual(self.complete("drain", "--w"), ["--within"])
        self.assertEqual(self.complete("status", "--"), ["--json", "--job", "--slurm-job", "--help"])
        self.assertEqual(self.complete("help", "al"), ["all"])
        self.assertIn("undrain", self.complete("undra"))
        self.assertLess(len(self.complete("")), 30, "no programs of PATH without a letter")
        self.assertNotIn("undrain", self.complete("-np", "2", "undra"))


if __name__ == "__main__":
    main()
