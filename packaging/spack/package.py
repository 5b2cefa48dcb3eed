# SPDX-License-Identifier: Apache-2.0
# Untested. Put this file into packages/hvdrun/ of a Spack repository of your own. hvdrun has no address that Spack
# could load it from: run `spack dev-build hvdrun@0.1.0` in its sources.
from spack.package import *


class Hvdrun(CMakePackage):
    """A launcher for distributed training and MPI programs."""

    license("Apache-2.0")
    version("0.1.0")

    variant("mpi", default=True, description="libhvd's engine for Open MPI")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.18:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("protobuf-c", type=("build", "link"))
    depends_on("libevent@2.1:")
    depends_on("jansson@2.13:")
    depends_on("inih@53:")
    depends_on("libyaml@0.2:")
    depends_on("pmix@4.2:")
    depends_on("hwloc@2:")
    depends_on("elfutils@0.183:")
    depends_on("ncurses@6:")
    depends_on("libssh2@1.10:")
    depends_on("openssl@3:")
    depends_on("openmpi", when="+mpi")
    depends_on("python@3.8:", type=("build", "run"))

    def cmake_args(self):
        return [self.define("CMAKE_INSTALL_LIBDIR", "lib")]
