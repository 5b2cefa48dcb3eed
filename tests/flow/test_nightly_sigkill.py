# SPDX-License-Identifier: Apache-2.0
"""500 jobs of which driver, agent or keeper is killed at a random moment: nothing is left, ever."""
# ctest limit: 3600
# ctest waits

import random

from rig import main
from sigkill import Sigkill


class Many(Sigkill):

    def test_rounds(self):
        self.rounds(*self.wanted(str(random.SystemRandom().randrange(1 << 30)), 500))


if __name__ == "__main__":
    main()
