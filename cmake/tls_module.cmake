# SPDX-License-Identifier: Apache-2.0
# hvdrun-tls.so: except for the SSH module, the only file that links with OpenSSL. The driver opens it
# when agents connect back. hvdrun-agent contains it.
add_library(hvdrun_tls MODULE ${PROJECT_SOURCE_DIR}/launcher/io/module/tls.c)
target_include_directories(hvdrun_tls PRIVATE ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/launcher)
target_link_libraries(hvdrun_tls PRIVATE room_base PkgConfig::dep_ssl)
hvdrun_module(hvdrun_tls ssl crypto)

# A program that links with the room may open the module at run time, so the module must be built first.
# Unit tests find it through this definition.
add_dependencies(room_io hvdrun_tls)
target_compile_definitions(room_io INTERFACE HVDRUN_TLS_MODULE="$<TARGET_FILE:hvdrun_tls>")
