# SPDX-License-Identifier: Apache-2.0
include(${PROJECT_SOURCE_DIR}/cmake/python.cmake)
# Unit tests mirror the source tree: tests/unit/ROOM/test_NOUN.c, or with the noun's folder between. All of
# a room are one program, unit_ROOM; each is the test unit.ROOM.NOUN, which runs `unit_ROOM NOUN`.
file(GLOB unit_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*/test_*.c ${CMAKE_CURRENT_LIST_DIR}/*/*/test_*.c)
set(unit_rooms)
foreach(source ${unit_sources})
  file(RELATIVE_PATH room ${CMAKE_CURRENT_LIST_DIR} ${source})
  string(REGEX REPLACE "/.*" "" room ${room})
  get_filename_component(noun ${source} NAME_WE)
  string(REGEX REPLACE "^test_" "" noun ${noun})
  if(noun IN_LIST unit_nouns_${room})
    message(FATAL_ERROR "tests/unit/${room} has two files test_${noun}.c")
  endif()
  list(APPEND unit_rooms ${room})
  list(APPEND unit_nouns_${room} ${noun})
  list(APPEND unit_sources_${room} ${source})
  set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS main=unit_main_${noun})
endforeach()
list(REMOVE_DUPLICATES unit_rooms)

if(NOT test_runs_sanitized)
  set(unit_rooms)
endif()
set(unit_commands)
foreach(room ${unit_rooms})
  set(target unit_${room})
  add_executable(${target} ${CMAKE_CURRENT_LIST_DIR}/main.c ${CMAKE_CURRENT_LIST_DIR}/clock.c
                 ${unit_sources_${room}})
  list(TRANSFORM unit_nouns_${room} REPLACE "(.+)" " X(\\1)" OUTPUT_VARIABLE unit_list)
  string(REPLACE ";" "" unit_list "${unit_list}")
  set(unit_generated ${CMAKE_CURRENT_BINARY_DIR}/unit/${room})
  file(CONFIGURE OUTPUT ${unit_generated}/unit_nouns.h CONTENT "#define UNIT_NOUN_LIST(X)${unit_list}\n")
  target_link_libraries(${target} PRIVATE room_${room} PkgConfig::cmocka)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_LIST_DIR} ${unit_generated})
  # The program may be elsewhere: with a change of tests/mutation in it.
  target_compile_definitions(${target} PRIVATE HVDRUN_MODULES="${PROJECT_BINARY_DIR}/lib/hvdrun")
  # cmocka's macros convert integers on their own
  target_compile_options(${target} PRIVATE -Wno-conversion -Wno-missing-prototypes)
  # Without optimization, tests compile in less than half of the time; what they test is optimized. Those of
  # stacks are read as a program of the user's, which is.
  if(NOT room STREQUAL "stacks")
    target_compile_options(${target} PRIVATE -O0)
  endif()
  foreach(noun ${unit_nouns_${room}})
    add_test(NAME unit.${room}.${noun} COMMAND ${target} ${noun})
    set_tests_properties(unit.${room}.${noun} PROPERTIES TIMEOUT 600 ENVIRONMENT "HVDRUN_SOURCE=${PROJECT_SOURCE_DIR}")
    if(NOT noun IN_LIST units_on_one_machine)
      string(APPEND unit_commands "$<TARGET_FILE:${target}> ${noun}\n")
    endif()
  endforeach()
endforeach()
foreach(target unit_timeline unit_api) # read what was written with another parser
  if(TARGET ${target})
    target_link_libraries(${target} PRIVATE dep_jansson)
  endif()
endforeach()
if(TARGET unit_agent) # which helper processes are
  add_dependencies(unit_agent hvdrun-agent)
  foreach(noun dial_words dial_out) # of its main
    target_sources(unit_agent PRIVATE ${PROJECT_SOURCE_DIR}/launcher/agent_main/${noun}.c)
  endforeach()
  target_compile_definitions(unit_agent PRIVATE HVDRUN_AGENT_PROGRAM="$<TARGET_FILE:hvdrun-agent>")
endif()

# All of them once more on two other machines, which machine.py makes of this one: no result depends on a clock's
# age, the user, HOME, the session, the number of processors, the language, the time zone, or a source tree that can
# be written to.
if(unit_rooms)
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/unit/list CONTENT "${unit_commands}")
  foreach(machine "young one-core read-only inside" "old user abroad")
    string(REPLACE " " ";" words ${machine})
    list(GET words 0 name)
    add_test(NAME machine.${name} COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/machine.py
                                          ${CMAKE_CURRENT_BINARY_DIR}/unit/list ${words})
    set_tests_properties(machine.${name} PROPERTIES TIMEOUT 2400 SKIP_RETURN_CODE 77 COST 110)
  endforeach()
endif()
