# SPDX-License-Identifier: Apache-2.0
# hvdrun-ssh.so: the only thing that links libssh2. The driver opens it by its full path when a job
# reaches a host over SSH; it lies in lib/hvdrun/, in the build folder as in the installation.
# The static library is what unit tests link.
file(GLOB ssh_module_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/launcher/transport/ssh/*.c)
list(FILTER ssh_module_sources EXCLUDE REGEX "/module\\.c$")
add_library(room_ssh STATIC ${ssh_module_sources})
set_target_properties(room_ssh PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
target_include_directories(room_ssh PUBLIC ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/launcher)
target_link_libraries(room_ssh PUBLIC room_base PkgConfig::dep_ssh2 PkgConfig::dep_crypto)

add_library(hvdrun_ssh MODULE ${PROJECT_SOURCE_DIR}/launcher/transport/ssh/module.c)
target_link_libraries(hvdrun_ssh PRIVATE room_ssh)
set_target_properties(hvdrun_ssh PROPERTIES
  PREFIX ""
  OUTPUT_NAME hvdrun-ssh
  SUFFIX ".so"
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/hvdrun
  INSTALL_RPATH "${dep_ssh2_LIBRARY_DIRS}")
install(TARGETS hvdrun_ssh LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hvdrun)
