# SPDX-License-Identifier: Apache-2.0
# hvdrun-tls.so: the only thing beside the SSH module that links OpenSSL. The driver opens it when
# agents dial back to it, and hvdrun-agent has it inside.
add_library(hvdrun_tls MODULE ${PROJECT_SOURCE_DIR}/launcher/io/module/tls.c)
target_include_directories(hvdrun_tls PRIVATE ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/launcher)
target_link_libraries(hvdrun_tls PRIVATE room_base PkgConfig::dep_ssl)
hvdrun_module(hvdrun_tls ssl crypto)

# Whoever links the room can ask for the module at run time, so it is built along; unit tests find
# it through this definition.
add_dependencies(room_io hvdrun_tls)
target_compile_definitions(room_io INTERFACE HVDRUN_TLS_MODULE="$<TARGET_FILE:hvdrun_tls>")
