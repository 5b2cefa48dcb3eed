# SPDX-License-Identifier: Apache-2.0
# hvdrun_module(TARGET DEPENDENCY...): makes TARGET a module of ours, which is opened by its full path
# when a job needs the libraries behind it; it lies in lib/hvdrun/, in the build folder as in the
# installation.
#
# Its search path is the final one from the start: one that is changed at installation leaves empty
# places in the file, which the loader reads as "the current folder", and a build ID that depends on
# the build folder. It names folders only that the loader does not search by itself.
function(hvdrun_module target)
  target_link_libraries(${target} PRIVATE older_libc)
  set(search)
  foreach(dependency ${ARGN})
    foreach(library ${dep_${dependency}_LINK_LIBRARIES})
      get_filename_component(folder ${library} DIRECTORY)
      hvdrun_loader_finds(${library} found)
      if(IS_ABSOLUTE ${library} AND NOT found)
        list(APPEND search ${folder})
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES search)
  string(REPLACE _ - file ${target})
  set_target_properties(${target} PROPERTIES
    PREFIX ""
    OUTPUT_NAME ${file}
    SUFFIX ".so"
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/hvdrun
    BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "${search}")
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hvdrun)
endfunction()

# What the agent takes along must not need a newer libc than it does itself.
add_library(older_libc STATIC ${PROJECT_SOURCE_DIR}/launcher/agent_main/older_libc.c)
set_target_properties(older_libc PROPERTIES POSITION_INDEPENDENT_CODE ON)

# Whether the same file is in a folder that every program is searched in. Debian's PMIx lies in a
# folder of its own with a link from the usual one.
function(hvdrun_loader_finds library result)
  get_filename_component(name ${library} NAME)
  file(REAL_PATH ${library} real)
  set(${result} OFF PARENT_SCOPE)
  foreach(folder ${CMAKE_C_IMPLICIT_LINK_DIRECTORIES})
    if(EXISTS ${folder}/${name})
      file(REAL_PATH ${folder}/${name} usual)
      if(usual STREQUAL real)
        set(${result} ON PARENT_SCOPE)
      endif()
    endif()
  endforeach()
endfunction()
