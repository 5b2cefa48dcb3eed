# SPDX-License-Identifier: Apache-2.0
# hvdrun_room(NAME [FOLDERS folder...] [LINK target...]): the sources of a room and of its folders as a
# static library `room_NAME`. docs/design.md lists the rooms. tests/lint/layers.py checks which room may
# include which.
function(hvdrun_room name)
  cmake_parse_arguments(ROOM "" "" "FOLDERS;LINK;EXTRA" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.c)
  foreach(folder ${ROOM_FOLDERS})
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${name}/${folder}/*.c)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  add_library(room_${name} STATIC ${sources} ${ROOM_EXTRA})
  set_target_properties(room_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(room_${name} PUBLIC ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/launcher)
  target_link_libraries(room_${name} PUBLIC ${ROOM_LINK})
endfunction()
