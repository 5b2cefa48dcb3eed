# SPDX-License-Identifier: Apache-2.0
# Changes of the source that no test notices: see README.md here. The night tries a few in each of the
# rooms that unit tests cover alone, drawn anew each time; the seed is printed.
include(${PROJECT_SOURCE_DIR}/cmake/python.cmake)

if(test_runs_plain)
  add_test(NAME lint.mutation_selftest COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/selftest.py)
  set_tests_properties(lint.mutation_selftest PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 LABELS lint)
endif()

add_test(NAME mutation.nightly
         COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/mutation.py --room model --room wire --room output
                 --room rendezvous --room pmi1 --room features --count 60 --sanitize --at-least 70)
set_tests_properties(mutation.nightly PROPERTIES TIMEOUT 5400 SKIP_RETURN_CODE 77 LABELS nightly)
