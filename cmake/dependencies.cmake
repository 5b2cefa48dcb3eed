# SPDX-License-Identifier: Apache-2.0
# There are two kinds of libraries. hvdrun and its agent contain the first kind statically: nothing has
# to be loaded at the start, and the agent that goes to other hosts depends only on libc. hvdrun's
# modules link with the second kind, and a job loads a module only if it needs it.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# hvdrun_static(NAME pkg-config-module archive): a target NAME for the static archive, or for the
# shared library if the distribution does not have the archive.
function(hvdrun_static name module archive)
  pkg_check_modules(${name} REQUIRED QUIET ${module})
  find_library(${name}_ARCHIVE NAMES lib${archive}.a ${archive} HINTS ${${name}_LIBRARY_DIRS} REQUIRED)
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE ${${name}_ARCHIVE})
  target_include_directories(${name} SYSTEM INTERFACE ${${name}_INCLUDE_DIRS})
  set(${name}_VERSION ${${name}_VERSION} PARENT_SCOPE)
endfunction()

hvdrun_static(dep_event libevent_core event_core)
hvdrun_static(dep_event_extra libevent_extra event_extra)
hvdrun_static(dep_protobuf libprotobuf-c protobuf-c)
hvdrun_static(dep_jansson jansson jansson)
hvdrun_static(dep_inih inih inih)
hvdrun_static(dep_yaml yaml-0.1 yaml)
hvdrun_static(dep_zlib zlib z)

pkg_check_modules(dep_pmix REQUIRED QUIET IMPORTED_TARGET pmix)
# hvdrun_module sets the search path instead of this -rpath.
set_target_properties(PkgConfig::dep_pmix PROPERTIES INTERFACE_LINK_OPTIONS "")
pkg_check_modules(dep_ssh2 REQUIRED QUIET IMPORTED_TARGET libssh2)
pkg_check_modules(dep_crypto REQUIRED QUIET IMPORTED_TARGET libcrypto)
pkg_check_modules(dep_ssl REQUIRED QUIET IMPORTED_TARGET libssl)
pkg_check_modules(dep_hwloc REQUIRED QUIET IMPORTED_TARGET hwloc)
pkg_check_modules(dep_dw REQUIRED QUIET IMPORTED_TARGET libdw)
pkg_check_modules(dep_elf REQUIRED QUIET IMPORTED_TARGET libelf)
pkg_check_modules(dep_ncursesw REQUIRED QUIET IMPORTED_TARGET ncursesw)
find_program(PROTOC_C NAMES protoc-c protoc REQUIRED)

# A portable build puts the second kind into the modules as well, so that all but PMIx need only libc.
if(HVDRUN_PORTABLE)
  foreach(dependency ssh2 crypto ssl)
    set(whole)
    # A name without an archive is left out: if the module does need it, the linker says so (-z defs).
    foreach(name ${dep_${dependency}_STATIC_LIBRARIES})
      find_library(archive_of_${name} NAMES lib${name}.a HINTS ${dep_${dependency}_LIBRARY_DIRS})
      mark_as_advanced(archive_of_${name})
      if(archive_of_${name} AND NOT name MATCHES "^(dl|m|pthread|rt)$")
        list(APPEND whole ${archive_of_${name}})
      endif()
    endforeach()
    list(APPEND whole Threads::Threads m ${CMAKE_DL_LIBS})
    set_target_properties(PkgConfig::dep_${dependency} PROPERTIES INTERFACE_LINK_LIBRARIES "${whole}")
    set(dep_${dependency}_LINK_LIBRARIES) # no folder to search at run time
  endforeach()
endif()

# Names that libc may be too old for: base/older_libc.c has them then.
include(CheckSymbolExists)
set(CMAKE_REQUIRED_DEFINITIONS -D_GNU_SOURCE)
check_symbol_exists(pidfd_open sys/pidfd.h HVDRUN_LIBC_IS_NEW) # the newest of them
unset(CMAKE_REQUIRED_DEFINITIONS)
if(NOT HVDRUN_LIBC_IS_NEW)
  add_compile_options($<$<COMPILE_LANGUAGE:C>:-include$<SEMICOLON>${PROJECT_SOURCE_DIR}/runtime/base/older_libc.h>)
endif()
