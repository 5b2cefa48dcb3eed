# SPDX-License-Identifier: Apache-2.0
# A feature is a folder of launcher/features (docs/design.md, "Features"). The core names one only in its tables and in
# cli/features.c, with weak symbols. So a feature that is left out changes no object of the core: it is not linked.
file(GLOB features_all RELATIVE ${PROJECT_SOURCE_DIR}/launcher/features CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/launcher/features/*)
list(REMOVE_ITEM features_all needs.txt)
list(LENGTH features_all features_all_count)
set(HVDRUN_FEATURES "all" CACHE STRING "Folders of launcher/features to build: a list such as \"check;usage\", all or none")
set(features ${HVDRUN_FEATURES})
if(features STREQUAL "all")
  set(features ${features_all})
elseif(features STREQUAL "none")
  set(features)
endif()
foreach(feature ${features})
  if(NOT feature IN_LIST features_all)
    list(JOIN features_all ", " names)
    message(FATAL_ERROR "HVDRUN_FEATURES: there is no feature '${feature}'; there are: ${names}")
  endif()
endforeach()

# What those need, too.
file(STRINGS ${PROJECT_SOURCE_DIR}/launcher/features/needs.txt needs REGEX "^[a-z]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/launcher/features/needs.txt)
foreach(again RANGE ${features_all_count})
  foreach(need ${needs})
    string(REGEX MATCH "^([a-z_]+) ([a-z_]+):" pair "${need}")
    if(CMAKE_MATCH_1 IN_LIST features AND NOT CMAKE_MATCH_2 IN_LIST features)
      message(STATUS "HVDRUN_FEATURES: '${CMAKE_MATCH_1}' needs '${CMAKE_MATCH_2}'")
      list(APPEND features ${CMAKE_MATCH_2})
    endif()
  endforeach()
endforeach()

# features_target(NAME KIND PATTERN [room...]): the files of all features whose names match, as a library that links
# with the rooms. What only tables name must be objects: a linker takes nothing out of an archive for a weak symbol.
function(features_target target kind pattern)
  set(sources)
  foreach(feature ${features})
    file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/launcher/features/${feature}/*.c)
    list(FILTER found INCLUDE REGEX "${pattern}")
    list(APPEND sources ${found})
  endforeach()
  if(kind STREQUAL "STATIC")
    list(FILTER sources EXCLUDE REGEX "_(agent|driver|cli)\\.c$")
  endif()
  if(NOT sources)
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${ARGN})
    return()
  endif()
  add_library(${target} ${kind} ${sources})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/launcher)
  target_link_libraries(${target} PUBLIC ${ARGN})
endfunction()

# The files of the status page are in one object.
set(page_folder ${PROJECT_SOURCE_DIR}/launcher/features/metrics/page)
file(GLOB page_files CONFIGURE_DEPENDS ${page_folder}/*)
set_source_files_properties(features/metrics/page.c PROPERTIES
  OBJECT_DEPENDS "${page_files}"
  COMPILE_DEFINITIONS "HVDRUN_PAGE_FOLDER=\"${page_folder}\"")

set_source_files_properties(features/warm/mother_process_agent.c PROPERTIES
  OBJECT_DEPENDS ${PROJECT_SOURCE_DIR}/launcher/features/warm/mother.py
  COMPILE_DEFINITIONS "HVDRUN_MOTHER=\"${PROJECT_SOURCE_DIR}/launcher/features/warm/mother.py\"")

set_source_files_properties(features/check/check_agent.c PROPERTIES
  OBJECT_DEPENDS ${PROJECT_SOURCE_DIR}/launcher/features/check/gpu_test.py
  COMPILE_DEFINITIONS "HVDRUN_GPU_TEST=\"${PROJECT_SOURCE_DIR}/launcher/features/check/gpu_test.py\"")

features_target(features_plain STATIC "." room_node room_stacks room_output room_rendezvous room_pmix
                room_line dep_jansson)
features_target(features_agent OBJECT "_agent\\.c$" features_plain room_agent)
features_target(features_driver OBJECT "_driver\\.c$" features_plain room_driver)
features_target(features_cli OBJECT "_cli\\.c$" features_plain room_cli)

# Everything that hvdrun is made of, and everything that hvdrun-agent is made of.
add_library(room_features INTERFACE)
add_library(room_agent_features INTERFACE)
foreach(side agent driver cli)
  target_link_libraries(room_features INTERFACE features_${side})
endforeach()
target_link_libraries(room_agent_features INTERFACE features_agent)
foreach(target room_features room_agent_features)
  foreach(side agent driver cli)
    get_target_property(type features_${side} TYPE)
    if(type STREQUAL "OBJECT_LIBRARY" AND (side STREQUAL "agent" OR target STREQUAL "room_features"))
      target_sources(${target} INTERFACE $<TARGET_OBJECTS:features_${side}>)
    endif()
  endforeach()
endforeach()
target_link_libraries(room_features INTERFACE room_cli)
target_link_libraries(room_agent_features INTERFACE room_agent)
