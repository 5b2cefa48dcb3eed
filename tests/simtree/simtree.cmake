# SPDX-License-Identifier: Apache-2.0
# The simulator of the tree of agents; include()d from tests/CMakeLists.txt. world.h says what it simulates.
add_executable(simtree ${CMAKE_CURRENT_LIST_DIR}/main.c ${CMAKE_CURRENT_LIST_DIR}/world.c
               ${CMAKE_CURRENT_LIST_DIR}/network.c)
target_link_libraries(simtree PRIVATE features_plain)
target_include_directories(simtree PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})

add_test(NAME sim.tree.selftest COMMAND simtree --selftest)
# An agent is silent and heard again before the tree begins.
add_test(NAME sim.tree.heard_early COMMAND simtree 20118020 1)
if(test_runs_plain)
  add_test(NAME sim.tree.5000 COMMAND simtree 1 5000)
  add_test(NAME sim.tree.large COMMAND simtree --agents 10000 1 2)
  add_test(NAME sim.tree.nightly COMMAND simtree 100001 100000)
  add_test(NAME sim.tree.large_nightly COMMAND simtree --agents 10000 1001 40)
  set_tests_properties(sim.tree.nightly sim.tree.large_nightly PROPERTIES TIMEOUT 3600 LABELS nightly)
endif()
if(test_runs_sanitized)
  add_test(NAME sim.tree.1000 COMMAND simtree 500000 1000)
endif()
foreach(name sim.tree.selftest sim.tree.heard_early sim.tree.5000 sim.tree.large sim.tree.1000)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 900 LABELS sim)
  endif()
endforeach()
