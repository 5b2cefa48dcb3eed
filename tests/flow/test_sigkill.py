# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of driver, agent or keeper at random moments of a fixed seed: nothing is left. At night
there are many more (test_nightly_sigkill.py)."""
# ctest waits

from rig import main
from sigkill import Sigkill


class Few(Sigkill):

    def test_rounds(self):
        self.rounds(*self.wanted("ci", 20))


if __name__ == "__main__":
    main()
