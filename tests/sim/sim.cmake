# SPDX-License-Identifier: Apache-2.0
# The simulator of the elastic core; include()d from tests/CMakeLists.txt. See README.md here. The sanitizers
# make it many times slower, so they see fewer schedules.
file(GLOB sim_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_executable(sim ${sim_sources})
target_link_libraries(sim PRIVATE room_model)
target_include_directories(sim PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})

if(test_runs_plain)
  add_test(NAME sim.50000 COMMAND sim --count 50000)
  add_test(NAME sim.nightly COMMAND sim --first 50001 --count 1000000)
  set_tests_properties(sim.50000 PROPERTIES TIMEOUT 900 LABELS sim)
  set_tests_properties(sim.nightly PROPERTIES TIMEOUT 3600 LABELS nightly)
endif()
if(test_runs_sanitized)
  add_test(NAME sim.3000 COMMAND sim --first 500000 --count 3000)
  add_test(NAME sim.selftest COMMAND sim --selftest)
  set_tests_properties(sim.3000 sim.selftest PROPERTIES TIMEOUT 900 LABELS sim)
endif()
