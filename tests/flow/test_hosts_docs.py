# SPDX-License-Identifier: Apache-2.0
"""What the documents show about hosts is what happens: blocks marked ```console hosts, run where
node1, node2... are in the user's ~/.ssh/config. How they are compared: test_docs.py."""

import os
import shutil

import test_docs
from hosts import Hosts, main


class Docs(test_docs.Shows, Hosts):

    block_pattern = test_docs.HOSTS_BLOCK

    def setUp(self):
        super().setUp()
        self.make_folder()
        home = f"{self.rig.top}/home/.ssh"  # the home folder that is in /etc/passwd
        os.makedirs(home, 0o700)
        self.addCleanup(shutil.rmtree, home)
        shutil.copy(self.ssh_config, f"{home}/config")
        os.chmod(f"{home}/config", 0o600)

    def test_readme(self):
        self.check_page("README.md")

    def test_pages(self):
        shown = [one for name in self.pages() for one in self.check_page(name)]
        self.assertGreaterEqual(sum(bool(one.lines) for one in shown), 3, "are the blocks still recognized?")
        self.assertTrue(any(one.status != 0 for one in shown), "no failure is shown")


if __name__ == "__main__":
    main()
