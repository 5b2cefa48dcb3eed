# SPDX-License-Identifier: Apache-2.0
"""--hang-timeout and MPI programs, whose ranks spin while they wait (docs/hangs.md), also for one that has left."""
# ctest waits

import os
import signal

from ground import nightly
from rig import Flow, main, mpi_worker, patient

KINDS = ("openmpi", "mpich")
QUIET = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
# Several threads and spawned ranks do not work in Debian's MPICH, under its own launcher either.
BOTH = ("barrier", "barriers", "allreduce", "large", "receive", "pass_on", "exchange", "probe", "test", "overlap", "one_sided", "file",
        "operation", "library_operation", "solver", "sleeper")
THREADS = ("own_thread", "sleeping_thread", "talking_thread", "receiving_thread", "crowd", "spawn")
HEALTHY = {"openmpi": (*BOTH, *THREADS), "mpich": BOTH}
HANGS = {"mismatch": (3, r"rank 2 on localhost is elsewhere: in MPI_Bcast, called by mpi_long\.\w+ mismatch; "
                         r"2 others are in MPI_Allreduce, called by mpi_long\.\w+ mismatch"),
         "no_sender": (3, r"rank 2 on localhost is elsewhere: in MPI_Recv, called by mpi_long\.\w+ no_sender; "
                          r"2 others are in MPI_Barrier, called by mpi_long\.\w+ no_sender"),
         "ssend": (2, r"no rank stands out: all are in MPI_Ssend, called by mpi_long\.\w+ ssend")}
# Long enough for a rank that gets no processor for a while.
LIMIT, LONG = 10, 16


class Counters(Flow):

    def skip_without_counters(self, result):
        if os.geteuid() != 0 and "it cannot be seen whether calls of MPI return" in result.stderr:
            self.skipTest("the kernel does not say whether calls return")


class Mpi(Counters):

    def begin(self, kind, way, np, limit, seconds, *more, before=()):
        # MPI-IO makes its file there
        return self.start("-np", np, "-H", f"localhost:{np + 1}", "--hang-timeout", limit, "--hang-warning", 0, "--grace", 0,
                          *more, *before, mpi_worker("mpi_long", kind), way, seconds, env=QUIET, cwd=self.box.path("."))

    def expect_none(self, kind, ways, seconds=LONG, before=()):
        jobs = {way: self.begin(kind, way, 2, LIMIT, seconds, before=before) for way in ways}
        for way, job in jobs.items():
            with self.subTest(kind=kind, way=way):
                result = self.expect(job.wait(patient(300)), 0)
                self.expect_not_said(result, "hangs")
                self.assertIn("[0]<stdout>:done", result.lines)

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

    def test_a_hang_below_a_shell(self):
        job = self.begin("openmpi", "no_sender", 3, 4, 0, "--timeout", patient(240), before=("sh", "-c", '"$0" "$@"; :'))
        result = job.wait(patient(300))
        self.skip_without_counters(result)
        self.expect(result, 119)
        self.expect_said(result, "the job hangs: no rank has shown progress")

    def test_after_a_rank_has_left(self):
        """It has exited with 0 without MPI_Finalize, and the others wait for it."""
        job = self.start("-np", 3, "--hang-timeout", 6, "--hang-warning", 0, "--grace", 0, "--timeout", patient(240),
                         mpi_worker("mpi_die", "openmpi"), "after", 1, 0, env=QUIET)
        result = job.wait(patient(300))
        self.skip_without_counters(result)
        self.expect(result, 119)
        self.expect_said(result, r"no rank has shown progress for --hang-timeout 6.0 s; rank 1 on localhost has ended with status 0")

    def test_ranks_that_work(self):
        self.expect_none("openmpi", ("barriers", "talking_thread", "sleeping_thread", "library_operation"))

    def test_ranks_that_work_unseen(self):
        """Threads that are not read, or below a shell; other functions of the same names; a rank that will come."""
        self.expect_none("openmpi", ("own_thread", "receiving_thread"), before=("sh", "-c", '"$0" "$@"; :'))
        self.expect_none("openmpi", ("crowd", "solver", "sleeper"))

    @nightly("the two tests before have some of them")
    def test_programs_that_work_for_long(self):
        for kind, ways in HEALTHY.items():
            for i in range(0, len(ways), 4):
                self.expect_none(kind, ways[i:i + 4], 40)
        self.expect_none("openmpi", THREADS[:-1], 40, before=("sh", "-c", '"$0" "$@"; :'))

    def test_a_child_that_computes(self):
        """A child process of a rank computes, and all ranks wait in MPI."""
        script = self.write("rank.sh", '[ "$RANK" != 2 ] || sh -c "while [ -e go ]; do :; done" & \nexec "$@"\n')
        with open(self.box.path("go"), "w"):
            pass
        program = mpi_worker("mpi_long", "openmpi")
        job = self.start("-np", 3, "--hang-timeout", LIMIT, "--hang-warning", 0, "--grace", 0, "--timeout", 20, "sh", script, program,
                         "no_sender", 0, env=QUIET, cwd=self.box.path("."))
        result = job.wait(patient(120))
        os.unlink(self.box.path("go"))
        self.expect(result, 124)
        self.expect_not_said(result, "hangs")


