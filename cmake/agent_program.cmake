# SPDX-License-Identifier: Apache-2.0
# hvdrun-agent: the agent as a separate program, which hvdrun sends to other hosts. It is one file that
# needs only libc: it contains the modules. They are stripped, except in builds with sanitizers.
set(agent_parts ${PROJECT_BINARY_DIR}/generated/agent)
file(MAKE_DIRECTORY ${agent_parts})
function(hvdrun_agent_part target file)
  if(HVDRUN_SANITIZE OR NOT CMAKE_STRIP)
    set(command ${CMAKE_COMMAND} -E copy $<TARGET_FILE:${target}> ${agent_parts}/${file})
  else()
    set(command ${CMAKE_STRIP} --strip-unneeded -o ${agent_parts}/${file} $<TARGET_FILE:${target}>)
  endif()
  add_custom_command(OUTPUT ${agent_parts}/${file} COMMAND ${command} DEPENDS ${target} VERBATIM)
endfunction()
hvdrun_agent_part(hvdrun_pmix hvdrun-pmix.so)
hvdrun_agent_part(hvdrun-topology hvdrun-topology.so)
hvdrun_agent_part(hvdrun_tls hvdrun-tls.so)
hvdrun_agent_part(hvdrun_unwind hvdrun-unwind.so)

set(agent_main ${PROJECT_SOURCE_DIR}/launcher/agent_main)
set_source_files_properties(${agent_main}/modules_inside.c PROPERTIES
  OBJECT_DEPENDS "${agent_parts}/hvdrun-pmix.so;${agent_parts}/hvdrun-topology.so;${agent_parts}/hvdrun-tls.so;${agent_parts}/hvdrun-unwind.so"
  COMPILE_DEFINITIONS "HVDRUN_PMIX_FILE=\"${agent_parts}/hvdrun-pmix.so\";HVDRUN_TOPOLOGY_FILE=\"${agent_parts}/hvdrun-topology.so\";HVDRUN_TLS_FILE=\"${agent_parts}/hvdrun-tls.so\";HVDRUN_UNWIND_FILE=\"${agent_parts}/hvdrun-unwind.so\"")
add_executable(hvdrun-agent ${agent_main}/main.c ${agent_main}/dial_out.c
  ${agent_main}/dial_words.c ${agent_main}/modules_inside.c ${agent_main}/older_libc.c)
target_link_libraries(hvdrun-agent PRIVATE room_agent_features)
set_target_properties(hvdrun-agent PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/hvdrun)
if(NOT HVDRUN_SANITIZE)
  target_link_options(hvdrun-agent PRIVATE -Wl,-s -Wl,--as-needed)
endif()
install(TARGETS hvdrun-agent RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/hvdrun)
# Users start it, too (--transport dial), so it is in PATH.
set(agent_link ${PROJECT_BINARY_DIR}/generated/bin)
file(MAKE_DIRECTORY ${agent_link})
file(CREATE_LINK ../${CMAKE_INSTALL_LIBDIR}/hvdrun/hvdrun-agent ${agent_link}/hvdrun-agent SYMBOLIC)
install(FILES ${agent_link}/hvdrun-agent DESTINATION ${CMAKE_INSTALL_BINDIR})

# hvdrun looks for hvdrun-agent and the module for SSH at run time, and so do the unit tests of the transports.
add_dependencies(hvdrun hvdrun-agent hvdrun_ssh)
add_dependencies(room_transport hvdrun-agent)
target_compile_definitions(room_transport INTERFACE
  HVDRUN_AGENT_PROGRAM="$<TARGET_FILE:hvdrun-agent>")
