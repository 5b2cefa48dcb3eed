# SPDX-License-Identifier: Apache-2.0
# The floors of the benchmarks: floor_NAME.c is the smallest program that does only what no launcher
# can avoid. The default build does not contain them. Those for SSH link with libssh2.
add_custom_target(bench_floors)
file(GLOB floor_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/bench/floor_*.c)
foreach(source ${floor_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bench)
  if(name MATCHES "ssh")
    target_link_libraries(${name} PRIVATE PkgConfig::dep_ssh2)
  endif()
  add_dependencies(bench_floors ${name})
endforeach()
