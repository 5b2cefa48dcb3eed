# SPDX-License-Identifier: Apache-2.0
# Libraries that hvdrun and its agent carry inside (static: what is not loaded costs no start-up
# time, and the agent shipped to other hosts depends on libc alone), and those that modules of our
# own load when a job needs them.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# hvdrun_static(NAME pkg-config-module archive): an imported target NAME for the static archive,
# or for the shared library where the distribution ships no archive.
function(hvdrun_static name module archive)
  pkg_check_modules(${name} REQUIRED QUIET ${module})
  find_library(${name}_ARCHIVE NAMES lib${archive}.a ${archive} HINTS ${${name}_LIBRARY_DIRS} REQUIRED)
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE ${${name}_ARCHIVE})
  target_include_directories(${name} SYSTEM INTERFACE ${${name}_INCLUDE_DIRS})
  set(${name}_VERSION ${${name}_VERSION} PARENT_SCOPE)
endfunction()

hvdrun_static(dep_event libevent_core event_core)
hvdrun_static(dep_protobuf libprotobuf-c protobuf-c)
hvdrun_static(dep_jansson jansson jansson)
hvdrun_static(dep_inih inih inih)
hvdrun_static(dep_yaml yaml-0.1 yaml)

pkg_check_modules(dep_pmix REQUIRED QUIET IMPORTED_TARGET pmix)
# Its -rpath is hvdrun_module's business.
set_target_properties(PkgConfig::dep_pmix PROPERTIES INTERFACE_LINK_OPTIONS "")
pkg_check_modules(dep_ssh2 REQUIRED QUIET IMPORTED_TARGET libssh2)
pkg_check_modules(dep_crypto REQUIRED QUIET IMPORTED_TARGET libcrypto)
pkg_check_modules(dep_ssl REQUIRED QUIET IMPORTED_TARGET libssl)
pkg_check_modules(dep_hwloc REQUIRED QUIET IMPORTED_TARGET hwloc)
find_program(PROTOC_C NAMES protoc-c protoc REQUIRED)
