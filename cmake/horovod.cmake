# SPDX-License-Identifier: Apache-2.0
# The Python package `horovod`, which has nothing to compile. It finds libhvd from its own place, so the
# build folder has it where an installation has it.
set(horovod_source ${PROJECT_SOURCE_DIR}/runtime/python/horovod)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/lib/hvdrun)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/runtime/python ${PROJECT_BINARY_DIR}/lib/hvdrun/python SYMBOLIC)
install(DIRECTORY ${horovod_source} DESTINATION ${CMAKE_INSTALL_LIBDIR}/hvdrun/python
  PATTERN __pycache__ EXCLUDE)

# A wheel: cmake --build build --target wheel. It has what `cmake --install` installs, stripped.
find_program(PYTHON3 NAMES python3)
mark_as_advanced(PYTHON3)
if(PYTHON3)
  set(wheel_stage ${PROJECT_BINARY_DIR}/wheel/stage)
  add_custom_target(wheel
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${wheel_stage}
    COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${wheel_stage} --component launcher --strip
    COMMAND ${PYTHON3} -B ${PROJECT_SOURCE_DIR}/cmake/wheel.py
            ${wheel_stage} ${PROJECT_BINARY_DIR} ${PROJECT_VERSION} ${CMAKE_SYSTEM_PROCESSOR}
    VERBATIM USES_TERMINAL)
  add_dependencies(wheel hvdrun hvd hvd_archive hvd_man documents) # what is installed
endif()
