# SPDX-License-Identifier: Apache-2.0
# Flow tests are whole runs of the built hvdrun: one ctest for each tests/flow/test_NAME.py. The limit
# that a test keeps itself is a little shorter than ctest's, since it can say where it was. Those on
# many hosts, or on a Slurm cluster (label rig), make a world of namespaces for themselves and are
# skipped where they may not; test_nightly_NAME.py runs at night only.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(GLOB flow_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.py)
if(HVDRUN_SANITIZE)
  set(flow_limit 900)
else()
  set(flow_limit 300)
endif()
foreach(file ${flow_tests})
  get_filename_component(name ${file} NAME_WE)
  string(REPLACE "test_" "" name ${name})
  set(limit ${flow_limit})
  file(STRINGS ${file} own_limit REGEX "^# ctest limit: [0-9]+$") # of a file that takes longer
  if(own_limit)
    string(REGEX REPLACE "[^0-9]" "" limit ${own_limit})
  endif()
  math(EXPR limit_inside "${limit} - 15")
  add_test(NAME flow.${name} COMMAND ${Python3_EXECUTABLE} -B ${file})
  set_tests_properties(
    flow.${name}
    PROPERTIES
      TIMEOUT ${limit}
      ENVIRONMENT
      "HVDRUN=$<TARGET_FILE:hvdrun>;HVDRUN_WORKERS=${HVDRUN_WORKERS};HVDRUN_SOURCE=${PROJECT_SOURCE_DIR};HVDRUN_BUILD=${PROJECT_BINARY_DIR};HVDRUN_TEST_LIMIT=${limit_inside}")
  set(flow_labels)
  file(STRINGS ${file} needs_rig REGEX "^from (hosts|slurm) import")
  if(needs_rig)
    list(APPEND flow_labels rig)
    set_tests_properties(flow.${name} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
  if(name MATCHES "^nightly_")
    list(APPEND flow_labels nightly)
  endif()
  file(STRINGS ${file} waits REGEX "^# ctest waits$")
  if(waits)
    list(APPEND flow_labels waits)
  endif()
  file(STRINGS ${file} long REGEX "^# ctest long$") # begins first; with sanitizers it runs at night
  if(long)
    set_tests_properties(flow.${name} PROPERTIES COST 200)
    if(HVDRUN_SANITIZE)
      list(APPEND flow_labels nightly)
    endif()
  endif()
  if(flow_labels)
    set_tests_properties(flow.${name} PROPERTIES LABELS "${flow_labels}")
  endif()
endforeach()
