# SPDX-License-Identifier: Apache-2.0
"""The tests of containers with the real Docker, in the image that it builds with the Dockerfile."""
# ctest limit: 3600

import os
import unittest

import container_image
import test_containers
import test_docs
from containers import is_outside, main, skip
from docker_engine import Docker
from ground import sanitized


class Docs(test_containers.Docs):

    block_pattern = test_docs.block_pattern("console containers(?: nightly)?")


class Faults(test_containers.Faults):
    pass


class Networks(test_containers.Networks):
    pass


if __name__ == "__main__":
    if is_outside(Docker):
        if sanitized():
            skip("a build without sanitizers, whose package goes into the image")
        try:
            os.environ["HVDRUN_IMAGE"] = container_image.archive(Docker)
        except unittest.SkipTest as lack:
            skip(str(lack))
    main(Docker)
