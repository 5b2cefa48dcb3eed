# SPDX-License-Identifier: Apache-2.0
# Flow tests are whole runs of the built hvdrun: one ctest for each tests/flow/test_NAME.py. The limit
# that a test keeps itself is a little shorter than ctest's, since it can say where it was.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(GLOB flow_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.py)
if(HVDRUN_SANITIZE)
  set(flow_limit 900)
else()
  set(flow_limit 300)
endif()
math(EXPR flow_own_limit "${flow_limit} - 15")
foreach(file ${flow_tests})
  get_filename_component(name ${file} NAME_WE)
  string(REPLACE "test_" "" name ${name})
  add_test(NAME flow.${name} COMMAND ${Python3_EXECUTABLE} -B ${file})
  set_tests_properties(
    flow.${name}
    PROPERTIES
      TIMEOUT ${flow_limit}
      ENVIRONMENT
      "HVDRUN=$<TARGET_FILE:hvdrun>;HVDRUN_WORKERS=${HVDRUN_WORKERS};HVDRUN_SOURCE=${PROJECT_SOURCE_DIR};HVDRUN_BUILD=${PROJECT_BINARY_DIR};HVDRUN_TEST_LIMIT=${flow_own_limit}")
endforeach()
