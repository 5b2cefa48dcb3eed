# SPDX-License-Identifier: Apache-2.0
"""The engines of libhvd: tests/engine/*.c under hvdrun, with 1 to 4 ranks."""
# ctest each HVD_ENGINE: self mpi gloo

import os
import signal

from rig import BUILD, Flow, main

ENGINE = os.environ["HVD_ENGINE"]
MODULES = os.path.join(BUILD, "lib/hvd")
LAUNCHER = {"self": [], "gloo": ["--controller", "gloo"], "mpi": ["--controller", "mpi"]}

ONE_AT_A_TIME = {"HOROVOD_MPI_THREADS_DISABLE": "1"}  # what --mpi-threads-disable sets; only mpi reads it


def program(name):
    return os.path.join(BUILD, "tests/engine/engine_" + name)


class Engines(Flow):

    def setUp(self):
        super().setUp()
        if ENGINE != "self" and not os.path.exists(os.path.join(MODULES, f"hvd-{ENGINE}.so")):
            self.skipTest(f"the engine {ENGINE} was not built")

    def run_engine(self, size, *argv, env=None, options=()):
        own = {"HVD_ENGINE": ENGINE, "HVD_MODULES": MODULES}
        if ENGINE == "mpi":  # Open MPI leaks, in plugins that it has unloaded when sanitizers look
            own["ASAN_OPTIONS"] = "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", "")
        return self.run_job(*LAUNCHER[ENGINE], *options, "-np", size, program(argv[0]), *argv[1:], env={**own, **(env or {})})

    def expect_all(self, result, size, but=()):
        for rank in range(size):
            if rank not in but:
                self.assertIn(f"rank {rank} of {size}: all right", result.stdout, result.describe())

    def every(self, size, *argv, env=None):
        self.expect_all(self.expect(self.run_engine(size, *argv, env=env), 0), size)

    def test_collectives(self):
        for size in (1,) if ENGINE == "self" else (1, 2, 3, 4):
            with self.subTest(size=size):
                self.every(size, "collectives")

    def test_in_pieces(self):
        if ENGINE == "mpi":
            self.every(2, "collectives", env={"HVD_PIECE": "4000"})

    def test_without_threads(self):
        if ENGINE == "mpi":
            self.every(2, "collectives", env=ONE_AT_A_TIME)
            self.every(3, "faults", "sets", env=ONE_AT_A_TIME)

    def test_without_the_launchers_help_mpi_says_so(self):
        if ENGINE == "mpi":
            own = {"HVD_ENGINE": ENGINE, "HVD_MODULES": MODULES}
            result = self.run_job("--controller", "mpi", "--mpi=none", "-np", 2, program("collectives"), env=own)
            self.expect(result, 1)
            self.assertIn("MPI says that this is rank 0 of 1", result.stderr)

    def test_sets_at_the_same_time(self):
        if ENGINE != "self":
            self.every(4, "faults", "sets")

    def test_abort_of_a_collective(self):
        if ENGINE != "self":
            self.every(4, "faults", "abort", env=ONE_AT_A_TIME)

    def test_abort_of_a_message(self):
        if ENGINE != "self":
            self.every(3, "faults", "abort_message")

    def test_abort_of_comm_create(self):
        if ENGINE == "gloo":
            self.every(2, "faults", "abort_create")

    def test_a_rank_is_killed(self):
        """A wait to send may overlook that the connection has closed, and ends with its time-out."""
        if ENGINE == "gloo":
            env = {"HOROVOD_GLOO_TIMEOUT_SECONDS": "5"}
            result = self.expect(self.run_engine(4, "faults", "killed", env=env, options=("--grace", 60)), 128 + signal.SIGKILL)
            self.expect_all(result, 4, but=(1,))

    def test_a_rank_is_silent(self):
        if ENGINE == "gloo":
            self.every(3, "faults", "silent", env={"HOROVOD_GLOO_TIMEOUT_SECONDS": "1"})


if __name__ == "__main__":
    main()
