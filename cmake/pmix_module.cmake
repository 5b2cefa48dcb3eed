# SPDX-License-Identifier: Apache-2.0
# hvdrun-pmix.so: the only thing that links the PMIx library. The agent opens it by its full path
# when a job needs PMIx; it lies in lib/hvdrun/, in the build folder as in the installation.
file(GLOB pmix_module_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/launcher/pmix/module/*.c)
add_library(hvdrun_pmix MODULE ${pmix_module_sources} ${PROJECT_SOURCE_DIR}/launcher/pmix/publish_store.c)
target_include_directories(hvdrun_pmix PRIVATE ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/launcher)
target_link_libraries(hvdrun_pmix PRIVATE room_base PkgConfig::dep_pmix Threads::Threads)
set_target_properties(hvdrun_pmix PROPERTIES
  PREFIX ""
  OUTPUT_NAME hvdrun-pmix
  SUFFIX ".so"
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/hvdrun
  INSTALL_RPATH "${dep_pmix_LIBRARY_DIRS}")
install(TARGETS hvdrun_pmix LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hvdrun)
