# SPDX-License-Identifier: Apache-2.0
"""The Python package `horovod` with tensors on GPUs: tests/python/gpu with the fake CUDA and NCCL of
tests/gpu/fake. tests/gpu/torch.sh runs the same tests on real GPUs."""
# ctest long
# ctest plain

import os

from python import package_environment, python_with
from rig import BUILD, SOURCE, Flow, main


class HorovodGpu(Flow):

    def setUp(self):
        super().setUp()
        self.python = python_with("torch", "pytest", "cloudpickle")

    def run_tests(self, size, **env):
        result = self.run_job("--controller", "gloo", "-np", size, "--oversubscribe", self.python, "-m", "pytest", "-q",
                              "-p", "no:cacheprovider", os.path.join(SOURCE, "tests/python/gpu"),
                              env=package_environment(LD_LIBRARY_PATH=os.path.join(BUILD, "tests/gpu/fake"), **env))
        self.expect(result, 0)
        self.assertEqual(result.stdout.count(" passed"), size, result.describe())

    def test_with_one_rank(self):
        self.run_tests(1)

    def test_with_three_ranks(self):
        self.run_tests(3)

    def test_handles_that_are_complete_on_the_gpu(self):
        self.run_tests(2, HOROVOD_ENABLE_ASYNC_COMPLETION="0")


if __name__ == "__main__":
    main()
