# SPDX-License-Identifier: Apache-2.0
# For `hvdrun --version`: the compiler and the libraries of the build. Include it after
# add_subdirectory(launcher).
set(contained)
foreach(library event:libevent protobuf:protobuf-c jansson:jansson inih:inih yaml:libyaml zlib:zlib)
  string(REPLACE ":" ";" pair ${library})
  list(GET pair 0 key)
  list(GET pair 1 name)
  list(APPEND contained "${name} ${dep_${key}_VERSION}") # some packages of inih have "undefined" there
endforeach()
list(JOIN contained ", " contained)

# At run time, hwloc reports only its API version, so this records that version too.
pkg_get_variable(hwloc_include hwloc includedir)
set(hwloc_built ${dep_hwloc_VERSION})
if(EXISTS ${hwloc_include}/hwloc.h)
  file(STRINGS ${hwloc_include}/hwloc.h hwloc_api REGEX "^#define HWLOC_API_VERSION 0x[0-9a-f]+")
  if(hwloc_api MATCHES "0x([0-9a-f][0-9a-f][0-9a-f][0-9a-f])([0-9a-f][0-9a-f])")
    math(EXPR hwloc_major "0x${CMAKE_MATCH_1}")
    math(EXPR hwloc_minor "0x${CMAKE_MATCH_2}")
    string(APPEND hwloc_built " (API ${hwloc_major}.${hwloc_minor})")
  endif()
endif()

set(compiler "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}")
if(HVDRUN_SANITIZE)
  string(APPEND compiler ", -fsanitize=${HVDRUN_SANITIZE}")
endif()
set_source_files_properties(
  ${PROJECT_SOURCE_DIR}/launcher/cli/help.c
  TARGET_DIRECTORY room_cli
  PROPERTIES COMPILE_DEFINITIONS
    "HVDRUN_COMPILER=\"${compiler}\";HVDRUN_MACHINE=\"${CMAKE_SYSTEM_PROCESSOR}\";HVDRUN_CONTAINED=\"${contained}\";HVDRUN_PMIX_BUILT=\"${dep_pmix_VERSION}\";HVDRUN_HWLOC_BUILT=\"${hwloc_built}\";HVDRUN_SSH2_BUILT=\"${dep_ssh2_VERSION}\";HVDRUN_OPENSSL_BUILT=\"${dep_ssl_VERSION}\";HVDRUN_DW_BUILT=\"${dep_dw_VERSION}\"")
