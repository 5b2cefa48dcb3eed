# SPDX-License-Identifier: Apache-2.0
"""The tests of containers in the image of the Dockerfile, and what docs/containers.md shows that takes long."""
# ctest limit: 3600

import os
import re
import unittest

import container_image
import test_containers
import test_docs
from container_engine import Podman
from containers import Containers, is_outside, main, skip
from ground import SOURCE, sanitized

with open(os.path.join(SOURCE, "CMakeLists.txt"), encoding="utf-8") as file:
    VERSION = re.search(r"^project\(\w+ VERSION (\S+)", file.read(), re.M)[1]


class Docs(test_containers.Docs):

    block_pattern = test_docs.block_pattern("console containers(?: nightly| podman)?")


class Faults(test_containers.Faults):
    pass


class Networks(test_containers.Networks):
    pass


class Pods(test_containers.Pods):
    pass


class NoNetwork(test_containers.Faults):
    """hvdrun reaches the containers from outside: only the workers can notice that one has lost its network."""

    def test_one_after_the_other(self):
        job = self.job("python3", "train.py", "--timeout", "5", "--pause", "0.1", "--steps", "100000")
        job.wait_output("step 20:")
        self.docker("network", "disconnect", "compose_train", "trainer-2")
        result = self.expect(job.wait(), 1)
        self.expect_said(result, r"rank \d exited with code 1")


class Layout(Containers):
    """The OCI image that the build writes."""

    def in_image(self, *command):
        return self.docker("run", "--rm", self.image, *command)

    def test_contents(self):
        self.image = self.docker("pull", "-q", f"oci:{os.environ['HVDRUN_LAYOUT']}:{VERSION}").split()[-1]
        self.assertTrue(self.in_image("--version").startswith(f"hvdrun {VERSION}\n"))
        self.assertEqual(self.in_image("--no-label", "-np", "1", "id", "-u").strip(), "1000")
        self.assertEqual(sorted(self.in_image("-np", "2", "sh", "-c", "echo rank $RANK").split("\n")),
                         ["[0]<stdout>:rank 0", "[1]<stdout>:rank 1"])
        self.assertEqual(self.in_image("-np", "1", "sh", "-c", "command -v sshd ssh || true"), "")
        for words in (("/tmp", "/var/lib/apt/lists", "/var/cache/apt", "-type", "f"), ("/usr", "-type", "f", "-perm", "/6000")):
            self.assertEqual(self.docker("run", "--rm", "--entrypoint", "find", self.image, *words), "")


if __name__ == "__main__":
    if is_outside(Podman):
        if sanitized():
            skip("a build without sanitizers, whose package goes into the image")
        try:
            os.environ["HVDRUN_IMAGE"] = container_image.archive(Podman)
            os.environ["HVDRUN_LAYOUT"] = container_image.make_layout()
        except unittest.SkipTest as lack:
            skip(str(lack))
    main(Podman)
