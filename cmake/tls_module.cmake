# SPDX-License-Identifier: Apache-2.0
# hvdrun-tls.so: the only thing beside the SSH module that links OpenSSL. The driver opens it by its
# full path when agents dial back to it, and hvdrun-agent has it inside; it lies in lib/hvdrun/, in
# the build folder as in the installation.
add_library(hvdrun_tls MODULE ${PROJECT_SOURCE_DIR}/launcher/io/module/tls.c)
target_include_directories(hvdrun_tls PRIVATE ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/launcher)
target_link_libraries(hvdrun_tls PRIVATE room_base PkgConfig::dep_ssl)
set_target_properties(hvdrun_tls PROPERTIES
  PREFIX ""
  OUTPUT_NAME hvdrun-tls
  SUFFIX ".so"
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/hvdrun
  INSTALL_RPATH "${dep_ssl_LIBRARY_DIRS}")
install(TARGETS hvdrun_tls LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hvdrun)

# Whoever links the room can ask for the module at run time, so it is built along; unit tests find
# it through this definition.
add_dependencies(room_io hvdrun_tls)
target_compile_definitions(room_io INTERFACE HVDRUN_TLS_MODULE="$<TARGET_FILE:hvdrun_tls>")
