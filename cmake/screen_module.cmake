# SPDX-License-Identifier: Apache-2.0
# hvdrun-screen.so: the only file that links with ncurses. `hvdrun top` opens it; a job never does.
add_library(hvdrun_screen MODULE ${PROJECT_SOURCE_DIR}/launcher/cli/module/screen.c)
target_include_directories(hvdrun_screen PRIVATE ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/launcher)
target_link_libraries(hvdrun_screen PRIVATE room_base PkgConfig::dep_ncursesw)
hvdrun_module(hvdrun_screen ncursesw)
add_dependencies(room_cli hvdrun_screen)
