# SPDX-License-Identifier: Apache-2.0
"""The Python package `horovod`: tests/python with pytest on every rank of a job, with 1 to 4 ranks."""
# ctest plain
# ctest limit: 600

import glob
import os
import re

from python import package_environment, python_with
from rig import SOURCE, Flow, main

TESTS = os.path.join(SOURCE, "tests/python")


class HorovodTorch(Flow):

    def setUp(self):
        super().setUp()
        self.python = python_with("torch", "pytest", "cloudpickle")

    def run_tests(self, size, *files, through=("--controller", "gloo")):
        files = [os.path.join(TESTS, file) for file in files] or sorted(glob.glob(os.path.join(TESTS, "test_*.py")))
        result = self.run_job(*through, "-np", size, "--oversubscribe", self.python, "-m", "pytest", "-q", "-p",
                              "no:cacheprovider", *files, env=package_environment(), timeout=250)
        self.expect(result, 0)
        passed = re.findall(r"(\d+) passed", result.stdout)
        self.assertEqual(len(passed), size, result.describe())
        return passed

    def test_with_one_rank(self):
        self.run_tests(1)

    def test_with_two_ranks(self):
        self.run_tests(2)

    def test_with_four_ranks(self):
        self.run_tests(4)

    def test_without_hvdrun(self):
        """A script that nobody launches has one rank."""
        script = "import horovod.torch as hvd, torch; hvd.init(); print(hvd.rank(), hvd.size(), hvd.allreduce(torch.ones(1)).item())"
        result = self.box_run(self.python, "-c", script)
        self.assertEqual(result.stdout, "0 1 1.0\n", result.describe())

    def box_run(self, *argv, **env):
        from jobs import Job
        return self.expect(Job(self.box, argv, env=package_environment(**env)).wait(60), 0)


if __name__ == "__main__":
    main()
