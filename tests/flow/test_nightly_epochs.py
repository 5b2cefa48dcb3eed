# SPDX-License-Identifier: Apache-2.0
"""A thousand epochs in one driver and one agent: no descriptor, no file and no memory is kept of them."""

from epochs import HELD, RANKS, Epochs
from ground import sanitized
from rig import Flow, main


EPOCHS = 1000
# KiB of the driver, and of an agent without PMIx: what an allocator does on its way, once
FLAT = 512
# KiB that the agent may keep of each PMIx client that has connected: libpmix 4.2.2 loses 6.5 to 15 of
# them, the more the larger the job's description, also in a bare server that has nothing of ours
# around it. (No call gives them back: a client that is deregistered costs the same.)
LIBPMIX_LOSES = 20


class Thousand(Epochs, Flow):

    def grown(self, early, late):
        """(driver, agent) in KiB."""
        print(f"descriptors {early.driver.descriptors} and {early.agent.descriptors}; anonymous memory of the driver "
              f"{early.driver.memory_kb} -> {late.driver.memory_kb} KiB, of the agent {early.agent.memory_kb} -> {late.agent.memory_kb}")
        return late.driver.memory_kb - early.driver.memory_kb, late.agent.memory_kb - early.agent.memory_kb

    def test_plain(self):
        early, late = self.many(EPOCHS, self.plain(), timeout=900)
        self.expect_nothing_kept(early, late)
        driver, agent = self.grown(early, late)
        if not sanitized():  # they keep what was freed
            self.assertLess(driver, FLAT)
            self.assertLess(agent, FLAT)

    def test_pmix(self):
        early, late = self.many(EPOCHS, self.pmix(), timeout=900)
        self.expect_nothing_kept(early, late)
        self.assertNotEqual(late.namespaces, early.namespaces)
        driver, agent = self.grown(early, late)
        if not sanitized():
            self.assertLess(driver, FLAT)
            self.assertLess(agent, LIBPMIX_LOSES * RANKS * (EPOCHS - HELD))


if __name__ == "__main__":
    main()
