# SPDX-License-Identifier: Apache-2.0
# hvdrun-ssh.so: the only file that links with libssh2. The driver opens it when a job reaches a host
# over SSH. Unit tests link with the static library.
file(GLOB ssh_module_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/launcher/transport/ssh_module/*.c)
add_library(room_ssh STATIC ${ssh_module_sources})
set_target_properties(room_ssh PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
target_include_directories(room_ssh PUBLIC ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/launcher)
target_link_libraries(room_ssh PUBLIC room_base PkgConfig::dep_ssh2 PkgConfig::dep_crypto)

# session.c has the table that the driver looks for.
add_library(hvdrun_ssh MODULE ${PROJECT_SOURCE_DIR}/launcher/transport/ssh_module/session.c)
target_link_libraries(hvdrun_ssh PRIVATE room_ssh)
hvdrun_module(hvdrun_ssh ssh2 crypto)
