# SPDX-License-Identifier: Apache-2.0
# The programs of engines.py and hvd.py. The default build does not contain them.
add_custom_target(bench_engines)
get_property(engines GLOBAL PROPERTY HVD_ENGINES)
function(bench_engine name engine)
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${ARGN} ${CMAKE_CURRENT_SOURCE_DIR}/engine/worker.c)
  set_target_properties(bench_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bench)
  target_include_directories(bench_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/bench
    ${CMAKE_CURRENT_SOURCE_DIR}/engine ${CMAKE_CURRENT_SOURCE_DIR}/hvd)
  target_link_libraries(bench_${name} PRIVATE hvd room_engine room_base Threads::Threads m)
  if(engine STREQUAL "mpi")
    target_link_libraries(bench_${name} PRIVATE PkgConfig::dep_ompi)
  else()
    target_include_directories(bench_${name} SYSTEM PRIVATE ${GLOO_INCLUDE_DIR})
    target_link_libraries(bench_${name} PRIVATE ${GLOO_LIBRARY})
  endif()
  add_dependencies(bench_engines bench_${name} hvd_${engine})
endfunction()
foreach(engine ${engines})
  foreach(kind engine hvd)
    file(GLOB source ${CMAKE_CURRENT_SOURCE_DIR}/bench/${kind}_${engine}.c*)
    list(APPEND source ${CMAKE_CURRENT_SOURCE_DIR}/bench/${kind}_rounds.c)
    if(kind STREQUAL "hvd")
      list(APPEND source ${CMAKE_CURRENT_SOURCE_DIR}/hvd/job.c ${CMAKE_CURRENT_SOURCE_DIR}/bench/rows.c)
    endif()
    bench_engine(${kind}_${engine} ${engine} ${source})
  endforeach()
endforeach()

# Programs of libhvd alone. tests/gpu/nccl.sh runs hvd_nccl on a machine with GPUs.
foreach(name hvd_nccl hvd_cases)
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${CMAKE_CURRENT_SOURCE_DIR}/bench/${name}.c
    ${CMAKE_CURRENT_SOURCE_DIR}/bench/rows.c ${CMAKE_CURRENT_SOURCE_DIR}/hvd/job.c
    ${CMAKE_CURRENT_SOURCE_DIR}/hvd/place.c ${CMAKE_CURRENT_SOURCE_DIR}/engine/worker.c)
  set_target_properties(bench_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bench)
  target_include_directories(bench_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/bench
    ${CMAKE_CURRENT_SOURCE_DIR}/engine ${CMAKE_CURRENT_SOURCE_DIR}/hvd)
  target_link_libraries(bench_${name} PRIVATE hvd room_engine room_base Threads::Threads ${CMAKE_DL_LIBS} m)
  add_dependencies(bench_engines bench_${name})
endforeach()
