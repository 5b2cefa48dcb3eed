# SPDX-License-Identifier: Apache-2.0
# hvdrun-topology.so: hwloc behind one function, opened only when a job binds its workers.
# Included after room_node is declared.
add_library(hvdrun-topology MODULE ${PROJECT_SOURCE_DIR}/launcher/node/module/topology.c)
set_target_properties(hvdrun-topology PROPERTIES PREFIX ""
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/hvdrun)
target_link_libraries(hvdrun-topology PRIVATE room_model PkgConfig::dep_hwloc)
install(TARGETS hvdrun-topology LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hvdrun)

# Whoever links the room can ask for the module at run time, so it is built along; unit tests find
# it through this definition.
add_dependencies(room_node hvdrun-topology)
target_compile_definitions(room_node INTERFACE
  HVDRUN_TOPOLOGY_MODULE="$<TARGET_FILE:hvdrun-topology>")
