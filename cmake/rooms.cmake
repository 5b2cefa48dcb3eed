# SPDX-License-Identifier: Apache-2.0
# hvdrun_room(NAME [LINK target...]): the sources of the current folder as a static library
# `room_NAME`. Rooms are the folders of docs/design.md; tests/lint/layers.py checks who includes whom.
function(hvdrun_room name)
  cmake_parse_arguments(ROOM "" "DIR" "LINK;EXTRA" ${ARGN})
  if(NOT ROOM_DIR)
    set(ROOM_DIR ${name})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${ROOM_DIR}/*.c)
  add_library(room_${name} STATIC ${sources} ${ROOM_EXTRA})
  set_target_properties(room_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(room_${name} PUBLIC ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/launcher)
  target_link_libraries(room_${name} PUBLIC ${ROOM_LINK})
endfunction()
