# SPDX-License-Identifier: Apache-2.0
# Programs that test an engine of libhvd. tests/flow/test_engines.py runs them under hvdrun.
foreach(program collectives faults)
  add_executable(engine_${program} ${CMAKE_CURRENT_LIST_DIR}/${program}.c ${CMAKE_CURRENT_LIST_DIR}/values.c
    ${CMAKE_CURRENT_LIST_DIR}/worker.c)
  set_target_properties(engine_${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/engine)
  target_include_directories(engine_${program} PRIVATE ${CMAKE_CURRENT_LIST_DIR})
  target_link_libraries(engine_${program} PRIVATE room_engine room_base Threads::Threads m)
endforeach()
