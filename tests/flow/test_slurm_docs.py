# SPDX-License-Identifier: Apache-2.0
"""What the documents show about Slurm is what happens: blocks marked ```console slurm, run on the login
node of a cluster of four nodes. How they are compared: test_docs.py."""

import re

import test_docs
from slurm import Slurm, main

NUMBER = (re.compile(r"\bSlurm job \d+\b"), "Slurm job N")


class Docs(test_docs.Shows, Slurm):

    block_pattern = re.compile(test_docs.BLOCK.pattern.replace("(?:console|sh)", "console slurm"), re.M | re.S)

    def setUp(self):
        super().setUp()
        self.make_folder()
        self.addCleanup(test_docs.VARYING.remove, NUMBER)
        test_docs.VARYING.append(NUMBER)

    def test_readme(self):
        self.assertTrue(any(shown.lines for shown in self.check_page("README.md")))

    def test_pages(self):
        shown = [one for name in self.pages() for one in self.check_page(name)]
        self.assertGreaterEqual(sum(bool(one.lines) for one in shown), 5, "are the blocks still recognized?")
        self.assertTrue(any(one.status != 0 for one in shown), "no failure is shown")


if __name__ == "__main__":
    main()
