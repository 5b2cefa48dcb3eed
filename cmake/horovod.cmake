# SPDX-License-Identifier: Apache-2.0
# The Python package `horovod`, which has nothing to compile. It finds libhvd from its own place, so the
# build folder has it where an installation has it.
set(horovod_source ${PROJECT_SOURCE_DIR}/runtime/python/horovod)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/lib/hvdrun)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/runtime/python ${PROJECT_BINARY_DIR}/lib/hvdrun/python SYMBOLIC)
install(DIRECTORY ${horovod_source} DESTINATION ${CMAKE_INSTALL_LIBDIR}/hvdrun/python
  PATTERN __pycache__ EXCLUDE)
