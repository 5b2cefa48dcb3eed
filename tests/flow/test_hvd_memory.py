# SPDX-License-Identifier: Apache-2.0
"""How much memory libhvd takes: tests/hvd/memory.c. The program itself compares, and a rank that has grown fails."""
# ctest long
# ctest plain
# ctest each HVD_ENGINE: self mpi gloo

import os

from rig import BUILD, Flow, main, nightly

ENGINE = os.environ["HVD_ENGINE"]
LAUNCHER = {"self": [], "gloo": ["--controller", "gloo"], "mpi": ["--controller", "mpi"]}
RANKS = {"self": 1, "gloo": 2, "mpi": 3}[ENGINE]  # Open MPI's spin without a break unless they are more than the processors


class Memory(Flow):

    def steps(self, ranks, count, timeout):
        if ENGINE != "self" and not os.path.exists(os.path.join(BUILD, f"lib/hvd/hvd-{ENGINE}.so")):
            self.skipTest(f"the engine {ENGINE} was not built")
        program = os.path.join(BUILD, "tests/hvd/hvd_test_memory")
        result = self.expect(self.run_job(*LAUNCHER[ENGINE], "-np", ranks, program, count, timeout=timeout), 0)
        self.assertEqual(result.stdout.count(f"after {count} steps more"), ranks, result.describe())

    def test_two_fusion_buffers_and_no_growth(self):
        self.steps(RANKS, 1000, 240)

    @nightly("the steps of the other test are the same")
    def test_no_growth_in_100000_steps(self):
        self.steps(RANKS, 100000, 1500)


if __name__ == "__main__":
    main()
