# SPDX-License-Identifier: Apache-2.0
"""mpi4py_outcomes.py FILE FOLDER: runs one file of mpi4py's own tests, as a rank.
FOLDER/RANK gets a line when a test begins, and one with what came of it, also if the rank never ends."""

import os
import sys
import unittest


class Outcomes(unittest.TextTestResult):

    lines = None  # where they go

    def _say(self, test, outcome, error=None):
        self.lines.write(f"{test.id()}: {outcome}{f' {error[0].__name__}' if error else ''}\n")

    def startTest(self, test):
        super().startTest(test)
        self._say(test, "begins")

    def addSuccess(self, test):
        super().addSuccess(test)
        self._say(test, "ok")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._say(test, "FAIL", err)

    def addError(self, test, err):
        super().addError(test, err)
        self._say(test, "ERROR", err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._say(test, "skip")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self._say(subtest, "FAIL" if issubclass(err[0], test.failureException) else "ERROR", err)


def main():
    path, folder = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(path))
    from mpi4py import MPI  # pylint: disable=import-outside-toplevel; the tests' own folder comes first, as in their main.py
    with open(os.path.join(folder, str(MPI.COMM_WORLD.rank)), "w", encoding="utf-8", buffering=1) as Outcomes.lines:
        tests = unittest.defaultTestLoader.loadTestsFromName(os.path.basename(path)[:-len(".py")])
        unittest.TextTestRunner(resultclass=Outcomes).run(tests)
        Outcomes.lines.write("all: end\n")


if __name__ == "__main__":
    main()
