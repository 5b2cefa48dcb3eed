# SPDX-License-Identifier: Apache-2.0
# Programs that test an engine of libhvd. tests/flow/test_engines.py runs them under hvdrun.
foreach(program collectives faults)
  add_executable(engine_${program} ${CMAKE_CURRENT_LIST_DIR}/${program}.c ${CMAKE_CURRENT_LIST_DIR}/values.c
    ${CMAKE_CURRENT_LIST_DIR}/worker.c)
  set_target_properties(engine_${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/engine)
  target_include_directories(engine_${program} PRIVATE ${CMAKE_CURRENT_LIST_DIR})
  target_link_libraries(engine_${program} PRIVATE room_engine room_base Threads::Threads m)
endforeach()

if(HVD_WITH_GLOO)
  set(shim ${PROJECT_SOURCE_DIR}/runtime/engine/gloo)
  add_executable(engine_giver_up ${CMAKE_CURRENT_LIST_DIR}/giver_up.c ${shim}/shim.cc)
  target_include_directories(engine_giver_up SYSTEM PRIVATE ${GLOO_INCLUDE_DIR})
  target_link_libraries(engine_giver_up PRIVATE room_engine room_base ${GLOO_LIBRARY} Threads::Threads)
  add_test(NAME unit.engine.giver_up COMMAND engine_giver_up)
  add_test(NAME unit.engine.giver_up_awake COMMAND engine_giver_up wake)
endif()
