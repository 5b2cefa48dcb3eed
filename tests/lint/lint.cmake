# SPDX-License-Identifier: Apache-2.0
# The checks that read the sources instead of running them; include()d from tests/CMakeLists.txt.
include(${PROJECT_SOURCE_DIR}/cmake/python.cmake)

function(lint_test name)
  if(NOT test_runs_plain)
    return()
  endif()
  add_test(NAME lint.${name} COMMAND ${ARGN})
  set_tests_properties(lint.${name} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 LABELS lint)
endfunction()

foreach(check format python spdx docs words claims names selftest)
  lint_test(${check} ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/${check}.py)
endforeach()
foreach(check layers banned house)
  lint_test(${check} ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/${check}.py --build ${PROJECT_BINARY_DIR})
endforeach()
lint_test(shell ${CMAKE_CURRENT_LIST_DIR}/shell.sh)
