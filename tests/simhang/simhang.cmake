# SPDX-License-Identifier: Apache-2.0
# The simulator of the hang verdict; include()d from tests/CMakeLists.txt. main.c says what it simulates.
add_executable(simhang ${CMAKE_CURRENT_LIST_DIR}/main.c ${CMAKE_CURRENT_LIST_DIR}/rank.c
               ${CMAKE_CURRENT_LIST_DIR}/world.c)
target_link_libraries(simhang PRIVATE features_plain)
target_include_directories(simhang PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})

add_test(NAME sim.hang.selftest COMMAND simhang --selftest)
if(test_runs_plain)
  add_test(NAME sim.hang.100000 COMMAND simhang 1 100000)
  add_test(NAME sim.hang.nightly COMMAND simhang 100001 1000000)
  set_tests_properties(sim.hang.nightly PROPERTIES TIMEOUT 3600 LABELS nightly)
endif()
if(test_runs_sanitized)
  add_test(NAME sim.hang.3000 COMMAND simhang 500000 3000)
endif()
if(TEST sim.hang.100000)
  set_tests_properties(sim.hang.100000 PROPERTIES TIMEOUT 900 LABELS long)
endif()
foreach(name sim.hang.selftest sim.hang.3000)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 900 LABELS sim)
  endif()
endforeach()
