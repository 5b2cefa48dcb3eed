# SPDX-License-Identifier: Apache-2.0
# The documents of an installation, and the Debian package: cmake --build build --target package.
# The package has the files that `cmake --install` installs, and cmake/package_stage.cmake then gives
# them the form that Debian requires. docs/install.md describes both.
set(HVDRUN_MAINTAINER "hvdrun developers <developers@hvdrun.invalid>" CACHE STRING
  "The maintainer of the package: Name <address>")

install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/hostfiles
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents USE_SOURCE_PERMISSIONS
  PATTERN tests EXCLUDE
  PATTERN __pycache__ EXCLUDE
  PATTERN "*.deb" EXCLUDE
  PATTERN quickstart.sh EXCLUDE
  PATTERN CMakeLists.txt EXCLUDE)

find_program(DPKG NAMES dpkg)
find_program(DPKG_SHLIBDEPS NAMES dpkg-shlibdeps)
mark_as_advanced(DPKG DPKG_SHLIBDEPS)
if(NOT DPKG OR NOT DPKG_SHLIBDEPS)
  return()
endif()
execute_process(COMMAND ${DPKG} --print-architecture OUTPUT_VARIABLE architecture OUTPUT_STRIP_TRAILING_WHITESPACE)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ${PROJECT_NAME})
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${HVDRUN_MAINTAINER}")
set(CPACK_PACKAGE_FILE_NAME ${PROJECT_NAME}_${PROJECT_VERSION}_${architecture})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_THREADS 1) # otherwise the bytes of the archive depend on the number of CPUs
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package_stage.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package_finish.cmake)

set(CPACK_DEBIAN_FILE_NAME ${CPACK_PACKAGE_FILE_NAME}.deb)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${architecture})
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "openmpi-bin, mpich, slurm-client")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "launcher for distributed training and MPI programs")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"hvdrun starts and watches the workers of one distributed job, on this machine
and on others. It exits with the job's true exit status. A worker can be an MPI
program (Open MPI, MPICH), a Horovod or torch.distributed script, or any other
program.

hvdrun reaches hosts over SSH, through Slurm, or with any command that gives a
pipe to a shell. The hosts need /bin/sh, coreutils with sha256sum, find and
glibc 2.34 or newer. hvdrun copies its agent there. Elastic jobs continue when
hosts come and go.")

# For package_stage.cmake, which gets only variables that begin with CPACK_.
set(CPACK_HVDRUN_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_HVDRUN_STRIP ${CMAKE_STRIP})
set(CPACK_HVDRUN_SANITIZE "${HVDRUN_SANITIZE}")
set(CPACK_HVDRUN_SHLIBDEPS ${DPKG_SHLIBDEPS})
set(CPACK_HVDRUN_LIBDIR ${CMAKE_INSTALL_LIBDIR}/hvdrun)
set(CPACK_HVDRUN_LIBHVD ${CMAKE_INSTALL_LIBDIR})
if(TARGET hvd)
  # The loader's cache must know the library.
  file(WRITE ${PROJECT_BINARY_DIR}/generated/package/triggers "activate-noawait ldconfig\n")
  set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/generated/package/triggers)
endif()
include(CPack)

# An OCI image that has the package in it, in the folder hvdrun-oci of the build.
add_custom_target(oci_image
  COMMAND ${PROJECT_SOURCE_DIR}/cmake/oci_image.sh
          ${PROJECT_BINARY_DIR}/${CPACK_DEBIAN_FILE_NAME} ${PROJECT_BINARY_DIR}/hvdrun-oci ${PROJECT_VERSION}
  VERBATIM USES_TERMINAL)
