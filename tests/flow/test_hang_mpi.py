# SPDX-License-Identifier: Apache-2.0
"""--hang-timeout and MPI programs, whose ranks spin while they wait (docs/hangs.md)."""
# ctest waits

import os

from ground import nightly
from rig import Flow, main, mpi_worker, patient

KINDS = ("openmpi", "mpich")
QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
# Threads and spawned ranks do not work in Debian's MPICH, under its own launcher either.
HEALTHY = {"openmpi": ("barrier", "barriers", "allreduce", "large", "receive", "pass_on", "exchange", "probe", "test", "overlap",
                       "one_sided", "file", "operation", "own_thread", "spawn")}
HEALTHY["mpich"] = HEALTHY["openmpi"][:-2]
HANGS = {"mismatch": (3, r"rank 2 on localhost is elsewhere: in MPI_Bcast, called by mpi_long\.\w+ mismatch; "
                         r"2 others are in MPI_Allreduce, called by mpi_long\.\w+ mismatch"),
         "no_sender": (3, r"rank 2 on localhost is elsewhere: in MPI_Recv, called by mpi_long\.\w+ no_sender; "
                          r"2 others are in MPI_Barrier, called by mpi_long\.\w+ no_sender"),
         "ssend": (2, r"no rank stands out: all are in MPI_Ssend, called by mpi_long\.\w+ ssend")}


class Mpi(Flow):

    def begin(self, kind, way, np, limit, seconds, *more):
        # MPI-IO makes its file there
        return self.start("-np", np, "-H", f"localhost:{np + 1}", "--hang-timeout", limit, "--hang-warning", 0, "--grace", 0,
                          *more, mpi_worker("mpi_long", kind), way, seconds, env=QUIET, cwd=self.box.path("."))

    def expect_none(self, kind, ways, limit, seconds):
        jobs = {way: self.begin(kind, way, 3, limit, seconds) for way in ways}
        for way, job in jobs.items():
            with self.subTest(kind=kind, way=way):
                result = self.expect(job.wait(patient(300)), 0)
                self.expect_not_said(result, "hangs")
                self.assertIn("[0]<stdout>:done", result.lines)

    def skip_without_counters(self, result):
        if "it cannot be seen whether calls of MPI return" in result.stderr:
            self.skipTest("the kernel does not say whether calls return")

    def test_ranks_that_spin(self):
        jobs = {(kind, way): self.begin(kind, way, np, 4, 0, "--timeout", patient(240))
                for kind in KINDS for way, (np, _) in HANGS.items()}
        for (kind, way), job in jobs.items():
            with self.subTest(kind=kind, way=way):
                result = job.wait(patient(300))
                self.skip_without_counters(result)
                self.expect(result, 119)
                self.expect_said(result, f"the job hangs: no rank has shown progress for --hang-timeout 4.0 s; {HANGS[way][1]}")
                self.assertRegex(result.stderr, r"(?m)^hvdrun: stacks, main threads:$")

    def test_ranks_that_compute(self):
        for kind in KINDS:
            self.expect_none(kind, ("barriers", "receive", "probe", "operation"), 2, 6)

    @nightly("test_ranks_that_compute has some of them")
    def test_programs_that_compute_for_long(self):
        for kind, ways in HEALTHY.items():
            for i in range(0, len(ways), 4):
                self.expect_none(kind, ways[i:i + 4], 3, 30)

    def test_a_child_that_computes(self):
        """A child process of a rank computes, and all ranks wait in MPI."""
        script = self.write("rank.sh", '[ "$RANK" != 2 ] || sh -c "while [ -e go ]; do :; done" & \nexec "$@"\n')
        with open(self.box.path("go"), "w"):
            pass
        program = mpi_worker("mpi_long", "openmpi")
        job = self.start("-np", 3, "--hang-timeout", 2, "--hang-warning", 0, "--grace", 0, "--timeout", 15, "sh", script, program,
                         "no_sender", 0, env=QUIET, cwd=self.box.path("."))
        result = job.wait(patient(120))
        os.unlink(self.box.path("go"))
        self.expect(result, 124)
        self.expect_not_said(result, "hangs")

    def test_a_rank_that_has_left(self):
        """The job ends after a minute, unless it is to wait."""
        jobs = {(kind, limit): self.start("-np", 3, "--grace", 0, "--timeout", 400 if limit is None else 100,
                                          *(() if limit is None else ("--hang-timeout", limit)),
                                          mpi_worker("mpi_die", kind), "after", 1, 0, env=QUIET)
                for kind in KINDS for limit in (None, 0)}
        for (kind, limit), job in jobs.items():
            with self.subTest(kind=kind, limit=limit):
                result = job.wait(patient(420))
                self.skip_without_counters(result)
                self.expect(result, 119 if limit is None else 124)
                if limit is None:
                    self.expect_said(result, r"rank 1 has exited with 0 without MPI_Finalize, and all ranks that run have been in the same "
                                             r"calls of MPI for \d+ s; hvdrun ends the job after a minute of this, and --hang-timeout 0 lets it wait")
                    self.expect_said(result, r"the job hangs: rank 1 has exited with 0 without MPI_Finalize")


if __name__ == "__main__":
    main()
