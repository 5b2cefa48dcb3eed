# SPDX-License-Identifier: Apache-2.0
# The documents of an installation, and two packages. cmake --build build --target package makes that of
# Debian: it has the files that `cmake --install` installs, and cmake/package_stage.cmake then gives them the
# form that Debian requires, for which it needs CMake 3.21. The target package_rpm makes the other one.
# docs/install.md describes them.
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

# The licences of libraries inside must go wherever the programs go: copies from the libraries' own packages.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
set(licences libevent-dev libprotobuf-c-dev libjansson-dev libinih-dev libyaml-dev zlib1g-dev)
if(HVDRUN_PORTABLE)
  list(APPEND licences libssl-dev libssh2-1-dev gloo gcc-10-base)
endif()
foreach(library ${licences})
  if(EXISTS /usr/share/doc/${library}/copyright)
    install(FILES /usr/share/doc/${library}/copyright RENAME ${library} DESTINATION ${CMAKE_INSTALL_DOCDIR}/contains)
  endif()
endforeach()

find_program(DPKG NAMES dpkg)
find_program(DPKG_SHLIBDEPS NAMES dpkg-shlibdeps)
find_program(RPMBUILD NAMES rpmbuild)
mark_as_advanced(DPKG DPKG_SHLIBDEPS RPMBUILD)
if(DPKG AND DPKG_SHLIBDEPS AND NOT CMAKE_VERSION VERSION_LESS 3.21)
  set(CPACK_GENERATOR DEB)
  execute_process(COMMAND ${DPKG} --print-architecture OUTPUT_VARIABLE architecture OUTPUT_STRIP_TRAILING_WHITESPACE)
elseif(RPMBUILD)
  set(CPACK_GENERATOR RPM)
  set(CPACK_STRIP_FILES ON)
else()
  return()
endif()

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
set(host_glibc 2.34)
if(HVDRUN_PORTABLE)
  set(host_glibc 2.28)
endif()
set(CPACK_PACKAGE_DESCRIPTION
"hvdrun starts and watches the workers of one distributed job, on this machine
and on others. It exits with the job's true exit status. A worker can be an MPI
program (Open MPI, MPICH), a Horovod or torch.distributed script, or any other
program.

hvdrun reaches hosts over SSH, through Slurm, or with any command that gives a
pipe to a shell. The hosts need /bin/sh, coreutils with sha256sum, find and
glibc ${host_glibc} or newer. hvdrun copies its agent there. Elastic jobs continue when
hosts come and go.")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")

# Rpm finds by itself which libraries the programs need. What only some jobs need is recommended instead.
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_PACKAGE_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
set(CPACK_RPM_PACKAGE_VENDOR "${HVDRUN_MAINTAINER}")
set(CPACK_RPM_PACKAGE_GROUP "Applications/System")
set(CPACK_RPM_SPEC_MORE_DEFINE "%global __requires_exclude_from ^.*/(hvd/hvd-.*|hvdrun/hvdrun-(pmix|unwind|topology|screen))[.]so$
%global __requires_exclude ^/usr/bin/pkg-config$
%global __provides_exclude_from ^.*/(hvd|hvdrun)/.*[.]so$
%global __brp_mangle_shebangs %{nil}
%define _build_id_links none
%global _buildhost localhost
%global use_source_date_epoch_as_buildtime 1
Recommends: openssh-clients, pmix, hwloc-libs, elfutils-libs, ncurses-libs")
foreach(folder man man/man1 man/man3 zsh zsh/site-functions fish fish/vendor_completions.d bash-completion bash-completion/completions doc)
  list(APPEND CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/share/${folder})
endforeach()
list(APPEND CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/${CMAKE_INSTALL_LIBDIR}/pkgconfig /usr/${CMAKE_INSTALL_LIBDIR}/cmake)

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
if(RPMBUILD)
  # Stripped by the installation: cpack has the script for Debian only.
  add_custom_target(package_rpm
    COMMAND ${CMAKE_CPACK_COMMAND} -G RPM -D CPACK_STRIP_FILES=ON --config ${PROJECT_BINARY_DIR}/CPackConfig.cmake
            -B ${PROJECT_BINARY_DIR}
    VERBATIM USES_TERMINAL)
  add_dependencies(package_rpm hvdrun hvd hvd_archive hvd_man documents)
endif()

# An OCI image with the tar.gz that packaging/build.sh has written into the folder packages of the build.
add_custom_target(oci_image
  COMMAND ${PROJECT_SOURCE_DIR}/packaging/oci_image.sh
          ${PROJECT_BINARY_DIR}/packages/hvdrun-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}-glibc2.28.tar.gz
          ${PROJECT_BINARY_DIR}/hvdrun-oci ${PROJECT_VERSION}
  VERBATIM USES_TERMINAL)
