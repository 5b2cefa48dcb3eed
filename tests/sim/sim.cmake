# SPDX-License-Identifier: Apache-2.0
# The simulator of the elastic core; include()d from tests/CMakeLists.txt. See README.md here.
if(NOT test_runs_sanitized)
  return()
endif()
file(GLOB sim_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_executable(sim ${sim_sources})
target_link_libraries(sim PRIVATE room_model)
target_include_directories(sim PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})

add_test(NAME sim.100000 COMMAND sim --count 100000)
add_test(NAME sim.selftest COMMAND sim --selftest)
add_test(NAME sim.nightly COMMAND sim --first 100001 --count 1000000)
set_tests_properties(sim.100000 sim.selftest PROPERTIES TIMEOUT 300 LABELS sim)
set_tests_properties(sim.nightly PROPERTIES TIMEOUT 3600 LABELS nightly)
