# SPDX-License-Identifier: Apache-2.0
# Flow tests are whole runs of the built hvdrun: one ctest for each tests/flow/test_NAME.py. The limit
# that a test keeps itself is a little shorter than ctest's, since it can say where it was. Those on
# many hosts, or on a Slurm cluster (label rig), make a world of namespaces for themselves and are
# skipped where they may not; test_nightly_NAME.py runs at night only. A file may say, in lines of its own:
#   # ctest limit: SECONDS          when the file may take longer than 2400 s
#   # ctest waits                   it mostly waits, so that others run beside it
#   # ctest busy                    it needs a processor for itself
#   # ctest long                    it begins first; run.sh leaves it to .ci/run
#   # ctest plain                   it runs without sanitizers; if it is long, it runs with them at night
#   # ctest harness                 it tests what tests stand on, and runs when that has changed, and at night
#   # ctest each VARIABLE: WORD ... one ctest for each word, flow.NAME.WORD, with the variable set to it
#   # ctest warm[ nightly][: TESTS]  also the ctest warm.NAME of all its tests, or of these, with --warm
# Single tests that are @plain (ground.py) are the ctest flow.NAME.plain of .ci/run.
include(${PROJECT_SOURCE_DIR}/cmake/python.cmake)

# hvdrun without its features, for flow.core.
add_executable(hvdrun_core ${PROJECT_SOURCE_DIR}/launcher/cli/main.c)
target_link_libraries(hvdrun_core PRIVATE room_cli)
set_target_properties(hvdrun_core PROPERTIES OUTPUT_NAME hvdrun-core RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

file(GLOB flow_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.py)
foreach(file ${flow_tests})
  get_filename_component(name ${file} NAME_WE)
  string(REPLACE "test_" "" name ${name})
  set(limit 2400)
  file(STRINGS ${file} own_limit REGEX "^# ctest limit: [0-9]+$") # of a file that takes longer
  if(own_limit)
    string(REGEX REPLACE "[^0-9]" "" limit ${own_limit})
  endif()
  math(EXPR limit_inside "${limit} - 15")
  set(environment
      "HVDRUN=$<TARGET_FILE:hvdrun>;HVDRUN_WORKERS=${HVDRUN_WORKERS};HVDRUN_SOURCE=${PROJECT_SOURCE_DIR};HVDRUN_BUILD=${PROJECT_BINARY_DIR};HVDRUN_TEST_LIMIT=${limit_inside}")
  set(tests flow.${name})
  set(flow_labels)
  foreach(word waits busy long plain harness)
    file(STRINGS ${file} said_${word} REGEX "^# ctest ${word}$")
    if(said_${word})
      list(APPEND flow_labels ${word})
    endif()
  endforeach()
  file(STRINGS ${file} each REGEX "^# ctest each [A-Z_]+: ")
  if(each)
    string(REGEX MATCH "[A-Z_]+:" variable ${each})
    string(REGEX REPLACE "^.*: " "" words ${each})
    string(REPLACE ":" "" variable ${variable})
    string(REPLACE " " ";" words ${words})
    list(TRANSFORM words PREPEND flow.${name}. OUTPUT_VARIABLE tests)
  endif()
  file(STRINGS ${file} warm REGEX "^# ctest warm( nightly)?(: .*)?$")
  if(warm AND test_runs_plain)
    string(REGEX REPLACE "^# ctest warm( nightly)?:?" "" warm_tests "${warm}")
    separate_arguments(warm_tests)
    set(warm_labels waits)
    if(warm MATCHES "^# ctest warm nightly")
      list(APPEND warm_labels nightly)
    endif()
    add_test(NAME warm.${name} COMMAND ${Python3_EXECUTABLE} -B ${file} ${warm_tests})
    set_tests_properties(warm.${name} PROPERTIES TIMEOUT ${limit} COST 100 LABELS "${warm_labels}"
                         ENVIRONMENT "${environment};HVDRUN_TEST_WARM=1")
  endif()
  set(part sanitized)
  if(said_plain OR name MATCHES "^nightly_")
    set(part plain)
  elseif(HVDRUN_CI_PART STREQUAL "plain")
    file(STRINGS ${file} plain_tests REGEX "^    @plain$")
    if(NOT plain_tests)
      continue()
    endif()
    list(APPEND environment HVDRUN_ONLY_PLAIN=1)
    set(part plain)
    set(tests flow.${name}.plain)
  endif()
  if(NOT test_runs_${part})
    continue()
  endif()
  foreach(test ${tests})
    add_test(NAME ${test} COMMAND ${Python3_EXECUTABLE} -B ${file})
    set(own_environment ${environment})
    if(each)
      string(REPLACE flow.${name}. "" word ${test})
      list(APPEND own_environment ${variable}=${word})
    endif()
    set_tests_properties(${test} PROPERTIES TIMEOUT ${limit} ENVIRONMENT "${own_environment}")
  endforeach()
  if(name MATCHES "^nightly_")
    list(APPEND flow_labels nightly)
  elseif(said_long AND said_plain AND HVDRUN_SANITIZE)
    list(APPEND flow_labels nightly)
  endif()
  # Those that mostly wait begin first, so that others fill the processors meanwhile.
  if(said_long)
    set_tests_properties(${tests} PROPERTIES COST 200)
  elseif(said_waits)
    set_tests_properties(${tests} PROPERTIES COST 150)
  else()
    set_tests_properties(${tests} PROPERTIES COST 100)
  endif()
  file(STRINGS ${file} needs_rig REGEX "^from (hosts|slurm|containers) import")
  if(needs_rig)
    list(APPEND flow_labels rig)
    set_tests_properties(${tests} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
  if(flow_labels)
    set_tests_properties(${tests} PROPERTIES LABELS "${flow_labels}")
  endif()
endforeach()
