# SPDX-License-Identifier: Apache-2.0
# The Python package `horovod`, which has nothing to compile. It finds libhvd from its own place, so the
# build folder has it where an installation has it.
set(horovod_source ${PROJECT_SOURCE_DIR}/runtime/python/horovod)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/lib/hvdrun)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/runtime/python ${PROJECT_BINARY_DIR}/lib/hvdrun/python SYMBOLIC)
install(DIRECTORY ${horovod_source} DESTINATION ${CMAKE_INSTALL_LIBDIR}/hvdrun/python
  PATTERN __pycache__ EXCLUDE)

# A wheel, and a tar.gz that runs from any folder: the targets wheel and package_tar. They have what
# `cmake --install` installs, stripped; the tar.gz has the documents, too.
find_program(PYTHON3 NAMES python3)
mark_as_advanced(PYTHON3)
if(PYTHON3)
  function(hvdrun_packed target script)
    set(stage ${PROJECT_BINARY_DIR}/${target}/stage)
    add_custom_target(${target}
      COMMAND ${CMAKE_COMMAND} -E rm -rf ${stage}
      COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${stage} --strip ${ARGN}
      COMMAND ${PYTHON3} -B ${PROJECT_SOURCE_DIR}/packaging/${script}
              ${stage} ${PROJECT_BINARY_DIR} ${PROJECT_VERSION} ${CMAKE_SYSTEM_PROCESSOR}
      VERBATIM USES_TERMINAL)
    add_dependencies(${target} hvdrun hvd hvd_archive hvd_man documents) # what is installed
  endfunction()
  hvdrun_packed(wheel wheel.py --component launcher)
  hvdrun_packed(package_tar archive.py)
endif()
