# SPDX-License-Identifier: Apache-2.0
"""A short soak for every day: test_nightly_elastic.py for 45 s on five hosts, with a seed that is
the same each time."""
# ctest waits
# ctest long
# ctest plain

import os

from hosts import main

os.environ.setdefault("HVDRUN_SOAK_SECONDS", "45")
os.environ.setdefault("HVDRUN_SOAK_SEED", "1")
os.environ.setdefault("HVDRUN_SOAK_HOSTS", "5")

from test_nightly_elastic import Soak  # noqa: E402, F401

if __name__ == "__main__":
    main()