# A job of a rank that has left ends after a minute, if the others surely wait for it.
LEFT, LONGER = 60, 150


# Rank 0 sleeps, and then sends a message.
SHELL = '[ "$PMI_RANK" = 0 ] || exec "$0" late 300; "$0" late 300 & sleep 2; exit 0'


class Left(Counters):
    """The last of three ranks exits with 0 without MPI_Finalize."""

    def begin(self, kind, way, *options, seconds=LONGER, timeout=patient(400)):
        return self.start("-np", 3, "-H", "localhost:4", "--grace", 0, "--timeout", timeout, *options,
                          mpi_worker("mpi_left", kind), way, seconds, env=QUIET)

    def expect_hang(self, job, calls):
        result = job.wait(patient(420))
        self.skip_without_counters(result)
        self.expect(result, 119)
        self.expect_said(result, "rank 2 has exited with 0 without MPI_Finalize, and all ranks that run seem to have been in the same calls "
                                 "of MPI for 10 s; hvdrun ends the job if it is sure of that for a minute, and --hang-timeout 0 lets them wait")
        self.expect_said(result, rf"the job hangs: rank 2 has exited with 0 without MPI_Finalize, and all ranks that run have waited for "
                                 rf"{LEFT} s: {calls}; let each rank call MPI_Finalize, or give --hang-timeout 0 to let the others wait")

    def expect_done(self, job):
        result = self.expect(job.wait(patient(420)), 0)
        self.assertIn("[0]<stdout>:done", result.lines)
        self.expect_not_said(result, "hangs")
        return result

    def test_others_that_wait_for_it(self):
        """The job ends; but not if a timer of the ranks may end them, or if a rank goes on below a shell that has ended."""
        folder = self.box.path("evidence")
        job = self.begin("openmpi", "barrier", "--evidence", folder)
        others = [(self.begin("mpich", "alarm", seconds=300), "0: it takes signals of timers"),
                  (self.start("-np", 3, "--grace", 0, "--mpi=pmi1", "sh", "-c", SHELL, mpi_worker("mpi_left", "mpich"), env=QUIET),
                   "1: a rank that has exited may go on in a process that it left behind")]
        for other, why in others:
            other.wait_output(f"seem to have been in the same calls of MPI for 10 s; .*; it is not sure of rank {why}", name="stderr",
                              timeout=patient(120))
            other.signal(signal.SIGINT)
            other.wait(patient(120))
        self.expect_hang(job, "ranks 0-1 in MPI_Barrier")
        story = self.expect(self.start("explain", os.path.join(folder, *os.listdir(folder))).wait(), 0).stdout
        self.assertIn("let rank 2 call MPI_Finalize before it exits", story)

    @nightly("the test before has the other library")
    def test_others_that_wait_elsewhere_or_may(self):
        waiting = [self.begin(kind, "barrier", *options, timeout=LONGER)
                   for kind, *options in (("mpich", "--hang-timeout", 0), ("openmpi", "--on-hang", "warn"))]
        for way, calls in (("receive", "rank 0 in MPI_Recv, rank 1 in MPI_Barrier"), ("finalize", "ranks 0-1 in MPI_Finalize")):
            self.expect_hang(self.begin("mpich", way), calls)
        for job in waiting:
            self.expect_not_said(self.expect(job.wait(patient(300)), 124), "hangs")

    @nightly("unit tests have each way")
    def test_others_that_go_on(self):
        """They compute, sleep, or wait for one that does, for a client, a timer or a child, and then exit without MPI."""
        ways = [*((kind, way) for kind in KINDS for way in ("compute", "sleep", "late", "alarm")), ("openmpi", "child")]
        jobs = {(kind, way): self.begin(kind, way) for kind, way in ways}
        accepting = self.begin("openmpi", "accept", timeout=LONGER)
        for (kind, way), job in jobs.items():
            with self.subTest(kind=kind, way=way):
                self.expect_done(job)
        self.expect_not_said(self.expect(accepting.wait(patient(300)), 124), "hangs")


if __name__ == "__main__":
    main()
