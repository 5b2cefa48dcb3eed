# SPDX-License-Identifier: Apache-2.0
"""MPI programs: Open MPI through the PMIx server, MPICH through PMI-1, and the wrong kind noticed."""
# ctest busy

import os
import re
import shutil
import signal
import sys
import time

from epochs import Epochs
from rig import HVDRUN, Flow, main, mpi_worker, plain, sanitized, worker

KINDS = ("openmpi", "mpich")
# Docker and small machines: more ranks than cores, and no complaint about it
QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


class Mpi(Flow):

    left_timeout = 10

    def mpi(self, *args, **options):
        return self.run_job(*args, env={**QUIET, **options.pop("env", {})}, timeout=120, **options)

    def expect_world(self, result, size):
        """Every rank was in one world of `size`, and the sum of the ranks came out right."""
        self.expect(result, 0)
        want = [f"rank {r} of {size} sum {size * (size - 1) // 2}" for r in range(size)]
        got = [re.sub(r"^\[\d+\]<stdout>:", "", line) for line in result.lines]
        self.assertEqual(sorted(got), sorted(want), result.describe())
        for line in result.lines:
            self.assertRegex(line, r"^\[(\d+)\]<stdout>:rank \1 of ", "PMI rank and launcher's rank differ")


class Hello(Mpi):

    @plain
    def test_sizes(self):
        for kind in KINDS:
            for size in (1, 2, 4) if sanitized() else (1, 2, 9):
                with self.subTest(kind=kind, size=size):
                    self.expect_world(self.mpi("-np", size, mpi_worker("mpi_hello", kind), 10), size)

    def test_nothing_is_said(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                result = self.expect(self.mpi("-np", 2, mpi_worker("mpi_hello", kind)), 0)
                # Open MPI 5 says this, under its own mpirun too, of an interface that reaches no other
                said = [line for line in result.stderr.splitlines() if "find reachable pairing between" not in line]
                self.assertEqual(said, [], result.describe())

    def test_chosen_kind(self):
        self.expect_world(self.mpi("-np", 3, "--mpi=pmix", mpi_worker("mpi_hello", "openmpi")), 3)
        self.expect_world(self.mpi("-np", 3, "--mpi=pmi1", mpi_worker("mpi_hello", "mpich")), 3)

    def test_from_a_script(self):
        # through an interpreter nothing can be read off the executable: PMIx is on
        path = self.write("run", f'#!/bin/sh\nexec "{mpi_worker("mpi_hello", "openmpi")}"\n', 0o755)
        self.expect_world(self.mpi("-np", 2, path), 2)
        self.expect_world(self.mpi("-np", 2, "sh", "-c", mpi_worker("mpi_hello", "openmpi")), 2)
        path = self.write("run2", f'#!/bin/sh\nexec "{mpi_worker("mpi_hello", "mpich")}"\n', 0o755)
        self.expect_world(self.mpi("-np", 2, "--mpi=pmi1", path), 2)

    def test_messages(self):
        for kind in KINDS:
            for size, count in ((1 << 10, 20), (4 << 20, 3)):
                with self.subTest(kind=kind, size=size):
                    result = self.mpi("-np", 3, mpi_worker("mpi_ring", kind), size, count)
                    self.expect_lines(self.expect(result, 0), ["[0]<stdout>:ring of 3 ok"])

    def test_several_jobs_one_after_the_other(self):
        for kind in KINDS:
            for _ in range(3):
                self.expect_world(self.mpi("-np", 2, mpi_worker("mpi_hello", kind)), 2)

    def test_mpmd_in_one_world(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                program = mpi_worker("mpi_hello", kind)
                self.expect_world(self.mpi("-np", 1, program, ":", "-np", 2, program), 3)

    def test_two_jobs_at_the_same_time(self):
        for kind in KINDS:
            jobs = [self.start("-np", 2, mpi_worker("mpi_hello", kind), 50, env=QUIET) for _ in range(2)]
            for job in jobs:
                self.expect_world(job.wait(120), 2)

    def test_inherited_pmi_variables_do_no_harm(self):
        lies = {"PMI_RANK": "5", "PMI_SIZE": "9", "PMI_FD": "3", "PMIX_RANK": "5", "PMIX_NAMESPACE": "other",
                "PMIX_SERVER_URI2": "other.0;tcp4://127.0.0.1:9", "OMPI_COMM_WORLD_RANK": "5"}
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.expect_world(self.mpi("-np", 2, mpi_worker("mpi_hello", kind), env=lies), 2)


class Settings(Mpi):
    """What MPI programs are given of their library's settings unless the user has chosen."""

    GIVEN = {"pmix": {"OMPI_MCA_shmem": "mmap", "OMPI_MCA_mpi_yield_when_idle": "1",
                      "HWLOC_PLUGINS_BLACKLIST": "hwloc_gl.so,hwloc_xml_libxml.so"},
             "pmi1": {"HWLOC_PLUGINS_BLACKLIST": "hwloc_gl.so,hwloc_xml_libxml.so"}}

    def settings(self, how, *args, env=None):
        size = len(os.sched_getaffinity(0)) + 1  # more than CPUs
        result = self.expect(self.run_job("-np", size, f"--mpi={how}", *args, "env", env=env), 0)
        return dict(line.split(":", 1)[1].split("=", 1) for line in result.lines if line.startswith("[1]<stdout>:") and "=" in line)

    def test_given(self):
        for how, given in self.GIVEN.items():
            found = self.settings(how)
            self.assertEqual({name: found.get(name) for name in given}, given)
            if how == "pmix":
                self.assertRegex(found["OMPI_MCA_btl_vader_backing_directory"], "^/dev/shm/hvdrun-")

    def test_none_for_other_programs(self):
        self.assertNotIn("HWLOC_PLUGINS_BLACKLIST", self.settings("none"))

    def test_the_users_stay(self):
        for how, given in self.GIVEN.items():
            own = {name: "0" for name in (*given, "OMPI_MCA_btl_vader_backing_directory")}
            for args, env in (((), own), ([word for name in own for word in ("-x", f"{name}=0")], None)):
                with self.subTest(how=how, args=args):
                    found = self.settings(how, *args, env=env)
                    self.assertEqual({name: found.get(name) for name in own}, own)


class Names(Mpi):

    def test_publish_and_lookup(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                result = self.expect(self.mpi("-np", 3, mpi_worker("mpi_publish", kind)), 0)
                self.expect_lines(result, ["[1]<stdout>:rank 1 found the port", "[2]<stdout>:rank 2 found the port",
                                           "[2]<stdout>:rank 2 gone"])

    def test_connect_through_a_published_port(self):
        # Debian's MPICH is built on UCX, which has no MPI_Open_port
        result = self.expect(self.mpi("-np", 2, mpi_worker("mpi_publish", "openmpi"), "connect"), 0)
        self.assertIn("[0]<stdout>:rank 0 met 41", result.lines, result.describe())
        self.assertIn("[1]<stdout>:rank 1 met 40", result.lines, result.describe())


class ManyEpochs(Epochs, Mpi):

    def test_nothing_is_kept(self):
        # the nightly test has a thousand of them, and looks at memory too
        early, late = self.many(15 if sanitized() else 30, self.pmix())
        self.expect_nothing_kept(early, late)
        self.assertNotEqual(late.namespaces, early.namespaces)


class Ends(Mpi):

    def test_abort(self):
        for kind in KINDS:
            for code in (1, 7):
                with self.subTest(kind=kind, code=code):
                    result = self.expect(self.mpi("-np", 3, mpi_worker("mpi_abort", kind), 1, code), code)
                    self.expect_said(result, rf"\brank 1\b.*abort.*\b{code}\b|abort.*\brank 1\b.*\b{code}\b")

    def test_what_was_printed_right_before_an_abort(self):
        """Open MPI leaves it in the buffer of stdout, if that is a pipe, as behind a shell."""
        for kind in KINDS:
            program = mpi_worker("mpi_abort", kind)
            for command in ((program,), ("sh", "-c", f"'{program}' $1 $2; exit $?", "sh")):
                option = "--mpi=pmix" if kind == "openmpi" else "--mpi=pmi1"
                with self.subTest(kind=kind, command=command):
                    for pty in ("none", "auto"):
                        result = self.expect(self.mpi("-np", 2, "--pty", pty, option, *command, 1, 5), 5)
                        self.assertEqual(result.lines, ["[1]<stdout>:rank 1 aborts"], result.describe())

    def test_what_others_have_printed_before_an_abort(self):
        """The stdout of each rank is a terminal, so C programs write each line when it is complete."""
        for kind in KINDS:
            option = "--mpi=pmix" if kind == "openmpi" else "--mpi=pmi1"
            with self.subTest(kind=kind):
                result = self.expect(self.mpi("-np", 4, option, mpi_worker("mpi_abort", kind), 1, 5, "told\n"), 5)
                self.assertEqual(sorted(result.lines), sorted([f"[{rank}]<stdout>:told" for rank in range(4)] +
                                                              ["[1]<stdout>:rank 1 aborts", "[1]<stdout>:told"]), result.describe())

    def test_an_unfinished_line_before_an_abort(self):
        for kind in KINDS:
            option = "--mpi=pmix" if kind == "openmpi" else "--mpi=pmi1"
            with self.subTest(kind=kind):
                result = self.expect(self.mpi("-np", 2, option, mpi_worker("mpi_abort", kind), 1, 5, "half"), 5)
                self.assertEqual([line for line in result.lines if line.startswith("[1]")],
                                 ["[1]<stdout>:halfrank 1 aborts", "[1]<stdout>:half"], result.describe())

    def test_an_abort_never_succeeds(self):
        for kind in KINDS:
            for code in (0, 256):
                with self.subTest(kind=kind, code=code):
                    result = self.expect(self.mpi("-np", 2, mpi_worker("mpi_abort", kind), 1, code), 1)
                    self.expect_said(result, rf"rank 1 aborted the job with code {code} \(status 1, because 0 would mean success\)")

    def test_death_before_in_and_after_init(self):
        for kind in KINDS:
            for when in ("before", "in", "after", "late"):
                with self.subTest(kind=kind, when=when):
                    result = self.expect(self.mpi("-np", 3, "--grace", 2, mpi_worker("mpi_die", kind), when, 1, 6), 6)
                    self.expect_blame(result, 1, code=6)

    def test_death_by_signal(self):
        for kind in KINDS:
            for when, how, number in (("in", "kill", signal.SIGKILL), ("after", "segv", signal.SIGSEGV),
                                      ("after", "kill", signal.SIGKILL)):
                with self.subTest(kind=kind, when=when, how=how):
                    result = self.mpi("-np", 3, "--grace", 2, mpi_worker("mpi_die", kind), when, 2, how)
                    self.expect(result, 128 + number)
                    self.expect_blame(result, 2, signal_number=number)

    def test_a_rank_that_never_calls_init_while_others_wait_in_it(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                program = mpi_worker("mpi_hello", kind)
                option = "--mpi=pmix" if kind == "openmpi" else "--mpi=pmi1"
                result = self.mpi("-np", 2, "--grace", 1, option, program, ":", "-np", 1, worker("exit_with"), "2:5:700")
                self.expect(result, 5)
                self.expect_blame(result, 2, code=5)

    def test_a_rank_that_left_ends_nothing_else(self):
        """A rank computes; or the one that left never called MPI_Init. So hvdrun does not suspect that they wait."""
        jobs = [self.start("-np", 3, "--grace", 0, "--timeout", 20, mpi_worker("mpi_die", kind), when, 1, 0, env=QUIET)
                for kind in KINDS for when in ("alone", "before")]
        for job in jobs:
            result = self.expect(job.wait(120), 124)
            self.expect_said(result, r"rank 1 has exited without MPI_Finalize")
            self.expect_not_said(result, "seem to have been in the same calls")

    def test_a_rank_that_does_not_speak_the_protocol(self):
        code = "import os; fd = int(os.environ['PMI_FD']); os.write(fd, b'junk\\n'); os.read(fd, 9); os.read(fd, 9)"
        result = self.mpi("-np", 2, "--mpi=pmi1", sys.executable, "-c", code)
        self.expect(result, 125)
        self.expect_said(result, r"rank [01] does not speak PMI-1")

    def test_words_after_finalize_cost_nothing(self):
        code = ("import os; fd = int(os.environ['PMI_FD'])\n"
                "for said in ('init pmi_version=1 pmi_subversion=1', 'finalize', 'finalize'):\n"
                "    os.write(fd, b'cmd=' + said.encode() + b'\\n'); os.read(fd, 100)\n")
        self.expect(self.mpi("-np", 1, "--mpi=pmi1", sys.executable, "-c", code), 0)

    def test_two_mpi_families_in_one_job(self):
        result = self.mpi("-np", 1, mpi_worker("mpi_hello", "openmpi"), ":", "-np", 1, mpi_worker("mpi_hello", "mpich"))
        self.expect(result, 125)
        self.expect_said(result, r"mpi_hello.openmpi .*pmix.*mpi_hello.mpich .*pmi1.*same MPI")

    def test_killed_driver(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                gate, _ = self.box.gate()
                option = "--mpi=pmix" if kind == "openmpi" else "--mpi=pmi1"
                job = self.start("-np", 2, "--grace", 1, option, mpi_worker("mpi_hello", kind), ":", "-np", 1,
                                 worker("hang"), "--until", gate, env=QUIET)
                job.wait_output("ready")
                job.signal(signal.SIGKILL)
                job.wait()
                self.box.check_nothing_left(20)

    def test_interrupted(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                job = self.start("-np", 2, "--grace", 2, mpi_worker("mpi_hello", kind), 1_000_000_000, env=QUIET)
                job.wait_workers(2)
                os.kill(job.pid, signal.SIGINT)
                self.expect(job.wait(), 130)


# mpi4py 4.1 finds its extension in this way: MPI.KIND.abi3.so.
FINDER = """\
import importlib.util, os, sys
class Finder:
    @staticmethod
    def find_spec(name, path, target=None):
        file = f"{os.path.dirname(__file__)}/MPI.{os.environ['MPI4PY_MPIABI']}.abi3.so"
        return importlib.util.spec_from_file_location(name, file) if name == "mpi4py.MPI" else None
sys.meta_path.append(Finder)
"""


class Python(Mpi):
    """A module that stands for mpi4py, and initializes MPI when it is imported."""

    def package(self, init="", **files):
        """PYTHONPATH of an mpi4py with these extensions."""
        self.write("packages/mpi4py/__init__.py", init)
        for kind, name in files.items():
            link = self.box.path("packages", "mpi4py", name)
            if os.path.lexists(link):
                os.unlink(link)
            os.symlink(mpi_worker("mpi_python", kind), link)
        return {"PYTHONPATH": self.box.path("packages")}

    def test_the_mpi_of_its_extension(self):
        script = self.write("train.py", f"#!{sys.executable}\nfrom mpi4py import MPI\n", 0o755)
        for kind in KINDS:
            for program in ([sys.executable, script], [script], ["env", "A=b", sys.executable, "-c", "import mpi4py.MPI"]):
                with self.subTest(kind=kind, program=program):
                    self.expect_world(self.mpi("-np", 2, *program, env=self.package(**{kind: "MPI.abi3.so"})), 2)

    def test_the_extension_that_the_user_names(self):
        env = self.package(FINDER, openmpi="MPI.openmpi.abi3.so", mpich="MPI.mpich.abi3.so")
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.expect_world(self.mpi("-np", 2, sys.executable, "-c", "from mpi4py import MPI",
                                           env={**env, "MPI4PY_MPIABI": kind}), 2)

    def test_no_import_no_harm(self):
        env = self.package(mpich="MPI.abi3.so")
        result = self.expect(self.mpi("-np", 2, sys.executable, "-c", "print('done')", env=env), 0)
        self.assertEqual((len(result.lines), result.stderr), (2, ""))

    def test_a_wrong_choice_names_both_files(self):
        """Its mpi4py is for MPICH, but the program runs one of Open MPI."""
        ring = mpi_worker("mpi_ring", "openmpi")
        env = self.package(mpich="MPI.abi3.so") | {"TMPDIR": self.box.path("tmp")}
        os.mkdir(env["TMPDIR"])
        gate, let_go = self.box.gate()
        text = (f"import os, subprocess, time\np = subprocess.Popen([{ring!r}, '1048576', '1000000000'])\n"
                f"while not os.path.exists({gate!r}):\n    time.sleep(0.05)\np.kill()\np.wait()")
        job = self.start("-np", 2, sys.executable, "-c", text, env=QUIET | env)
        job.wait_output("hvdrun chose --mpi=pmi1", "stderr", timeout=60)
        let_go()
        result = self.expect(job.wait(), 0)
        extension = os.path.join(env["PYTHONPATH"], "mpi4py", "MPI.abi3.so")
        self.expect_said(result, rf"has /\S+/libmpi\.so\.40\S* mapped .*hvdrun chose --mpi=pmi1 for it, since the program may "
                                 rf"import {re.escape(extension)}, which needs libmpi\S+ .*--mpi=pmix")


    def test_a_host_that_has_no_pmix(self):
        """The warning does not say that the program is a script, which would get PMIx elsewhere."""
        gate, let_go = self.box.gate()
        os.mkdir(self.box.path("tmp"))
        text = f'TMPDIR={self.box.path("tmp")} {mpi_worker("mpi_ring", "openmpi")} 1048576 1000000000 & ' \
               f'while [ ! -e {gate} ]; do sleep 0.05; done; kill $!; wait $!; exit 0'
        job = self.start("-np", 1, "sh", "-c", text, env=QUIET | {"TMPDIR": "/nonexistent", "XDG_RUNTIME_DIR": None})
        job.wait_output("uses MPI", "stderr", timeout=60)
        let_go()
        self.expect_said(self.expect(job.wait(), 0), "hvdrun chose --mpi=none for it, since the program could not get PMIx on "
                                                     "this host")


class Image(Mpi):
    """Programs in an image that is a folder. A stand-in for apptainer runs them, with the libraries of this machine."""

    def setUp(self):
        super().setUp()
        self.image = self.box.path("image")
        os.makedirs(os.path.join(self.image, "etc"))
        self.write("bin/apptainer", f'#!/bin/sh\nimage=$3 program=$4\nshift 4\n'
                                    f'case $program in python3) program={sys.executable}\n'
                                    f'export PYTHONPATH=$image/usr/lib/python3/dist-packages;;\n'
                                    f'*) program=$image$program; esac\nexec "$program" "$@"\n', 0o755)

    def inside(self, *command):
        return self.mpi("-np", 2, self.box.path("bin", "apptainer"), "exec", "--nv", self.image, *command)

    def put(self, source, *names):
        os.makedirs(self.box.path("image", *names[:-1]), exist_ok=True)
        shutil.copy(source, self.box.path("image", *names))

    def test_a_program(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.put(mpi_worker("mpi_hello", kind), "usr", "bin", "hello")
                self.expect_world(self.inside("/usr/bin/hello"), 2)

    def test_python(self):
        self.put(sys.executable, "usr", "bin", "python3")
        self.write("image/usr/lib/python3/dist-packages/mpi4py/__init__.py", "")
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.put(mpi_worker("mpi_python", kind), "usr", "lib", "python3", "dist-packages", "mpi4py", "MPI.abi3.so")
                self.expect_world(self.inside("python3", "-c", "from mpi4py import MPI"), 2)


class WrongKind(Mpi):

    def test_mpich_under_pmix_is_noticed(self):
        # silently it would be n times "0 of 1": the watcher samples after a second
        path = self.write("slow", f'#!/bin/sh\n"{mpi_worker("mpi_hello", "mpich")}"\n"{mpi_worker("mpi_ring", "mpich")}" '
                                  f'1048576 100000 &\nsleep 4\nkill $!\nwait 2>/dev/null\nexit 0\n', 0o755)
        result = self.mpi("-np", 2, path)
        self.expect_said(result, "hvdrun chose --mpi=pmix for it.*--mpi=pmi1")

    def test_open_mpi_under_pmi1_is_noticed(self):
        # what Open MPI 5 leaves when it is killed without a PMIx server is the program's
        gate, let_go = self.box.gate()
        path = self.write("slow", f'#!/bin/sh\nexport TMPDIR=$(mktemp -d)\n"{mpi_worker("mpi_ring", "openmpi")}" 1048576 100000 &\n'
                                  f'until test -e "{gate}"; do sleep 0.05; done\nkill $!\nwait 2>/dev/null\nrm -rf "$TMPDIR"\nexit 0\n',
                          0o755)
        job = self.start("-np", 2, "--mpi=pmi1", path, env=QUIET)
        job.wait_output("was started with --mpi=pmi1.*--mpi=pmix", name="stderr", timeout=60)
        let_go()
        job.wait()

    def test_it_is_said_once(self):
        # a rank that ends without MPI_Finalize makes the watcher look again
        gate, let_go = self.box.gate()
        path = self.write("slow", f'#!/bin/sh\nexport TMPDIR=$(mktemp -d)\n"{mpi_worker("mpi_ring", "openmpi")}" 1048576 100000 &\n'
                                  f'until test -e "{gate}"; do sleep 0.05; done\ntest "$RANK" = 0 || sleep 3\nkill $!\n'
                                  f'wait 2>/dev/null\nrm -rf "$TMPDIR"\nexit 0\n', 0o755)
        job = self.start("-np", 2, "--mpi=pmi1", path, env=QUIET)
        job.wait_output("was started with --mpi=pmi1.*--mpi=pmix", name="stderr", timeout=60)
        let_go()
        result = job.wait()
        self.assertEqual(result.stderr.count("start the job with --mpi=pmix"), 1, result.describe())

    def test_no_mpi_library_no_warning(self):
        gate, let_go = self.box.gate()
        job = self.start("-np", 2, "--mpi=pmix", worker("hang"), "--until", gate)
        job.wait_output("ready", count=2)
        time.sleep(2)
        let_go()
        result = self.expect(job.wait(), 0)
        self.assertEqual(result.stderr, "", result.describe())

    def test_the_right_kind_is_not_warned_about(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                program = [mpi_worker("mpi_hello", kind), 30_000_000]
                # a launcher as the worker, which serves its own ranks, and a wrapper around one
                wrapper = self.write("wrapper", f'#!/bin/sh\n"{HVDRUN}" -np 1 "$@"\n', 0o755)
                jobs = [self.start(*command, *program, env=QUIET) for command in
                        (("-np", 2), ("-np", 1, HVDRUN, "-np", 1), ("-np", 1, "--mpi=none", wrapper))]
                jobs[0].wait_workers(2)
                time.sleep(3)
                for job in jobs:
                    job.signal(signal.SIGTERM)
                    self.expect_not_said(job.wait(), "--mpi=")


if __name__ == "__main__":
    main()
