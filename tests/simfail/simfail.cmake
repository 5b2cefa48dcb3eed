# SPDX-License-Identifier: Apache-2.0
# The simulator of failures; include()d from tests/CMakeLists.txt. world.h says what it simulates.
add_executable(simfail ${CMAKE_CURRENT_LIST_DIR}/main.c ${CMAKE_CURRENT_LIST_DIR}/world.c
                       ${CMAKE_CURRENT_LIST_DIR}/agenda.c
                       ${CMAKE_CURRENT_LIST_DIR}/driver.c)
target_link_libraries(simfail PRIVATE room_model)
target_include_directories(simfail PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})

add_test(NAME sim.fail.selftest COMMAND simfail --selftest)
if(test_runs_plain)
  add_test(NAME sim.fail.100000 COMMAND simfail 1 100000)
  add_test(NAME sim.fail.nightly COMMAND simfail 100001 1000000)
  set_tests_properties(sim.fail.nightly PROPERTIES TIMEOUT 3600 LABELS nightly)
endif()
if(test_runs_sanitized)
  add_test(NAME sim.fail.3000 COMMAND simfail 500000 3000)
endif()
foreach(name sim.fail.selftest sim.fail.100000 sim.fail.3000)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 900 LABELS sim)
  endif()
endforeach()
