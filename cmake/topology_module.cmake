# SPDX-License-Identifier: Apache-2.0
# hvdrun-topology.so: hwloc behind one function. hvdrun opens it only when a job binds its workers.
# Include this file after room_node is declared.
add_library(hvdrun-topology MODULE ${PROJECT_SOURCE_DIR}/launcher/node/module/topology.c)
target_link_libraries(hvdrun-topology PRIVATE room_model PkgConfig::dep_hwloc)
hvdrun_module(hvdrun-topology hwloc)

# A program that links with the room may open the module at run time, so the module must be built first.
# Unit tests find it through this definition.
add_dependencies(room_node hvdrun-topology)
target_compile_definitions(room_node INTERFACE
  HVDRUN_TOPOLOGY_MODULE="$<TARGET_FILE:hvdrun-topology>")
