# SPDX-License-Identifier: Apache-2.0
# hvdrun_module(TARGET DEPENDENCY...): makes TARGET a module. hvdrun opens it by its full path when a
# job needs the libraries that it links with. It is in lib/hvdrun/, in the build folder and in the
# installation.
#
# The build sets the final search path of libraries at once. If the installation changed it, the file
# would keep empty entries, which the loader reads as "the current folder". Its build ID would depend
# on the build folder. The search path has only folders that the loader does not search anyway.
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
  if(HVDRUN_PORTABLE)
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
  endif()
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

# The agent contains modules, so they must not need a newer libc than the agent itself.
add_library(older_libc STATIC ${PROJECT_SOURCE_DIR}/launcher/agent_main/older_libc.c)
set_target_properties(older_libc PROPERTIES POSITION_INDEPENDENT_CODE ON)

# Sets `result` to whether the loader finds the same file in its usual folders. Debian's PMIx is in
# another folder, with a link from a usual one.
function(hvdrun_loader_finds library result)
  get_filename_component(name ${library} NAME)
  get_filename_component(real ${library} REALPATH)
  set(${result} OFF PARENT_SCOPE)
  foreach(folder ${CMAKE_C_IMPLICIT_LINK_DIRECTORIES})
    if(EXISTS ${folder}/${name})
      get_filename_component(usual ${folder}/${name} REALPATH)
      if(usual STREQUAL real)
        set(${result} ON PARENT_SCOPE)
      endif()
    endif()
  endforeach()
endfunction()
