# SPDX-License-Identifier: Apache-2.0
# hvdrun-pmix.so: the only file that links with the PMIx library. The agent opens it when a job needs PMIx.
file(GLOB pmix_module_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/launcher/pmix/module/*.c)
add_library(hvdrun_pmix MODULE ${pmix_module_sources} ${PROJECT_SOURCE_DIR}/launcher/pmix/publish_store.c)
target_include_directories(hvdrun_pmix PRIVATE ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/launcher)
target_link_libraries(hvdrun_pmix PRIVATE room_base PkgConfig::dep_pmix Threads::Threads)
hvdrun_module(hvdrun_pmix pmix)
