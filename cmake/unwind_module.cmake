# SPDX-License-Identifier: Apache-2.0
# hvdrun-unwind.so: native frames through libdw. An agent opens it for `hvdrun stacks --native`.
# hvdrun-agent contains it. Include this file after room_stacks is declared.
add_library(hvdrun_unwind MODULE ${PROJECT_SOURCE_DIR}/launcher/stacks/module/unwind.c)
target_include_directories(hvdrun_unwind PRIVATE ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/launcher)
target_link_libraries(hvdrun_unwind PRIVATE room_base PkgConfig::dep_dw PkgConfig::dep_elf ${CMAKE_DL_LIBS})
hvdrun_module(hvdrun_unwind dw elf)

# A program that links with the room may open the module at run time, so the module must be built first.
# Unit tests find it through this definition.
add_dependencies(room_stacks hvdrun_unwind)
target_compile_definitions(room_stacks INTERFACE HVDRUN_UNWIND_MODULE="$<TARGET_FILE:hvdrun_unwind>")
