# SPDX-License-Identifier: Apache-2.0
# The simulator of runtime/core; include()d from tests/CMakeLists.txt. See README.md here. The sanitizers make
# it many times slower, so they see fewer schedules.
file(GLOB simcore_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_executable(simcore ${simcore_sources})
target_link_libraries(simcore PRIVATE room_core)
target_include_directories(simcore PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})

if(test_runs_plain)
  add_test(NAME sim.core.100000 COMMAND simcore --count 100000)
  add_test(NAME sim.core.nightly COMMAND simcore --first 100001 --count 1000000)
  set_tests_properties(sim.core.100000 PROPERTIES TIMEOUT 900 LABELS long)
  set_tests_properties(sim.core.nightly PROPERTIES TIMEOUT 3600 LABELS nightly)
endif()
if(test_runs_sanitized)
  add_test(NAME sim.core.3000 COMMAND simcore --first 500000 --count 3000)
  add_test(NAME sim.core.selftest COMMAND simcore --selftest)
  set_tests_properties(sim.core.3000 sim.core.selftest PROPERTIES TIMEOUT 900 LABELS sim)
endif()
