# SPDX-License-Identifier: Apache-2.0
# hvd_engine(NAME SOURCE...): the module of an engine of libhvd, hvd-NAME.so. libhvd opens it at run time
# (runtime/engine/load.h). It contains the code of the rooms that it shares with libhvd, with hidden names.
# Its libraries are in folders that the loader searches anyway, so it has no search path of its own.
#
# Gloo is optional, because distributions other than Debian rarely have it. Open MPI is needed for the
# examples anyway, and the engine mpi is omitted only without it.
function(hvd_engine name)
  set(target hvd_${name})
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES
    PREFIX ""
    OUTPUT_NAME hvd-${name}
    SUFFIX ".so"
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/hvd
    BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "")
  target_link_libraries(${target} PRIVATE room_engine room_base Threads::Threads)
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
  set_property(GLOBAL APPEND PROPERTY HVD_ENGINES ${name})
endfunction()

include(CheckLanguage)
check_language(CXX)
find_path(GLOO_INCLUDE_DIR NAMES gloo/allreduce.h)
find_library(GLOO_LIBRARY NAMES gloo)
mark_as_advanced(GLOO_INCLUDE_DIR GLOO_LIBRARY)
if(HVDRUN_PORTABLE AND NOT GLOO_LIBRARY MATCHES "\\.a$")
  set(GLOO_LIBRARY) # the interface of Gloo's C++ differs between versions that have one name
endif()
if(CMAKE_CXX_COMPILER AND GLOO_INCLUDE_DIR AND GLOO_LIBRARY)
  enable_language(CXX)
  set(CMAKE_CXX_STANDARD 17)
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_CXX_VISIBILITY_INLINES_HIDDEN ON)
  set(HVD_WITH_GLOO ON)
else()
  set(HVD_WITH_GLOO OFF)
  message(STATUS "libhvd: the engine gloo is omitted, because libgloo-dev (portable: libgloo.a) or g++ is not installed")
endif()

pkg_check_modules(dep_ompi QUIET IMPORTED_TARGET ompi-c)
if(dep_ompi_FOUND)
  set_target_properties(PkgConfig::dep_ompi PROPERTIES INTERFACE_LINK_OPTIONS "") # an -rpath
else()
  message(STATUS "libhvd: the engine mpi is omitted, because pkg-config does not find Open MPI (ompi-c)")
endif()
