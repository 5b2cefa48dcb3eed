# SPDX-License-Identifier: Apache-2.0
# A program that trains with runtime/elastic over the bare engine gloo. tests/flow/test_state.py runs it
# under hvdrun.
add_executable(elastic_trainer ${CMAKE_CURRENT_LIST_DIR}/trainer.c)
set_target_properties(elastic_trainer PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/elastic)
target_link_libraries(elastic_trainer PRIVATE room_elastic room_core room_engine room_line room_base Threads::Threads m)
