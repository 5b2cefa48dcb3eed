# SPDX-License-Identifier: Apache-2.0
# The tiny programs that misbehave on purpose. They end in one folder, HVDRUN_WORKERS for the flow
# tests, each under the name of its source; they are built without sanitizers, since a sanitizer
# would turn their crashes into exits. The MPI ones have rules of their own (mpi.cmake).
set(HVDRUN_WORKERS ${PROJECT_BINARY_DIR}/tests/workers)
file(MAKE_DIRECTORY ${HVDRUN_WORKERS})
file(GLOB worker_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_custom_target(workers)
foreach(source ${worker_sources})
  get_filename_component(name ${source} NAME_WE)
  if(name MATCHES "^mpi_")
    continue()
  endif()
  # a target may not be called after every word ("env", "self"...), the program may
  add_executable(worker_${name} ${source})
  set_target_properties(worker_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${HVDRUN_WORKERS})
  target_compile_options(worker_${name} PRIVATE -O1 -fno-sanitize=all)
  target_link_options(worker_${name} PRIVATE -fno-sanitize=all)
  add_dependencies(workers worker_${name})
endforeach()

# This one uses a part of libhvd, which is built here without sanitizers too.
file(GLOB line_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/line/*.c)
target_sources(worker_line_worker PRIVATE ${line_sources}
  ${PROJECT_SOURCE_DIR}/runtime/base/buf.c ${PROJECT_SOURCE_DIR}/runtime/base/error.c
  ${PROJECT_SOURCE_DIR}/runtime/base/fd.c ${PROJECT_SOURCE_DIR}/runtime/base/mem.c
  ${PROJECT_SOURCE_DIR}/runtime/base/parse.c ${PROJECT_SOURCE_DIR}/runtime/base/thread.c)
target_include_directories(worker_line_worker PRIVATE ${PROJECT_SOURCE_DIR}/runtime)

set(WORKERS_DIR ${HVDRUN_WORKERS})
if(NOT TARGET mpi_workers)
  include(${CMAKE_CURRENT_LIST_DIR}/mpi.cmake)
endif()
